//! The originator of an operation: a command, a node of a graph, or the host.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use kiln_driver::{HostId, MemoryId, StreamId, Submission};

use crate::check::vector_clock::{Lane, VectorClock};

/// One side of a finding: a step of work, or of the host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Actor {
    /// The ordinal of the device.
    pub device: u32,
    /// The stream, if it was a stream's step.
    pub stream: Option<StreamId>,
    /// Its number on the stream.
    pub submission: Option<Submission>,
    /// The node, if it was part of a graph; nodes of nested graphs are counted in the order they were listed.
    pub node: Option<u32>,
    /// What was done.
    pub action: Action,
    /// Where the program called it, if that is known: of collectives.
    pub called_at: Option<&'static Location<'static>>,
}

/// What a [`Actor`] did.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Action {
    /// A copy.
    Copy,
    /// A fill.
    Fill,
    /// A launch of the kernel of that name.
    Launch(Arc<str>),
    /// A signal of an event.
    Signal,
    /// A wait for an event.
    Wait,
    /// A graph as a whole.
    Graph,
    /// An allocation in the order of a stream, or by the host.
    Allocate(MemoryId),
    /// A free in the order of a stream, or by the host.
    Free(MemoryId),
    /// The host mapped pages.
    Map,
    /// The host took a mapping out.
    Unmap,
    /// The host gave a block of host memory back.
    DestroyHost(HostId),
    /// The program freed or unmapped host memory that is still registered.
    FreeRegistered(HostId),
    /// The host destroyed an object.
    Destroy(String),
    /// The host read through a host block.
    HostRead,
    /// The host wrote through a host block.
    HostWrite,
}

impl Actor {
    /// A step the host took.
    pub(crate) fn host(device: u32, action: Action) -> Self {
        Self { device, stream: None, submission: None, node: None, action, called_at: None }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Copy => f.write_str("copy"),
            Self::Fill => f.write_str("fill"),
            Self::Launch(kernel) => write!(f, "launch {kernel}"),
            Self::Signal => f.write_str("signal"),
            Self::Wait => f.write_str("wait"),
            Self::Graph => f.write_str("graph"),
            Self::Allocate(memory) => write!(f, "allocation of {memory}"),
            Self::Free(memory) => write!(f, "free of {memory}"),
            Self::Map => f.write_str("map"),
            Self::Unmap => f.write_str("unmap"),
            Self::DestroyHost(host) => write!(f, "release of {host}"),
            Self::FreeRegistered(host) => {
                write!(f, "free or unmapping of {host} by the program, which has not unregistered it")
            }
            Self::Destroy(object) => write!(f, "destruction of {object}"),
            Self::HostRead => f.write_str("read"),
            Self::HostWrite => f.write_str("write"),
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(stream) = self.stream else {
            return write!(f, "the host's {}", self.action);
        };
        write!(f, "{} (device {} {stream}", self.action, self.device)?;
        if let Some(submission) = self.submission {
            write!(f, " {submission}")?;
        }
        if let Some(node) = self.node {
            write!(f, " node {node}")?;
        }
        if let Some(line) = self.called_at {
            write!(f, ", called at {line}")?;
        }
        f.write_str(")")
    }
}

/// A step with its place in the order.
#[derive(Debug)]
pub(crate) struct Mark {
    pub(crate) lane: Lane,
    pub(crate) tick: u64,
    /// For a node of a graph, the graph's end, which every clock outside of the graph knows it by.
    pub(crate) end: Option<(Lane, u64)>,
    /// Everything that happened before it, itself included.
    pub(crate) clock: Arc<VectorClock>,
    /// Its place among all calls of the machine; says which of two unordered steps was asked for first.
    pub(crate) order: u64,
    pub(crate) actor: Actor,
}

impl Mark {
    /// Whether this happened before the other, or is the other.
    pub(crate) fn is_before(&self, later: &Self) -> bool {
        self.is_known_to(&later.clock)
    }

    /// The same step with more behind it.
    pub(crate) fn with_clock(&self, clock: VectorClock) -> Self {
        let Self { lane, tick, end, order, .. } = *self;
        Self { lane, tick, end, clock: Arc::new(clock), order, actor: self.actor.clone() }
    }

    /// Whether a clock has this behind it.
    pub(crate) fn is_known_to(&self, clock: &VectorClock) -> bool {
        let passed = |(lane, tick): (Lane, u64)| clock.of(lane) >= tick;
        passed((self.lane, self.tick)) || self.end.is_some_and(passed)
    }
}
