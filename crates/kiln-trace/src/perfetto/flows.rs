//! Which arrows there are.
//!
//! An arrow begins at work that was submitted before the wait for it is known, so that a first look at the whole recording finds out who
//! is waited for. An arrow is drawn only if both ends are in the recording.

use std::collections::HashMap;

use crate::record::{StreamWaitRecord, TraceEvent, TraceStamp, TraceStream};

/// The waits of each stream whose waiter has not come yet.
#[derive(Default)]
pub(super) struct OpenWaits<T> {
    open: HashMap<TraceStream, Vec<(u64, T)>>,
}

impl<T> OpenWaits<T> {
    /// A wait, and what is to be known when its waiter comes.
    pub(super) fn add(&mut self, wait: &StreamWaitRecord<'_>, known: T) {
        self.open.entry(wait.waiter.stream).or_default().push((wait.waiter.number, known));
    }

    /// The waits of a submission: those queued under its number, or under an earlier one that had no work.
    pub(super) fn take(&mut self, waiter: TraceStamp, mut with: impl FnMut(T)) {
        let Some(open) = self.open.get_mut(&waiter.stream) else { return };
        let mut at = 0;
        while let Some((number, _)) = open.get(at) {
            if *number <= waiter.number { with(open.remove(at).1) } else { at += 1 }
        }
    }
}

/// All arrows of a recording, by the submission they begin at.
#[derive(Default)]
pub(super) struct Flows {
    /// Sorted, each with the arrow's number.
    starts: Vec<(TraceStamp, u64)>,
    /// Whether the arrow with that number is drawn; the first has number 0.
    is_drawn: Vec<bool>,
}

impl Flows {
    /// Arrows that are drawn.
    pub(super) fn drawn(&self) -> u64 {
        self.starts.len() as u64
    }

    /// Waits with an end that is not in the recording.
    pub(super) fn left_out(&self) -> u64 {
        (self.is_drawn.len() - self.starts.len()) as u64
    }

    /// Whether an arrow is drawn.
    pub(super) fn is_drawn(&self, arrow: u64) -> bool {
        usize::try_from(arrow).is_ok_and(|arrow| self.is_drawn.get(arrow) == Some(&true))
    }

    /// Collects the arrows that begin at a submission.
    pub(super) fn from(&self, writer: TraceStamp, arrows: &mut Vec<u64>) {
        let first = self.starts.partition_point(|(stamp, _)| *stamp < writer);
        let own = self.starts.iter().skip(first).take_while(|(stamp, _)| *stamp == writer);
        arrows.extend(own.map(|(_, arrow)| *arrow));
    }
}

/// The first look at a recording.
#[derive(Default)]
pub(super) struct FlowFinder {
    open: OpenWaits<TraceStamp>,
    /// The writer of each wait whose waiter came, in the order of the waiters.
    writers: Vec<TraceStamp>,
    /// Numbers that were submitted, as ranges without gaps.
    submitted: HashMap<TraceStream, Vec<(u64, u64)>>,
}

impl FlowFinder {
    pub(super) fn see(&mut self, event: &TraceEvent<'_>) {
        match event {
            TraceEvent::StreamWait(wait) => self.open.add(wait, wait.writer),
            TraceEvent::Submission(work) => {
                self.open.take(work.stamp, |writer| self.writers.push(writer));
                let ranges = self.submitted.entry(work.stamp.stream).or_default();
                match ranges.last_mut() {
                    Some((_, last)) if last.checked_add(1) == Some(work.stamp.number) => {
                        *last = work.stamp.number
                    }
                    _ => ranges.push((work.stamp.number, work.stamp.number)),
                }
            }
            _ => {}
        }
    }

    pub(super) fn finish(mut self) -> Flows {
        self.submitted.values_mut().for_each(|ranges| ranges.sort_unstable());
        let is_known = |stamp: &TraceStamp| {
            self.submitted.get(&stamp.stream).is_some_and(|ranges| {
                let behind = ranges.partition_point(|(first, _)| *first <= stamp.number);
                behind
                    .checked_sub(1)
                    .and_then(|at| ranges.get(at))
                    .is_some_and(|(_, last)| stamp.number <= *last)
            })
        };
        let is_drawn: Vec<bool> = self.writers.iter().map(is_known).collect();
        let all = self.writers.iter().zip(0_u64..).zip(&is_drawn);
        let mut starts: Vec<_> =
            all.filter(|(_, is_drawn)| **is_drawn).map(|((stamp, arrow), _)| (*stamp, arrow)).collect();
        starts.sort_unstable();
        Flows { starts, is_drawn }
    }
}
