//! M7: what a warm path costs, counted. No driver call, no heap allocation, and no lock that another thread can hold.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[path = "rig/mod.rs"]
mod rig;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use kiln_driver::call::{Call, CallKind};
use kiln_driver::layer::{Counting, Layer, Layered};
use kiln_driver::{Driver, StreamRequest};
use kiln_mem::layer::{Budgeted, Counted, Limited, TraceConfig, Traced};
use kiln_mem::{
    AllocTag, AllocationRequest, Budget, DriverOrder, Heap, HeapConfig, MemoryResource, MemoryResourceExt,
    Order, StreamRef,
};
use rig::{MIB, Random, Rig};

/// Counts the allocations of each thread.
struct CountingAllocator;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is going has no count any more.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

struct CountedRig {
    rig: Rig,
    driver: Arc<Layered<Counting>>,
    order: Arc<DriverOrder>,
}

impl CountedRig {
    fn new() -> Self {
        Self::with_memory(512 * MIB)
    }

    fn with_memory(bytes: u64) -> Self {
        let rig = Rig::new(1, bytes);
        let driver = Arc::new(Layered::new(rig.driver(), Counting::default()));
        let order = Arc::new(DriverOrder::new(driver.clone()));
        Self { rig, driver, order }
    }

    fn stream(&self) -> StreamRef {
        self.order.add(self.driver.create_stream(StreamRequest::New { priority: 0 }).unwrap()).unwrap()
    }

    fn heap(&self) -> Heap {
        Heap::over_pages(self.driver.clone(), self.order.clone(), HeapConfig::default()).unwrap()
    }

    fn finish(self, streams: &[StreamRef]) {
        let Self { rig, driver, order } = self;
        for stream in streams {
            order.remove(*stream).unwrap();
            driver.destroy(stream.id().into()).unwrap();
        }
        drop((order, driver));
        rig.finish(&[]);
    }

    /// Driver calls and heap allocations of this thread while something runs.
    fn cost(&self, run: impl FnOnce()) -> (u64, u64) {
        let calls = self.driver.layer().counts();
        let allocations = ALLOCATIONS.get();
        run();
        (self.driver.layer().counts().since(&calls).total(), ALLOCATIONS.get() - allocations)
    }
}

fn pair(resource: &dyn MemoryResource, request: &AllocationRequest) {
    let block = resource.allocate(request).unwrap();
    resource.free(block).unwrap();
}

#[test]
fn a_warm_pair_costs_no_call_and_no_allocation_for_any_size() {
    let rig = CountedRig::new();
    let stream = rig.stream();
    let over = |make: fn(Arc<dyn Driver>, Arc<dyn Order>, HeapConfig) -> Heap| {
        make(rig.driver.clone(), rig.order.clone(), HeapConfig::default())
    };
    for heap in [rig.heap(), over(Heap::over_chunks), over(Heap::over_host)] {
        for bytes in [1, 256, 5000, 64 << 10, MIB, 2 * MIB, 3 * MIB + 1, 40 * MIB] {
            let request = AllocationRequest::new(bytes, stream);
            (0..10).for_each(|_| pair(&heap, &request));
            let warm = || (0..1000).for_each(|_| pair(&heap, &request));
            assert_eq!(rig.cost(warm), (0, 0), "{bytes} bytes of {heap}");
        }
    }
    rig.finish(&[stream]);
}

#[test]
fn a_warm_stack_of_counters_and_limits_costs_none_either() {
    let rig = CountedRig::new();
    let stream = rig.stream();
    let config = TraceConfig { records_per_thread: 100, ..TraceConfig::default() };
    let stack = Budgeted::new(
        Budget::new("b", 256 * MIB),
        Limited::new(MIB, Traced::new(config, Counted::new(rig.heap()))),
    );
    let tags: Vec<AllocTag> = (0..20).map(|at| AllocTag::new(&format!("warm {at}")).unwrap()).collect();
    let round =
        || tags.iter().for_each(|tag| pair(&stack, &AllocationRequest::new(64 << 10, stream).tag(*tag)));
    (0..10).for_each(|_| round());
    assert_eq!(rig.cost(|| (0..100).for_each(|_| round())), (0, 0));
    drop(stack);
    rig.finish(&[stream]);
}

#[test]
fn a_warm_random_program_on_two_streams_costs_none() {
    let rig = CountedRig::new();
    let streams = [rig.stream(), rig.stream()];
    let heap = rig.heap();
    let mut blocks = Vec::with_capacity(1000);
    let mut run = |seed| {
        let mut random = Random::new(seed);
        for _ in 0..5000 {
            if (random.below(2) == 0 && blocks.len() < 300) || blocks.is_empty() {
                let request =
                    AllocationRequest::new(random.size(256 << 10), streams[random.below(2) as usize]);
                blocks.push(heap.allocate(&request).unwrap());
            } else {
                let at = random.below(blocks.len() as u64) as usize;
                heap.free(blocks.swap_remove(at)).unwrap();
            }
        }
        blocks.drain(..).for_each(|block| heap.free(block).unwrap());
    };
    (0..3).for_each(|_| run(7));
    assert_eq!(rig.cost(|| run(7)), (0, 0));
    drop(heap);
    rig.finish(&streams);
}

#[test]
fn a_warm_program_with_large_blocks_costs_none_though_rows_change_and_all_goes_home() {
    let rig = CountedRig::with_memory(64 << 30);
    let stream = rig.stream();
    let heap = rig.heap();
    let mut blocks = Vec::with_capacity(1000);
    let mut run = || {
        let mut random = Random::new(11);
        for _ in 0..1000 {
            if (random.below(4) > 0 && blocks.len() < 60) || blocks.is_empty() {
                let request = AllocationRequest::new(MIB + random.below(200 * MIB), stream);
                blocks.push(heap.allocate(&request).unwrap());
            } else {
                let at = random.below(blocks.len() as u64) as usize;
                heap.free(blocks.swap_remove(at)).unwrap();
            }
        }
        blocks.drain(..).for_each(|block| heap.free(block).unwrap());
    };
    (0..6).for_each(|_| run());
    let before = heap.activity();
    assert_eq!(rig.cost(&mut run), (0, 0));
    let here = heap.activity().since(&before);
    assert!(here.remaps_reused > 10 && here.layout_resets > 0, "{here}");
    drop(heap);
    rig.finish(&[stream]);
}

/// Holds the first call of a kind until it is let go.
struct Held {
    kind: CallKind,
    arrived: Mutex<Option<Sender<()>>>,
    go: Mutex<Receiver<()>>,
}

impl Layer for Held {
    fn before(&self, _: &dyn Driver, call: &Call<'_>) -> kiln_driver::Result<()> {
        if call.kind() == self.kind
            && let Some(arrived) = self.arrived.lock().unwrap().take()
        {
            arrived.send(()).unwrap();
            self.go.lock().unwrap().recv().unwrap();
        }
        Ok(())
    }
}

#[test]
fn a_thread_inside_of_the_driver_blocks_no_other() {
    for kind in [CallKind::CreatePages, CallKind::Map] {
        let rig = Rig::new(1, 512 * MIB);
        let (arrived, has_arrived) = channel();
        let (let_go, go) = channel();
        let held = Held { kind, arrived: Mutex::new(None), go: Mutex::new(go) };
        let driver = Arc::new(Layered::new(rig.driver(), held));
        let order = Arc::new(DriverOrder::new(driver.clone()));
        let stream = || order.add(driver.create_stream(StreamRequest::New { priority: 0 }).unwrap()).unwrap();
        let (mine, other) = (stream(), stream());
        let heap = Heap::over_pages(driver.clone(), order.clone(), HeapConfig::default()).unwrap();
        let sizes = [4096, 64 << 10, MIB, 3 * MIB];
        sizes.iter().for_each(|bytes| pair(&heap, &AllocationRequest::new(*bytes, mine)));
        *driver.layer().arrived.lock().unwrap() = Some(arrived);
        std::thread::scope(|scope| {
            // Another stream grows, and is held in the driver.
            let grower = scope.spawn(|| pair(&heap, &AllocationRequest::new(100 * MIB, other)));
            has_arrived.recv().unwrap();
            for _ in 0..1000 {
                sizes.iter().for_each(|bytes| pair(&heap, &AllocationRequest::new(*bytes, mine)));
            }
            assert_eq!(heap.accounting().live_blocks, 0, "nothing here waits for the call that is held");
            let_go.send(()).unwrap();
            grower.join().unwrap();
        });
        drop(heap);
        for stream in [mine, other] {
            order.remove(stream).unwrap();
            driver.destroy(stream.id().into()).unwrap();
        }
        drop((order, driver));
        rig.finish(&[]);
    }
}

#[test]
fn a_row_that_is_being_mapped_stays_when_all_else_is_freed() {
    let rig = Rig::new(1, 512 * MIB);
    let (arrived, has_arrived) = channel();
    let (let_go, go) = channel();
    let held = Held { kind: CallKind::Map, arrived: Mutex::new(None), go: Mutex::new(go) };
    let driver = Arc::new(Layered::new(rig.driver(), held));
    let order = Arc::new(DriverOrder::new(driver.clone()));
    let stream = order.add(driver.create_stream(StreamRequest::New { priority: 0 }).unwrap()).unwrap();
    let config = HeapConfig { budget: Some(Budget::new("all", 16 * MIB)), ..HeapConfig::default() };
    let heap = Heap::over_pages(driver.clone(), order.clone(), config).unwrap();
    let allocate = |bytes| heap.allocate(&AllocationRequest::new(bytes, stream)).unwrap();
    let blocks: Vec<_> = (0..8).map(|_| allocate(2 * MIB)).collect();
    let (freed, kept): (Vec<_>, Vec<_>) = (0..).zip(blocks).partition(|(at, _)| at % 2 == 0);
    freed.into_iter().for_each(|(_, block)| heap.free(block).unwrap());
    let first_row = allocate(4 * MIB);
    *driver.layer().arrived.lock().unwrap() = Some(arrived);
    std::thread::scope(|scope| {
        let mapper = scope.spawn(|| pair(&heap, &AllocationRequest::new(4 * MIB, stream)));
        has_arrived.recv().unwrap();
        // Nothing is in use any more, but the pages of the row are not the arena's to lay out anew.
        heap.free(first_row).unwrap();
        kept.into_iter().for_each(|(_, block)| heap.free(block).unwrap());
        let_go.send(()).unwrap();
        mapper.join().unwrap();
    });
    assert_eq!(heap.activity().layout_resets, 1);
    pair(&heap, &AllocationRequest::new(16 * MIB, stream));
    assert_eq!(heap.activity().growths, 8);
    drop(heap);
    order.remove(stream).unwrap();
    driver.destroy(stream.id().into()).unwrap();
    drop((order, driver));
    rig.finish(&[]);
}
