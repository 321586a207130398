//! Which clock the times of each device are of.

use std::collections::BTreeMap;

/// The clocks of the devices of a recording.
#[derive(Default)]
pub(super) struct DeviceClocks {
    of: BTreeMap<u32, u32>,
}

impl DeviceClocks {
    pub(super) fn add(&mut self, device: u32, clock: u32) {
        self.of.insert(device, clock);
    }

    /// The clock of a device.
    pub(super) fn of(&self, device: u32) -> u32 {
        self.of.get(&device).copied().unwrap_or(0)
    }

    /// Whether times of two devices can be compared.
    pub(super) fn are_one(&self, device: u32, other: u32) -> bool {
        self.of(device) == self.of(other)
    }
}
