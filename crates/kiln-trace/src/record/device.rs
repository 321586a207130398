//! Devices and streams, introduced by name.

use super::TraceStream;
use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// A device of the recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeviceRecord<'a> {
    /// Its number in the recording.
    pub device: u32,
    /// What it is called.
    pub name: &'a str,
    /// Which of the recording's clocks its times are of. Those of devices with different ones cannot be compared: simulated devices that are not of one simulated machine.
    pub clock: u32,
}

/// A stream of the recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamRecord<'a> {
    /// Which.
    pub stream: TraceStream,
    /// What it is called.
    pub name: &'a str,
}

impl<'a> DeviceRecord<'a> {
    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        to.number(self.device.into());
        to.name(self.name);
        to.number(self.clock.into());
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'a>) -> Result<Self, Malformed> {
        Ok(Self { device: from.small()?, name: from.name()?, clock: from.small()? })
    }
}

impl<'a> StreamRecord<'a> {
    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        self.stream.encode(to);
        to.name(self.name);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'a>) -> Result<Self, Malformed> {
        Ok(Self { stream: TraceStream::decode(from)?, name: from.name()? })
    }
}
