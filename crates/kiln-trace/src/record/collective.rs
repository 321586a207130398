//! What a collective does.

use super::TraceStamp;
use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// A collective between ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CollectiveRecord<'a> {
    /// The submission.
    pub stamp: TraceStamp,
    /// The operation, such as `all_reduce`.
    pub name: &'a str,
    /// What the communicator is called, the same for all its ranks.
    pub communicator: u64,
    /// This rank.
    pub rank: u32,
    /// How many ranks take part.
    pub ranks: u32,
    /// Bytes of the larger buffer.
    pub bytes: u64,
}

impl<'a> CollectiveRecord<'a> {
    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        self.stamp.encode(to);
        to.name(self.name);
        to.number(self.communicator);
        to.number(self.rank.into());
        to.number(self.ranks.into());
        to.number(self.bytes);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'a>) -> Result<Self, Malformed> {
        let (stamp, name, communicator) = (TraceStamp::decode(from)?, from.name()?, from.number()?);
        let (rank, ranks) = (from.small()?, from.small()?);
        Ok(Self { stamp, name, communicator, rank, ranks, bytes: from.number()? })
    }
}
