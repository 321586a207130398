//! Finds the blocks that unfinished submissions may have written.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use kiln_driver::{StreamId, Submission};
use kiln_isolate::Takeover;
use kiln_order::{DependencyTracker, Stamp, StreamClock, StreamState};

use crate::device_state::{Keep, Loss};
use crate::ids::BlockId;
use crate::recovery::block_repair::Repaired;
use crate::recovery::loss_detection::{Entry, SubmissionMap, Work};
use crate::recovery::report::{BlockOutcome, BlockRecord, PostMortem, UnfinishedWork};
use crate::resubmission::ReplayPlan;
use crate::runtime::Block;

/// How far each stream was when its worker was lost.
pub(crate) struct LossAnalysis {
    /// Everything here is done.
    pub(crate) known: StreamClock,
    /// Everything here was asked for.
    pub(crate) planned: StreamClock,
}

impl LossAnalysis {
    /// Holds what the worker had said it completed against what was queued, and adds what is known otherwise. No submission is being made.
    pub(crate) fn new(
        submissions: &SubmissionMap,
        tracker: &DependencyTracker,
        lanes: &[Arc<StreamState>],
        takeover: &Takeover,
        otherwise: &StreamClock,
    ) -> Self {
        let (mut known, planned) = tracker.horizon();
        let completed: HashMap<StreamId, Submission> =
            takeover.unfinished.iter().map(|it| (it.stream, it.progress.completed)).collect();
        for lane in lanes {
            let planned = lane.planned();
            // A stream that is not named had done all it was given. No stream stands in the place of another here: only those of other
            // libraries are given back, and a worker's process has none that could be imported.
            let completed = completed.get(&lane.stream).map_or(u64::MAX, |completed| completed.0);
            let done = submissions.unfinished(lane, |unfinished| unfinished.done_up_to(completed, planned));
            // Work that was queued in part ended with the part that was not.
            let whole = lane.broken().map_or(u64::MAX, |broken| broken.saturating_sub(1));
            if let Some(done) = done {
                known.learn(Stamp { stream: lane.key, number: done.min(whole) });
            }
        }
        known.join(otherwise);
        Self { known, planned }
    }

    /// What was unfinished, and what it was to do with which blocks.
    pub(crate) fn report(
        &self,
        submissions: &SubmissionMap,
        lanes: &[Arc<StreamState>],
        takeover: &Takeover,
        (loss, plan): (&Loss, &ReplayPlan),
        blocks: &[Arc<Block>],
    ) -> PostMortem {
        let mut uses = Uses::of(blocks, loss);
        let now = Instant::now();
        let mut unfinished = Vec::new();
        for lane in lanes {
            let entries: Vec<Entry> = submissions
                .unfinished(lane, |unfinished| unfinished.beyond(self.known.at(lane.key)).collect());
            unfinished.extend(entries.into_iter().map(|entry| {
                let stamp = Stamp { stream: lane.key, number: entry.number };
                let what = match entry.work {
                    Work::Launch(function) => match submissions.kernel(function) {
                        Some(name) => format!("launch {name}"),
                        None => "launch".into(),
                    },
                    Work::Other(name) => name.into(),
                };
                let launched = matches!(entry.work, Work::Launch(_));
                let site = launched.then(|| lane.sites().find(Submission(entry.last))).flatten();
                UnfinishedWork {
                    stamp,
                    what,
                    launched_at: site.map(|(_, at)| at),
                    queued: now.saturating_duration_since(entry.queued),
                    writes: uses.writes.remove(&stamp).unwrap_or_default(),
                    reads: uses.reads.remove(&stamp).unwrap_or_default(),
                    outcome: plan.outcome(stamp),
                }
            }));
        }
        PostMortem::new(loss, takeover, unfinished)
    }

    /// Declares blocks lost or kept. The loss is settled, so that questions by number get the same answer.
    pub(crate) fn apply(
        &self,
        report: &mut PostMortem,
        loss: &Loss,
        blocks: &[Arc<Block>],
        repaired: &Repaired,
        on_loss: Keep,
    ) {
        for block in blocks.iter().filter(|block| !block.is_lost()) {
            let outcome = match repaired.get(&block.id()) {
                _ if on_loss == Keep::Nothing && !block.is_touched(loss) => BlockOutcome::Dismissed,
                Some(BlockOutcome::Healed) if on_loss == Keep::Untouched => BlockOutcome::Healed,
                _ if block.is_touched(loss) => BlockOutcome::Touched,
                Some(outcome) => *outcome,
                None if block.is_sealed() => BlockOutcome::Sealed,
                None => BlockOutcome::Untouched,
            };
            match outcome {
                BlockOutcome::Healed => block.restore(),
                lost if lost.is_lost() => block.lose(loss.generation, &loss.cause),
                _ => {}
            }
            report.blocks.push(BlockRecord { block: block.id(), bytes: block.bytes(), outcome });
        }
    }
}

/// Which blocks unfinished work was to use, as far as their stamps still say so.
#[derive(Default)]
struct Uses {
    writes: HashMap<Stamp, Vec<BlockId>>,
    reads: HashMap<Stamp, Vec<BlockId>>,
}

impl Uses {
    fn of(blocks: &[Arc<Block>], loss: &Loss) -> Self {
        let mut uses = Self::default();
        for block in blocks {
            let history = block.history().lock();
            let (writes, reads) = (history.writes(), history.reads());
            drop(history);
            for stamp in writes.iter().filter(|stamp| loss.was_unfinished(*stamp)) {
                uses.writes.entry(stamp).or_default().push(block.id());
            }
            for stamp in reads.iter().filter(|stamp| loss.was_unfinished(*stamp)) {
                uses.reads.entry(stamp).or_default().push(block.id());
            }
        }
        uses
    }
}
