//! Whether a device can run in a worker process on this machine: one is started, killed and replaced.

use kiln_driver::{Driver, DriverExt, PageRequest, Protection, ReserveRequest, StreamRequest};
use kiln_isolate::{
    DeviceSpec, IsolatedDevice, IsolationConfig, IsolationSupport, TakeoverError, WorkerStartError,
};

use super::check::{Check, Status};

/// Fewer descriptors than this do not last: each piece of device memory and each host block takes one.
const DESCRIPTORS_WANTED: u64 = 1024;
/// What the memory holds that must survive.
const MARK: u8 = 0x5A;
const MARKED_BYTES: u64 = 4096;

/// Everything about isolation; with a CUDA device, if there is one to try.
pub(super) fn examine(cuda: Option<u32>) -> Vec<Check> {
    let readiness = IsolationSupport::of_this_machine();
    let mut checks = vec![memory(&readiness), descriptors(&readiness)];
    if let Some(pipe) = &readiness.mps {
        checks.push(Check::bad(
            Status::Missing,
            "isolation: MPS",
            format!("the Multi-Process Service runs at {}; a fault of one client ends all of them", pipe.display()),
            "stop it (echo quit | nvidia-cuda-mps-control), or set CUDA_MPS_PIPE_DIRECTORY to an empty folder",
        ));
    }
    checks.push(worker("isolation: simulated device".into(), DeviceSpec::simulated(0)));
    checks.extend(cuda.map(|device| worker(format!("isolation: device {device}"), DeviceSpec::cuda(device))));
    checks
}

fn memory(readiness: &IsolationSupport) -> Check {
    const NAME: &str = "isolation: system";
    match (&readiness.shared_memory, &readiness.process_handles) {
        (Ok(()), Ok(())) => {
            Check::ok(NAME, "memory can be shared between processes, and processes can be watched")
        }
        (Err(error), _) => Check::bad(
            Status::Missing,
            NAME,
            format!("memory cannot be shared between processes: {error}"),
            "allow memfd_create and socketpair (a container's seccomp profile may forbid them), and free memory",
        ),
        (_, Err(error)) => Check::bad(
            Status::Missing,
            NAME,
            format!("processes cannot be watched: {error}"),
            "use Linux 5.3 or newer, and allow pidfd_open",
        ),
    }
}

fn descriptors(readiness: &IsolationSupport) -> Check {
    const NAME: &str = "isolation: descriptors";
    match readiness.descriptors_left() {
        Some(left) if left < DESCRIPTORS_WANTED => Check::bad(
            Status::Missing,
            NAME,
            format!("{left} left; each allocation of device or host memory takes one"),
            "raise the limit (ulimit -n, or LimitNOFILE of the service)",
        ),
        Some(left) => Check::ok(NAME, format!("{left} left; each allocation takes one")),
        None => Check::ok(NAME, "no limit"),
    }
}

/// Starts a worker, kills it, and lets another take over its memory.
fn worker(name: String, backend: DeviceSpec) -> Check {
    match try_worker(backend) {
        Ok(detail) => Check::ok(name, detail),
        Err(Trial::Start(error) | Trial::Takeover(TakeoverError::Start(error))) => {
            let next_step = next_step(&error);
            Check::bad(Status::Missing, name, error.to_string(), next_step)
        }
        Err(Trial::Takeover(error)) => Check::bad(
            Status::Missing,
            name,
            format!("a worker was killed, and no other could take over: {error}"),
            "run without isolation; a fault then ends the process",
        ),
        Err(Trial::Driver(error)) => Check::bad(
            Status::Missing,
            name,
            format!("a worker starts, and its device does not work: {error}"),
            "run without isolation; a fault then ends the process",
        ),
        Err(Trial::Lost(why)) => Check::bad(
            Status::Missing,
            name,
            why,
            "run without isolation; with it, a fault loses all device memory",
        ),
    }
}

fn next_step(error: &WorkerStartError) -> &'static str {
    match error {
        WorkerStartError::Spawn { .. } | WorkerStartError::Thread(_) => {
            "allow processes to be started (ulimit -u, the cgroup's pids.max) from /proc/self/exe"
        }
        WorkerStartError::System { .. } => "raise the limit of descriptors (ulimit -n) or free memory",
        WorkerStartError::Device { .. } => {
            "let two processes use the device: compute mode `default` (nvidia-smi -c 0), and permission for its files"
        }
        _ => "read what the worker wrote to the standard error",
    }
}

/// Why isolation does not work.
enum Trial {
    Start(WorkerStartError),
    Takeover(TakeoverError),
    Driver(kiln_driver::Error),
    Lost(String),
}

impl From<kiln_driver::Error> for Trial {
    fn from(error: kiln_driver::Error) -> Self {
        Self::Driver(error)
    }
}

fn try_worker(backend: DeviceSpec) -> Result<String, Trial> {
    let device = IsolatedDevice::open(IsolationConfig::new(backend)).map_err(Trial::Start)?;
    if !device.info().features.page_export {
        return Err(Trial::Lost(
            "a worker starts, but the device cannot export memory that outlives it".into(),
        ));
    }
    let bytes = device.info().limits.page_granularity_bytes;
    let range = device.reserve(ReserveRequest { bytes, at: None })?;
    let pages = device.create_pages(PageRequest { bytes, exportable: false })?;
    device.map(range.id, 0, &[pages], Protection::ReadWrite)?;
    let stream = device.create_stream(StreamRequest::New { priority: 0 })?;
    device.fill(stream, range.id.into(), MARK, MARKED_BYTES)?;
    device.synchronize(stream)?;
    device.kill_worker();
    let takeover = device.take_over().map_err(Trial::Takeover)?;
    let host = device.allocate_host(MARKED_BYTES)?;
    device.download(stream, range.id.into(), &host, MARKED_BYTES)?;
    device.synchronize(stream)?;
    let mut found = [0; MARKED_BYTES as usize];
    if !host.read(0, &mut found) || found.iter().any(|byte| *byte != MARK) {
        return Err(Trial::Lost("a worker took over, and its memory had changed".into()));
    }
    let milliseconds = takeover.phases.total().as_millis();
    Ok(format!("a worker was killed, and another had its memory, unchanged, after {milliseconds} ms"))
}
