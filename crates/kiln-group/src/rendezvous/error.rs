//! Why ranks did not meet, or what a store refused.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use kiln_driver::ShortTime;

use super::message::{MAX_KEY, MAX_VALUE};
use super::rendezvous_call::RendezvousCall;
use crate::rank_list::listed;
use crate::rank_loss::given_up_next;

/// What to do when the system starts no thread.
pub(crate) const RAISE_LIMITS: &str =
    "raise the limits of memory, threads and descriptors (ulimit -v, -u, -n)";

/// What went wrong between the ranks of a job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RendezvousError {
    /// The launcher does not say where the ranks meet.
    #[error(
        "the launcher does not say where the ranks meet; set KILN_MEETING_POINT to HOST:PORT, the host of rank 0 and a free port, for all ranks"
    )]
    NoMeetingPoint,
    /// Ranks of several hosts need a token.
    #[error(
        "ranks meet at {host}, which other hosts can reach, without a token; set KILN_JOB_TOKEN to the same random text for all ranks of the job"
    )]
    NoToken {
        /// The host of rank 0.
        host: String,
    },
    /// The token in `KILN_JOB_TOKEN` is no text.
    #[error(
        "KILN_JOB_TOKEN is no text in UTF-8; set it to the same text for all ranks of the job, such as random bytes as hexadecimal digits"
    )]
    TokenNotText,
    /// Another program listens there.
    #[error(
        "rank 0 cannot listen: port {port} of {host} is in use; start one process as rank 0, or choose another port with KILN_MEETING_POINT, for all ranks"
    )]
    PortInUse {
        /// The host of rank 0.
        host: String,
        /// The port.
        port: u16,
    },
    /// Rank 0 cannot listen.
    #[error(
        "rank 0 cannot listen at {host}:{port}: {source}; choose a port from 1024 up that no firewall or policy of this host forbids, for all ranks"
    )]
    Listen {
        /// The host of rank 0.
        host: String,
        /// The port.
        port: u16,
        /// What the system says.
        source: io::Error,
    },
    /// The name of the host is unknown.
    #[error("the host `{host}` where the ranks meet is not known here: {source}; give an address instead")]
    UnknownHost {
        /// The host of rank 0.
        host: String,
        /// What the system says.
        source: io::Error,
    },
    /// Rank 0 does not answer.
    #[error(
        "rank 0 does not answer at {host}:{port} within {} ({last}); start it, and see that this host reaches {host}", ShortTime(*.waited)
    )]
    NoAnswer {
        /// The host of rank 0.
        host: String,
        /// The port.
        port: u16,
        /// How long this rank tried.
        waited: Duration,
        /// What the last attempt came to.
        last: String,
    },
    /// What listens there takes connections and never answers.
    #[error(
        "what listens at {host}:{port} takes connections and has said nothing for {}; if another program has the port, choose another one with KILN_MEETING_POINT, for all ranks; if it is rank 0, see whether its process is stopped", ShortTime(*.waited)
    )]
    Silent {
        /// The host of rank 0.
        host: String,
        /// The port.
        port: u16,
        /// How long this rank tried.
        waited: Duration,
    },
    /// Something else answers.
    #[error(
        "what answers at {address} is no rendezvous of kiln; choose another port with KILN_MEETING_POINT, for all ranks"
    )]
    SomethingElse {
        /// Where.
        address: SocketAddr,
    },
    /// The two sides have different tokens.
    #[error(
        "rank 0 at {address} has another token; set KILN_JOB_TOKEN to the same text for all ranks of the job"
    )]
    WrongToken {
        /// Where rank 0 listens.
        address: SocketAddr,
    },
    /// Ranks disagree about how many they are.
    #[error(
        "rank {rank} was started as one of {size} ranks and rank 0 as one of {expected}; start all ranks with the same number (KILN_WORLD_SIZE, or what their launcher sets)"
    )]
    Size {
        /// This rank.
        rank: u32,
        /// How many ranks there are for this rank.
        size: u32,
        /// How many there are for rank 0.
        expected: u32,
    },
    /// Another process has joined as this rank.
    #[error(
        "rank {rank} has joined already: two processes were started as the same rank; start one process for each rank"
    )]
    RankTaken {
        /// The rank.
        rank: u32,
    },
    /// More ranks than a job can have.
    #[error(
        "a job of {size} ranks, where there can be {}; correct the number of ranks that the launcher or KILN_WORLD_SIZE gives",
        kiln_operation::MAX_RANKS
    )]
    TooManyRanks {
        /// The number of ranks.
        size: u32,
    },
    /// There is no such rank.
    #[error(
        "there is no rank {rank} among {size}: ranks count from 0; give each process another rank below {size}"
    )]
    NoSuchRank {
        /// The rank.
        rank: u32,
        /// The number of ranks.
        size: u32,
    },
    /// Some ranks did not come in time.
    #[error(
        "{} of {size} ranks did not join within {}: {}{}; look at their logs{}", .missing.len(), ShortTime(*.waited), listed(.missing), told(.refused.as_deref()), foreign(.foreign_host.as_deref())
    )]
    MissingRanks {
        /// The ranks that did not join.
        missing: Vec<u32>,
        /// The number of ranks.
        size: u32,
        /// How long this rank waited.
        waited: Duration,
        /// Processes that rank 0 did not take as ranks, and why, in words.
        refused: Option<String>,
        /// On rank 0: where the ranks meet, if that is no address of its host.
        foreign_host: Option<String>,
    },
    /// No rank put a value.
    #[error("no rank has put `{key}` within {}; look where the ranks are, or raise the time limit", ShortTime(*.waited))]
    NoValue {
        /// The key.
        key: String,
        /// How long this rank waited.
        waited: Duration,
    },
    /// This rank has come through an exchange or a barrier of this name before, whose values are still there.
    #[error(
        "`{name}` was the name of an exchange or a barrier before; give each one its own name, such as `{name} 2`, the same on all ranks"
    )]
    NameUsed {
        /// The name.
        name: String,
    },
    /// A rank did not come to an exchange or a barrier.
    #[error(
        "rank {rank} did not come to `{name}` within {}; let all ranks come to the same exchanges and barriers in the same order", ShortTime(*.waited)
    )]
    NotThere {
        /// The rank that did not come.
        rank: u32,
        /// The name of the exchange or barrier.
        name: String,
        /// How long this rank waited.
        waited: Duration,
    },
    /// Two ranks made calls that do not meet: an exchange and a barrier of one name, which both are told at once, or calls of two names, in which they waited for each other.
    #[error(
        "rank {rank} called {call} and rank {other_rank} {other_call}, which do not meet{}; let all ranks come to the same exchanges and barriers in the same order", within(*.waited)
    )]
    OtherCall {
        /// A rank: this one, unless it comes after two others have failed by that.
        rank: u32,
        /// What it called.
        call: Box<RendezvousCall>,
        /// Another rank.
        other_rank: u32,
        /// What that called.
        other_call: Box<RendezvousCall>,
        /// How long this rank waited, where the calls have two names.
        waited: Option<Duration>,
    },
    /// A rank has left the job in order, and does not come to an exchange or a barrier.
    #[error(
        "rank {rank} has left the job in order and does not come to `{name}`; let no rank end before all have come to the same exchanges, barriers and collectives"
    )]
    RankLeft {
        /// The rank that has left.
        rank: u32,
        /// What this rank waits for.
        name: String,
    },
    /// A rank has left the job in order because others were late, and does not come to an exchange or a barrier.
    #[error(
        "{what}; rank {left}, which waited for that, has left the job in order and does not come to `{name}`; let all ranks come to the same exchanges, barriers and collectives in time, or raise the time limit"
    )]
    RankLate {
        /// The ranks that were late.
        ranks: Vec<u32>,
        /// What they did not come to, as a sentence.
        what: String,
        /// The rank that has left because of that.
        left: u32,
        /// What this rank waits for.
        name: String,
    },
    /// The process may not open as many file descriptors as its rank needs.
    #[error(
        "rank {rank} of {size} needs {needed} more file descriptor{}, and its process has {open} of at most {limit} open (RLIMIT_NOFILE); raise that limit to {} or more before the program starts (`ulimit -n {}`{})", connections(*.rank), .open + .needed, .open + .needed, hard_limit(.open + .needed, *.most)
    )]
    FewDescriptors {
        /// This rank.
        rank: u32,
        /// The number of ranks.
        size: u32,
        /// How many descriptors it opens.
        needed: u64,
        /// How many are open.
        open: u64,
        /// How many the process may have open, now.
        limit: u64,
        /// How far that may be raised without more rights; none if there is no such limit.
        most: Option<u64>,
    },
    /// A time that must not be zero.
    #[error("the `{name}` of a rendezvous is zero; give a time, such as {example}")]
    ZeroTime {
        /// The field of [`RendezvousConfig`](crate::RendezvousConfig).
        name: &'static str,
        /// A time that would do.
        example: &'static str,
    },
    /// A rank would be taken for lost before it shows that it is there.
    #[error(
        "the `heartbeat` of a rendezvous, {}, is not shorter than its `silence`, {}; give a tenth of that", ShortTime(*.heartbeat), ShortTime(*.silence)
    )]
    HeartbeatTooLong {
        /// How often a rank shows that it is there.
        heartbeat: Duration,
        /// A rank that was not heard of for so long is lost.
        silence: Duration,
    },
    /// Rank 0 would take a rank for lost before that shows that it is there.
    #[error(
        "the `heartbeat` of rank {rank}, {}, is not shorter than the `silence` of rank 0, {}; give all ranks the same times", ShortTime(*.heartbeat), ShortTime(*.silence)
    )]
    HeartbeatOfRank {
        /// The rank.
        rank: u32,
        /// How often it shows that it is there.
        heartbeat: Duration,
        /// A rank that rank 0 has not heard of for so long is lost.
        silence: Duration,
    },
    /// A rank is gone.
    #[error("rank {rank} is lost: {cause}; `acknowledge_losses` to go on without it, or end this rank")]
    RankLost {
        /// The rank.
        rank: u32,
        /// What was seen of it.
        cause: String,
    },
    /// This rank was given up while it could not answer, or when its device was lost or its thread panicked, and the others go on without it.
    #[error(
        "rank {rank}, this one, was given up by the others: {cause}; was its process stopped, or its device lost? {}", given_up_next(*.rank)
    )]
    GivenUp {
        /// This rank.
        rank: u32,
        /// What was seen of it.
        cause: String,
    },
    /// Rank 0, which keeps the store, is gone.
    #[error(
        "the connection to rank 0, which keeps the store, has ended: {cause}; without it the ranks cannot meet: start the job again"
    )]
    StoreLost {
        /// What was seen of it.
        cause: String,
    },
    /// A key or a value is too large.
    #[error(
        "{what} has {bytes} bytes, and may have {} as a key and {} as a value; divide it",
        MAX_KEY,
        MAX_VALUE
    )]
    TooLarge {
        /// The key or the value.
        what: &'static str,
        /// Its bytes.
        bytes: usize,
    },
    /// A key contains a zero byte.
    #[error("a key contains a zero byte; leave it out")]
    ZeroInKey,
    /// The store is full.
    #[error(
        "the store has no room for `{key}`: it takes {limit} bytes in all; remove values that all ranks have read"
    )]
    Full {
        /// The key.
        key: String,
        /// The most bytes that it takes of such values.
        limit: u64,
    },
    /// The system refused something.
    #[error("{what}: {source}; {}", RAISE_LIMITS)]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        source: io::Error,
    },
}

fn connections(rank: u32) -> &'static str {
    if rank == 0 { "s, one for the connection of each rank" } else { "" }
}

fn hard_limit(needed: u64, most: Option<u64>) -> String {
    match most {
        Some(most) if most < needed => {
            format!("; the hard limit, {most}, is lower: an administrator raises it")
        }
        _ => String::new(),
    }
}

fn within(waited: Option<Duration>) -> String {
    waited.map_or_else(String::new, |waited| {
        format!(", and waited for each other within {}", ShortTime(waited))
    })
}

fn told(refused: Option<&str>) -> String {
    refused.map_or_else(String::new, |refused| format!(" (rank 0 refused {refused})"))
}

fn foreign(host: Option<&str>) -> String {
    host.map_or_else(String::new, |host| {
        format!(
            ". {host} is no address of this host, on which rank 0 was started: unless connections to it are forwarded here, set KILN_MEETING_POINT to an address of this host, for all ranks"
        )
    })
}
