//! Conditional nodes of graphs: conditions, and nodes with the graphs that they select.
//!
//! A condition is a word of device memory, whose address is its handle. Kernels set it by a function of the device runtime (`condition.ptx`). What a node
//! does by it is in `condition_runs`.

use std::ffi::{c_uint, c_ulonglong};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cudarc::driver::sys::CUgraphNodeType as Kind;
use kiln_driver::{Code, Command, DevicePlace, DriverExt, FunctionId, MemoryId, MemoryRequest, Pattern};

use crate::boundary::{Answer, OrCode};
use crate::caller_memory::Out;
use crate::calls::context::{Context, named};
use crate::calls::graph_body::GraphBody;
use crate::calls::graph_work::{ChildGraph, NodeWork};
use crate::calls::graphs::{Graph, graph};
use crate::calls::process_state::{ProcessState, state};
use crate::handle_table::RawHandle;

/// Bytes of the word.
const WORD_BYTES: u64 = 4;
/// The flag that says that each launch begins with the first value.
const ASSIGN_DEFAULT: c_uint = 1;
/// The values of `CUgraphConditionalNodeType`, of which the bindings that are used here have two.
const IF: c_uint = 0;
const WHILE: c_uint = 1;
const SWITCH: c_uint = 2;
/// Graphs of a node; more are refused.
const MOST_BODIES: c_uint = 1 << 16;

/// A condition, which belongs to a graph and to one node of it, or of a graph that a condition of it selects.
pub(crate) struct Condition {
    pub(crate) address: u64,
    memory: MemoryId,
    context: Arc<Context>,
    first: u32,
    is_assigned: bool,
    has_node: AtomicBool,
}

impl Condition {
    fn create(context: Arc<Context>, first: u32, is_assigned: bool) -> Answer<Arc<Self>> {
        let driver = &*context.driver;
        let memory = driver.allocate(MemoryRequest::Direct { bytes: WORD_BYTES }).or_code()?;
        let made = Arc::new(Self {
            address: memory.address.0,
            memory: memory.id,
            context: context.clone(),
            first,
            is_assigned,
            has_node: AtomicBool::new(false),
        });
        // Without the flag it has some value until a kernel sets it.
        let setup = context.order()?.get()?.setup_stream()?;
        driver.submit(setup, &made.assignment()).or_code()?;
        driver.synchronize(setup).or_code()?;
        Ok(made)
    }

    /// Where its word is.
    pub(crate) fn place(&self) -> DevicePlace {
        DevicePlace::from(self.memory)
    }

    pub(crate) fn has_node(&self) -> bool {
        self.has_node.load(Ordering::Relaxed)
    }

    /// What gives it its first value.
    fn assignment(&self) -> Command<'static> {
        Command::Fill { to: self.place(), pattern: Pattern::U32(self.first), count: 1 }
    }

    /// What a launch begins with.
    pub(crate) fn at_launch(&self) -> Option<Command<'static>> {
        self.is_assigned.then(|| self.assignment())
    }
}

impl Drop for Condition {
    fn drop(&mut self) {
        // Work that is queued may still set it.
        self.context.keep_until_idle(self.memory);
    }
}

/// A node with a condition.
#[derive(Clone)]
pub(crate) struct ConditionalWork {
    pub(crate) condition: Arc<Condition>,
    pub(crate) kind: ConditionalKind,
    pub(crate) bodies: Vec<ChildGraph>,
    /// The handles of the graphs, for the program.
    list: Box<[RawHandle]>,
}

/// What a node does by its condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConditionalKind {
    /// Runs the first graph if the value is not 0, otherwise the second if there is one.
    If,
    /// Runs its graph as long as the value is not 0.
    While,
    /// Runs the graph with the number of the value, if there is one.
    Switch,
}

impl ConditionalKind {
    fn of(number: c_uint, bodies: c_uint) -> Answer<Self> {
        let kind = match number {
            IF => Self::If,
            WHILE => Self::While,
            SWITCH => Self::Switch,
            _ => return Err(Code::INVALID_VALUE),
        };
        let fits = match kind {
            Self::If => matches!(bodies, 1 | 2),
            Self::While => bodies == 1,
            Self::Switch => (1..=MOST_BODIES).contains(&bodies),
        };
        if fits { Ok(kind) } else { Err(Code::INVALID_VALUE) }
    }

    /// The graph that a value selects.
    pub(crate) fn selected(self, value: u32) -> usize {
        match self {
            Self::If => usize::from(value == 0),
            Self::While if value == 0 => usize::MAX,
            Self::While => 0,
            Self::Switch => value as usize,
        }
    }
}

impl ConditionalWork {
    /// Where the program finds the handles of the graphs, as long as the node is there.
    fn list_address(&self) -> usize {
        self.list.as_ptr().addr()
    }

    /// Whether it can take the place of another one in an executable graph.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.condition, &other.condition)
            && (self.kind, self.bodies.len()) == (other.kind, other.bodies.len())
    }

    /// The graph of a value; nothing if there is none for it.
    pub(crate) fn body_of(&self, value: u32) -> Option<&GraphBody> {
        self.bodies.get(self.kind.selected(value)).map(ChildGraph::copied)
    }
}

/// The structure `CUDA_CONDITIONAL_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ConditionalParameters {
    condition: c_ulonglong,
    kind: c_uint,
    size: c_uint,
    bodies: usize,
    context: RawHandle,
}

const _: () = assert!(
    size_of::<ConditionalParameters>() == size_of::<cudarc::driver::sys::CUDA_CONDITIONAL_NODE_PARAMS>()
);

impl ConditionalParameters {
    /// The same, with the address of the list of graphs.
    pub(crate) fn with_bodies(self, bodies: usize) -> Self {
        Self { bodies, ..self }
    }
}

/// A node of a graph, with empty graphs for the program to fill, and the address of the list of them.
pub(crate) fn conditional(
    state: &ProcessState,
    graph: &Graph,
    given: &ConditionalParameters,
) -> Answer<(NodeWork, usize)> {
    let context = named(state, given.context)?;
    if context.device != graph.context.device {
        return Err(Code::INVALID_CONTEXT);
    }
    let kind = ConditionalKind::of(given.kind, given.size)?;
    let condition = graph.condition(given.condition).ok_or(Code::INVALID_VALUE)?;
    if condition.has_node.swap(true, Ordering::Relaxed) {
        return Err(Code::INVALID_VALUE);
    }
    let mut bodies = Vec::new();
    let mut list = Vec::new();
    for _ in 0..given.size {
        let body = ChildGraph::new(GraphBody::default());
        list.push(body.open(|body| {
            let made = graph.selected(context.clone(), body);
            Ok((state.graphs.insert(made.clone()).ok_or(Code::OUT_OF_MEMORY)?, made))
        })?);
        bodies.push(body);
    }
    let work = ConditionalWork { condition, kind, bodies, list: list.into_boxed_slice() };
    let address = work.list_address();
    Ok((NodeWork::Conditional(Box::new(work)), address))
}

/// Whether the graphs that conditions select have only nodes that such graphs may have; `host` is the kernel that calls functions of the program.
pub(crate) fn has_fitting_conditions(body: &GraphBody, host: Option<FunctionId>) -> bool {
    body.nodes().all(|(_, node)| match &node.work {
        NodeWork::Conditional(work) => work.bodies.iter().all(|body| fits(&body.body(), host)),
        work => work.children().iter().all(|child| has_fitting_conditions(&child.body(), host)),
    })
}

fn fits(body: &GraphBody, host: Option<FunctionId>) -> bool {
    body.nodes().all(|(_, node)| {
        let is_known = matches!(
            node.work.kind(host),
            Kind::CU_GRAPH_NODE_TYPE_KERNEL
                | Kind::CU_GRAPH_NODE_TYPE_MEMCPY
                | Kind::CU_GRAPH_NODE_TYPE_MEMSET
                | Kind::CU_GRAPH_NODE_TYPE_EMPTY
                | Kind::CU_GRAPH_NODE_TYPE_GRAPH
                | Kind::CU_GRAPH_NODE_TYPE_CONDITIONAL
        );
        is_known && node.work.children().iter().all(|child| fits(&child.body(), host))
    })
}

driver_api! {
    fn cuGraphConditionalHandleCreate(
        out: Out<c_ulonglong>, handle: RawHandle, context: RawHandle, first: c_uint, flags: c_uint
    ) {
        let state = state()?;
        out.check()?;
        state.backend.machine("a condition of a graph")?;
        let graph = graph(state, handle)?;
        let context = named(state, context)?;
        if flags & !ASSIGN_DEFAULT != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if context.device != graph.context.device {
            return Err(Code::INVALID_CONTEXT);
        }
        let condition = Condition::create(context, first, flags & ASSIGN_DEFAULT != 0)?;
        let address = condition.address;
        graph.keep_condition(condition);
        out.set(address)
    }
}
