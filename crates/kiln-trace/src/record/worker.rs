//! The process that has a device.

use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// A worker process that has a device from here on, until the device is lost ([`TakeoverPhase::Lost`](crate::TakeoverPhase::Lost)) or the recording
/// ends. A device of the program's own process has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WorkerRecord<'a> {
    /// The device.
    pub device: u32,
    /// The number of the process in the operating system.
    pub process: u32,
    /// The name of its program.
    pub name: &'a str,
    /// From when on it has the device, as far as it is recorded.
    pub time_ns: u64,
}

impl<'a> WorkerRecord<'a> {
    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        to.number(self.device.into());
        to.number(self.process.into());
        to.name(self.name);
        to.time(self.time_ns);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'a>) -> Result<Self, Malformed> {
        let (device, process, name) = (from.small()?, from.small()?, from.name()?);
        Ok(Self { device, process, name, time_ns: from.time()? })
    }
}
