//! What a node of a graph does, with everything it needs.

use std::sync::{Arc, OnceLock};

use cudarc::driver::sys::CUgraphNodeType as Kind;
use kiln_driver::{Code, Command, DevicePlace, Dim3, FunctionId, LaunchCommand, Pattern, Place, Vouched};

use crate::boundary::Answer;
use crate::calls::copies::Copy3D;
use crate::calls::graph_body::GraphBody;
use crate::calls::graph_conditions::ConditionalWork;
use crate::calls::graph_event_nodes::NodeEvent;
use crate::calls::graph_memory::GraphMemory;
use crate::calls::graphs::Graph;
use crate::calls::value_operations::Operation;
use crate::handle_table::RawHandle;

/// The work of a node.
#[derive(Clone)]
pub(crate) enum NodeWork {
    /// A kernel, or a function of the program.
    Launch(Box<OwnedLaunch>),
    /// A copy of rows.
    Copy(Box<CopyWork>),
    /// A fill of rows.
    Fill { rows: Vec<DevicePlace>, pattern: Pattern, count: u64, given: Option<FillParameters> },
    /// Nothing: a place where edges meet.
    Empty,
    /// All nodes of another graph.
    Child(ChildGraph),
    /// Values that are written and waited for.
    Batch(Box<BatchWork>),
    /// Records an event.
    Record(NodeEvent),
    /// Waits for an event.
    WaitEvent(NodeEvent),
    /// Makes memory.
    Allocate(Arc<GraphMemory>),
    /// Frees memory.
    Free(Arc<GraphMemory>),
    /// One of several graphs, by a condition.
    Conditional(Box<ConditionalWork>),
}

/// Values that are written to memory and waited for, one after the other.
#[derive(Clone)]
pub(crate) struct BatchWork {
    pub(crate) launches: Vec<OwnedLaunch>,
    /// As the program gave them.
    pub(crate) given: Box<[Operation]>,
}

/// A graph in a graph. Programs can get a handle for it and change it; a copy is as it is then.
pub(crate) struct ChildGraph {
    body: Box<GraphBody>,
    opened: OnceLock<(RawHandle, Arc<Graph>)>,
}

impl ChildGraph {
    pub(crate) fn new(body: GraphBody) -> Self {
        Self { body: Box::new(body), opened: OnceLock::new() }
    }

    /// Its nodes in a copy of the graph around it.
    pub(crate) fn copied(&self) -> &GraphBody {
        &self.body
    }

    /// Its nodes as they are now.
    pub(crate) fn body(&self) -> GraphBody {
        match self.opened.get() {
            Some((_, graph)) => graph.body().clone(),
            None => (*self.body).clone(),
        }
    }

    /// The graph itself, with its handle; made by the first call.
    pub(crate) fn open(
        &self,
        make: impl FnOnce(GraphBody) -> Answer<(RawHandle, Arc<Graph>)>,
    ) -> Answer<RawHandle> {
        if self.opened.get().is_none() {
            let made = make((*self.body).clone())?;
            // The lock of the graph around it is held, so that no other call gets here.
            let _ = self.opened.set(made);
        }
        self.opened.get().map(|(handle, _)| *handle).ok_or(Code::UNKNOWN)
    }

    /// Its handle, if it has one.
    pub(crate) fn handle(&self) -> Option<RawHandle> {
        self.opened.get().map(|(handle, _)| *handle)
    }
}

impl Clone for ChildGraph {
    fn clone(&self) -> Self {
        Self::new(self.body())
    }
}

/// A copy of rows.
#[derive(Clone)]
pub(crate) struct CopyWork {
    /// Copies by the host that come first.
    pub(crate) before: Vec<OwnedLaunch>,
    /// The two ends of each row: from and to.
    pub(crate) rows: Vec<(Place, Place)>,
    pub(crate) bytes: u64,
    /// Copies by the host that come last.
    pub(crate) after: Vec<OwnedLaunch>,
    /// As the program gave it.
    pub(crate) given: Option<Copy3D>,
}

/// The structure `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FillParameters {
    pub(crate) to: u64,
    pub(crate) pitch: usize,
    pub(crate) value: u32,
    pub(crate) element_bytes: u32,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// A launch that owns its arguments.
#[derive(Clone)]
pub(crate) struct OwnedLaunch {
    pub(crate) function: FunctionId,
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(crate) cluster: Option<Dim3>,
    pub(crate) dynamic_shared_bytes: u32,
    pub(crate) cooperative: bool,
    pub(crate) arguments: Box<[u8]>,
    /// The function as the program gave it; 0 if it gave none.
    pub(crate) given: RawHandle,
    /// Where each argument is, for programs that ask for the node's parameters.
    pub(crate) pointers: Box<[usize]>,
    pub(crate) vouched: Vouched,
}

impl OwnedLaunch {
    pub(crate) fn new(launch: &LaunchCommand<'_>) -> Self {
        Self {
            function: launch.function,
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster,
            dynamic_shared_bytes: launch.dynamic_shared_bytes,
            cooperative: launch.cooperative,
            arguments: launch.arguments.into(),
            given: 0,
            pointers: Box::default(),
            vouched: launch.vouched,
        }
    }

    /// The launch as the device below takes it.
    pub(crate) fn command(&self) -> LaunchCommand<'_> {
        LaunchCommand {
            function: self.function,
            grid: self.grid,
            block: self.block,
            cluster: self.cluster,
            dynamic_shared_bytes: self.dynamic_shared_bytes,
            cooperative: self.cooperative,
            arguments: &self.arguments,
            declared: None,
            vouched: self.vouched,
        }
    }

    /// A word of the packed arguments.
    pub(crate) fn word(&self, index: usize) -> Answer<u64> {
        let bytes = self.arguments.get(8 * index..8 * index + 8).and_then(|word| word.try_into().ok());
        bytes.map(u64::from_le_bytes).ok_or(Code::INVALID_VALUE)
    }
}

impl NodeWork {
    /// The work of a command; nothing for one that is no work.
    pub(crate) fn of(command: &Command<'_>) -> Option<Self> {
        Some(match command {
            Command::Copy { from, to, bytes } => Self::Copy(Box::new(CopyWork {
                before: Vec::new(),
                rows: vec![(*from, *to)],
                bytes: *bytes,
                after: Vec::new(),
                given: None,
            })),
            Command::Fill { to, pattern, count } => {
                Self::Fill { rows: vec![*to], pattern: *pattern, count: *count, given: None }
            }
            Command::Launch(launch) => Self::Launch(Box::new(OwnedLaunch::new(launch))),
            _ => return None,
        })
    }

    /// What it does, as a number of the API; a launch of `host` calls a function of the program.
    pub(crate) fn kind(&self, host: Option<FunctionId>) -> Kind {
        match self {
            Self::Launch(launch) if host == Some(launch.function) => Kind::CU_GRAPH_NODE_TYPE_HOST,
            Self::Launch(_) => Kind::CU_GRAPH_NODE_TYPE_KERNEL,
            Self::Copy(_) => Kind::CU_GRAPH_NODE_TYPE_MEMCPY,
            Self::Fill { .. } => Kind::CU_GRAPH_NODE_TYPE_MEMSET,
            Self::Empty => Kind::CU_GRAPH_NODE_TYPE_EMPTY,
            Self::Child(_) => Kind::CU_GRAPH_NODE_TYPE_GRAPH,
            Self::Batch(_) => Kind::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
            Self::Record(_) => Kind::CU_GRAPH_NODE_TYPE_EVENT_RECORD,
            Self::WaitEvent(_) => Kind::CU_GRAPH_NODE_TYPE_WAIT_EVENT,
            Self::Allocate(_) => Kind::CU_GRAPH_NODE_TYPE_MEM_ALLOC,
            Self::Free(_) => Kind::CU_GRAPH_NODE_TYPE_MEM_FREE,
            Self::Conditional(_) => Kind::CU_GRAPH_NODE_TYPE_CONDITIONAL,
        }
    }

    /// Whether it is no command of a graph below.
    pub(crate) fn needs_stream(&self) -> bool {
        let is_of_events = matches!(self, Self::Record(_) | Self::WaitEvent(_));
        is_of_events || self.is_of_memory() || self.is_conditional()
    }

    pub(crate) fn is_conditional(&self) -> bool {
        matches!(self, Self::Conditional(_))
    }

    /// The graphs in it.
    pub(crate) fn children(&self) -> &[ChildGraph] {
        match self {
            Self::Child(child) => std::slice::from_ref(child),
            Self::Conditional(work) => &work.bodies,
            _ => &[],
        }
    }

    /// Whether it is about memory of the graph.
    pub(crate) fn is_of_memory(&self) -> bool {
        matches!(self, Self::Allocate(_) | Self::Free(_))
    }

    /// The commands for the device below, in stages: those of a stage may run in any order. Those of a child are laid out apart.
    pub(crate) fn stages(&self) -> Vec<Vec<Command<'_>>> {
        match self {
            Self::Launch(launch) => vec![vec![Command::Launch(launch.command())]],
            Self::Copy(copy) => {
                let row =
                    |(from, to): &(Place, Place)| Command::Copy { from: *from, to: *to, bytes: copy.bytes };
                let launch = |launch| Command::Launch(OwnedLaunch::command(launch));
                let rows = copy.rows.iter().map(row).collect();
                vec![copy.before.iter().map(launch).collect(), rows, copy.after.iter().map(launch).collect()]
            }
            Self::Fill { rows, pattern, count, .. } => {
                let fill = |to: &DevicePlace| Command::Fill { to: *to, pattern: *pattern, count: *count };
                vec![rows.iter().map(fill).collect()]
            }
            Self::Batch(batch) => {
                batch.launches.iter().map(|launch| vec![Command::Launch(launch.command())]).collect()
            }
            Self::Empty | Self::Child(_) | Self::Record(_) | Self::WaitEvent(_) => Vec::new(),
            Self::Allocate(_) | Self::Free(_) | Self::Conditional(_) => Vec::new(),
        }
    }

    /// Takes over the attributes of a kernel whose parameters it replaces.
    pub(crate) fn keep_attributes(&mut self, before: &Self) {
        if let (Self::Launch(now), Self::Launch(before)) = (self, before) {
            (now.cluster, now.cooperative) = (before.cluster, before.cooperative);
        }
    }

    /// Whether it has several rows, which an executable graph cannot change.
    pub(crate) fn has_rows(&self) -> bool {
        match self {
            Self::Copy(copy) => copy.rows.len().max(copy.before.len()) > 1,
            Self::Fill { rows, .. } => rows.len() > 1,
            _ => false,
        }
    }
}
