//! A device to run programs on: a simulated one whose traffic is counted and whose report is looked at, or a GPU.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kiln::code_cache::{CacheConfig, CachePlace};
use kiln::probe::TestGate;
use kiln::program::{Backend, ProgramError};
use kiln::{DeviceRuntime, Error, RuntimeConfig};
use kiln_driver::layer::{CommandKind, Counting, Counts, Layered};
use kiln_driver::{DeviceKind, Driver};
use kiln_sim::{Machine, MachineConfig, PtxEngine};

/// How often a GPU is asked for memory that others have, and how long to wait in between.
const MAX_ASKED: u32 = 300;
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// The GPU is for one test at a time: each takes two runtimes, and a process has addresses for about a dozen.
static TURN: Mutex<()> = Mutex::new(());

pub(crate) struct Rig {
    machine: Option<Machine>,
    driver: Arc<Layered<Counting>>,
    pub(crate) backend: Backend,
    /// Released last.
    _turn: Option<MutexGuard<'static, ()>>,
}

impl Rig {
    pub(crate) fn simulated() -> Self {
        Self::of(MachineConfig::seeded(5))
    }

    /// The first device of a machine that can run PTX.
    pub(crate) fn of(config: MachineConfig) -> Self {
        let machine = Machine::new(config.engine(Arc::new(PtxEngine::default())));
        let driver = machine.device(0).unwrap();
        Self::over(driver, Some(machine), None)
    }

    /// The GPU; none where there is none, which is counted.
    pub(crate) fn cuda(test: &str) -> Option<Self> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        match kiln::probe::gpu_for_test(test).unwrap() {
            TestGate::Ready(gpu) if gpu.info().kind == DeviceKind::Cuda => {
                Some(Self::over(gpu.driver().clone(), None, Some(turn)))
            }
            TestGate::Ready(_) => None,
            TestGate::Skipped(absence) => {
                println!("skipped: {absence}");
                None
            }
        }
    }

    fn over(
        driver: Arc<dyn Driver>,
        machine: Option<Machine>,
        turn: Option<MutexGuard<'static, ()>>,
    ) -> Self {
        let driver = Arc::new(Layered::new(driver, Counting::default()));
        let cache = CacheConfig { place: CachePlace::Off, ..CacheConfig::default() };
        let config = RuntimeConfig { cache, ..RuntimeConfig::default() };
        let gpu = DeviceRuntime::from_driver(driver.clone(), config).unwrap();
        Self { machine, driver, backend: Backend::over(gpu), _turn: turn }
    }

    pub(crate) fn gpu(&self) -> &DeviceRuntime {
        self.backend.runtime()
    }

    /// Takes much of a GPU's memory, which other programs may have for the moment: asks again until they have given some back. What else goes
    /// wrong, and memory that stays away, ends the test with its error.
    pub(crate) fn when_free<T>(&self, take: impl Fn() -> Result<T, Error>) -> T {
        for _ in 0..MAX_ASKED {
            match take() {
                Err(error) if error.is_oom() && self.machine.is_none() => std::thread::sleep(ASK_AGAIN),
                taken => return taken.unwrap_or_else(|error| panic!("{error}")),
            }
        }
        let free = self.driver.memory_info().map(|memory| memory.free_bytes);
        panic!(
            "{}; free bytes of the device: {free:?}",
            take().err().map_or_else(String::new, |e| e.to_string())
        )
    }

    /// Calls of the driver so far.
    pub(crate) fn counts(&self) -> Counts {
        self.driver.layer().counts()
    }

    pub(crate) fn launches_since(&self, before: &Counts) -> u64 {
        self.counts().since(before).submitted(CommandKind::Launch)
    }

    /// What the simulator found so far.
    pub(crate) fn findings(&self) -> Vec<kiln_sim::Finding> {
        self.machine.as_ref().map_or_else(Vec::new, Machine::findings)
    }

    /// Ends the runtime; a simulator must have found nothing. Whatever holds something of the device is gone before.
    pub(crate) fn finish(self) {
        drop((self.backend, self.driver));
        if let Some(machine) = self.machine {
            let report = machine.finish();
            assert!(report.is_clean(), "{report}");
        }
    }
}

/// Why a program was refused.
pub(crate) fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> ProgramError {
    let error = result.expect_err("this is to be refused");
    match error.downcast_ref::<ProgramError>() {
        Some(refusal) => refusal.clone(),
        None => panic!("expected a refusal of the program, got {error}"),
    }
}
