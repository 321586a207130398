//! What a collective is told that was not done by the deadline of its communicator.

use std::time::Duration;

use kiln_driver::ShortTime;

use crate::called_collective::CalledCollective;
use crate::rank_list::named;

/// A collective on a GPU was not done by the deadline of its communicator. The communicator was aborted; the device goes on.
///
/// Tickets of unfinished collectives fail with it, and so do those of work behind them: `error.downcast_ref::<CollectiveOverdue>()`. What that was to write cannot be read until it is overwritten
/// whole.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{call}, {number} of communicator {communicator}, which was not done within {}: {}; {}", ShortTime(*.waited), why(self), next(self))]
pub struct CollectiveOverdue {
    /// The communicator, in short.
    pub communicator: String,
    /// What this rank called, and where: its oldest call that is not done.
    pub call: CalledCollective,
    /// Which one that is: `collective 3`, or `transfer 0 from rank 1 to rank 2`. Both are counted from 0.
    pub number: String,
    /// How long it was the oldest one.
    pub waited: Duration,
    /// Ranks that had not called it.
    pub missing: Vec<u32>,
    /// Ranks of which that is not known: they are in other processes, and these have no job in common.
    pub unknown: Vec<u32>,
    /// The rank that gave up before this one, if one did. `missing` is what that rank said.
    pub given_up_by: Option<u32>,
    /// What another rank had called instead, where that is known.
    pub other_call: Option<CalledCollective>,
}

fn why(told: &CollectiveOverdue) -> String {
    let missing = &told.missing;
    match (told.given_up_by, &told.other_call) {
        (Some(rank), _) if missing.is_empty() => format!("rank {rank} gave up a collective"),
        (Some(rank), _) => format!("rank {rank} gave up a collective that {} had not called", named(missing)),
        (None, Some(other)) => other.to_string(),
        (None, None) if missing.is_empty() && !told.unknown.is_empty() => {
            format!("it is not known whether {} called it", named(&told.unknown))
        }
        (None, None) if missing.is_empty() => "all ranks have called it".to_owned(),
        (None, None) => {
            let verb = if missing.len() == 1 { "has" } else { "have" };
            format!("{} {verb} not called it", named(missing))
        }
    }
}

fn next(told: &CollectiveOverdue) -> &'static str {
    match (told.missing.is_empty(), &told.other_call) {
        (false, _) => {
            "let every rank call it, or give the ranks a longer `deadline`, and make another communicator on all of them"
        }
        (true, Some(_)) => "let all ranks call the same collectives in the same order",
        (true, None) if !told.unknown.is_empty() => {
            "let the ranks come together by `DeviceCommunicator::meet`, so that this is known, and make another communicator on all of them"
        }
        (true, None) => {
            "queue the calls of all communicators in the same order on each rank, look with `compare_calls` whether the calls are alike, or give the ranks a longer `deadline`"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(missing: &[u32], given_up_by: Option<u32>, other_call: Option<CalledCollective>) -> String {
        let place = "src/main.rs:7:9".to_owned();
        let call = CalledCollective { rank: 0, what: "barrier".to_owned(), place };
        let (communicator, number) = ("ab".to_owned(), "collective 3".to_owned());
        let (waited, missing) = (Duration::from_secs(2), missing.to_vec());
        CollectiveOverdue {
            communicator,
            call,
            number,
            waited,
            missing,
            unknown: Vec::new(),
            given_up_by,
            other_call,
        }
        .to_string()
    }

    #[test]
    fn the_text_names_the_call_its_line_and_who_is_missing() {
        let begin = "rank 0 called barrier at src/main.rs:7:9, collective 3 of communicator ab, which was not done within 2.0 s: ";
        let why = |text: String| text.strip_prefix(begin).unwrap_or_else(|| panic!("{text}")).to_owned();
        assert!(why(told(&[1], None, None)).starts_with("rank 1 has not called it; let every rank call it"));
        assert!(why(told(&[1, 2], None, None)).starts_with("ranks 1 and 2 have not called it; "));
        assert!(why(told(&[], None, None)).starts_with("all ranks have called it; queue the calls"));
        let given_up = why(told(&[1], Some(2), None));
        assert!(
            given_up.starts_with("rank 2 gave up a collective that rank 1 had not called; "),
            "{given_up}"
        );
        let other = CalledCollective { rank: 1, what: "broadcast".into(), place: "src/a.rs:1:1".into() };
        assert!(
            why(told(&[], None, Some(other)))
                .starts_with("rank 1 called broadcast at src/a.rs:1:1; let all ranks")
        );
    }
}
