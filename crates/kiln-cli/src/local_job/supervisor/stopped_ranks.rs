//! Ranks that are stopped when all others have ended.
//!
//! A rank that was stopped (SIGSTOP) neither ends nor says anything. Others that wait for it may give it up and end before the job takes it for lost, so the command says that it waits for it,
//! and since when, and ends it after a while.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::Supervisor;
use crate::console::complain;
use crate::local_job::rank_list::listed;

/// Between two looks.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// How long only stopped ranks are left before that is said: a rank may be stopped for a moment.
const TOLD_AFTER: Duration = Duration::from_secs(2);

/// Which ranks are stopped, and since when.
#[derive(Default, Debug)]
pub(super) struct StoppedRanks {
    looked: Option<Instant>,
    since: BTreeMap<u32, Instant>,
    /// Since when all ranks that still run are stopped, while others have ended.
    alone_since: Option<Instant>,
    is_told: bool,
}

/// What is to be done about stopped ranks, all that still run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Wait,
    /// They are to be told: they get SIGKILL after this time.
    Tell(Duration),
    End,
}

impl StoppedRanks {
    /// When to look again.
    pub(super) fn next_look(&self, now: Instant) -> Instant {
        self.looked.unwrap_or(now).checked_add(LOOK_PERIOD).unwrap_or(now)
    }

    /// Takes note of which ranks that still run are stopped. `others_ended`: not all ranks run any more; `limit`: how long stopped ones are then waited for.
    fn look(&mut self, now: Instant, running: &[(u32, bool)], others_ended: bool, limit: Duration) -> Step {
        self.looked = Some(now);
        self.since.retain(|rank, _| running.contains(&(*rank, true)));
        for (rank, _) in running.iter().filter(|(_, is_stopped)| *is_stopped) {
            self.since.entry(*rank).or_insert(now);
        }
        if !others_ended || running.is_empty() || self.since.len() < running.len() {
            (self.alone_since, self.is_told) = (None, false);
            return Step::Wait;
        }
        let alone = now.saturating_duration_since(*self.alone_since.get_or_insert(now));
        match limit.saturating_sub(alone) {
            Duration::ZERO => Step::End,
            left if alone >= TOLD_AFTER && !std::mem::replace(&mut self.is_told, true) => Step::Tell(left),
            _ => Step::Wait,
        }
    }
}

impl Supervisor<'_> {
    /// Says that stopped ranks alone are waited for, and ends them.
    pub(super) fn look_at_stopped(&mut self, now: Instant) {
        let running: Vec<_> =
            self.running.iter().map(|(rank, process)| (*rank, process.is_stopped())).collect();
        // Lost ranks that are in the way have a limit already.
        let others_ended = running.len() < self.job.ranks as usize && self.lost_until.is_none();
        let limit = self.arguments.stopped;
        let step = self.stopped.look(now, &running, others_ended, limit);
        let ranks = listed(self.running.keys());
        let (has, was) = if running.len() == 1 { ("has", "was") } else { ("have", "were") };
        match step {
            Step::Wait => {}
            Step::Tell(left) => {
                let since = self.stopped.since.values().min().map_or(Duration::ZERO, |since| now - *since);
                let processes: Vec<_> =
                    self.running.values().map(|process| process.number().to_string()).collect();
                complain(format_args!(
                    "kiln launch: waits for {ranks}, which {has} been stopped (SIGSTOP) for {} s, while all other ranks have ended; SIGKILL in {} s (--stopped) unless `kill -CONT {}` lets {ranks} go on",
                    since.as_secs(),
                    left.as_secs().max(1),
                    processes.join(" ")
                ));
            }
            Step::End => {
                complain(format_args!(
                    "kiln launch: {ranks} {was} stopped for longer than {} s after all other ranks had ended; SIGKILL to {ranks}",
                    limit.as_secs_f64()
                ));
                for (rank, process) in &self.running {
                    self.given_up.insert(*rank, now);
                    process.signal(Signal::KILL);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopped_ranks_are_told_and_ended_once_only_they_are_left() {
        let (mut stopped, start, limit) = (StoppedRanks::default(), Instant::now(), Duration::from_secs(10));
        let mut look = |seconds: u64, running: &[(u32, bool)], others_ended| {
            stopped.look(start + Duration::from_secs(seconds), running, others_ended, limit)
        };
        let both = [(1, true), (2, true)];
        // All of them, or one beside others that run.
        assert_eq!(look(0, &both, false), Step::Wait);
        assert_eq!(look(20, &both, false), Step::Wait);
        assert_eq!(look(40, &[(1, true), (2, false)], true), Step::Wait);
        // The time counts from when only they are left.
        assert_eq!(look(50, &both, true), Step::Wait);
        assert_eq!(look(53, &both, true), Step::Tell(Duration::from_secs(7)));
        assert_eq!(look(54, &both, true), Step::Wait);
        // One of them goes on meanwhile.
        assert_eq!(look(55, &[(1, true), (2, false)], true), Step::Wait);
        assert_eq!(look(58, &both, true), Step::Wait);
        assert_eq!(look(60, &both, true), Step::Tell(Duration::from_secs(8)));
        assert_eq!(look(68, &both, true), Step::End);
        assert_eq!(look(69, &[], true), Step::Wait);
    }
}
