//! Simulated devices as a platform.

use std::ffi::OsStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kiln_driver::{DeviceKind, Driver, Health};
#[cfg(all(feature = "isolate", target_os = "linux"))]
use kiln_isolate::DeviceSpec;
use kiln_sim::{FaultPlan, Machine, MachineConfig, PtxEngine};

use crate::devices::DeviceSummary;
use crate::error::{ProbeError, Result};
use crate::platform::{Listing, Platform};
use crate::simulator_faults::{FAULT_LOG_VARIABLE, FAULTS_VARIABLE};
use crate::simulator_seed::SEED_VARIABLE;

/// The devices of a simulated machine.
#[derive(Clone, Debug)]
pub struct SimulatorPlatform {
    machine: Machine,
}

impl SimulatorPlatform {
    /// The devices of this machine; keep a clone of it to ask what it found.
    pub fn new(machine: Machine) -> Self {
        Self { machine }
    }
}

impl Platform for SimulatorPlatform {
    fn kind(&self) -> DeviceKind {
        DeviceKind::Simulated
    }

    fn list(&self) -> Result<Listing> {
        Ok(Listing::Devices(
            self.machine.devices().iter().map(|info| Ok(DeviceSummary::from(info))).collect(),
        ))
    }

    fn open(&self, ordinal: u32) -> Result<Arc<dyn Driver>> {
        Ok(self.machine.device(ordinal)?)
    }
}

/// A simulated device for the caller alone, driven by a seed. It has the faults that are planned in the environment, if it is the first of the process.
///
/// # Errors
/// If simulated devices are not part of this build; a fault plan in the environment that cannot be read.
pub fn simulated_device(seed: u64) -> Result<Arc<dyn Driver>> {
    Ok(machine_with(seed)?.device(0)?)
}

/// The process's machine: one device, driven by the seed in the environment, or by 0, with the faults that are planned there. It is built by the first request, and
/// again when its device is lost: a fault ends one simulation and not all that follow, and what was planned happens on the first machine alone. A seed that is no number, or
/// a plan that cannot be read, is the answer to every request.
pub struct ProcessMachine;

static CURRENT: Mutex<Option<&'static Machine>> = Mutex::new(None);

impl ProcessMachine {
    /// The latest machine.
    ///
    /// # Errors
    /// The environment holds a seed that is no number.
    pub fn machine() -> Result<&'static Machine> {
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        match *current {
            Some(machine) => Ok(machine),
            None => Ok(current.insert(Self::start()?)),
        }
    }

    /// A machine of which that device is not lost.
    fn working(ordinal: u32) -> Result<&'static Machine> {
        let machine = Self::machine()?;
        if !matches!(machine.device(ordinal)?.health(), Health::Lost(_)) {
            return Ok(machine);
        }
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(current.insert(Self::start()?))
    }

    fn start() -> Result<&'static Machine> {
        let seed = seed(std::env::var_os(SEED_VARIABLE).as_deref())?;
        Ok(Box::leak(Box::new(machine_with(seed)?)))
    }
}

impl Platform for ProcessMachine {
    fn kind(&self) -> DeviceKind {
        DeviceKind::Simulated
    }

    fn list(&self) -> Result<Listing> {
        SimulatorPlatform::new(Self::machine()?.clone()).list()
    }

    fn open(&self, ordinal: u32) -> Result<Arc<dyn Driver>> {
        SimulatorPlatform::new(Self::working(ordinal)?.clone()).open(ordinal)
    }

    /// A worker has a separate machine, with one device driven by the same seed. It has no planned faults, so a plan is refused and not left out.
    #[cfg(all(feature = "isolate", target_os = "linux"))]
    fn backend(&self, ordinal: u32) -> Result<Option<DeviceSpec>> {
        if let Some(text) = text_of(std::env::var_os(FAULTS_VARIABLE).as_deref()) {
            let wanted = "no plan for a device in a worker process; keep the device in the program's own process, or plan no faults";
            return Err(ProbeError::Environment { variable: FAULTS_VARIABLE, text, wanted });
        }
        let seed = seed(std::env::var_os(SEED_VARIABLE).as_deref())?;
        Ok((ordinal == 0).then(|| DeviceSpec::simulated(seed)))
    }
}

/// A machine of one device. The first of the process has the faults that are planned in the environment.
fn machine_with(seed: u64) -> Result<Machine> {
    static IS_PLANNED: AtomicBool = AtomicBool::new(false);
    let faults = faults(std::env::var_os(FAULTS_VARIABLE).as_deref())?;
    let is_first = !IS_PLANNED.swap(true, Ordering::Relaxed);
    let faults = if is_first { faults } else { FaultPlan::none() };
    let mut config = MachineConfig::seeded(seed).engine(Arc::new(PtxEngine::default())).faults(faults);
    config.fault_log = std::env::var_os(FAULT_LOG_VARIABLE).filter(|file| !file.is_empty()).map(Into::into);
    Ok(Machine::new(config))
}

fn seed(variable: Option<&OsStr>) -> Result<u64> {
    let Some(text) = text_of(variable) else { return Ok(0) };
    text.trim().parse().map_err(|_| {
        let wanted = "a number from 0 to 2^64 - 1";
        ProbeError::Environment { variable: SEED_VARIABLE, text, wanted }
    })
}

/// The faults of a plan. The machine has one device, so that a fault of another one could not happen.
fn faults(variable: Option<&OsStr>) -> Result<FaultPlan> {
    let Some(text) = text_of(variable) else { return Ok(FaultPlan::none()) };
    let wrong = |wanted, text| ProbeError::Environment { variable: FAULTS_VARIABLE, text, wanted };
    let plan = text.parse::<FaultPlan>();
    let plan = plan.map_err(|error| {
        wrong("faults such as `oom@3` or `lost@40`, with commas between them", error.fault)
    })?;
    match plan.faults.iter().all(|(device, fault)| *device == 0 && !fault.is_of_a_link()) {
        true => Ok(plan),
        false => Err(wrong("faults of device 0 alone, which has no links", text)),
    }
}

/// What a variable says, if it is set to anything.
fn text_of(variable: Option<&OsStr>) -> Option<String> {
    variable.map(|text| text.to_string_lossy().into_owned()).filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_number_or_an_error_that_names_the_variable() {
        let read = |text: &str| seed(Some(OsStr::new(text)));
        assert_eq!((seed(None).unwrap(), read("").unwrap(), read(" 7 ").unwrap()), (0, 0, 7));
        for text in ["x", "-1", "18446744073709551616"] {
            assert!(read(text).unwrap_err().to_string().contains(SEED_VARIABLE));
        }
    }

    #[test]
    fn planned_faults_are_those_of_the_one_device_or_an_error_that_names_the_variable() {
        let read = |text: &str| faults(Some(OsStr::new(text)));
        assert_eq!((faults(None).unwrap(), read(" ").unwrap()), (FaultPlan::none(), FaultPlan::none()));
        assert_eq!(read("oom@3,0:hang@1").unwrap().faults.len(), 2);
        for text in ["oom", "oom@3,flood@1", "1:oom@3", "cut-1@2", "slow-1@2"] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(FAULTS_VARIABLE), "{error}");
        }
        assert!(read("oom@3,flood@1").unwrap_err().to_string().contains("=`flood@1`"));
    }
}
