//! The devices that a test runs on.

use kiln::DeviceRuntime;
use kiln::probe::TestGate;

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
