//! What one stream was given and may not have done. Knows no driver.

use std::collections::VecDeque;
use std::time::Instant;

use kiln_driver::FunctionId;

/// Submissions of one stream that are remembered while it is not known whether they are done.
const REMEMBERED: usize = 1 << 16;

/// The submissions of one stream that are not known to be done.
#[derive(Debug, Default)]
pub(crate) struct UnfinishedList {
    entries: VecDeque<Entry>,
    /// The last of those that were forgotten for want of room, by the driver's number.
    forgotten: u64,
}

/// The work of one submission of ours, which may be several of the driver's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Our number for it.
    pub(crate) number: u64,
    /// The driver's number for the last part that writes something.
    pub(crate) last: u64,
    pub(crate) work: Work,
    pub(crate) queued: Instant,
}

/// What kind of work it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    Launch(FunctionId),
    Other(&'static str),
}

impl UnfinishedList {
    /// Notes a part of the work of a number.
    pub(crate) fn note(&mut self, number: u64, submission: u64, work: Work) {
        match self.entries.back_mut().filter(|back| back.number == number) {
            Some(back) => back.last = submission,
            None => {
                if self.entries.len() == REMEMBERED
                    && let Some(oldest) = self.entries.pop_front()
                {
                    self.forgotten = oldest.last;
                }
                self.entries.push_back(Entry { number, last: submission, work, queued: Instant::now() });
            }
        }
    }

    /// Forgets what is known to be done.
    pub(crate) fn forget_up_to(&mut self, number: u64) {
        while self.entries.front().is_some_and(|front| front.number <= number) {
            self.entries.pop_front();
        }
    }

    /// The latest number up to which all work is done, if the driver completed that many submissions; `planned` is the latest there is.
    /// None if that cannot be told.
    pub(crate) fn done_up_to(&self, completed: u64, planned: u64) -> Option<u64> {
        if completed < self.forgotten {
            return None;
        }
        let unfinished = self.entries.iter().find(|entry| entry.last > completed);
        Some(unfinished.map_or(planned, |entry| entry.number.saturating_sub(1)))
    }

    /// The latest number that is known to be done with everything before it, if the driver completed that many submissions and none beyond
    /// `submitted` is looked at, of which parts may be missing.
    pub(crate) fn completed(&self, completed: u64, submitted: u64) -> u64 {
        let done = |entry: &&Entry| entry.last <= completed && entry.number <= submitted;
        self.entries.iter().take_while(done).last().map_or(0, |entry| entry.number)
    }

    /// What lies beyond a number, the oldest first.
    pub(crate) fn beyond(&self, number: u64) -> impl Iterator<Item = Entry> + '_ {
        self.entries.iter().filter(move |entry| entry.number > number).copied()
    }

    /// Begins anew: nothing of what was noted runs any more.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.forgotten = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: Work = Work::Other("fill");

    #[test]
    fn everything_before_the_first_unfinished_part_is_done() {
        let mut unfinished = UnfinishedList::default();
        // Number 2 is an upload of two parts; number 3 did nothing on the device.
        for (number, submission) in [(1, 1), (2, 3), (2, 5), (4, 6)] {
            unfinished.note(number, submission, WORK);
        }
        let done: Vec<Option<u64>> = [0, 1, 3, 4, 5, 6].map(|at| unfinished.done_up_to(at, 9)).into();
        assert_eq!(done, [0, 1, 1, 1, 3, 9].map(Some));
        assert_eq!([0, 1, 3, 5, 6].map(|at| unfinished.completed(at, 9)), [0, 1, 1, 2, 4]);
        assert_eq!(unfinished.completed(6, 3), 2, "the last one may get another part");
        assert_eq!(unfinished.beyond(1).map(|entry| entry.number).collect::<Vec<_>>(), [2, 4]);
        unfinished.forget_up_to(2);
        assert_eq!(unfinished.done_up_to(5, 9), Some(3));
        unfinished.clear();
        assert_eq!(unfinished.done_up_to(0, 9), Some(9));
    }

    #[test]
    fn more_than_can_be_remembered_is_not_guessed_about() {
        let mut unfinished = UnfinishedList::default();
        let last = REMEMBERED as u64 + 10;
        (1..=last).for_each(|number| unfinished.note(number, number, WORK));
        assert_eq!(unfinished.done_up_to(9, last), None);
        assert_eq!(unfinished.done_up_to(10, last), Some(10));
        assert_eq!(unfinished.done_up_to(last - 1, last), Some(last - 1));
    }
}
