//! The memory workloads M1 to M5 and M7, on a device on paper: what the heap itself costs on this host.
//!
//! `cargo run --release -p kiln-mem --example m_workloads [m1 m2 m3 m5 m7]`
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

mod paper;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kiln_driver::{Driver, StreamRequest};
use kiln_mem::{
    DeviceBlock, DriverOrder, Heap, HeapConfig, MemoryResource, MemoryResourceExt, Request, StreamRef,
};
use paper::Paper;

const MIB: u64 = 1 << 20;
/// Whether M2 counts the time this thread ran instead of the time that passed; for machines that others use too.
static CPU_TIME: AtomicBool = AtomicBool::new(false);

struct Setup {
    paper: Arc<Paper>,
    order: Arc<DriverOrder>,
    heap: Arc<Heap>,
}

impl Setup {
    fn new(memory_bytes: u64) -> Self {
        let paper = Arc::new(Paper::new(memory_bytes));
        let order = Arc::new(DriverOrder::new(paper.clone()));
        let heap = Heap::over_pages(paper.clone(), order.clone(), HeapConfig::default()).unwrap();
        Self { paper, order, heap: Arc::new(heap) }
    }

    fn stream(&self) -> StreamRef {
        self.order.add(self.paper.create_stream(StreamRequest::New { priority: 0 }).unwrap())
    }
}

fn main() {
    let mut wanted: Vec<String> = std::env::args().skip(1).collect();
    CPU_TIME.store(wanted.iter().any(|wanted| wanted == "--cpu"), Ordering::Relaxed);
    wanted.retain(|wanted| !wanted.starts_with("--"));
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    if wants("m1") {
        m1();
    }
    if wants("m3") {
        m3();
    }
    if wants("m2") {
        m2();
    }
}

fn now() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    if CPU_TIME.load(Ordering::Relaxed) {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        return Duration::new(time.tv_sec as u64, time.tv_nsec as u32);
    }
    START.get_or_init(Instant::now).elapsed()
}

fn pair(resource: &dyn MemoryResource, request: &Request) {
    let block = resource.allocate(request).unwrap();
    resource.free(block).unwrap();
}

fn m1() {
    let setup = Setup::new(16 << 30);
    let request = Request::new(64 << 10, setup.stream());
    let resource: Arc<dyn MemoryResource> = setup.heap.clone();
    (0..1000).for_each(|_| pair(&*resource, &request));
    const BATCH: u32 = 1000;
    let mut times: Vec<f64> = (0..5_000)
        .map(|_| {
            let start = now();
            (0..BATCH).for_each(|_| pair(&*resource, &request));
            (now() - start).as_nanos() as f64 / f64::from(BATCH)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let mut single: Vec<u64> = (0..200_000)
        .map(|_| {
            let start = Instant::now();
            pair(&*resource, &request);
            start.elapsed().as_nanos() as u64
        })
        .collect();
    single.sort_unstable();
    println!(
        "M1 64 KiB pair: batch p50 {:.1} ns, p99 {:.1} ns; single, clock included: p50 {} ns, p99 {} ns",
        times[times.len() / 2],
        times[times.len() * 99 / 100],
        single[single.len() / 2],
        single[single.len() * 99 / 100]
    );
}

fn m3() {
    const PAIRS: u32 = 2_000_000;
    for threads in [1, 2, 4, 8] {
        let setup = Setup::new(16 << 30);
        let mut best = f64::MAX;
        for _ in 0..5 {
            let start = Instant::now();
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        let request = Request::new(64 << 10, setup.stream());
                        (0..PAIRS).for_each(|_| pair(&*setup.heap, &request));
                    });
                }
            });
            best = best.min(start.elapsed().as_nanos() as f64 / (f64::from(PAIRS) * f64::from(threads)));
        }
        println!("M3 {threads} threads: {best:.2} ns wall per pair");
    }
}

struct Lcg(u64);

impl Lcg {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

/// Runs M2 once; returns nanoseconds per operation and the peak of live bytes.
fn random_workload(resource: &dyn MemoryResource, stream: StreamRef, n: usize, max: u64) -> (f64, u64) {
    const LIMIT: u64 = 16_000 * MIB;
    let mut random = Lcg(42);
    let mut live: Vec<(DeviceBlock, u64)> = Vec::with_capacity(n);
    let (mut used, mut allocated, mut operations, mut peak) = (0, 0, 0_u64, 0);
    let start = now();
    for _ in 0..2 * n {
        let size = 1 + random.next() % max;
        let allocate = live.is_empty() || (random.next() % 100 < 73 && allocated < n && used + size < LIMIT);
        if allocate {
            live.push((resource.allocate(&Request::new(size, stream)).unwrap(), size));
            used += size;
            allocated += 1;
            peak = peak.max(used);
            operations += 1;
        } else if !live.is_empty() {
            let at = (random.next() % live.len() as u64) as usize;
            let (block, size) = live.swap_remove(at);
            resource.free(block).unwrap();
            used -= size;
            operations += 1;
        }
    }
    let time = (now() - start).as_nanos() as f64 / operations as f64;
    live.into_iter().for_each(|(block, _)| resource.free(block).unwrap());
    (time, peak)
}

fn m2() {
    println!(
        "M2 and M4: max, N: ns per operation (first, median of the rest); peak live, reserved, ratio; calls"
    );
    for max in [1, 4, 64, 256, 1024] {
        for n in [1_000, 10_000, 100_000] {
            let setup = Setup::new(128 << 30);
            let stream = setup.stream();
            let repeats = if n == 100_000 { 7 } else { 21 };
            let (first, peak) = random_workload(&*setup.heap, stream, n, max * MIB);
            let (second, _) = random_workload(&*setup.heap, stream, n, max * MIB);
            let calls = setup.paper.calls();
            let mut times: Vec<f64> =
                (0..repeats).map(|_| random_workload(&*setup.heap, stream, n, max * MIB).0).collect();
            times.sort_by(f64::total_cmp);
            let reserved = setup.heap.accounting().peak_reserved_bytes;
            println!(
                "{max:5} MiB {n:7}: {first:9.1} {second:9.1} {:7.1} ns; {:6} {:6} MiB {:.3}; {} calls, then {}",
                times[repeats / 2],
                peak / MIB,
                reserved / MIB,
                reserved as f64 / peak as f64,
                calls,
                setup.paper.calls() - calls
            );
        }
    }
}
