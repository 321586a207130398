//! Events that are missing from a recording.

use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// Events that were not written, because they came faster than they could be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DroppedRecord {
    /// How many.
    pub events: u64,
    /// When that was noticed.
    pub time_ns: u64,
}

impl DroppedRecord {
    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        to.number(self.events);
        to.time(self.time_ns);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'_>) -> Result<Self, Malformed> {
        Ok(Self { events: from.number()?, time_ns: from.time()? })
    }
}
