//! The rules of the race check, so that a test can take one out and show that it is needed.

/// A rule of the race check. Every rule holds unless a test takes it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(feature = "mutations"), allow(unreachable_pub, reason = "public with the feature only"))]
pub enum RaceRule {
    /// A barrier of the whole block orders its threads.
    BlockBarrier,
    /// A barrier of some warps orders these.
    PartialBarrier,
    /// A thread that only arrives at a barrier is ordered up to its arrival, not further.
    Arrival,
    /// A barrier of a warp orders the lanes it names.
    WarpBarrier,
    /// Lanes of a warp are not ordered without such a barrier.
    Lanes,
    /// Blocks are not ordered by a barrier.
    Blocks,
    /// A fence before a strong write releases.
    ReleaseFence,
    /// A fence behind a strong read acquires.
    AcquireFence,
    /// A release operation releases.
    Release,
    /// An acquire operation acquires.
    Acquire,
    /// Strong accesses without fence, acquire or release order nothing.
    Relaxed,
    /// An atomic update passes on what was released before it.
    UpdateChain,
    /// What follows an update or a strong read is ordered behind the strong writes that these observed.
    Observation,
    /// A strong store starts again: what was released before it is not passed on.
    StoreBreaksChain,
    /// Order needs a scope that includes both threads.
    OrderScope,
    /// Strong accesses do not race with each other.
    StrongPair,
    /// Strong accesses race when a scope does not include both threads.
    AccessScope,
    /// Strong accesses of different sizes race.
    AccessSize,
    /// A write races with earlier reads.
    WriteAfterRead,
    /// A read races with earlier writes.
    ReadAfterWrite,
    /// A write races with earlier writes.
    WriteAfterWrite,
    /// More than one reader is remembered.
    Readers,
    /// A plain write is remembered behind strong accesses.
    PlainBehindStrong,
    /// Neighbouring bytes of a word are different places.
    Bytes,
    /// Writes of the same value are told apart.
    SameValue,
    /// Before sm_70 the lanes of a warp run in lockstep.
    Lockstep,
    /// Data of an asynchronous copy is pending until the wait.
    PendingCopy,
    /// What threads have fenced is passed on by barriers.
    FenceThroughBarrier,
    /// Memory of the device heap starts again when it is allocated.
    Allocation,
    /// With a seed, threads are preempted before strong accesses.
    Preemption,
    /// Memory that is read as a constant is not written.
    ConstantRead,
    /// The source of an asynchronous copy is not written until the wait.
    CopySource,
    /// A wait is ordered behind what its last read found, not behind what earlier ones did.
    LastPoll,
    /// A strong value that a thread reads behind a wait was written before a fence, and the fence before what it waited for.
    PublishedValue,
    /// A block of the device heap is freed behind all accesses to it.
    Free,
    /// The barrier of a cluster orders its threads.
    ClusterBarrier,
    /// What threads wrote to shared memory is read through the async proxy behind a fence.
    ProxyFence,
}

impl RaceRule {
    /// All of them.
    #[cfg(feature = "mutations")]
    pub const ALL: [Self; 37] = [
        Self::BlockBarrier,
        Self::PartialBarrier,
        Self::Arrival,
        Self::WarpBarrier,
        Self::Lanes,
        Self::Blocks,
        Self::ReleaseFence,
        Self::AcquireFence,
        Self::Release,
        Self::Acquire,
        Self::Relaxed,
        Self::UpdateChain,
        Self::Observation,
        Self::StoreBreaksChain,
        Self::OrderScope,
        Self::StrongPair,
        Self::AccessScope,
        Self::AccessSize,
        Self::WriteAfterRead,
        Self::ReadAfterWrite,
        Self::WriteAfterWrite,
        Self::Readers,
        Self::PlainBehindStrong,
        Self::Bytes,
        Self::SameValue,
        Self::Lockstep,
        Self::PendingCopy,
        Self::FenceThroughBarrier,
        Self::Allocation,
        Self::Preemption,
        Self::ConstantRead,
        Self::CopySource,
        Self::LastPoll,
        Self::PublishedValue,
        Self::Free,
        Self::ClusterBarrier,
        Self::ProxyFence,
    ];
}

/// The rules that hold.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    #[cfg(feature = "mutations")]
    without: Option<RaceRule>,
}

impl Rules {
    /// All rules but one.
    #[cfg(feature = "mutations")]
    pub(crate) fn without(without: Option<RaceRule>) -> Self {
        Self { without }
    }

    /// Whether a rule holds; without the feature every rule does.
    #[inline(always)]
    pub(crate) fn has(self, rule: RaceRule) -> bool {
        #[cfg(feature = "mutations")]
        let taken_out = self.without == Some(rule);
        #[cfg(not(feature = "mutations"))]
        let taken_out = {
            let _ = rule;
            false
        };
        !taken_out
    }
}
