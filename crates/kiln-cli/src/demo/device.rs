//! The device the demo runs on.

use std::sync::Arc;

use kiln::{DeviceRuntime, RuntimeConfig};
use kiln_driver::layer::Layered;
use kiln_driver::{DeviceInfo, Driver};
use kiln_sim::{Machine, MachineConfig, PtxEngine};

use super::event_timing_layer::Stopwatch;
use crate::device_choice::{Choice, Where};

/// A runtime over a device, with a stopwatch between the two.
pub(crate) struct Stage {
    runtime: DeviceRuntime,
    timed: Arc<Layered<Stopwatch>>,
    machine: Option<Machine>,
    /// Why this device was chosen.
    reason: String,
}

/// What is known after the runtime was dropped.
pub(crate) struct Closed {
    pub(crate) info: DeviceInfo,
    pub(crate) reason: String,
    /// The findings of the simulated device, if it was one.
    pub(crate) findings: Option<kiln_sim::SimReport>,
}

impl Stage {
    /// Chooses and opens a device.
    ///
    /// # Errors
    /// There is no device of the kind that was asked for, or it does not work.
    pub(crate) fn set(wanted: Where, seed: u64) -> kiln::Result<Self> {
        let Choice { gpu, reason } = wanted.choose()?;
        match gpu {
            Some(runtime) => Self::over(Arc::clone(runtime.driver()), None, reason),
            None => Self::simulated(seed, reason),
        }
    }

    /// The runtime.
    pub(crate) fn runtime(&self) -> &DeviceRuntime {
        &self.runtime
    }

    /// The stopwatch.
    pub(crate) fn stopwatch(&self) -> &Stopwatch {
        self.timed.layer()
    }

    /// Drops everything; the simulated device then reports what was leaked.
    pub(crate) fn close(self) -> Closed {
        let Self { runtime, timed, machine, reason } = self;
        drop(runtime);
        let info = timed.info().clone();
        drop(timed);
        Closed { info, reason, findings: machine.map(|machine| machine.finish()) }
    }

    /// A simulated machine with that seed, whose findings are only those of the demo.
    fn simulated(seed: u64, reason: String) -> kiln::Result<Self> {
        let machine = Machine::new(MachineConfig::seeded(seed).engine(Arc::new(PtxEngine::default())));
        let driver = machine.device(0)?;
        Self::over(driver, Some(machine), reason)
    }

    fn over(driver: Arc<dyn Driver>, machine: Option<Machine>, reason: String) -> kiln::Result<Self> {
        let timed = Arc::new(Layered::new(Arc::clone(&driver), Stopwatch::new(driver)));
        let runtime = DeviceRuntime::from_driver(timed.clone(), RuntimeConfig::default())?;
        Ok(Self { runtime, timed, machine, reason })
    }
}
