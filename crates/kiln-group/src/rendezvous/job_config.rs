//! As which rank a process joins its job.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::{RendezvousError, Result};
use crate::rank_environment::{MeetingPoint, RankEnvironment};

/// The most bytes of what ranks bring to collectives, which their devices hold as well, unless something else is set.
const EXCHANGE_LIMIT_BYTES: u64 = 16 << 30;

/// As which rank a process joins its job, and where.
#[derive(Clone)]
#[non_exhaustive]
pub struct RendezvousConfig {
    /// Where rank 0 listens.
    pub meeting_point: MeetingPoint,
    /// The rank of this process, counted from 0.
    pub rank: u32,
    /// The number of ranks.
    pub size: u32,
    /// A text that only the ranks of the job know. Without one, ranks meet on a loopback address only.
    pub token: Option<String>,
    /// How long to wait for the other ranks, and for a value; one minute unless something else is set.
    pub timeout: Duration,
    /// How often a rank shows that it is there.
    pub heartbeat: Duration,
    /// A rank that was not heard of for so long is lost. A process that ends is noticed at once; this is for hosts that fail. When a communicator fails, ranks are asked and have half a
    /// second to answer.
    pub silence: Duration,
    /// Where this rank notes which other ranks it saw end, for the launcher that started it; nowhere unless something else is set.
    pub rank_ends_file: Option<PathBuf>,
    /// The most bytes that rank 0 keeps of what ranks with simulated devices in several processes bring to collectives and have sent; 16 GiB unless something else is set. A call
    /// beyond that is refused. What rank 0 gives counts.
    pub exchange_limit_bytes: u64,
}

impl fmt::Debug for RendezvousConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let point = format_args!("{}:{}", self.meeting_point.host, self.meeting_point.port);
        f.debug_struct("RendezvousConfig")
            .field("meeting_point", &point)
            .field("rank", &self.rank)
            .field("size", &self.size)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl RendezvousConfig {
    /// Rank `rank` of `size`, which meet at `meeting_point`.
    pub fn new(meeting_point: MeetingPoint, rank: u32, size: u32) -> Self {
        let (heartbeat, silence) = (Duration::from_secs(1), Duration::from_secs(10));
        Self {
            meeting_point,
            rank,
            size,
            token: None,
            timeout: Duration::from_secs(60),
            heartbeat,
            silence,
            rank_ends_file: None,
            exchange_limit_bytes: EXCHANGE_LIMIT_BYTES,
        }
    }

    /// What the launcher says, with the token in `KILN_JOB_TOKEN`, and the file for notes in `KILN_RANK_ENDS_FILE`.
    ///
    /// # Errors
    /// The launcher does not say where the ranks meet.
    pub fn from_environment(ranks: &RankEnvironment) -> Result<Self> {
        let meeting_point = ranks.meeting_point.clone().ok_or(RendezvousError::NoMeetingPoint)?;
        let mut config = Self::new(meeting_point, ranks.rank, ranks.size);
        config.token = std::env::var("KILN_JOB_TOKEN").ok().filter(|token| !token.is_empty());
        config.rank_ends_file =
            std::env::var_os("KILN_RANK_ENDS_FILE").filter(|file| !file.is_empty()).map(PathBuf::from);
        Ok(config)
    }
}

/// Refuses times of zero, and a heartbeat that is not shorter than the silence.
pub(super) fn check_times(config: &RendezvousConfig) -> Result<()> {
    let RendezvousConfig { timeout, heartbeat, silence, .. } = *config;
    let times = [("timeout", timeout, "60 s"), ("heartbeat", heartbeat, "1 s"), ("silence", silence, "10 s")];
    match times.into_iter().find(|(_, time, _)| time.is_zero()) {
        Some((name, _, example)) => Err(RendezvousError::ZeroTime { name, example }),
        None if heartbeat >= silence => Err(RendezvousError::HeartbeatTooLong { heartbeat, silence }),
        None => Ok(()),
    }
}
