//! A part of a recording's time.

use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// From when to when, in nanoseconds since the recording began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimeSpan {
    /// The beginning.
    pub begin_ns: u64,
    /// The end; not before the beginning.
    pub end_ns: u64,
}

impl TimeSpan {
    /// A span; an end before the beginning is taken for the beginning.
    pub fn new(begin_ns: u64, end_ns: u64) -> Self {
        Self { begin_ns, end_ns: end_ns.max(begin_ns) }
    }

    /// How long it is.
    pub fn ns(self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }

    /// How much of it lies between two times.
    pub fn within(self, begin_ns: u64, end_ns: u64) -> u64 {
        self.end_ns.min(end_ns).saturating_sub(self.begin_ns.max(begin_ns))
    }

    pub(crate) fn encode(self, to: &mut FieldEncoder) {
        to.time(self.begin_ns);
        to.time(self.end_ns);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'_>) -> Result<Self, Malformed> {
        Ok(Self::new(from.time()?, from.time()?))
    }
}
