//! Streams and submissions by their names in a recording.

use std::fmt;

use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// A stream of a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TraceStream {
    /// The number of the device in the recording.
    pub device: u32,
    /// The number of the stream on its device.
    pub stream: u32,
}

/// The `number`th submission of a stream; the first is 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TraceStamp {
    /// Whose.
    pub stream: TraceStream,
    /// Which.
    pub number: u64,
}

impl TraceStream {
    pub(crate) fn encode(self, to: &mut FieldEncoder) {
        to.number(self.device.into());
        to.number(self.stream.into());
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'_>) -> Result<Self, Malformed> {
        Ok(Self { device: from.small()?, stream: from.small()? })
    }
}

impl TraceStamp {
    pub(crate) fn encode(self, to: &mut FieldEncoder) {
        self.stream.encode(to);
        to.number(self.number);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'_>) -> Result<Self, Malformed> {
        Ok(Self { stream: TraceStream::decode(from)?, number: from.number()? })
    }
}

impl fmt::Display for TraceStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream {}", self.stream)
    }
}

impl fmt::Display for TraceStamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "submission {} on {}", self.number, self.stream)
    }
}
