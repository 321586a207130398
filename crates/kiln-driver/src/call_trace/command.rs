//! Commands as a trace writes them.

use serde::{Deserialize, Serialize};

use super::handle_name::{Address, Hex, Name};
use crate::command::{Base, Command, DeclaredSpan, DevicePlace, Dim3, LaunchCommand, Pattern, Place};
use crate::graph::GraphNode;
use crate::handle::DeviceKey;
use crate::host_memory::Access;

/// A [`Command`] without lifetimes and keys.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum RecordedCommand {
    Copy { from: RecordedPlace, to: RecordedPlace, bytes: u64 },
    Fill { to: RecordedPlace, pattern: RecordedPattern, count: u64 },
    Launch(RecordedLaunch),
    Signal { event: Name },
    Wait { event: Name },
    Graph { graph: Name },
}

/// One end of a copy.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedPlace {
    pub(crate) block: Name,
    pub(crate) offset: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) peer: bool,
}

/// What a fill writes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum RecordedPattern {
    U8(u8),
    U16(u16),
    U32(u32),
}

/// A launch, without the word that it may run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedLaunch {
    pub(crate) function: Name,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: Option<[u32; 3]>,
    pub(crate) dynamic_shared_bytes: u32,
    pub(crate) cooperative: bool,
    pub(crate) arguments: Hex,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) declared: Option<Vec<RecordedSpan>>,
}

/// Memory that a launch declared.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedSpan {
    pub(crate) address: Address,
    pub(crate) bytes: u64,
    pub(crate) access: RecordedAccess,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parameter: Option<u16>,
}

/// What may be done to it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordedAccess {
    Read,
    Write,
    ReadWrite,
}

/// A node of a graph.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedNode {
    pub(crate) command: RecordedCommand,
    pub(crate) after: Vec<u32>,
}

impl RecordedCommand {
    pub(crate) fn of(command: &Command<'_>, here: DeviceKey) -> Self {
        match command {
            Command::Copy { from, to, bytes } => {
                Self::Copy { from: place(*from, here), to: place(*to, here), bytes: *bytes }
            }
            Command::Fill { to, pattern, count } => {
                let pattern = match *pattern {
                    Pattern::U8(value) => RecordedPattern::U8(value),
                    Pattern::U16(value) => RecordedPattern::U16(value),
                    Pattern::U32(value) => RecordedPattern::U32(value),
                };
                Self::Fill { to: device_place(*to, here, false), pattern, count: *count }
            }
            Command::Launch(launch) => Self::Launch(RecordedLaunch::of(launch, here)),
            Command::Signal(event) => Self::Signal { event: Name::of(*event, here) },
            Command::Wait(event) => Self::Wait { event: Name::of(*event, here) },
            Command::Graph(graph) => Self::Graph { graph: Name::of(*graph, here) },
        }
    }
}

impl RecordedLaunch {
    fn of(launch: &LaunchCommand<'_>, here: DeviceKey) -> Self {
        Self {
            function: Name::of(launch.function, here),
            grid: extents(launch.grid),
            block: extents(launch.block),
            cluster: launch.cluster.map(extents),
            dynamic_shared_bytes: launch.dynamic_shared_bytes,
            cooperative: launch.cooperative,
            arguments: Hex(launch.arguments.to_vec()),
            declared: launch.declared.map(|spans| spans.iter().map(RecordedSpan::of).collect()),
        }
    }
}

impl RecordedSpan {
    fn of(span: &DeclaredSpan) -> Self {
        let access = match span.access {
            Access::Read => RecordedAccess::Read,
            Access::Write => RecordedAccess::Write,
            Access::ReadWrite => RecordedAccess::ReadWrite,
        };
        Self { address: span.address.into(), bytes: span.bytes, access, parameter: span.parameter }
    }
}

impl From<RecordedAccess> for Access {
    fn from(access: RecordedAccess) -> Self {
        match access {
            RecordedAccess::Read => Self::Read,
            RecordedAccess::Write => Self::Write,
            RecordedAccess::ReadWrite => Self::ReadWrite,
        }
    }
}

impl RecordedNode {
    pub(crate) fn of(node: &GraphNode<'_>, here: DeviceKey) -> Self {
        Self { command: RecordedCommand::of(&node.command, here), after: node.after.to_vec() }
    }
}

impl From<RecordedPattern> for Pattern {
    fn from(pattern: RecordedPattern) -> Self {
        match pattern {
            RecordedPattern::U8(value) => Self::U8(value),
            RecordedPattern::U16(value) => Self::U16(value),
            RecordedPattern::U32(value) => Self::U32(value),
        }
    }
}

fn place(place: Place, here: DeviceKey) -> RecordedPlace {
    match place {
        Place::Device(place) => device_place(place, here, false),
        Place::Host { block, offset } => RecordedPlace { block: Name::of(block, here), offset, peer: false },
        Place::Peer(place) => device_place(place, here, true),
    }
}

pub(super) fn device_place(place: DevicePlace, here: DeviceKey, peer: bool) -> RecordedPlace {
    let block = match place.base {
        Base::Memory(id) => Name::of(id, here),
        Base::Reservation(id) => Name::of(id, here),
    };
    RecordedPlace { block, offset: place.offset, peer }
}

fn extents(dim: Dim3) -> [u32; 3] {
    [dim.x, dim.y, dim.z]
}
