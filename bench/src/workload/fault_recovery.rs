//! F1: from a fault until the next kernel has run, with a standby and without, and where the time goes. F4: the same until a matrix product of a
//! library has run, which a standby has loaded beforehand.
//!
//! The client has sixteen pages, a host block, a module and a stream. A kernel writes to address 0; the time until the
//! caller is told is a separate row, and the rest is counted from there.

use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use kiln_driver::{
    Command, Driver, DriverExt, Function, Image, PageRequest, Protection, Reservation, ReserveRequest,
    StreamId, StreamRequest,
};
use kiln_isolate::{IsolatedDevice, IsolationConfig, RestartPolicy, TakeoverPhases, WorkerEvent};
use kiln_libs::operation::{Determinism, ElementType, Epilogue, Layout, Math, Matmul, Operation};

use crate::Failure;
use crate::memory::Bench;
use crate::raw_driver::KERNELS;
use crate::result_table::Table;
use crate::timing::Percentiles;
use crate::workload::worker_process::{backend, launch};

const PAGES: u64 = 16;
/// Faults for each repeat.
const FAULTS: usize = 4;
const START_LIMIT: Duration = Duration::from_secs(60);

/// Rows and columns of the matrices of F4, and bytes from one to the next.
const ORDER: u64 = 64;
const MATRIX_BYTES: u64 = 64 << 10;

/// F1.
pub(crate) fn taken_over(bench: &Bench, table: &mut Table) -> Result<(), Failure> {
    measured(bench, table, "f1", false)
}

/// F4.
pub(crate) fn taken_over_with_a_library(bench: &Bench, table: &mut Table) -> Result<(), Failure> {
    measured(bench, table, "f4", true)
}

fn measured(bench: &Bench, table: &mut Table, workload: &str, with_product: bool) -> Result<(), Failure> {
    let what = if with_product { "a matrix product" } else { "a kernel" };
    for standby in [true, false] {
        let mut victim = Victim::open(bench, standby, with_product)?;
        let with = if standby { "with a standby" } else { "without a standby" };
        let (mut told, mut recovered, mut phases) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..FAULTS * bench.repeats {
            let fault = victim.fault()?;
            told.push(fault.told.as_nanos() as f64 / 1e6);
            recovered.push(fault.recovered.as_nanos() as f64 / 1e6);
            phases.push(fault.phases);
        }
        let workload = format!("{workload} {with}");
        table.add_in("ms", &workload, format!("told until {what} has run"), Percentiles::of(recovered));
        for (name, of) in PHASES {
            let values = phases.iter().map(|phases| of(phases).as_nanos() as f64 / 1e6).collect();
            table.add_in("ms", &workload, format!("of that: {name}"), Percentiles::of(values));
        }
        let before = format!("{workload}, before");
        table.add_in("ms", before, "a fault until the caller is told", Percentiles::of(told));
        table.note(format!("{workload}: {}", victim.described));
    }
    Ok(())
}

type Phase = (&'static str, fn(&TakeoverPhases) -> Duration);

const PHASES: [Phase; 6] = [
    ("ending the old worker", |phases| phases.kill),
    ("taking or starting the next", |phases| phases.start),
    ("pages", |phases| phases.pages),
    ("host blocks", |phases| phases.hosts),
    ("code", |phases| phases.code),
    ("streams, events, graphs", |phases| phases.queues),
];

/// One fault.
struct Fault {
    told: Duration,
    recovered: Duration,
    phases: TakeoverPhases,
}

/// A device that faults again and again.
struct Victim {
    device: std::sync::Arc<IsolatedDevice>,
    news: Receiver<WorkerEvent>,
    standby: bool,
    stream: StreamId,
    range: Reservation,
    kernel: Function,
    good: Vec<u8>,
    product: Option<Product>,
    described: String,
}

/// A matrix product of a library, with its arguments.
struct Product {
    function: Function,
    arguments: Vec<u8>,
}

impl Victim {
    fn open(bench: &Bench, standby: bool, with_product: bool) -> Result<Self, Failure> {
        let (tell, news) = mpsc::channel();
        let tell = Mutex::new(tell);
        let policy = RestartPolicy { limit: u32::MAX, pause: Duration::ZERO, ..RestartPolicy::default() };
        let config =
            IsolationConfig::new(backend(bench)).standby(standby).restarts(policy).observe(move |news| {
                if let Ok(tell) = tell.lock() {
                    let _ = tell.send(news.clone());
                }
            });
        let device = IsolatedDevice::open(config)?;
        let granule = device.info().limits.page_granularity_bytes;
        let range = device.reserve(ReserveRequest { bytes: PAGES * granule, at: None })?;
        for at in 0..PAGES {
            let pages = device.create_pages(PageRequest { bytes: granule, exportable: false })?;
            device.map(range.id, at * granule, &[pages], Protection::ReadWrite)?;
        }
        device.allocate_host(1 << 20)?;
        let stream = device.create_stream(StreamRequest::New { priority: 0 })?;
        let module = device.load(&Image::Ptx(KERNELS))?;
        let kernel = device.function(module, "one")?;
        let good = arguments(range.address.0);
        let product = with_product.then(|| Product::load(&*device, range.address.0)).transpose()?;
        Ok(Self { device, news, standby, stream, range, kernel, good, product, described: String::new() })
    }

    /// Loses the device and has it taken over.
    fn fault(&mut self) -> Result<Fault, Failure> {
        self.await_standby()?;
        self.run_well()?;
        let begun = Instant::now();
        let Err(error) = self.run(&arguments(0)) else { return Err("a write to address 0 went well".into()) };
        let told = begun.elapsed();
        if !error.is_sticky() {
            return Err(error.into());
        }
        let begun = Instant::now();
        let takeover = self.device.take_over()?;
        self.run_well()?;
        let recovered = begun.elapsed();
        self.described = format!("prepared {}; rebuilt {}", takeover.prepared, takeover.rebuilt);
        Ok(Fault { told, recovered, phases: takeover.phases })
    }

    /// The work that is waited for: the product if there is one, or else the kernel.
    fn run_well(&self) -> kiln_driver::Result<()> {
        let Some(product) = &self.product else { return self.run(&self.good) };
        // What the matrices held is lost with the worker.
        self.device.fill(self.stream, self.range.id.into(), 0, 3 * MATRIX_BYTES)?;
        self.device.submit(self.stream, &Command::Launch(launch(&product.function, &product.arguments)))?;
        self.device.synchronize(self.stream)
    }

    fn run(&self, arguments: &[u8]) -> kiln_driver::Result<()> {
        self.device.submit(self.stream, &Command::Launch(launch(&self.kernel, arguments)))?;
        self.device.synchronize(self.stream)
    }

    /// Waits until the standby has everything; kernels are made last.
    fn await_standby(&self) -> Result<(), Failure> {
        if !self.standby {
            return Ok(());
        }
        let kernels = 1 + u64::from(self.product.is_some());
        loop {
            match self.news.recv_timeout(START_LIMIT)? {
                WorkerEvent::Prepared { has, .. } if has.kernels as u64 == kernels => return Ok(()),
                WorkerEvent::Unprepared { what, error, .. } => {
                    return Err(format!("the standby could not make {what}: {error}").into());
                }
                _ => {}
            }
        }
    }
}

impl Product {
    /// A product of matrices that begin at an address, one behind the other.
    fn load(device: &dyn Driver, address: u64) -> Result<Self, Failure> {
        let stored =
            |transposed| Layout { element: ElementType::Bf16, transposed, leading: ORDER, stride: 0 };
        let operation = Operation::from(Matmul {
            m: ORDER,
            n: ORDER,
            k: ORDER,
            batch: 1,
            a: stored(true),
            b: stored(false),
            d: stored(false),
            math: Math::Ieee,
            epilogue: Epilogue::NONE,
            scaled: false,
            accumulate: false,
            order: Determinism::Any,
            workspace: 0,
            alignment: 256,
            algorithm: 0,
        });
        let module = device.load(&Image::Library(&operation.to_string()))?;
        let function = device.function(module, operation.name())?;
        let addresses = [0, 1, 2].map(|at| address + at * MATRIX_BYTES);
        let words = addresses.into_iter().chain([1.0_f64.to_bits()]);
        Ok(Self { function, arguments: words.flat_map(u64::to_ne_bytes).collect() })
    }
}

/// The arguments of a launch that writes to an address.
fn arguments(address: u64) -> Vec<u8> {
    let mut packed = address.to_le_bytes().to_vec();
    packed.extend((-1_i32).to_le_bytes());
    packed
}
