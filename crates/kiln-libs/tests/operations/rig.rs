//! The devices that a test runs on.

use kiln::probe::TestGate;
use kiln::recovery::{DeviceSpec, Isolation, Process, RestartPolicy, WorkerEntry};
use kiln::{DeviceRuntime, RuntimeConfig};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Duration;

/// Runs a test on the simulated device under two seeds, and on the GPU where there is one. The simulated one must find nothing.
pub(crate) fn everywhere(label: &str, test: impl Fn(&DeviceRuntime)) {
    kiln::testing::check(0..2, |gpu| {
        test(gpu);
        Ok(())
    })
    .unwrap();
    match kiln::probe::gpu_for_test(label).unwrap() {
        TestGate::Ready(gpu) => test(gpu),
        TestGate::Skipped(absence) => println!("skipped: {absence}"),
    }
}

/// As [`everywhere`], and on the simulated device in a worker process, and on the GPU in one where there is one.
pub(crate) fn everywhere_and_in_workers(label: &str, test: impl Fn(&DeviceRuntime)) {
    everywhere(label, &test);
    let gpu = in_worker(&DeviceSpec::simulated(7), process());
    test(&gpu);
    gpu.synchronize().unwrap();
    if let TestGate::Ready(_) = kiln::probe::gpu_for_test(label).unwrap() {
        test(&in_worker(&DeviceSpec::cuda(0), process()));
    }
}

/// This binary's test `worker` as the worker, restarted without a pause.
pub(crate) fn process() -> Process {
    let span = Duration::from_secs(600);
    let restarts =
        RestartPolicy { limit: 10_000, span, pause: Duration::ZERO, longest_pause: Duration::ZERO };
    Process { entry: WorkerEntry::Test("worker".into()), restarts, ..Process::default() }
}

pub(crate) fn in_worker(device: &DeviceSpec, process: Process) -> DeviceRuntime {
    let config = RuntimeConfig { isolation: Isolation::Process(process), ..RuntimeConfig::default() };
    DeviceRuntime::open(device, config).unwrap()
}

/// Counts a test as skipped, with the reason.
pub(crate) fn skip(test: &str, reason: &str) {
    println!("skipped: {reason}");
    let Some(log) = std::env::var_os("KILN_SKIP_LOG").filter(|path| !path.is_empty()) else { return };
    let mut log = OpenOptions::new().create(true).append(true).open(log).unwrap();
    // In one piece: other tests write there, too.
    log.write_all(format!("kiln-libs {test}: {reason}\n").as_bytes()).unwrap();
}

/// Whether it is a simulated device, in this process or in a worker.
pub(crate) fn is_simulated(gpu: &DeviceRuntime) -> bool {
    gpu.info().kind == kiln_driver::DeviceKind::Simulated
}

/// Runs a test with so many elements that all parts of a kernel work together: on the simulated device once, and with more on the GPU.
pub(crate) fn large(label: &str, test: impl Fn(&DeviceRuntime, usize)) {
    const SIMULATED: usize = 300_000;
    const ON_GPU: usize = 40_000_001;
    kiln::testing::check(0..1, |gpu| {
        test(gpu, SIMULATED);
        Ok(())
    })
    .unwrap();
    match kiln::probe::gpu_for_test(label).unwrap() {
        TestGate::Ready(gpu) => test(gpu, ON_GPU),
        TestGate::Skipped(absence) => println!("skipped: {absence}"),
    }
}
