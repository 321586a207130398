//! Something that went wrong on a device.

use super::{TraceLine, TraceStamp};
use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// How the message of a fault begins that says why a lost device was given up.
pub const NOT_BROUGHT_BACK: &str = "the device was not brought back";

/// A fault of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FaultRecord<'a> {
    /// The device.
    pub device: u32,
    /// What it says, in one line.
    pub message: &'a str,
    /// The submission it belongs to, if that is known.
    pub stamp: Option<TraceStamp>,
    /// Which line submitted that.
    pub line: Option<TraceLine<'a>>,
    /// When it was noticed.
    pub time_ns: u64,
}

impl<'a> FaultRecord<'a> {
    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        to.number(self.device.into());
        to.name(self.message);
        to.byte(u8::from(self.stamp.is_some()));
        if let Some(stamp) = self.stamp {
            stamp.encode(to);
        }
        TraceLine::encode(self.line, to);
        to.time(self.time_ns);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'a>) -> Result<Self, Malformed> {
        let (device, message) = (from.small()?, from.name()?);
        let stamp = match from.byte()? {
            0 => None,
            1 => Some(TraceStamp::decode(from)?),
            _ => return Err(Malformed("a fault that is cut off")),
        };
        Ok(Self { device, message, stamp, line: TraceLine::decode(from)?, time_ns: from.time()? })
    }
}
