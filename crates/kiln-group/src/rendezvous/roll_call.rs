//! Which ranks answer when the store asks: found out after a communicator failed, since a process that is being ended says nothing and may have its connections for seconds.
//!
//! This part is pure; the server sends the questions. A rank that answers one of them is there, however late. Questions that this host itself was too busy to wait for in time do not count.

use std::collections::BTreeMap;
use std::time::Duration;

use kiln_driver::ShortTime;

/// Between two questions.
pub(super) const PERIOD: Duration = Duration::from_millis(100);
/// Questions without an answer after which a rank is lost.
const QUESTIONS: u32 = 5;
/// A wait of a period that took longer than this says that threads of this host wait for a processor.
const LATE: Duration = Duration::from_millis(200);
/// Questions at most.
const MAX_QUESTIONS: u32 = 50;

#[derive(Debug)]
pub(super) struct RollCall {
    silent: BTreeMap<u32, Silent>,
    asked: u32,
}

#[derive(Clone, Copy, Debug)]
struct Silent {
    /// The last message before the first question.
    heard: u64,
    unanswered: u32,
}

impl RollCall {
    /// Begins with ranks and the number of the last message of each.
    pub(super) fn new(ranks: impl Iterator<Item = (u32, u64)>) -> Self {
        let silent = ranks.map(|(rank, heard)| (rank, Silent { heard, unanswered: 0 })).collect();
        Self { silent, asked: 0 }
    }

    /// Ranks that have not answered and are to be asked.
    pub(super) fn silent(&self) -> impl Iterator<Item = u32> + '_ {
        self.silent.keys().copied()
    }

    /// A question was asked and waited for. The ranks that are lost by this; `heard` says the last message of a rank that is there.
    pub(super) fn waited(&mut self, took: Duration, heard: impl Fn(u32) -> Option<u64>) -> Vec<u32> {
        self.asked += 1;
        self.silent.retain(|rank, silent| heard(*rank) == Some(silent.heard));
        if took <= LATE {
            self.silent.values_mut().for_each(|silent| silent.unanswered += 1);
        }
        let is_lost = |silent: &Silent| silent.unanswered >= QUESTIONS;
        let lost = self.silent.iter().filter(|(_, silent)| is_lost(silent)).map(|(rank, _)| *rank).collect();
        self.silent.retain(|_, silent| !is_lost(silent));
        lost
    }

    pub(super) fn is_over(&self) -> bool {
        self.silent.is_empty() || self.asked >= MAX_QUESTIONS
    }
}

/// What is said of a rank that did not answer.
pub(super) fn cause(failed: u32) -> String {
    let limit = ShortTime(PERIOD * QUESTIONS);
    format!("it did not answer within {limit} after rank {failed} said that its communicator failed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_answer_none_of_the_questions_are_lost() {
        let mut call = RollCall::new([(0, 10), (1, 11), (2, 12), (3, 13)].into_iter());
        // Rank 0 answers at once, rank 1 late, rank 3 is gone.
        for question in 0..4 {
            let heard = |rank| match rank {
                0 => Some(20),
                1 => Some(if question == 3 { 21 } else { 11 }),
                2 => Some(12),
                _ => None,
            };
            assert_eq!(call.waited(PERIOD, heard), [0_u32; 0]);
        }
        assert_eq!(call.silent().collect::<Vec<_>>(), [2]);
        assert_eq!(call.waited(PERIOD, |_| Some(12)), [2]);
        assert!(call.is_over());
    }

    #[test]
    fn questions_of_a_host_that_is_too_busy_do_not_count() {
        let mut call = RollCall::new([(1, 1)].into_iter());
        for _ in 0..MAX_QUESTIONS {
            assert!(!call.is_over());
            assert_eq!(call.waited(3 * PERIOD, |_| Some(1)), [0_u32; 0]);
        }
        assert!(call.is_over());
    }
}
