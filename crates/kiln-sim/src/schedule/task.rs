//! A command with its handles looked up: what is queued, and what graphs are made of.

use std::sync::Arc;

use kiln_driver::{Dim3, NodeShape, Pattern};
use kiln_operation::CommunicatorRank;

use crate::check::access_origin::Action;
use crate::check::declared_memory::LaunchFootprint;
use crate::collective::collective_launch::CollectiveCall;
use crate::device::objects::{HostMemory, LoadedFunction};

/// Work that touches memory.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    Copy { from: End, to: End, bytes: u64 },
    Fill { address: u64, is_part: bool, pattern: Pattern, count: u64 },
    Launch(Arc<LaunchTask>),
}

/// One end of a copy.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// `is_part` if it is named by the handle of the block itself.
    Device {
        device: u32,
        address: u64,
        is_part: bool,
    },
    Host {
        memory: Arc<HostMemory>,
        offset: u64,
    },
}

/// A launch with its own copy of the arguments.
#[derive(Debug)]
pub(crate) struct LaunchTask {
    pub(crate) function: Arc<LoadedFunction>,
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(crate) cluster: Option<Dim3>,
    pub(crate) dynamic_shared_bytes: u32,
    pub(crate) cooperative: bool,
    pub(crate) arguments: Box<[u8]>,
    /// What it may touch; none if the caller did not say.
    pub(crate) footprint: Option<Arc<LaunchFootprint>>,
    /// The collectives, if the function is one of a communicator.
    pub(crate) collectives: Option<Arc<CollectiveCall>>,
    /// The rank that it ends, if it is that function of a communicator.
    pub(crate) aborts: Option<CommunicatorRank>,
}

impl LaunchTask {
    /// Whether it runs on a thread of the host.
    pub(crate) fn is_host_function(&self) -> bool {
        self.function.loaded.kernel.runs_on_host_thread()
    }
}

impl Task {
    pub(crate) fn action(&self) -> Action {
        match self {
            Self::Copy { .. } => Action::Copy,
            Self::Fill { .. } => Action::Fill,
            Self::Launch(launch) => Action::Launch(launch.function.loaded.name.clone()),
        }
    }

    /// The collectives of a launch.
    pub(crate) fn collectives(&self) -> Option<&Arc<CollectiveCall>> {
        match self {
            Self::Launch(launch) => launch.collectives.as_ref(),
            _ => None,
        }
    }

    /// The launch, if it is one of a function of the host.
    pub(crate) fn host_function(&self) -> Option<&Arc<LaunchTask>> {
        match self {
            Self::Launch(launch) if launch.is_host_function() => Some(launch),
            _ => None,
        }
    }

    /// The launch, if it is one that waits for memory.
    pub(crate) fn memory_wait(&self) -> Option<&Arc<LaunchTask>> {
        match self {
            Self::Launch(launch) if launch.function.loaded.kernel.waits_for_memory() => Some(launch),
            _ => None,
        }
    }

    /// The rank that a launch ends when it is submitted.
    pub(crate) fn aborts(&self) -> Option<CommunicatorRank> {
        match self {
            Self::Launch(launch) => launch.aborts,
            _ => None,
        }
    }

    /// One task can take the place of another in a graph if both have the same.
    pub(crate) fn shape(&self) -> NodeShape {
        let is_host = |end: &End| matches!(end, End::Host { .. });
        match self {
            Self::Copy { bytes: 0, .. } | Self::Fill { count: 0, .. } => NodeShape::Nothing,
            Self::Copy { from, to, .. } => NodeShape::Copy { from_host: is_host(from), to_host: is_host(to) },
            Self::Fill { .. } => NodeShape::Fill,
            Self::Launch(launch) => {
                NodeShape::Launch { cluster: launch.cluster, cooperative: launch.cooperative }
            }
        }
    }
}
