//! Simulated devices as a platform.

use std::ffi::OsStr;
use std::sync::{Arc, Mutex, PoisonError};

use kiln_driver::{DeviceKind, Driver, Health};
#[cfg(all(feature = "isolate", target_os = "linux"))]
use kiln_isolate::DeviceSpec;
use kiln_sim::{Machine, MachineConfig, PtxEngine};

use crate::devices::DeviceSummary;
use crate::error::{ProbeError, Result};
use crate::platform::{Listing, Platform};
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

/// A simulated device for the caller alone, driven by a seed.
///
/// # Errors
/// If simulated devices are not part of this build.
pub fn simulated_device(seed: u64) -> Result<Arc<dyn Driver>> {
    let machine = Machine::new(MachineConfig::seeded(seed).engine(Arc::new(PtxEngine::default())));
    Ok(machine.device(0)?)
}

/// The process's machine: one device, driven by the seed in the environment, or by 0. It is built by the first request, and
/// again when its device is lost: a fault ends one simulation and not all that follow. A seed that is no number is the
/// answer to every request.
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
        let config = MachineConfig::seeded(seed).engine(Arc::new(PtxEngine::default()));
        Ok(Box::leak(Box::new(Machine::new(config))))
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

    /// A worker has a separate machine, with one device driven by the same seed.
    #[cfg(all(feature = "isolate", target_os = "linux"))]
    fn backend(&self, ordinal: u32) -> Result<Option<DeviceSpec>> {
        let seed = seed(std::env::var_os(SEED_VARIABLE).as_deref())?;
        Ok((ordinal == 0).then(|| DeviceSpec::simulated(seed)))
    }
}

fn seed(variable: Option<&OsStr>) -> Result<u64> {
    let Some(text) = variable.filter(|text| !text.is_empty()).map(OsStr::to_string_lossy) else {
        return Ok(0);
    };
    text.trim().parse().map_err(|_| {
        let wanted = "a number from 0 to 2^64 - 1";
        ProbeError::Environment { variable: SEED_VARIABLE, text: text.into_owned(), wanted }
    })
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
}
