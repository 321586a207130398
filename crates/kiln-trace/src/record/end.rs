//! The end of a recording.

use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// The last runtime that is recorded has ended. A file without it is of a program that was killed, crashed, or ended without dropping its
/// runtime; a file may have several, where another runtime began after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndRecord {
    /// When.
    pub time_ns: u64,
}

impl EndRecord {
    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        to.time(self.time_ns);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'_>) -> Result<Self, Malformed> {
        Ok(Self { time_ns: from.time()? })
    }
}
