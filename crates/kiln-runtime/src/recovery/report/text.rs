//! Formats a post-mortem as text.

use std::fmt;
use std::time::Duration;

use kiln_mem::ByteSize;

use super::post_mortem::{BlockOutcome, BlockRecord, PostMortem, UnfinishedWork};
use crate::ids::BlockId;
use crate::resubmission::{Outcome, ReplayRefusal};

/// Names of one line; the rest is a count.
const NAMED: usize = 8;

impl fmt::Display for PostMortem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "worker lost: {}", self.worker)?;
        writeln!(f, "  cause     {}", self.cause)?;
        writeln!(f, "  now in    worker generation {}", self.generation.0)?;
        match self.unfinished.as_slice() {
            [] => writeln!(f, "  under way nothing")?,
            work => {
                for (at, work) in work.iter().take(NAMED).enumerate() {
                    let head = if at == 0 { "under way" } else { "" };
                    writeln!(f, "  {head:9} {work}")?;
                }
                more(f, work.len().saturating_sub(NAMED))?;
            }
        }
        for outcome in BlockOutcome::ALL {
            let records: Vec<&BlockRecord> =
                self.blocks.iter().filter(|record| record.outcome == outcome).collect();
            if !records.is_empty() {
                let head = if outcome.is_lost() { "lost" } else { "kept" };
                let bytes = ByteSize(records.iter().map(|record| record.bytes).sum());
                let names = names(records.iter().map(|record| record.block));
                writeln!(f, "  {head:9} {} of {bytes}, {outcome}: {names}", count(records.len(), "block"))?;
            }
        }
        if self.lost_graphs > 0 {
            writeln!(f, "  lost      {}", count(self.lost_graphs, "graph"))?;
        }
        let phases = &self.phases;
        let from = if self.standby { "standby worker" } else { "start of a new worker" };
        write!(
            f,
            "  time      {} in all: pause {}, old worker exit {}, {from} {}, pages {}, host memory {}, code {}, streams {}, resubmit {}, verify and refill {}, loss analysis {}",
            Milliseconds(self.total),
            Milliseconds(phases.pause),
            Milliseconds(phases.kill),
            Milliseconds(phases.start),
            Milliseconds(phases.pages),
            Milliseconds(phases.hosts),
            Milliseconds(phases.code),
            Milliseconds(phases.queues),
            Milliseconds(self.replayed),
            Milliseconds(self.repaired),
            Milliseconds(self.decided),
        )
    }
}

impl fmt::Display for UnfinishedWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}, queued {} before", self.stamp, self.what, Milliseconds(self.queued))?;
        if let Some(at) = self.launched_at {
            write!(f, " at {}:{}", at.file(), at.line())?;
        }
        if !self.writes.is_empty() {
            write!(f, ", writes {}", names(self.writes.iter().copied()))?;
        }
        if !self.reads.is_empty() {
            write!(f, ", reads {}", names(self.reads.iter().copied()))?;
        }
        match self.outcome {
            Outcome::Failed(ReplayRefusal::NotAsked) => Ok(()),
            outcome => write!(f, "; {outcome}"),
        }
    }
}

impl fmt::Display for BlockOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Untouched => "not written by any unfinished launch",
            Self::Verified => "sealed, checksum unchanged",
            Self::Sealed => "sealed, read-only",
            Self::Healed => "filled again",
            Self::Touched => "written by an unfinished launch or copy",
            Self::Broken => "sealed, checksum changed",
            Self::Dismissed => "dropped, because the configuration keeps nothing",
        })
    }
}

/// A duration as it is compared.
struct Milliseconds(Duration);

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} ms", self.0.as_secs_f64() * 1e3)
    }
}

fn more(f: &mut fmt::Formatter<'_>, count: usize) -> fmt::Result {
    if count > 0 { writeln!(f, "            and {count} more") } else { Ok(()) }
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn names(blocks: impl ExactSizeIterator<Item = BlockId>) -> String {
    let rest = blocks.len().saturating_sub(NAMED);
    let mut names: Vec<String> = blocks.take(NAMED).map(|block| block.to_string()).collect();
    if rest > 0 {
        names.push(format!("{rest} more"));
    }
    names.join(", ")
}
