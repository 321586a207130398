//! Finds the waits of a submission and updates the access histories of all its blocks in one atomic step.
//!
//! All blocks are locked before the first stamp is published, and each is unlocked after its own is, so no other submission
//! sees some of the stamps and not the rest. The locks are tried in the order of the arguments; if one is held, all are
//! released and taken in the order of their addresses, which cannot deadlock. The guards are kept on the stack, so nothing is allocated
//! for as many blocks as a launch has in practice. No driver call happens in here.

use std::ops::Range;

use kiln_driver::{Access, StreamId};
use smallvec::SmallVec;

use crate::access_history::AccessHistory;
use crate::held_streams::{held_here, holds_any};
use crate::history_guards::{self, Guards};
use crate::rules::Rules;
use crate::stamp::Stamp;
use crate::stream_state::StreamState;
use crate::sync_shim::BiasedLock;
use crate::vector_clock::{HostClock, StreamClock};
use crate::wait_observer::{Observed, tell_needs};
use crate::wait_planner::Waits;

/// One block of a submission.
#[derive(Clone)]
pub struct Use<'a> {
    /// What the block remembers.
    pub history: &'a BiasedLock<AccessHistory>,
    /// The bytes that are used.
    pub range: Range<u64>,
    /// How.
    pub access: Access,
    /// The caller's number for it, for messages.
    pub argument: u16,
}

/// Two uses of one submission write the same bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OverlappingWrites {
    /// The caller's number for one of them.
    pub first: u16,
    /// And for the other.
    pub second: u16,
}

/// Why a step was not taken; nothing was published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepRefusal {
    /// Two uses write the same bytes.
    Overlap(OverlappingWrites),
    /// The contents of a block are gone.
    Lost {
        /// The caller's number for it.
        argument: u16,
    },
    /// A block that is sealed would be written.
    Sealed {
        /// The caller's number for it.
        argument: u16,
    },
    /// The work would have to wait for work that this thread is about to queue.
    Held {
        /// The stream of that.
        stream: StreamId,
    },
}

/// The parts of a stream that a step reads and writes.
pub(crate) struct Step<'a> {
    /// The stream.
    pub state: &'a StreamState,
    /// What the submission will be known as. The stream says so when it is sure that there will be one.
    pub stamp: Stamp,
    /// What its stream is ordered after.
    pub clock: &'a StreamClock,
    /// What is known to be done.
    pub host: &'a HostClock,
    /// What it has to wait for; filled in.
    pub waits: &'a mut Waits,
    /// The rules that it keeps.
    pub rules: Rules,
    /// Told what it has to come after; looked at only for blocks that other streams use, too.
    pub observed: &'a Observed,
}

/// What keeps a step from being taken at the first try.
enum Hitch {
    /// Another thread is in the middle of a step with one of the blocks, or a block occurs twice.
    Contended,
    /// A block does not take the use.
    Refused(StepRefusal),
}

impl Step<'_> {
    /// Plans, announces the stamp and publishes it. An error has done none of these.
    #[inline]
    pub(crate) fn take(&mut self, uses: &mut [Use<'_>]) -> Result<(), StepRefusal> {
        let is_plain = self.rules.are_complete() && uses.len() <= history_guards::MOST;
        let tried = if is_plain { self.try_all(uses) } else { self.try_many(uses) };
        match tried {
            Ok(()) => Ok(()),
            Err(hitch) => self.take_sorted(uses, hitch),
        }
    }

    /// The way of a step that found a block held, or one that does not take the use.
    #[cold]
    #[inline(never)]
    fn take_sorted(&mut self, uses: &mut [Use<'_>], hitch: Hitch) -> Result<(), StepRefusal> {
        if let Hitch::Refused(refusal) = hitch {
            return Err(refusal);
        }
        self.waits.clear();
        uses.sort_unstable_by_key(|each| (std::ptr::from_ref(each.history), each.range.start));
        refuse_overlapping_writes(uses).map_err(StepRefusal::Overlap)?;
        self.lock_all(uses)
    }

    /// For no more blocks than guards have room, with all rules in force.
    #[inline]
    fn try_all(&mut self, uses: &[Use<'_>]) -> Result<(), Hitch> {
        let stream = self.stamp.stream;
        let mut held = Guards::new();
        for each in uses {
            let history = each.history.try_lock().ok_or(Hitch::Contended)?;
            // What nearly every use finds.
            if !history.is_sole(stream) {
                self.need(&history, each).map_err(Hitch::Refused)?;
            }
            held.push(history);
        }
        self.state.announce(self.stamp.number);
        let (stamp, host) = (self.stamp, self.host);
        held.release(|at, history| {
            if let Some(each) = uses.get(at) {
                history.publish(&each.range, each.access, stamp, |stamp| host.covers(stamp));
            }
        });
        Ok(())
    }

    /// As `try_all`, for many blocks or with a rule taken out.
    #[cold]
    #[inline(never)]
    fn try_many(&mut self, uses: &[Use<'_>]) -> Result<(), Hitch> {
        let mut held = Vec::with_capacity(uses.len());
        for each in uses {
            let history = each.history.try_lock().ok_or(Hitch::Contended)?;
            self.need(&history, each).map_err(Hitch::Refused)?;
            held.push(history);
        }
        self.state.announce(self.stamp.number);
        uses.iter().zip(&mut held).for_each(|(each, history)| self.publish(history, each));
        Ok(())
    }

    /// As `try_all`, over uses sorted by block; uses of the same block share its lock.
    fn lock_all(&mut self, uses: &[Use<'_>]) -> Result<(), StepRefusal> {
        let groups = || uses.chunk_by(|one, next| std::ptr::eq(one.history, next.history));
        let mut held: SmallVec<[_; history_guards::MOST]> = SmallVec::new();
        for group in groups() {
            let Some(first) = group.first() else { continue };
            let history = first.history.lock();
            group.iter().try_for_each(|each| self.need(&history, each))?;
            held.push(history);
        }
        self.state.announce(self.stamp.number);
        for (group, history) in groups().zip(&mut held) {
            // Reads first: a write of the same bytes then stands as the last word.
            group.iter().filter(|each| !each.access.writes()).for_each(|each| self.publish(history, each));
            group.iter().filter(|each| each.access.writes()).for_each(|each| self.publish(history, each));
        }
        Ok(())
    }

    #[inline]
    fn need(&mut self, history: &AccessHistory, each: &Use<'_>) -> Result<(), StepRefusal> {
        if let Some(observer) = self.observed.get() {
            tell_needs(&**observer, self.stamp, history, each);
        }
        if !self.rules.are_complete() {
            self.need_mutated(history, each);
            return Ok(());
        }
        // A plain block takes every use, and what says so lies on another line.
        if !history.is_plain() {
            Self::admit(history, each)?;
        }
        history.needs(&each.range, each.access, |stamp| {
            self.waits.need(stamp, self.stamp.stream, self.clock, self.host);
        });
        if holds_any() { self.refuse_own() } else { Ok(()) }
    }

    /// Whether a block takes a use.
    #[cold]
    fn admit(history: &AccessHistory, each: &Use<'_>) -> Result<(), StepRefusal> {
        if history.is_lost() {
            return Err(StepRefusal::Lost { argument: each.argument });
        }
        if history.is_sealed() && each.access.writes() {
            return Err(StepRefusal::Sealed { argument: each.argument });
        }
        Ok(())
    }

    /// Refuses to wait for a submission that this thread has begun: it would not get to end it.
    #[cold]
    fn refuse_own(&self) -> Result<(), StepRefusal> {
        match held_here(self.host, |held| self.waits.iter().any(|wait| held.is_awaited_by(wait))) {
            Some(stream) => Err(StepRefusal::Held { stream }),
            None => Ok(()),
        }
    }

    #[cold]
    fn need_mutated(&mut self, history: &AccessHistory, each: &Use<'_>) {
        let mut need = |stamp| self.waits.need(stamp, self.stamp.stream, self.clock, self.host);
        let (rules, writes) = (self.rules, each.access.writes());
        if writes && !rules.writes_wait_for_writes() {
            history.reads_only(&each.range, need);
        } else if writes && !rules.writes_wait_for_reads() {
            history.needs(&each.range, Access::Read, need);
        } else if writes || rules.reads_wait_for_writes() {
            history.needs(&each.range, each.access, &mut need);
        }
    }

    fn publish(&self, history: &mut AccessHistory, each: &Use<'_>) {
        if !self.rules.are_complete() && !self.may_publish(history, each) {
            return;
        }
        history.publish(&each.range, each.access, self.stamp, |stamp| self.host.covers(stamp));
    }

    /// Whether the rule that is taken out lets a use be published; it may also forget what was.
    #[cold]
    fn may_publish(&self, history: &mut AccessHistory, each: &Use<'_>) -> bool {
        if !self.rules.readers_are_kept_per_stream() && !each.access.writes() {
            history.forget_reads();
        }
        self.rules.stamps_are_published_in_the_step()
    }
}

/// Publishes without planning, where the rule is taken out that makes the step whole.
pub(crate) fn publish_late(uses: &[Use<'_>], stamp: Stamp, host: &HostClock) {
    for each in uses {
        let mut history = each.history.lock();
        history.publish(&each.range, each.access, stamp, |stamp| host.covers(stamp));
    }
}

/// Uses are sorted by block and start.
fn refuse_overlapping_writes(uses: &[Use<'_>]) -> Result<(), OverlappingWrites> {
    for (at, first) in uses.iter().enumerate().filter(|(_, each)| each.access.writes()) {
        let overlapping = uses[at + 1..]
            .iter()
            .take_while(|next| {
                std::ptr::eq(next.history, first.history) && next.range.start < first.range.end
            })
            .find(|next| next.access.writes() && !next.range.is_empty());
        if let Some(second) = overlapping {
            let (first, second) = (first.argument.min(second.argument), first.argument.max(second.argument));
            return Err(OverlappingWrites { first, second });
        }
    }
    Ok(())
}
