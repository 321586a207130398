//! Which clock the times of each device are of.

use std::collections::BTreeMap;

use crate::record::{DeviceRecord, RecordingClock};

/// Devices of which something is kept.
const MAX_DEVICES: usize = 1 << 16;

/// The clocks of the devices of a recording.
#[derive(Clone, Default, Debug)]
pub(crate) struct DeviceClocks {
    of: BTreeMap<u32, (u32, RecordingClock)>,
    /// The clock of devices that the recording does not introduce.
    first: RecordingClock,
}

impl DeviceClocks {
    /// The clock with which the recording begins.
    pub(crate) fn begin(&mut self, clock: RecordingClock) {
        self.first = clock;
    }

    pub(crate) fn add(&mut self, device: &DeviceRecord<'_>) {
        if self.of.len() < MAX_DEVICES || self.of.contains_key(&device.device) {
            self.of.insert(device.device, (device.clock, device.clock_kind));
        }
    }

    /// The clock of a device.
    pub(crate) fn of(&self, device: u32) -> u32 {
        self.of.get(&device).map_or(0, |(clock, _)| *clock)
    }

    /// What the clock of a device is.
    pub(crate) fn kind(&self, device: u32) -> RecordingClock {
        self.of.get(&device).map_or(self.first, |(_, kind)| *kind)
    }

    /// Whether times of two devices can be compared.
    pub(super) fn are_one(&self, device: u32, other: u32) -> bool {
        self.of(device) == self.of(other)
    }

    /// Whether the devices have several clocks.
    pub(super) fn are_several(&self) -> bool {
        let mut clocks = self.of.values().map(|(clock, _)| clock);
        let first = clocks.next();
        clocks.any(|clock| Some(clock) != first)
    }
}
