//! A test that runs under several seeds.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kiln_mem::layer::Annotated;
use kiln_runtime::prober::{Prober, TestGate, prober};
use kiln_sim::{KernelChecks, Machine, MachineConfig, Mode, PtxEngine, SimReport};

use super::failure::{FailureCause, TestFailure};
use crate::{DeviceRuntime, Error, Result, RuntimeConfig};

/// The environment variable that picks one seed.
pub const SEED_VARIABLE: &str = "KILN_SEED";
/// The environment variable that says where tests run: `sim`, or `cuda` for the simulated device and then the GPU.
pub const DEVICE_VARIABLE: &str = "KILN_TEST_DEVICE";

/// A test of GPU code: seeds, a machine, a runtime.
///
/// ```
/// use kiln::sim::{DeviceConfig, MachineConfig};
/// use kiln::testing::SeededTest;
///
/// let small = MachineConfig::seeded(0).device(DeviceConfig::with_memory(16 << 20));
/// let test = SeededTest::new(0..4).machine(small);
/// test.run(|gpu| {
///     assert!(gpu.zeros::<u8>(32 << 20).is_err(), "the device has 16 MiB");
///     Ok(())
/// })?;
/// # Ok::<(), kiln::testing::TestFailure>(())
/// ```
#[derive(Clone)]
pub struct SeededTest {
    seeds: Vec<u64>,
    machine: MachineConfig,
    runtime: RuntimeConfig,
}

impl SeededTest {
    /// A test with these seeds, a machine with one device and every check on, and a runtime with default settings.
    pub fn new(seeds: impl IntoIterator<Item = u64>) -> Self {
        let machine = MachineConfig::seeded(0).engine(Arc::new(PtxEngine::with_checks(KernelChecks::ALL)));
        // The test itself looks at what the machine found.
        let runtime =
            RuntimeConfig { findings: crate::checking::Findings::Ignore, ..RuntimeConfig::default() };
        Self { seeds: seeds.into_iter().collect(), machine, runtime }
    }

    /// Another machine. Its mode is replaced by each seed in turn; a machine that cannot run PTX yet gets an engine that does.
    #[must_use]
    pub fn machine(self, machine: MachineConfig) -> Self {
        let engine = machine.engine.clone().or(self.machine.engine);
        Self { machine: MachineConfig { engine, ..machine }, ..self }
    }

    /// Other settings of the runtime: its memory stack, its cache, what a finding does.
    #[must_use]
    pub fn runtime(self, runtime: RuntimeConfig) -> Self {
        Self { runtime, ..self }
    }

    /// Runs the test with each seed, on a new machine each time, and then on the GPU if the environment asks for that.
    ///
    /// # Errors
    /// The first failure.
    pub fn run(&self, test: impl Fn(&DeviceRuntime) -> Result<()>) -> std::result::Result<(), TestFailure> {
        let environment = |variable: &str| std::env::var(variable).ok().filter(|text| !text.is_empty());
        let asked = Asked::read(environment(SEED_VARIABLE), environment(DEVICE_VARIABLE));
        let asked = asked.map_err(|cause| TestFailure::new(self.seeds.first().copied(), cause))?;
        let chosen = asked.seed.map(|seed| vec![seed]);
        for seed in chosen.as_ref().unwrap_or(&self.seeds) {
            self.run_seed(*seed, &test)
                .map_err(|(cause, findings)| TestFailure::new(Some(*seed), cause).with_findings(findings))?;
        }
        if asked.gpu {
            run_gpu(prober(), &test).map_err(|cause| TestFailure::new(None, cause))?;
        }
        Ok(())
    }

    fn run_seed(
        &self,
        seed: u64,
        test: &impl Fn(&DeviceRuntime) -> Result<()>,
    ) -> std::result::Result<(), (FailureCause, Option<Box<SimReport>>)> {
        let machine = Machine::new(MachineConfig { mode: Mode::Seeded(seed), ..self.machine.clone() });
        let failed = |error: Error| (FailureCause::Error(error), None);
        let device = machine.device(0).map_err(|error| failed(error.into()))?;
        let outcome = {
            let gpu = DeviceRuntime::from_driver(device, self.runtime.clone()).map_err(failed)?;
            let before = gpu.memory().accounting().live_bytes;
            caught(&gpu, test).and_then(|()| {
                match gpu.memory().accounting().live_bytes.saturating_sub(before) {
                    0 => Ok(()),
                    bytes => Err(FailureCause::Leak { bytes, blocks: Annotated::live(&**gpu.memory()) }),
                }
            })
        };
        // After a fault or a panic memory stays behind, which says nothing about the test.
        let found = || {
            let mut report = machine.finish();
            report.findings.retain(|finding| finding.kind != kiln_sim::FindingKind::Leak);
            Some(Box::new(report)).filter(|report| !report.is_clean())
        };
        let findings = match outcome {
            Ok(()) => Box::new(machine.finish()),
            Err(cause @ (FailureCause::Panic(_) | FailureCause::Leak { .. })) => {
                return Err((cause, found()));
            }
            Err(cause) => match found() {
                Some(report) => report,
                None => return Err((cause, None)),
            },
        };
        if findings.is_clean() { Ok(()) } else { Err((FailureCause::Findings(findings), None)) }
    }
}

/// What the environment asks for.
struct Asked {
    seed: Option<u64>,
    gpu: bool,
}

impl Asked {
    fn read(seed: Option<String>, device: Option<String>) -> std::result::Result<Self, FailureCause> {
        let wrong = |variable: &str, text: &str, wanted: &str| {
            FailureCause::Environment(format!("{variable} is `{text}`; set it to {wanted}, or not at all"))
        };
        let seed = match seed {
            Some(text) => {
                let number = text.trim().parse();
                Some(number.map_err(|_| wrong(SEED_VARIABLE, &text, "a number from 0 to 2^64 - 1"))?)
            }
            None => None,
        };
        let gpu = match device.as_deref() {
            None | Some("sim") => false,
            Some("cuda") => true,
            Some(text) => return Err(wrong(DEVICE_VARIABLE, text, "`sim` or `cuda`")),
        };
        Ok(Self { seed, gpu })
    }
}

/// Runs a test, and waits for all it queued.
fn caught(
    gpu: &DeviceRuntime,
    test: &impl Fn(&DeviceRuntime) -> Result<()>,
) -> std::result::Result<(), FailureCause> {
    let outcome = catch_unwind(AssertUnwindSafe(|| test(gpu).and_then(|()| gpu.synchronize())));
    match outcome {
        Ok(outcome) => outcome.map_err(FailureCause::Error),
        Err(payload) => {
            let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
            Err(FailureCause::Panic(text.unwrap_or_else(|| "without a message".to_owned())))
        }
    }
}

/// Runs a test on the GPU. Without one it is counted as skipped, or fails where a GPU is required.
fn run_gpu(
    prober: &Prober,
    test: &impl Fn(&DeviceRuntime) -> Result<()>,
) -> std::result::Result<(), FailureCause> {
    let label = std::thread::current().name().unwrap_or("a test").to_owned();
    match prober.gpu_for_test(&label).map_err(|error: Error| FailureCause::Error(error))? {
        TestGate::Ready(gpu) => caught(gpu, test),
        TestGate::Skipped(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use super::*;

    #[test]
    fn the_environment_picks_a_seed_and_a_device() {
        let read = |seed: Option<&str>, device: Option<&str>| {
            Asked::read(seed.map(str::to_owned), device.map(str::to_owned))
                .map(|asked| (asked.seed, asked.gpu))
        };
        assert_eq!(read(None, None).unwrap(), (None, false));
        assert_eq!(read(Some(" 7 "), Some("cuda")).unwrap(), (Some(7), true));
        assert_eq!(read(None, Some("sim")).unwrap(), (None, false));
        for (seed, device, variable) in
            [(Some("x"), None, SEED_VARIABLE), (None, Some("gpu"), DEVICE_VARIABLE)]
        {
            let cause = read(seed, device).unwrap_err();
            let text = TestFailure::new(Some(0), cause).to_string();
            assert!(text.contains(variable) && text.contains("set it to"), "{text}");
        }
    }
}
