//! Ranks that are stopped when no other one runs.
//!
//! A rank that was stopped (SIGSTOP) neither ends nor says anything. Others that wait for it may give it up and end before the job takes it for lost, so the command says that it waits for it,
//! and since when, and ends it after a while. A job of which all ranks are stopped may have been stopped on purpose: that is said, and nothing is ended.

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
    /// Since when all ranks that still run are stopped, and whether these are all of the job.
    alone_since: Option<(Instant, Left)>,
    is_told: bool,
}

/// Which ranks still run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Left {
    /// All of the job.
    All,
    /// Some, and the others have ended.
    Some,
    /// Some, and lost ones among them have a limit already.
    WithLimit,
}

/// What is to be done about stopped ranks, all that still run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Wait,
    /// They are to be told: they get SIGKILL after this time, if there is one.
    Tell(Option<Duration>),
    End,
}

impl StoppedRanks {
    /// When to look again.
    pub(super) fn next_look(&self, now: Instant) -> Instant {
        self.looked.unwrap_or(now).checked_add(LOOK_PERIOD).unwrap_or(now)
    }

    /// Takes note of which ranks that still run are stopped. `limit`: how long stopped ones are waited for once others have ended.
    fn look(&mut self, now: Instant, running: &[(u32, bool)], left: Left, limit: Duration) -> Step {
        self.looked = Some(now);
        self.since.retain(|rank, _| running.contains(&(*rank, true)));
        for (rank, _) in running.iter().filter(|(_, is_stopped)| *is_stopped) {
            self.since.entry(*rank).or_insert(now);
        }
        if left == Left::WithLimit || running.is_empty() || self.since.len() < running.len() {
            (self.alone_since, self.is_told) = (None, false);
            return Step::Wait;
        }
        // The time counts anew from when others have ended.
        let (since, of) = *self.alone_since.get_or_insert((now, left));
        let since = if of == left { since } else { now };
        self.is_told &= of == left;
        self.alone_since = Some((since, left));
        let alone = now.saturating_duration_since(since);
        let rest = (left == Left::Some).then(|| limit.saturating_sub(alone));
        match rest {
            Some(Duration::ZERO) => Step::End,
            _ if alone >= TOLD_AFTER && !std::mem::replace(&mut self.is_told, true) => Step::Tell(rest),
            _ => Step::Wait,
        }
    }
}

impl Supervisor<'_> {
    /// Says that stopped ranks alone are waited for, and ends them.
    pub(super) fn look_at_stopped(&mut self, now: Instant) {
        let running: Vec<_> =
            self.running.iter().map(|(rank, process)| (*rank, process.is_stopped())).collect();
        let left = match self.lost_until {
            _ if running.len() == self.job.ranks as usize => Left::All,
            None => Left::Some,
            Some(_) => Left::WithLimit,
        };
        let limit = self.arguments.stopped;
        let step = self.stopped.look(now, &running, left, limit);
        let ranks = listed(self.running.keys());
        let (has, was) = if running.len() == 1 { ("has", "was") } else { ("have", "were") };
        match step {
            Step::Wait => {}
            Step::Tell(None) => {
                complain(format_args!(
                    "kiln launch: all ranks have been stopped (SIGSTOP) for {} s; `kill -CONT {}` lets them go on",
                    self.stopped_for(now).as_secs(),
                    self.numbers()
                ));
            }
            Step::Tell(Some(left)) => {
                complain(format_args!(
                    "kiln launch: waits for {ranks}, which {has} been stopped (SIGSTOP) for {} s, while all other ranks have ended; SIGKILL in {} s (--stopped) unless `kill -CONT {}` lets {ranks} go on",
                    self.stopped_for(now).as_secs(),
                    left.as_secs().max(1),
                    self.numbers()
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

    /// How long one of them has been stopped.
    fn stopped_for(&self, now: Instant) -> Duration {
        self.stopped
            .since
            .values()
            .min()
            .map_or(Duration::ZERO, |since| now.saturating_duration_since(*since))
    }

    /// The processes of the ranks that still run.
    fn numbers(&self) -> String {
        let numbers: Vec<_> = self.running.values().map(|process| process.number().to_string()).collect();
        numbers.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopped_ranks_are_told_and_ended_once_only_they_are_left() {
        let (mut stopped, start, limit) = (StoppedRanks::default(), Instant::now(), Duration::from_secs(10));
        let mut look = |seconds: u64, running: &[(u32, bool)], left| {
            stopped.look(start + Duration::from_secs(seconds), running, left, limit)
        };
        let both = [(1, true), (2, true)];
        // All of the job are told once, and not ended.
        assert_eq!(look(0, &both, Left::All), Step::Wait);
        assert_eq!(look(2, &both, Left::All), Step::Tell(None));
        assert_eq!(look(39, &both, Left::All), Step::Wait);
        // One beside another that runs, and lost ones that have a limit.
        assert_eq!(look(40, &[(1, true), (2, false)], Left::Some), Step::Wait);
        assert_eq!(look(45, &both, Left::WithLimit), Step::Wait);
        // The time counts from when only they are left.
        assert_eq!(look(50, &both, Left::Some), Step::Wait);
        assert_eq!(look(53, &both, Left::Some), Step::Tell(Some(Duration::from_secs(7))));
        assert_eq!(look(54, &both, Left::Some), Step::Wait);
        // One of them goes on meanwhile.
        assert_eq!(look(55, &[(1, true), (2, false)], Left::Some), Step::Wait);
        assert_eq!(look(58, &both, Left::Some), Step::Wait);
        assert_eq!(look(60, &both, Left::Some), Step::Tell(Some(Duration::from_secs(8))));
        assert_eq!(look(68, &both, Left::Some), Step::End);
        assert_eq!(look(69, &[], Left::Some), Step::Wait);
        // All were stopped before one of them was killed: the time counts from its end.
        assert_eq!(look(70, &both, Left::All), Step::Wait);
        assert_eq!(look(79, &both, Left::All), Step::Tell(None));
        assert_eq!(look(80, &[(2, true)], Left::Some), Step::Wait);
        assert_eq!(look(82, &[(2, true)], Left::Some), Step::Tell(Some(Duration::from_secs(8))));
    }
}
