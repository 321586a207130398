//! F1: from a fault until the next kernel has run, with a standby and without, and where the time goes.
//!
//! The client has sixteen pages, a host block, a module and a stream. A kernel writes to address 0; the time until the
//! caller is told is a separate row, and the rest is counted from there.

use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use kiln_driver::{
    Command, Driver, DriverExt, Function, Image, PageRequest, Protection, ReserveRequest, StreamId,
    StreamRequest,
};
use kiln_isolate::{IsolatedDevice, IsolationConfig, RestartPolicy, TakeoverPhases, WorkerEvent};

use crate::Failure;
use crate::memory::Bench;
use crate::raw::KERNELS;
use crate::row::Table;
use crate::timing::Percentiles;
use crate::workload::worker::{backend, launch};

const PAGES: u64 = 16;
/// Faults for each repeat.
const FAULTS: usize = 4;
const START_LIMIT: Duration = Duration::from_secs(60);

/// F1.
pub(crate) fn taken_over(bench: &Bench, table: &mut Table) -> Result<(), Failure> {
    for standby in [true, false] {
        let mut victim = Victim::open(bench, standby)?;
        let with = if standby { "with a standby" } else { "without a standby" };
        let (mut told, mut recovered, mut phases) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..FAULTS * bench.repeats {
            let fault = victim.fault()?;
            told.push(fault.told.as_nanos() as f64 / 1e6);
            recovered.push(fault.recovered.as_nanos() as f64 / 1e6);
            phases.push(fault.phases);
        }
        table.add_in("ms", format!("f1 {with}"), "told until a kernel has run", Percentiles::of(recovered));
        for (name, of) in PHASES {
            let values = phases.iter().map(|phases| of(phases).as_nanos() as f64 / 1e6).collect();
            table.add_in("ms", format!("f1 {with}"), format!("of that: {name}"), Percentiles::of(values));
        }
        table.add_in(
            "ms",
            format!("f1 {with}, before"),
            "a fault until the caller is told",
            Percentiles::of(told),
        );
        table.note(format!("f1 {with}: {}", victim.described));
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
    kernel: Function,
    good: Vec<u8>,
    described: String,
}

impl Victim {
    fn open(bench: &Bench, standby: bool) -> Result<Self, Failure> {
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
        Ok(Self { device, news, standby, stream, kernel, good, described: String::new() })
    }

    /// Loses the device and has it taken over.
    fn fault(&mut self) -> Result<Fault, Failure> {
        self.await_standby()?;
        self.run(&self.good)?;
        let begun = Instant::now();
        let Err(error) = self.run(&arguments(0)) else { return Err("a write to address 0 went well".into()) };
        let told = begun.elapsed();
        if !error.is_sticky() {
            return Err(error.into());
        }
        let begun = Instant::now();
        let takeover = self.device.take_over()?;
        self.run(&self.good)?;
        let recovered = begun.elapsed();
        self.described = format!("prepared {}; rebuilt {}", takeover.prepared, takeover.rebuilt);
        Ok(Fault { told, recovered, phases: takeover.phases })
    }

    fn run(&self, arguments: &[u8]) -> kiln_driver::Result<()> {
        self.device.submit(self.stream, &Command::Launch(launch(&self.kernel, arguments)))?;
        self.device.synchronize(self.stream)
    }

    /// Waits until the standby has everything; the kernel is made last.
    fn await_standby(&self) -> Result<(), Failure> {
        if !self.standby {
            return Ok(());
        }
        loop {
            if matches!(self.news.recv_timeout(START_LIMIT)?, WorkerEvent::Prepared { has, .. } if has.kernels == 1)
            {
                return Ok(());
            }
        }
    }
}

/// The arguments of a launch that writes to an address.
fn arguments(address: u64) -> Vec<u8> {
    let mut packed = address.to_le_bytes().to_vec();
    packed.extend((-1_i32).to_le_bytes());
    packed
}
