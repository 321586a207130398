//! A worker that ends at a chosen step, a program that recovers from that, and what it must not leave.

// Each test binary uses a part of this.
#![allow(dead_code)]

pub(crate) mod held;

use std::path::PathBuf;
use std::process::Command as Program;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kiln_driver::{
    Access, Command, DeviceAddress, DevicePlace, Driver, DriverExt, Function, HostBlock, Image,
    LaunchCommand, PageRequest, Protection, Reservation, ReserveRequest, Result, StreamId, StreamRequest,
    Vouched,
};
use kiln_isolate::{
    DeviceSpec, IsolatedDevice, IsolationConfig, OpenFailure, OpenedDevice, Worker, WorkerEntry, WorkerStep,
};
use kiln_sim::{DeviceConfig, HostKernel, KernelLibrary, LaunchContext, Machine, MachineConfig};
use rustix::process::{Signal, getpid, kill_process};

/// A file that says at which step a worker kills itself; the worker removes it then.
const KILL_STEP: &str = "KILN_TEST_KILL_STEP";
/// A file that names an address which is reserved in a worker from its start, while the file exists.
const RESERVED: &str = "KILN_TEST_RESERVED";

/// Milliseconds a worker takes for each of its steps.
const PACE: &str = "KILN_TEST_PACE";
/// Bytes of memory that a worker allocates, so that the system needs some time to end it.
const BALLAST: &str = "KILN_TEST_BALLAST";

/// The body of the helper test that is the worker process.
pub(crate) fn worker() {
    if let Some(bytes) = std::env::var(BALLAST).ok().and_then(|text| text.parse().ok()) {
        Vec::leak(vec![1_u8; bytes]);
    }
    let pace = std::env::var(PACE).ok().and_then(|text| text.parse().ok()).map(Duration::from_millis);
    let steps = AtomicU64::new(0);
    let kill_step = std::env::var_os(KILL_STEP).map(PathBuf::from);
    let observe = move |_: WorkerStep| {
        pace.into_iter().for_each(std::thread::sleep);
        let step = steps.fetch_add(1, Ordering::SeqCst) + 1;
        let Some(kill_step) = &kill_step else { return };
        let Ok(wanted) = std::fs::read_to_string(kill_step) else { return };
        if wanted.parse() == Ok(step) && std::fs::remove_file(kill_step).is_ok() {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
    };
    Worker::new().backend("test", open).observe(observe).enter();
}

fn open(argument: &[u8]) -> std::result::Result<OpenedDevice, OpenFailure> {
    let seed = u64::from(argument.first().copied().unwrap_or(0));
    let config = MachineConfig::seeded(seed).device(DeviceConfig::default()).library(library());
    let device = Machine::new(config).device(0).map_err(|error| OpenFailure::broken(error.to_string()))?;
    let taken = std::env::var_os(RESERVED).and_then(|file| std::fs::read_to_string(file).ok());
    if let Some(address) = taken.and_then(|text| text.parse().ok()) {
        let bytes = device.info().limits.page_granularity_bytes;
        device.reserve(ReserveRequest { bytes, at: Some(DeviceAddress(address)) }).unwrap();
    }
    Ok(OpenedDevice::new(device))
}

/// Workers that take some time to end.
pub(crate) fn heavy(config: IsolationConfig) -> IsolationConfig {
    config.variable(BALLAST, (128_u32 << 20).to_string())
}

/// Workers that take that many milliseconds for each step.
pub(crate) fn paced(config: IsolationConfig, milliseconds: u32) -> IsolationConfig {
    config.variable(PACE, milliseconds.to_string())
}

/// Workers in which an address is reserved, while the file says so.
pub(crate) fn with_reserved_address(config: IsolationConfig, file: &std::path::Path) -> IsolationConfig {
    config.variable(RESERVED, file)
}

fn library() -> KernelLibrary {
    let store = |launch: &LaunchContext<'_>| {
        launch.port().store(launch.address(0)?, launch.value::<u32>(1)?)?;
        Ok(())
    };
    let fault = |launch: &LaunchContext<'_>| {
        launch.port().store(0, 1u32)?;
        Ok(())
    };
    let hang = |_: &LaunchContext<'_>| Err(kiln_sim::KernelFault::Hang);
    KernelLibrary::new("test")
        .kernel(HostKernel::new("store").pointer(Access::Write).value::<u32>().body(store))
        .kernel(HostKernel::new("fault").body(fault))
        .kernel(HostKernel::new("hang").body(hang))
}

/// A configuration whose worker is the test `worker` of this binary.
pub(crate) fn config() -> IsolationConfig {
    IsolationConfig::new(DeviceSpec::custom("test", [1])).entry(WorkerEntry::Test("worker".into()))
}

/// Sole use of this process, for a test that counts what it holds or changes its limits.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What makes a program of this binary run one test that is a helper process, and nothing else.
pub(crate) const HELPER_ARGUMENTS: [&str; 3] = ["--exact", "--nocapture", "--include-ignored"];

/// This binary again as a helper process, also for a user who cannot read the folder it lies in.
pub(crate) fn helper(test: &str) -> Program {
    let mut program = Program::new("/proc/self/exe");
    program.arg(test).args(HELPER_ARGUMENTS);
    program
}

/// A path that no other test uses.
pub(crate) fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("kiln-isolate-{}-{name}", std::process::id()))
}

/// A worker that kills itself at the step that the file says, if it exists.
pub(crate) fn killed_at_step(config: IsolationConfig, file: &std::path::Path) -> IsolationConfig {
    config.variable(KILL_STEP, file)
}

/// A kernel launch of one thread.
pub(crate) fn launch<'a>(kernel: &Function, arguments: &'a [u8]) -> Command<'a> {
    Command::Launch(LaunchCommand {
        function: kernel.id,
        grid: 1.into(),
        block: 1.into(),
        cluster: None,
        dynamic_shared_bytes: 0,
        cooperative: false,
        arguments,
        declared: None,
        // SAFETY: `store` writes one word to the address it is given, which is mapped; the others touch nothing mapped.
        vouched: unsafe { Vouched::new() },
    })
}

/// The objects of a scenario.
pub(crate) struct Scene {
    pub(crate) stream: StreamId,
    pub(crate) reservation: Reservation,
    pub(crate) host: HostBlock,
    pub(crate) store: Function,
    pub(crate) granule: u64,
}

/// Repeats a call after each loss, with another worker.
pub(crate) fn surviving<T>(
    device: &IsolatedDevice,
    check: &dyn Fn(),
    mut call: impl FnMut() -> Result<T>,
) -> T {
    loop {
        match call() {
            Ok(value) => return value,
            Err(error) => {
                assert!(error.is_sticky(), "{error}");
                recover(device);
                check();
            }
        }
    }
}

/// Takes over, with as many attempts as that needs.
pub(crate) fn recover(device: &IsolatedDevice) {
    while let Err(error) = device.take_over() {
        assert!(error.is_retryable(), "{error}");
    }
}

impl Scene {
    /// Two granules of pages at an address, a stream, a host block and a kernel; the end of a worker loses none of them.
    pub(crate) fn build(device: &IsolatedDevice) -> Self {
        let granule = device.info().limits.page_granularity_bytes;
        let none = || {};
        let again = |call: &mut dyn FnMut() -> Result<()>| surviving(device, &none, call);
        let stream = surviving(device, &none, || device.create_stream(StreamRequest::New { priority: 0 }));
        let reservation =
            surviving(device, &none, || device.reserve(ReserveRequest { bytes: 2 * granule, at: None }));
        let pages = [0, 1].map(|_| {
            let request = PageRequest { bytes: granule, exportable: false };
            surviving(device, &none, || device.create_pages(request))
        });
        again(&mut || match device.map(reservation.id, 0, &pages, Protection::ReadWrite) {
            // What a worker mapped before it ended without an answer is not mapped in the next one.
            Err(error) if error.is_refused() => panic!("{error}"),
            answer => answer,
        });
        let host = surviving(device, &none, || device.allocate_host(64));
        let module = surviving(device, &none, || device.load(&Image::HostKernels("test")));
        let store = surviving(device, &none, || device.function(module, "store"));
        Self { stream, reservation, host, store, granule }
    }

    /// Writes bytes into the first granule and a word into the second, and checks both.
    pub(crate) fn play(&self, device: &IsolatedDevice, salt: u8) {
        let first = [salt; 64];
        let check_none = || {};
        surviving(device, &check_none, || self.upload(device, &first));
        let check = || assert_eq!(self.download(device, 0).unwrap(), first, "what was waited for is kept");
        let word = u32::from(salt) * 3 + 1;
        surviving(device, &check, || self.store(device, word));
        let check = || {
            check();
            let kept = self.download(device, self.granule).unwrap();
            assert_eq!(kept[..4], word.to_le_bytes(), "what was waited for is kept");
        };
        let last = surviving(device, &check, || self.download(device, self.granule));
        assert_eq!(last[..4], word.to_le_bytes());
    }

    fn upload(&self, device: &IsolatedDevice, bytes: &[u8]) -> Result<()> {
        assert!(self.host.write(0, bytes));
        device.upload(self.stream, &self.host, self.reservation.id.into(), bytes.len() as u64)?;
        device.synchronize(self.stream)
    }

    fn store(&self, device: &IsolatedDevice, word: u32) -> Result<()> {
        let mut arguments = (self.reservation.address.0 + self.granule).to_le_bytes().to_vec();
        arguments.extend(word.to_le_bytes());
        device.submit(self.stream, &launch(&self.store, &arguments))?;
        device.synchronize(self.stream)
    }

    /// The first bytes at an offset.
    pub(crate) fn download(&self, device: &IsolatedDevice, offset: u64) -> Result<[u8; 64]> {
        let from = DevicePlace::from(self.reservation.id).plus(offset);
        device.download(self.stream, from, &self.host, 64)?;
        device.synchronize(self.stream)?;
        let mut bytes = [0; 64];
        assert!(self.host.read(0, &mut bytes));
        Ok(bytes)
    }
}

/// Opens a device, runs a scenario on it, and drops it.
pub(crate) fn whole_life(
    config: IsolationConfig,
) -> std::result::Result<u64, kiln_isolate::WorkerStartError> {
    let device: Arc<IsolatedDevice> = IsolatedDevice::open(config)?;
    let scene = Scene::build(&device);
    scene.play(&device, 7);
    scene.play(&device, 8);
    Ok(device.generation())
}
