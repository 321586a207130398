//! Whether unfinished work was submitted again after a takeover, and if not, why.

use std::fmt;

use crate::ids::BlockId;

/// What became of work that was unfinished when its worker was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It had not started, and was done in the next generation.
    Replayed,
    /// It failed.
    Failed(ReplayRefusal),
}

/// Why work was not done again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReplayRefusal {
    /// It was not asked for: [`Replay::Never`](super::Replay::Never).
    NotAsked,
    /// It may have started.
    MayHaveStarted,
    /// It needs what a block held, and that is lost.
    NeedsLost(BlockId),
    /// It is not of a kind that is done again.
    Unsuited(&'static str),
    /// A worker was lost while work was done again.
    Interrupted,
}

impl Outcome {
    /// Whether it was done after all.
    pub fn is_replayed(self) -> bool {
        self == Self::Replayed
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replayed => f.write_str("done again"),
            Self::Failed(why) => write!(f, "failed: {why}"),
        }
    }
}

impl fmt::Display for ReplayRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAsked => f.write_str("nothing is done again"),
            Self::MayHaveStarted => f.write_str("it may have started"),
            Self::NeedsLost(block) => write!(f, "it needs {block}, which is lost"),
            Self::Unsuited(why) => f.write_str(why),
            Self::Interrupted => f.write_str("another worker was lost while work was done again"),
        }
    }
}
