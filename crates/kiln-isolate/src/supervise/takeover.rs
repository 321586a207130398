//! What a takeover found, kept and lost.
//!
//! Another worker replaces a lost one. Every object of the client is made again under the same id, so every handle stays valid: pages come from
//! their descriptors and are mapped at their old addresses, host blocks are the same memory, code is loaded from the same images,
//! and streams continue their numbering. What existed in the old worker only is lost: memory that was not mapped from pages, and the variables
//! of modules. Their handles are stale afterwards.
//!
//! Work that was queued and is not known to have completed is over, and may have run in part. Which contents it may have changed is known
//! above the driver interface, where accesses are declared; a takeover reports how far each stream was.

#[cfg(target_os = "linux")]
mod rebuild;
#[cfg(target_os = "linux")]
mod remove_lost;

use std::time::Duration;

use kiln_driver::{GraphId, MemoryId, PagesId, Progress, ShortTime, StreamId};

use super::object_counts::ObjectCounts;
use super::start_error::WorkerStartError;
use crate::client::loss_cause::LossCause;

/// What a takeover found, kept and lost.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Takeover {
    /// Why the old worker was lost.
    pub cause: LossCause,
    /// The generation that begins.
    pub generation: u64,
    /// Whether a standby took over, as opposed to a worker that had to be started.
    pub standby: bool,
    /// Streams with work that was queued and is not known to have completed, and how far they were. All of it counts as completed from
    /// now on; what it was to write is undefined.
    pub unfinished: Vec<UnfinishedStream>,
    /// Bytes of pages that were kept.
    pub kept_bytes: u64,
    /// Memory that is lost; the handles are stale.
    pub lost_memory: Vec<MemoryId>,
    /// Pages that are lost because the device cannot export any; the handles are stale, and their mappings are gone.
    pub lost_pages: Vec<PagesId>,
    /// Graphs that could not be built again because something they use is lost.
    pub lost_graphs: Vec<GraphId>,
    /// What the new worker had before the takeover; nothing, if it had to be started.
    pub prepared: ObjectCounts,
    /// What was made in it during the takeover.
    pub rebuilt: ObjectCounts,
    /// How long it took.
    pub phases: TakeoverPhases,
}

/// A stream that had work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnfinishedStream {
    /// The stream.
    pub stream: StreamId,
    /// How far it was.
    pub progress: Progress,
}

/// How long each part of a takeover took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TakeoverPhases {
    /// From the moment the loss was noticed until the takeover was requested.
    pub idle: Duration,
    /// The pause that the restart policy demands.
    pub pause: Duration,
    /// Waiting for the end of the old worker. A worker that faulted is not waited for. One that was killed or hung may still be writing,
    /// and the driver takes tens of milliseconds to tear down a process whose kernels run.
    pub kill: Duration,
    /// Taking the standby, or starting a worker and opening its device.
    pub start: Duration,
    /// Addresses, pages and mappings.
    pub pages: Duration,
    /// Host blocks.
    pub hosts: Duration,
    /// Images and kernels.
    pub code: Duration,
    /// Streams, events and graphs.
    pub queues: Duration,
}

impl TakeoverPhases {
    /// The sum of all phases after the takeover was requested.
    pub fn total(&self) -> Duration {
        let Self { idle: _, pause, kill, start, pages, hosts, code, queues } = *self;
        [pause, kill, start, pages, hosts, code, queues].iter().sum()
    }
}

/// Why a takeover failed. The device stays lost with its old cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TakeoverError {
    /// The worker is not lost.
    #[error("the worker is not lost; a takeover replaces a lost worker, such as one that was killed")]
    NotLost,
    /// The restart policy allows no more replacements.
    #[error(
        "{limit} workers were replaced within {}, the most the restart policy allows; the last ended because {cause}", ShortTime(*.span)
    )]
    GivenUp {
        /// How many.
        limit: u32,
        /// Within which time.
        span: Duration,
        /// Why the last worker was lost.
        cause: LossCause,
    },
    /// Takeovers were forbidden by [`IsolatedDevice::abandon`](crate::IsolatedDevice).
    #[error("the device was abandoned, so its worker is not replaced; it ended because {cause}")]
    Abandoned {
        /// Why the worker was lost.
        cause: LossCause,
    },
    /// No other worker could be started.
    #[error(transparent)]
    Start(#[from] WorkerStartError),
    /// The new worker opened another device.
    #[error("the new worker opened another device than the old one: {found}")]
    AnotherDevice {
        /// The device it opened.
        found: String,
    },
    /// The new worker could not make an object again, and was killed.
    #[error("the new worker could not make {what} again: {error}")]
    Rebuild {
        /// The object.
        what: String,
        /// Why.
        error: kiln_driver::Error,
    },
}

impl TakeoverError {
    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Start(error) => error.is_retryable(),
            Self::Rebuild { .. } => true,
            Self::NotLost | Self::GivenUp { .. } | Self::Abandoned { .. } | Self::AnotherDevice { .. } => {
                false
            }
        }
    }
}
