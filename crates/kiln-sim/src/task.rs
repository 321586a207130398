//! A command with its handles looked up: what is queued, and what graphs are made of.

use std::sync::Arc;

use kiln_driver::{Dim3, Pattern};

use crate::objects::{HostMemory, LoadedFunction};
use crate::party::Action;

/// Work that touches memory.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    Copy { from: End, to: End, bytes: u64 },
    Fill { address: u64, pattern: Pattern, count: u64 },
    Launch(Arc<LaunchTask>),
}

/// One end of a copy.
#[derive(Clone, Debug)]
pub(crate) enum End {
    Device { device: u32, address: u64 },
    Host { memory: Arc<HostMemory>, offset: u64 },
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
}

impl Task {
    pub(crate) fn action(&self) -> Action {
        match self {
            Self::Copy { .. } => Action::Copy,
            Self::Fill { .. } => Action::Fill,
            Self::Launch(launch) => Action::Launch(launch.function.loaded.name.clone()),
        }
    }

    /// Whether one can take the place of the other in a graph.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}
