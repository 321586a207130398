//! A worker that ends where a test wants it to, a program that survives that, and what must not be left afterwards.

// Each of the test files uses its own part.
#![allow(dead_code)]

pub(crate) mod held;

use std::path::PathBuf;
use std::process::Command as Program;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kiln_driver::{
    Access, Command, DeviceAddress, DevicePlace, Driver, DriverExt, Function, HostBlock, Image, Launch,
    PageRequest, Protection, Reservation, ReserveRequest, Result, StreamId, StreamRequest, Vouched,
};
use kiln_isolate::{Backend, Config, Entry, IsolatedDevice, OpenFailure, Opened, Step, Worker};
use kiln_sim::{DeviceConfig, HostKernel, KernelLibrary, LaunchContext, Machine, MachineConfig};
use rustix::process::{Signal, getpid, kill_process};

/// Where a worker ends itself: a file that says at which step, and is gone once it happened.
const TRAP: &str = "KILN_TEST_TRAP";
/// Addresses that are taken in a worker from its start: a file that says which, while it is there.
const TAKEN: &str = "KILN_TEST_TAKEN";

/// Milliseconds a worker takes for each of its steps.
const PACE: &str = "KILN_TEST_PACE";
/// A worker with so many bytes of memory of its own, which the system takes a while to take apart.
const BALLAST: &str = "KILN_TEST_BALLAST";

/// The body of the test that is the worker process.
pub(crate) fn worker() {
    if let Some(bytes) = std::env::var(BALLAST).ok().and_then(|text| text.parse().ok()) {
        Vec::leak(vec![1_u8; bytes]);
    }
    let pace = std::env::var(PACE).ok().and_then(|text| text.parse().ok()).map(Duration::from_millis);
    let steps = AtomicU64::new(0);
    let trap = std::env::var_os(TRAP).map(PathBuf::from);
    let observe = move |_: Step| {
        pace.into_iter().for_each(std::thread::sleep);
        let step = steps.fetch_add(1, Ordering::SeqCst) + 1;
        let Some(trap) = &trap else { return };
        let Ok(wanted) = std::fs::read_to_string(trap) else { return };
        if wanted.parse() == Ok(step) && std::fs::remove_file(trap).is_ok() {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
    };
    Worker::new().backend("test", open).observe(observe).enter();
}

fn open(argument: &[u8]) -> std::result::Result<Opened, OpenFailure> {
    let seed = u64::from(argument.first().copied().unwrap_or(0));
    let config = MachineConfig::seeded(seed).device(DeviceConfig::default()).library(library());
    let device = Machine::new(config).device(0).map_err(|error| OpenFailure::broken(error.to_string()))?;
    let taken = std::env::var_os(TAKEN).and_then(|file| std::fs::read_to_string(file).ok());
    if let Some(address) = taken.and_then(|text| text.parse().ok()) {
        let bytes = device.info().limits.page_granularity_bytes;
        device.reserve(ReserveRequest { bytes, at: Some(DeviceAddress(address)) }).unwrap();
    }
    Ok(Opened::new(device))
}

/// Workers that take a while to end.
pub(crate) fn heavy(config: Config) -> Config {
    config.variable(BALLAST, (128_u32 << 20).to_string())
}

/// Workers that take so many milliseconds for each step.
pub(crate) fn paced(config: Config, milliseconds: u32) -> Config {
    config.variable(PACE, milliseconds.to_string())
}

/// Workers in which an address is taken, while the file says so.
pub(crate) fn crowded(config: Config, file: &std::path::Path) -> Config {
    config.variable(TAKEN, file)
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
pub(crate) fn config() -> Config {
    Config::new(Backend::custom("test", [1])).entry(Entry::Test("worker".into()))
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

/// A place for a trap that no other test uses.
pub(crate) fn trap(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("kiln-isolate-{}-{name}", std::process::id()))
}

/// A worker that falls into a trap, if one is set.
pub(crate) fn trapped(config: Config, trap: &std::path::Path) -> Config {
    config.variable(TRAP, trap)
}

/// A kernel launch of one thread.
pub(crate) fn launch<'a>(kernel: &Function, arguments: &'a [u8]) -> Command<'a> {
    Command::Launch(Launch {
        function: kernel.id,
        grid: 1.into(),
        block: 1.into(),
        cluster: None,
        dynamic_shared_bytes: 0,
        cooperative: false,
        arguments,
        // SAFETY: `store` writes one word to the address it is given, which is mapped; the others touch nothing mapped.
        vouched: unsafe { Vouched::new() },
    })
}

/// What the scenario makes.
pub(crate) struct Scene {
    pub(crate) stream: StreamId,
    pub(crate) reservation: Reservation,
    pub(crate) host: HostBlock,
    pub(crate) store: Function,
    pub(crate) granule: u64,
}

/// Runs a call again after each loss, with another worker.
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

/// Takes over, however often that takes.
pub(crate) fn recover(device: &IsolatedDevice) {
    while let Err(error) = device.take_over() {
        assert!(error.is_retryable(), "{error}");
    }
}

impl Scene {
    /// Two granules of pages at an address, a stream, a host block and a kernel; nothing is lost by a worker that ends.
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
            // A worker that ended after the call and before its answer has not mapped anything for the next one.
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
pub(crate) fn whole_life(config: Config) -> std::result::Result<u64, kiln_isolate::StartError> {
    let device: Arc<IsolatedDevice> = IsolatedDevice::open(config)?;
    let scene = Scene::build(&device);
    scene.play(&device, 7);
    scene.play(&device, 8);
    Ok(device.generation())
}
