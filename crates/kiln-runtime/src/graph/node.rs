//! One node: a command with everything it needs.

use std::fmt;
use std::sync::Arc;

use kiln_driver::{Access, Command, Pattern, Place, Vouched};
use kiln_trace::KnownName;

use super::host_data::HostList;
use super::node_access::{Owner, Touch};
use crate::buffer::BlockRange;
use crate::launch::LaunchTemplate;
use crate::runtime::Block;

/// A node of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct NodeId {
    pub(super) graph: u64,
    pub(super) index: u32,
}

impl NodeId {
    /// Its place among the nodes of its graph, counted from 0 in the order of recording.
    pub fn index(self) -> u32 {
        self.index
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.index)
    }
}

/// What a node does.
#[derive(Clone)]
pub(super) enum Work {
    /// A copy or fill of no bytes; the driver never hears of it.
    Nothing,
    Launch {
        template: LaunchTemplate,
        vouched: Vouched,
    },
    Copy {
        from: BlockRange,
        to: BlockRange,
    },
    Upload {
        host: usize,
        to: BlockRange,
    },
    Download {
        from: BlockRange,
        host: usize,
    },
    Fill {
        to: BlockRange,
        pattern: Pattern,
    },
    /// A fill with a value no pattern can say: a copy of host data that repeats it.
    Repeat {
        host: usize,
        to: BlockRange,
    },
}

impl Work {
    /// What it is, in words.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Nothing => "a copy or fill of no bytes",
            Self::Launch { .. } => "a launch",
            Self::Copy { .. } => "a copy",
            Self::Upload { .. } => "an upload",
            Self::Download { .. } => "a download",
            Self::Fill { .. } | Self::Repeat { .. } => "a fill",
        }
    }

    /// The kernel that it runs, as recordings call it.
    pub(super) fn kernel_name(&self) -> Option<KnownName> {
        match self {
            Self::Launch { template, .. } => Some(template.recorded_name()),
            _ => None,
        }
    }

    /// What it does to which bytes, with the block that holds them.
    pub(super) fn touches(&self) -> Vec<(Touch, Option<&Arc<Block>>)> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Launch { template, .. } => {
                template.uses().map(|(held, access)| device(held, access)).collect()
            }
            Self::Copy { from, to } => vec![device(from, Access::Read), device(to, Access::Write)],
            Self::Upload { host, to } | Self::Repeat { host, to } => {
                vec![on_host(*host, to.bytes(), Access::Read), device(to, Access::Write)]
            }
            Self::Download { from, host } => {
                vec![device(from, Access::Read), on_host(*host, from.bytes(), Access::Write)]
            }
            Self::Fill { to, .. } => vec![device(to, Access::Write)],
        }
    }

    /// The bytes that it writes whatever they were before.
    pub(super) fn overwrites(&self) -> Option<&BlockRange> {
        match self {
            Self::Copy { to, .. }
            | Self::Upload { to, .. }
            | Self::Fill { to, .. }
            | Self::Repeat { to, .. } => Some(to),
            Self::Nothing | Self::Launch { .. } | Self::Download { .. } => None,
        }
    }

    /// The command; none if there is nothing to do.
    pub(super) fn command(&self, hosts: &HostList) -> Option<Command<'_>> {
        let on_device = |held: &BlockRange| held.place().map(Place::Device);
        let on_host = |host: usize| hosts.find(host)?.place();
        let copy = |from, to, bytes| Some(Command::Copy { from, to, bytes });
        match self {
            Self::Nothing => None,
            Self::Launch { template, vouched } => Some(template.command(*vouched)),
            Self::Copy { from, to } => copy(on_device(from)?, on_device(to)?, to.bytes()),
            Self::Upload { host, to } | Self::Repeat { host, to } => {
                copy(on_host(*host)?, on_device(to)?, to.bytes())
            }
            Self::Download { from, host } => copy(on_device(from)?, on_host(*host)?, from.bytes()),
            Self::Fill { to, pattern } => {
                let count = to.bytes() / pattern.bytes();
                Some(Command::Fill { to: to.place()?, pattern: *pattern, count })
            }
        }
    }
}

fn device(held: &BlockRange, access: Access) -> (Touch, Option<&Arc<Block>>) {
    let touch = Touch { owner: Owner::Device(held.block().id()), range: held.range().clone(), access };
    (touch, Some(held.block()))
}

fn on_host<'a>(host: usize, bytes: u64, access: Access) -> (Touch, Option<&'a Arc<Block>>) {
    (Touch { owner: Owner::Host(host), range: 0..bytes, access }, None)
}
