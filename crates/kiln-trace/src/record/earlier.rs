//! Work that was submitted before the recording began.

use super::TraceStamp;
use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// A stream still had work when its recording began. It is said once without an end, and again when the end is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EarlierRecord {
    /// The stream, and the last submission that is not in the recording.
    pub stamp: TraceStamp,
    /// When all of it was done; none if that is not known yet.
    pub until_ns: Option<u64>,
}

impl EarlierRecord {
    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        self.stamp.encode(to);
        to.byte(u8::from(self.until_ns.is_some()));
        if let Some(until) = self.until_ns {
            to.time(until);
        }
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'_>) -> Result<Self, Malformed> {
        let stamp = TraceStamp::decode(from)?;
        let until_ns = match from.byte()? {
            0 => None,
            1 => Some(from.time()?),
            _ => return Err(Malformed("earlier work that is cut off")),
        };
        Ok(Self { stamp, until_ns })
    }
}
