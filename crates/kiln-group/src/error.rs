//! Why a group could not do what was asked.

use std::sync::Arc;

use kiln_driver::ShortTime;
use kiln_operation::CommunicatorId;
use kiln_runtime::{Error, ErrorKind};

use crate::called_collective::CalledCollective;
use crate::rank_list::named;
use crate::rank_loss::CommunicatorRankLost;
use crate::rendezvous::{RAISE_LIMITS, RendezvousError};

/// The answer of calls of a group.
pub type Result<T> = std::result::Result<T, GroupError>;

/// Why a group could not do what was asked. Devices are named by their place in the group, counted from 0.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// A group of no devices.
    #[error("a group has at least one device; give it the runtime of one")]
    NoDevices,
    /// One device twice.
    #[error("devices {first} and {second} of the group are one device; give each device once")]
    Twice {
        /// The first place.
        first: usize,
        /// The second place.
        second: usize,
    },
    /// A device that the group does not have.
    #[error("there is no device {index} in a group of {len}; devices are counted from 0")]
    NoSuchDevice {
        /// The place that was asked for.
        index: usize,
        /// The devices of the group.
        len: usize,
    },
    /// A buffer of a runtime outside of the group.
    #[error("the {what} belongs to no device of the group; allocate it with `group.runtime(index)`")]
    NotInGroup {
        /// "source" or "destination".
        what: &'static str,
    },
    /// Buffers of different lengths.
    #[error("the source has {source_len} elements and the destination {destination_len}; they must be equal")]
    Length {
        /// Elements of the source.
        source_len: usize,
        /// Elements of the destination.
        destination_len: usize,
    },
    /// Weights that do not fit the group.
    #[error("{given} weights were given for {len} devices; give one for each")]
    Weights {
        /// How many were given.
        given: usize,
        /// The devices of the group.
        len: usize,
    },
    /// A sharded or shared buffer of another group.
    #[error("the buffer belongs to another group; make it with the group that is to use it")]
    OtherGroup,
    /// A shared buffer of no bytes, or of more than there can be.
    #[error(
        "a shared buffer of {len} elements of {element_bytes} bytes cannot be made; share at least one byte and less than 2^63"
    )]
    SharedSize {
        /// Elements.
        len: usize,
        /// Bytes of each.
        element_bytes: usize,
    },
    /// A device that cannot map memory of another.
    #[error(
        "device {index} of the group cannot map pages of another device; copy between two buffers instead"
    )]
    NoSharedPages {
        /// The device.
        index: usize,
    },
    /// A device that does not reach the memory of the owner of a shared buffer.
    #[error(
        "device {index} of the group does not reach memory of device {owner}: {why}; share between devices with peer access, or copy between two buffers"
    )]
    NotReached {
        /// The device.
        index: usize,
        /// The device whose memory it is.
        owner: usize,
        /// Why.
        why: Arc<str>,
    },
    /// The devices of the process could not be listed, or there are none.
    #[error("the devices of this process cannot be used: {source}")]
    Probe {
        /// Why.
        source: Error,
    },
    /// No device of the group takes work.
    #[error("no device of the group takes work: all {len} are lost or shut down; rebuild the group")]
    NoneReady {
        /// The devices of the group.
        len: usize,
    },
    /// A collective that does not fit its buffers or its communicator. Nothing was queued.
    #[error("{what}; {next}")]
    Collective {
        /// What does not fit.
        what: String,
        /// What to do.
        next: &'static str,
    },
    /// Sends of ranks with simulated devices that wait for each other: each rank receives behind its own send. On GPUs a send waits until it is received. Ranks of one process are all told: what they have queued
    /// ends with [`CommunicatorFailed`](crate::CommunicatorFailed), and their devices go on.
    #[error(
        "{} wait for each other on GPUs, since each of these ranks sends before it receives; put the send and the receive of a rank into one call (`send.and(recv)`), or let one rank receive first",
        .sends.join(" and ")
    )]
    CrossingSends {
        /// What each of them is: its bytes, both ranks, and the line of the program.
        sends: Vec<String>,
    },
    /// Two ranks called different collectives. What this rank called was not queued.
    #[error("rank {rank}: {source}; {}, and {}", .call.0, .call.1)]
    OtherCollective {
        /// This rank.
        rank: u32,
        /// What this rank called, and what the other one, with their lines.
        call: Box<(CalledCollective, CalledCollective)>,
        /// In what the two differ ([`Refusal::Disagreement`](kiln_driver::Refusal::Disagreement)).
        source: Error,
    },
    /// The device of a rank said no, or is lost.
    #[error("rank {rank}: {source}")]
    Rank {
        /// The rank.
        rank: u32,
        /// What its device said.
        source: Error,
    },
    /// The system starts no thread for a rank.
    #[error(
        "rank {rank}: the thread that notices lost ranks could not be started: {source}; {}",
        RAISE_LIMITS
    )]
    NoThread {
        /// The rank.
        rank: u32,
        /// What the system says.
        source: Arc<std::io::Error>,
    },
    /// Ranks that did not come to rebuild their communicator.
    #[error(
        "{} did not rebuild the communicator within {}; call `rebuild` on each rank that is left, or `rebuild_replaced` on each",
        named(.ranks), ShortTime(*.waited)
    )]
    RanksAbsent {
        /// The ranks.
        ranks: Vec<u32>,
        /// How long they were waited for.
        waited: std::time::Duration,
    },
    /// Ranks that rebuild their communicator in another way than this one.
    #[error(
        "{} called `{called}` and this rank `{}`, so they did not come to each other within {}; call the same one of the two on each rank that is left",
        named(.ranks), other_rebuild(.called), ShortTime(*.waited)
    )]
    OtherRebuild {
        /// The ranks that called the other one.
        ranks: Vec<u32>,
        /// What they called: `rebuild` or `rebuild_replaced`. This rank called the other one of the two.
        called: &'static str,
        /// How long they were waited for.
        waited: std::time::Duration,
    },
    /// Lost ranks that were not replaced.
    #[error(
        "no replacement of {} came within {}; start one for each, or go on without with `rebuild`",
        named(.ranks), ShortTime(*.waited)
    )]
    ReplacementsAbsent {
        /// The lost ranks.
        ranks: Vec<u32>,
        /// How long replacements were waited for.
        waited: std::time::Duration,
    },
    /// A process that joined in the place of another rank meets the others before it has taken that place.
    #[error(
        "rank {rank} of this job joined in the place of one that had met the others, and has not taken its place; call `DeviceCommunicator::replace`, while the others call `rebuild_replaced`, and `meet` after that"
    )]
    PlaceNotTaken {
        /// The rank.
        rank: u32,
    },
    /// The ranks of a job could not exchange values.
    #[error(transparent)]
    Rendezvous(Arc<RendezvousError>),
    /// A device said no, or is lost. The other devices go on.
    #[error("device {index} of the group: {source}")]
    Device {
        /// The device.
        index: usize,
        /// What it said.
        source: Error,
    },
}

impl GroupError {
    /// The device that failed, by its place in the group.
    pub fn device(&self) -> Option<usize> {
        match self {
            Self::Device { index, .. } | Self::NoSharedPages { index } | Self::NotReached { index, .. } => {
                Some(*index)
            }
            _ => None,
        }
    }

    /// What the device said.
    pub fn device_error(&self) -> Option<&Error> {
        match self {
            Self::Device { source, .. }
            | Self::Probe { source }
            | Self::OtherCollective { source, .. }
            | Self::Rank { source, .. } => Some(source),
            _ => None,
        }
    }

    /// Whether a device was lost with what was asked, or before.
    pub fn is_lost(&self) -> bool {
        self.device_error().is_some_and(|error| error.is_lost() || error.is_sticky())
    }

    /// The rank of a communicator that is lost, if that is why.
    pub fn lost_rank(&self) -> Option<&CommunicatorRankLost> {
        self.device_error()?.downcast_ref()
    }

    /// Whether memory was short on a device.
    pub fn is_oom(&self) -> bool {
        self.device_error().is_some_and(Error::is_oom)
    }

    /// What is wrong with a collective.
    pub(crate) fn collective(error: kiln_operation::OperationError) -> Self {
        Self::Collective { what: error.to_string(), next: "call it alike on every rank" }
    }

    /// The error of a second rebuild.
    pub(crate) fn rebuilt_already(id: CommunicatorId) -> Self {
        Self::Collective {
            what: format!("communicator {id:?} was rebuilt already"),
            next: "use the communicator that this made, and rebuild that one if it loses a rank",
        }
    }

    /// An error of the device at a place.
    pub(crate) fn at(index: usize) -> impl Fn(Error) -> Self {
        move |source| Self::Device { index, source }
    }
}

/// What ranks call that rebuild with replacements, or without.
pub(crate) fn rebuild_name(is_replacing: bool) -> &'static str {
    if is_replacing { "rebuild_replaced" } else { "rebuild" }
}

fn other_rebuild(called: &str) -> &'static str {
    rebuild_name(called == rebuild_name(false))
}

impl From<GroupError> for ErrorKind {
    fn from(error: GroupError) -> Self {
        Self::Other(Arc::new(error))
    }
}
