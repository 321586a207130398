//! Why the ranks of a cluster did not meet: the failure of one of them, with what to do next.

use kiln::group::{RankEnvironmentError, RendezvousError};

use crate::failure::Failure;

/// The variables of the launcher are wrong, or a part of them is missing.
pub(super) fn half_set(error: &RankEnvironmentError) -> Failure {
    let (what, next) = told_apart(&error.to_string());
    Failure::usage(what).next(next.unwrap_or_else(|| "correct the variables of the launcher".into()))
}

/// Why the ranks did not meet, or one of them did not stay.
pub(super) fn not_met(error: &RendezvousError) -> Failure {
    let (what, told) = told_apart(&error.to_string());
    let next = match error {
        RendezvousError::MissingRanks { .. } => {
            Some("look at what they print: a rank is missing if it was not started, cannot reach the host of rank 0, has another KILN_JOB_TOKEN, or has half of its launcher's variables".into())
        }
        // The errors speak to programs, which may go on.
        RendezvousError::RankLost { rank, .. } | RendezvousError::RankLeft { rank, .. } => {
            Some(format!("look at what rank {rank} printed last, and start all ranks again"))
        }
        RendezvousError::StoreLost { .. } => {
            Some("look at what rank 0 printed last, and start all ranks again".into())
        }
        RendezvousError::GivenUp { .. } => {
            Some("see that no rank is stopped or swapped out for seconds, and start all ranks again".into())
        }
        RendezvousError::NoValue { .. }
        | RendezvousError::NotThere { .. }
        | RendezvousError::OtherCall { .. } => {
            Some("look at what the other ranks print, or raise --time-limit".into())
        }
        _ => told,
    };
    let failure = match error {
        RendezvousError::NoMeetingPoint
        | RendezvousError::NoToken { .. }
        | RendezvousError::TooManyRanks { .. }
        | RendezvousError::NoSuchRank { .. }
        | RendezvousError::UnknownHost { .. } => Failure::usage(what),
        RendezvousError::PortInUse { .. } | RendezvousError::Listen { .. } => Failure::refused(what),
        _ => Failure::fault(what),
    };
    failure.next(next.unwrap_or_else(|| "start all ranks again".into()))
}

/// What an error says, and what it says to do.
fn told_apart(text: &str) -> (String, Option<String>) {
    match text.split_once("; ") {
        Some((what, next)) => (what.to_owned(), Some(next.to_owned())),
        None => (text.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::SocketAddr;
    use std::time::Duration;

    use kiln::group::{Launcher, RankEnvironmentError as Variables, RendezvousError as Meeting};

    use super::*;

    fn system() -> io::Error {
        io::Error::other("as the system says")
    }

    /// Every way in which ranks do not meet.
    fn all() -> Vec<Meeting> {
        let (host, address) = (|| "node0".to_owned(), SocketAddr::from(([10, 0, 0, 1], 4000)));
        let (port, waited, cause) = (4000, Duration::from_secs(3), || "it sent nothing for 10 s".to_owned());
        vec![
            Meeting::NoMeetingPoint,
            Meeting::NoToken { host: host() },
            Meeting::PortInUse { host: host(), port },
            Meeting::Listen { host: host(), port, source: system() },
            Meeting::UnknownHost { host: host(), source: system() },
            Meeting::NoAnswer { host: host(), port, waited, last: "refused".into() },
            Meeting::Silent { host: host(), port, waited },
            Meeting::SomethingElse { address },
            Meeting::WrongToken { address },
            Meeting::Size { rank: 1, size: 3, expected: 2 },
            Meeting::RankTaken { rank: 1 },
            Meeting::TooManyRanks { size: 70_000 },
            Meeting::NoSuchRank { rank: 5, size: 3 },
            Meeting::MissingRanks { missing: vec![1, 2], size: 3, waited, refused: None, foreign_host: None },
            Meeting::NoValue { key: "k".into(), waited },
            Meeting::NotThere { rank: 1, name: "doctor report".into(), waited },
            Meeting::RankLeft { rank: 1, name: "doctor report".into() },
            Meeting::RankLost { rank: 1, cause: cause() },
            Meeting::GivenUp { rank: 1, cause: cause() },
            Meeting::StoreLost { cause: cause() },
            Meeting::Full { key: "k".into(), limit: 1 },
            Meeting::System { what: "a thread could not be started", source: system() },
        ]
    }

    #[test]
    fn every_failure_ends_with_what_a_user_of_the_command_can_do() {
        let told: Vec<String> = all().iter().map(|error| not_met(error).to_string()).collect();
        for (error, told) in all().iter().zip(&told) {
            let failure = not_met(error);
            let next = failure.next_step.as_deref().unwrap_or_default();
            assert!(next.len() > 10 && told.ends_with(&format!("; {next}")), "{told}");
            // It begins with what to do, and speaks of no call of a program.
            let verbs = [
                "set ", "start ", "choose ", "give ", "look ", "see ", "correct ", "raise ", "if ", "remove ",
            ];
            assert!(verbs.iter().any(|verb| next.starts_with(verb)), "{told}");
            assert!(!told.contains('`') || !told.contains("acknowledge_losses"), "{told}");
        }
        let next = |error: &Meeting| not_met(error).next_step.unwrap_or_default();
        assert_eq!(
            next(&Meeting::RankLost { rank: 1, cause: "it ended".into() }),
            "look at what rank 1 printed last, and start all ranks again"
        );
        assert!(next(&all()[13]).contains("was not started"));
    }

    #[test]
    fn every_wrong_variable_ends_with_what_to_do() {
        let (name, text) = ("KILN_WORLD_SIZE", || "x".to_owned());
        for (error, next) in [
            (
                Variables::Missing { launcher: Launcher::ByHand, names: &["KILN_RANK"], marker: name },
                "start every rank by the launcher, or set it by hand",
            ),
            (Variables::NoNumber { name, text: text() }, "correct it"),
            (
                Variables::Rank { rank_name: "KILN_RANK", rank: 2, size_name: name, size: 2 },
                "ranks are counted from 0 and are below the number of ranks: correct one of the two",
            ),
            (Variables::NoPort { name, text: text() }, "correct it"),
            (
                Variables::NoHostAndPort { name, text: text() },
                "set it to a host and a port, such as `node0:29500`",
            ),
            (
                Variables::HalfAMeetingPoint { set: "MASTER_ADDR", missing: "MASTER_PORT" },
                "set both or neither",
            ),
            (
                Variables::NodeList { name, text: text() },
                "set MASTER_ADDR and MASTER_PORT, or KILN_MEETING_POINT",
            ),
        ] {
            let failure = half_set(&error);
            assert_eq!(failure.next_step.as_deref(), Some(next));
            assert_eq!(failure.to_string(), error.to_string());
        }
    }
}
