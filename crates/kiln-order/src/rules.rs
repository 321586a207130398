//! Which rules the order keeps: all of them, unless a test of this project takes one out.
//!
//! A test that runs random programs proves little unless it fails when a rule is missing. With the feature `mutations`, which is for such
//! tests and for nothing else, `Rules::without` makes a set of rules that lacks one. Without it this type is empty, every question below
//! is answered with a constant, and there is nothing to switch.

#[cfg(feature = "mutations")]
use crate::disabled_rule::Mutation;

/// The rules that the order, graphs and replays keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    #[cfg(feature = "mutations")]
    lacks: Option<Mutation>,
}

#[cfg(not(feature = "mutations"))]
const _: () = assert!(size_of::<Rules>() == 0, "a build for users has no rule that could be taken out");

/// Whether a rule is kept, by the mutation that would take it out.
macro_rules! keeps {
    ($rules:ident, $mutation:pat) => {{
        #[cfg(feature = "mutations")]
        let keeps = !matches!($rules.lacks, Some($mutation));
        #[cfg(not(feature = "mutations"))]
        let keeps = $rules == Self {};
        keeps
    }};
}

impl Rules {
    /// All rules but one, if one is named.
    #[cfg(feature = "mutations")]
    pub fn without(mutation: Option<Mutation>) -> Self {
        Self { lacks: mutation }
    }

    /// Whether none is missing that a step looks at.
    #[inline(always)]
    pub fn are_complete(self) -> bool {
        #[cfg(feature = "mutations")]
        return !self.lacks.is_some_and(|mutation| Mutation::ALL.contains(&mutation));
        #[cfg(not(feature = "mutations"))]
        return self == Self {};
    }

    /// A read waits for the last write.
    #[inline(always)]
    pub fn reads_wait_for_writes(self) -> bool {
        keeps!(self, Mutation::ReadAfterWrite)
    }

    /// A write waits for the reads since the last write.
    #[inline(always)]
    pub fn writes_wait_for_reads(self) -> bool {
        keeps!(self, Mutation::WriteAfterRead)
    }

    /// A write waits for the last write.
    #[inline(always)]
    pub fn writes_wait_for_writes(self) -> bool {
        keeps!(self, Mutation::WriteAfterWrite)
    }

    /// A first use waits for the allocation.
    #[inline(always)]
    pub fn uses_wait_for_allocation(self) -> bool {
        keeps!(self, Mutation::AllocationBeforeUse)
    }

    /// A free waits for the last uses.
    #[inline(always)]
    pub fn frees_wait_for_uses(self) -> bool {
        keeps!(self, Mutation::UseBeforeFree)
    }

    /// A wait for a stream covers what the stream did so far, and nothing later.
    #[inline(always)]
    pub fn waits_cover_the_past_only(self) -> bool {
        keeps!(self, Mutation::TransitiveElision)
    }

    /// A block remembers one reader for each stream.
    #[inline(always)]
    pub fn readers_are_kept_per_stream(self) -> bool {
        keeps!(self, Mutation::ReaderPerStream)
    }

    /// Stamps are published inside of the step that plans.
    #[inline(always)]
    pub fn stamps_are_published_in_the_step(self) -> bool {
        keeps!(self, Mutation::PublicationInsideStep)
    }

    /// A graph is built with the edge of that number.
    #[inline(always)]
    pub fn has_graph_edge(self, number: usize) -> bool {
        #[cfg(feature = "mutations")]
        return self.lacks != Some(Mutation::GraphEdge(number));
        #[cfg(not(feature = "mutations"))]
        return self.are_complete() || number == usize::MAX;
    }

    /// After a takeover, work that may have started is not done again.
    #[inline(always)]
    pub fn started_work_is_not_replayed(self) -> bool {
        keeps!(self, Mutation::ReplayStarted)
    }

    /// After a takeover, work that needs what is lost is not done again.
    #[inline(always)]
    pub fn work_on_lost_blocks_is_not_replayed(self) -> bool {
        keeps!(self, Mutation::ReplayOnLost)
    }
}
