//! Simulated machines with several devices, and groups over them.

use kiln::RuntimeConfig;
use kiln::group::{DeviceGroup, GroupError};
use kiln::sim::{DeviceConfig, FaultPlan, Links, Machine, MachineConfig};

pub(crate) struct Rig {
    pub(crate) machine: Machine,
    pub(crate) group: DeviceGroup,
}

impl Rig {
    pub(crate) fn new(devices: u32, seed: u64) -> Self {
        Self::with(devices, seed, Links::all(), FaultPlan::none())
    }

    pub(crate) fn with(devices: u32, seed: u64, links: Links, faults: FaultPlan) -> Self {
        Self::over(machine(devices, seed, links, faults))
    }

    pub(crate) fn over(machine: Machine) -> Self {
        Self::try_over(machine).unwrap()
    }

    /// A rig, unless a device is lost before its runtime is ready.
    pub(crate) fn try_over(machine: Machine) -> Result<Self, GroupError> {
        let count = machine.devices().len() as u32;
        let drivers = (0..count).map(|ordinal| machine.device(ordinal).unwrap());
        let group = DeviceGroup::over(drivers, &RuntimeConfig::default())?;
        Ok(Self { machine, group })
    }

    /// Ends the group and looks at what the machine found.
    pub(crate) fn finish(self) {
        drop(self.group);
        let report = self.machine.finish();
        assert!(report.is_clean(), "{report}");
    }
}

/// A machine with so many devices.
pub(crate) fn machine(devices: u32, seed: u64, links: Links, faults: FaultPlan) -> Machine {
    let config = MachineConfig::seeded(seed).links(links).faults(faults);
    Machine::new((0..devices).fold(config, |config, _| config.device(DeviceConfig::default())))
}

/// Numbers that follow from a seed.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// The device that an error names.
pub(crate) fn failed_device<T: std::fmt::Debug>(result: Result<T, GroupError>) -> usize {
    let error = result.unwrap_err();
    assert!(error.is_lost(), "{error}");
    error.device().unwrap()
}
