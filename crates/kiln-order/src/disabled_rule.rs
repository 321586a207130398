//! One rule of the order, taken out on purpose. Exists with the feature `mutations` only, for this project's own tests.

/// The rule that is taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    /// A read no longer waits for the last write.
    ReadAfterWrite,
    /// A write no longer waits for the reads since the last write.
    WriteAfterRead,
    /// A write no longer waits for the last write.
    WriteAfterWrite,
    /// A first use no longer waits for the allocation.
    AllocationBeforeUse,
    /// A free no longer remembers the last uses.
    UseBeforeFree,
    /// One wait for a stream counts as a wait for everything it will ever do.
    TransitiveElision,
    /// A block remembers one reader instead of one per stream.
    ReaderPerStream,
    /// Stamps are published after the work, outside of the step.
    PublicationInsideStep,
    /// A graph is built without the edge of that number.
    GraphEdge(usize),
    /// After a takeover, work that may have started is done again.
    ReplayStarted,
    /// After a takeover, work that needs what is lost is done again.
    ReplayOnLost,
}

impl Mutation {
    /// Those of the order between streams.
    pub const ALL: [Self; 8] = [
        Self::ReadAfterWrite,
        Self::WriteAfterRead,
        Self::WriteAfterWrite,
        Self::AllocationBeforeUse,
        Self::UseBeforeFree,
        Self::TransitiveElision,
        Self::ReaderPerStream,
        Self::PublicationInsideStep,
    ];

    /// Those of what is done again after a takeover.
    pub const REPLAY: [Self; 2] = [Self::ReplayStarted, Self::ReplayOnLost];
}
