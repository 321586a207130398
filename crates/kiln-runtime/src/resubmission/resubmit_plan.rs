//! What becomes of the unfinished work of one takeover.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kiln_order::{Rules, Stamp, StreamClock, StreamKey, StreamState};

use super::kept_submission::Record;
use super::outcome::{Outcome, ReplayRefusal};
use super::resubmit_decision::ReplayDecision;
use super::resubmitter::{Replayed, Replayer};
use super::stream_start_marks::MarkValues;
use super::submission_log::SubmissionLog;
use crate::device_state::SubmissionSet;
use crate::ids::BlockId;

/// The unfinished work of one takeover, and what became of it.
pub(crate) struct ReplayPlan {
    /// Known to be done by the marks.
    known: StreamClock,
    /// Nothing beyond it had started.
    started: StreamClock,
    stretches: Vec<Stretch>,
    /// In the order of submission; none where it is not known what all of it uses.
    unfinished: Vec<Record>,
    outcomes: HashMap<Stamp, Outcome>,
    /// Of work that is not named.
    otherwise: ReplayRefusal,
    rules: Rules,
}

/// The unfinished numbers of one stream.
struct Stretch {
    stream: StreamKey,
    known: u64,
    planned: u64,
    /// Numbers from here on were not queued whole.
    broken: u64,
}

impl ReplayPlan {
    /// Nothing is done again, and this is why.
    pub(crate) fn refused(why: ReplayRefusal) -> Self {
        Self {
            known: StreamClock::default(),
            started: StreamClock::default(),
            stretches: Vec::new(),
            unfinished: Vec::new(),
            outcomes: HashMap::new(),
            otherwise: why,
            rules: Rules::default(),
        }
    }

    /// Holds the marks against what was submitted. No thread submits meanwhile; `known` is known to be done by other means.
    pub(crate) fn new(
        log: &SubmissionLog,
        values: &MarkValues,
        lanes: &[Arc<StreamState>],
        known: &StreamClock,
        rules: Rules,
    ) -> Self {
        let mut found = Self { known: known.clone(), rules, ..Self::refused(ReplayRefusal::MayHaveStarted) };
        for lane in lanes {
            let (stream, planned) = (lane.key, lane.planned());
            let broken = lane.broken().unwrap_or(u64::MAX);
            // A word that no mark can have left there says nothing, and everything may have started.
            let number = log.started(lane, values);
            let done = number.unwrap_or(0).saturating_sub(1).min(broken.saturating_sub(1));
            found.known.learn(Stamp { stream, number: done });
            found.started.learn(Stamp { stream, number: number.unwrap_or(planned) });
            let known = found.known.at(stream);
            found.stretches.push(Stretch { stream, known, planned, broken });
        }
        match log.unfinished(&found.known) {
            Some(unfinished) => found.unfinished = unfinished,
            None => found.otherwise = ReplayRefusal::Unsuited("not all of its accesses are known"),
        }
        found
    }

    /// What is known to be done, by the marks and by other means.
    pub(crate) fn known(&self) -> &StreamClock {
        &self.known
    }

    /// Does again what can be.
    pub(crate) fn replay(&mut self, replayer: &Replayer<'_>) -> Replayed {
        let broken = HashSet::new();
        let decision = ReplayDecision::new(&self.unfinished, &self.started, &broken, self.rules);
        replayer.replay(&self.unfinished, decision)
    }

    /// That is what became of it.
    pub(crate) fn accept(&mut self, replayed: Replayed) {
        self.outcomes = replayed.outcomes;
    }

    /// Blocks turn out to have been written by a kernel that had not declared it: what was done on them is not what it was to be. Says whether
    /// that changes anything.
    pub(crate) fn revise(&mut self, broken: &HashSet<BlockId>) -> bool {
        let mut decision = ReplayDecision::new(&self.unfinished, &self.started, broken, self.rules);
        let mut changed = false;
        for record in &self.unfinished {
            let outcome =
                self.outcomes.entry(record.stamp()).or_insert(Outcome::Failed(ReplayRefusal::Interrupted));
            if outcome.is_replayed()
                && let Err(why) = decision.judge(record)
            {
                *outcome = Outcome::Failed(why);
                changed = true;
            }
            if outcome.is_replayed() { decision.done(record) } else { decision.failed(record) }
        }
        changed
    }

    /// What became of some work.
    pub(crate) fn outcome(&self, stamp: Stamp) -> Outcome {
        self.outcomes.get(&stamp).copied().unwrap_or(Outcome::Failed(self.otherwise))
    }

    /// Everything that was done again. A number that stands for no work, such as a wait, is over if all before it on its stream is.
    pub(crate) fn replayed(&self) -> SubmissionSet {
        let mut replayed = SubmissionSet::default();
        for Stretch { stream, known, planned, broken } in &self.stretches {
            let mut whole = self.outcomes.values().any(|outcome| outcome.is_replayed());
            for number in known + 1..=*planned {
                let stamp = Stamp { stream: *stream, number };
                let done = match self.outcomes.get(&stamp) {
                    Some(outcome) => outcome.is_replayed(),
                    None => whole && number < *broken,
                };
                whole &= done;
                if done {
                    replayed.push(stamp);
                }
            }
        }
        replayed
    }
}
