//! `PostMortem`: the cause of a takeover, and which blocks and work were kept or lost.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use kiln_isolate::{Takeover, TakeoverPhases};
use kiln_order::Stamp;

use crate::device_state::{Cause, Loss};
use crate::ids::{BlockId, Generation};
use crate::resubmission::Outcome;

/// Why a worker was lost, what was under way, what became of every block, and how long it took. Its `Display` is a page to be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PostMortem {
    /// The generation that began.
    pub generation: Generation,
    /// Why the one before ended.
    pub cause: Arc<Cause>,
    /// The same as the worker's keeper saw it.
    pub worker: kiln_isolate::LossCause,
    /// Whether a standby took over, as opposed to a worker that had to be started.
    pub standby: bool,
    /// Work that was queued and is not known to be done, by stream and number. The first of each stream may have been running.
    pub unfinished: Vec<UnfinishedWork>,
    /// Every block there was, by its name.
    pub blocks: Vec<BlockRecord>,
    /// Graphs that could not be built again and are refused from here on.
    pub lost_graphs: usize,
    /// How long the parts of replacing the worker took.
    pub phases: TakeoverPhases,
    /// How long it took to find out what had started and to do again what had not.
    pub replayed: Duration,
    /// How long sealed blocks took to be verified, and lost ones to be filled again.
    pub repaired: Duration,
    /// How long it took to decide about blocks, while no thread could submit.
    pub decided: Duration,
    /// All of it, from when the loss was taken up until work was taken again.
    pub total: Duration,
}

/// Work that was queued and is not known to be done.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnfinishedWork {
    /// Its ticket.
    pub stamp: Stamp,
    /// What it was: `launch` and the kernel's name, `copy`, `fill` or `graph`.
    pub what: String,
    /// The line that launched it, where that is known.
    pub launched_at: Option<&'static Location<'static>>,
    /// How long ago it was queued when the worker was replaced.
    pub queued: Duration,
    /// Blocks it was the last to write.
    pub writes: Vec<BlockId>,
    /// Blocks it was the last of its stream to read.
    pub reads: Vec<BlockId>,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockRecord {
    /// The block.
    pub block: BlockId,
    /// Its size.
    pub bytes: u64,
    /// What became of it.
    pub outcome: BlockOutcome,
}

/// What became of a block, and how that is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum BlockOutcome {
    /// Kept: no unfinished work had declared to write it, and nothing more is known.
    Untouched,
    /// Kept: it was sealed, and its sums are what they were.
    Verified,
    /// Kept: it was mapped read-only, so that nothing could write it.
    Sealed,
    /// Kept: it was lost, and filled again.
    Healed,
    /// Lost: unfinished work was to write it.
    Touched,
    /// Lost: it was sealed, and something wrote it that had not declared to.
    Broken,
    /// Lost because the configuration keeps nothing.
    Dismissed,
}

impl BlockOutcome {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Untouched,
        Self::Verified,
        Self::Sealed,
        Self::Healed,
        Self::Touched,
        Self::Broken,
        Self::Dismissed,
    ];

    /// Whether the contents are gone.
    pub fn is_lost(self) -> bool {
        matches!(self, Self::Touched | Self::Broken | Self::Dismissed)
    }
}

impl PostMortem {
    pub(crate) fn new(loss: &Loss, takeover: &Takeover, unfinished: Vec<UnfinishedWork>) -> Self {
        Self {
            generation: Generation(loss.generation.0 + 1),
            cause: loss.cause.clone(),
            worker: takeover.cause.clone(),
            standby: takeover.standby,
            unfinished,
            blocks: Vec::new(),
            lost_graphs: takeover.lost_graphs.len(),
            phases: takeover.phases,
            replayed: Duration::ZERO,
            repaired: Duration::ZERO,
            decided: Duration::ZERO,
            total: Duration::ZERO,
        }
    }

    /// The unfinished work that was done again.
    pub fn replayed_work(&self) -> impl Iterator<Item = &UnfinishedWork> {
        self.unfinished.iter().filter(|work| work.outcome.is_replayed())
    }

    /// The blocks whose contents are gone.
    pub fn lost(&self) -> impl Iterator<Item = &BlockRecord> {
        self.blocks.iter().filter(|record| record.outcome.is_lost())
    }

    /// The blocks that are as they were, or were filled again.
    pub fn kept(&self) -> impl Iterator<Item = &BlockRecord> {
        self.blocks.iter().filter(|record| !record.outcome.is_lost())
    }
}
