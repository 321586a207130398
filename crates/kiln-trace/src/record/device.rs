//! Devices and streams, introduced by name.

use super::{RecordingClock, TraceStream};
use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// A device of the recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeviceRecord<'a> {
    /// Its number in the recording.
    pub device: u32,
    /// What it is called.
    pub name: &'a str,
    /// Which of the recording's clocks its times are of. Those of devices with different ones cannot be compared: simulated devices that are not of one simulated machine, or of which one has the clock of the host.
    pub clock: u32,
    /// What that clock is.
    pub clock_kind: RecordingClock,
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
        self.clock_kind.encode(to);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'a>) -> Result<Self, Malformed> {
        Ok(Self {
            device: from.small()?,
            name: from.name()?,
            clock: from.small()?,
            clock_kind: RecordingClock::decode(from)?,
        })
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
