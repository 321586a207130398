//! What is right after a loss: of every block, of pinned memory, and of everything that was queued.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kiln::order::Stamp;
use kiln::recovery::{Outcome, PostMortem, ReplayRefusal};

use super::{Item, POISON, Program, Tally, Wrong};

impl Program {
    pub(super) fn judge(&self, report: &PostMortem) -> Result<Tally, Wrong> {
        let mut tally = Tally::default();
        let outcomes: HashMap<Stamp, Outcome> =
            report.unfinished.iter().map(|work| (work.stamp, work.outcome)).collect();
        self.judge_blocks(report, &outcomes, &mut tally).map_err(|wrong| wrong.with(report))?;
        self.judge_pins(&mut tally).map_err(|wrong| wrong.with(report))?;
        self.judge_work(&outcomes, &mut tally).map_err(|wrong| wrong.with(report))?;
        Ok(tally)
    }

    /// What was said of each item: once, the same to every caller, and as it follows from what may have started.
    fn judge_work(&self, outcomes: &HashMap<Stamp, Outcome>, tally: &mut Tally) -> Result<(), Wrong> {
        let mut spoilt: HashMap<usize, bool> = HashMap::new();
        let started = |item: &Item| {
            outcomes.get(&item.ticket.stamp()) == Some(&Outcome::Failed(ReplayRefusal::MayHaveStarted))
        };
        for item in self.items.iter().filter(|item| started(item)) {
            spoilt.insert(item.writes, true);
        }
        for (index, item) in self.items.iter().enumerate() {
            let done = item.ticket.wait().is_ok();
            let outcome = outcomes.get(&item.ticket.stamp());
            if let Some(told) = &item.told {
                // Callbacks come from the reactor, for which no thread waits.
                let begun = Instant::now();
                while told.calls[0].load(Ordering::SeqCst) == 0 && begun.elapsed() < Duration::from_secs(20) {
                    std::thread::yield_now();
                }
                let calls = [0, 1].map(|at: usize| told.calls[at].load(Ordering::SeqCst));
                if calls != [1, usize::from(done)] {
                    let error = told.error.lock().unwrap();
                    let said = format!("item {index} was done: {done}, its callback: {calls:?} {error:?}");
                    return Err(Wrong::Word(said));
                }
            }
            let needs = item.reads.iter().chain((!item.overwrites).then_some(&item.writes));
            let needs_spoilt = needs.clone().any(|block| spoilt.get(block) == Some(&true));
            let may_need_spoilt =
                needs_spoilt || needs.clone().any(|block| self.perhaps_written.contains(block));
            let right = match outcome {
                None => done,
                Some(Outcome::Replayed) => done && !needs_spoilt,
                Some(Outcome::Failed(ReplayRefusal::MayHaveStarted)) => !done,
                Some(Outcome::Failed(ReplayRefusal::NeedsLost(_))) => !done && may_need_spoilt,
                Some(_) => !done,
            };
            if !right {
                return Err(Wrong::Word(format!(
                    "item {index} ({}, reads {:?}, writes {}, overwrites: {}) is {outcome:?}, done: {done}, needs what is lost: {needs_spoilt}",
                    item.ticket.stamp(),
                    item.reads,
                    item.writes,
                    item.overwrites
                )));
            }
            match outcome {
                Some(Outcome::Replayed) => tally.replayed += 1,
                Some(Outcome::Failed(ReplayRefusal::MayHaveStarted)) => tally.started += 1,
                Some(Outcome::Failed(ReplayRefusal::NeedsLost(_))) => tally.needs_lost += 1,
                _ => {}
            }
            let spoils = outcome.is_some_and(|outcome| !outcome.is_replayed());
            if spoils {
                spoilt.insert(item.writes, true);
            } else if outcome.is_some() && item.overwrites {
                spoilt.insert(item.writes, false);
            }
        }
        Ok(())
    }

    /// Whether the whole block was written after the loss. A standby is there so soon that the program may still be queueing.
    fn is_overwritten_later(&self, number: usize, outcomes: &HashMap<Stamp, Outcome>) -> bool {
        let of_block = self.items.iter().rev().filter(|item| item.writes == number);
        let mut after = of_block.take_while(|item| !outcomes.contains_key(&item.ticket.stamp()));
        !self.perhaps_written.contains(&number) && after.any(|item| item.overwrites)
    }

    fn judge_blocks(
        &self,
        report: &PostMortem,
        outcomes: &HashMap<Stamp, Outcome>,
        tally: &mut Tally,
    ) -> Result<(), Wrong> {
        for slot in &self.slots {
            let id = slot.buffer.block_id();
            let kept = slot.buffer.access().is_ok();
            let record = report.blocks.iter().find(|record| record.block == id);
            let restored = kept && self.is_overwritten_later(slot.number, outcomes);
            if record.is_some_and(|record| record.outcome.is_lost() == kept) && !restored {
                return Err(Wrong::Word(format!("{id} is kept: {kept}, and the report says something else")));
            }
            let Some(value) = slot.value else {
                tally.lost += usize::from(!kept);
                continue;
            };
            let last_done = slot.last.is_none_or(|item| self.items[item].ticket.wait().is_ok());
            if kept != last_done {
                return Err(Wrong::Word(format!(
                    "{id} is kept: {kept}, and its last write is done: {last_done}"
                )));
            }
            if kept {
                tally.kept += 1;
                let found = slot.buffer.download().map_err(|error| Wrong::Word(error.to_string()))?;
                if found != [value] || value == POISON {
                    return Err(Wrong::Bytes(format!("{id} holds {found:?} where {value} was to be")));
                }
            } else {
                tally.lost += 1;
            }
        }
        Ok(())
    }
}
