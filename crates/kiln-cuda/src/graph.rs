//! Graphs: built node by node, instantiated once, changed in place.
//!
//! Two native objects stand behind a graph. The *executable* is what a stream runs; changing one of its nodes leaves
//! launches already queued as they were. The *template* it was made from is kept because only a template can become
//! a node of another graph, and it is changed along with the executable.
//!
//! The driver does not guard either against two threads, so each has a lock that is held over the calls that use it.
//! Where both are needed the executable's is taken first, and a template's lock is the last one ever taken. A graph is mostly replayed by the
//! thread that built it, so the executable's is a biased lock, which costs that thread almost nothing.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys;
use kiln_driver::graph::{check_node_command, check_nodes};
use kiln_driver::{Command, Error, GraphId, GraphNode, Refusal, Result, StreamId, Submission};
use kiln_sync::{BiasedGuard, BiasedLock};

use crate::context::Context;
use crate::device::CudaDevice;
use crate::graph_node::BuiltNode;
use crate::libcuda_symbols::{Api, Status};
use crate::native_handle::Native;
use crate::operation::{LibraryFailure, NcclReplay};
use crate::stream::Stream;
use crate::stream_progress::SubmissionKind;

/// A graph as a handle finds it. The executable is given back before the template.
pub(crate) struct Graph {
    running: BiasedLock<Running>,
    outline: Mutex<Outline>,
    /// For `native`, which must not wait for a lock.
    number: u64,
}

struct Running {
    executable: Executable,
    nodes: Vec<BuiltNode>,
    /// The ranks whose collectives it has.
    ranks: NcclReplay,
}

struct Outline {
    template: Template,
    /// Whether the template says the same as the executable. The driver can replace a child graph in the executable
    /// only.
    is_current: bool,
    /// As in [`Running`].
    ranks: NcclReplay,
}

struct Executable {
    raw: Native<sys::CUgraphExec_st>,
    context: Arc<Context>,
}

struct Template {
    raw: Native<sys::CUgraph_st>,
    context: Arc<Context>,
}

impl CudaDevice {
    pub(crate) fn build_graph(&self, nodes: &[GraphNode<'_>]) -> Result<GraphId> {
        const CALL: &str = "build_graph";
        check_nodes(nodes)?;
        let api = self.context.enter(CALL)?;
        let template = Template::create(CALL, api, &self.context)?;
        let mut built: Vec<BuiltNode> = Vec::with_capacity(nodes.len());
        for node in nodes {
            // CUDA refuses an edge that is named twice.
            let mut edges = node.after.to_vec();
            edges.sort_unstable();
            edges.dedup();
            let after: Vec<sys::CUgraphNode> =
                edges.iter().filter_map(|at| built.get(*at as usize)).map(BuiltNode::raw).collect();
            built.push(self.add_node(CALL, api, template.raw.raw(), &after, &node.command)?);
        }
        let mut raw = Native::NULL;
        // SAFETY: the out-parameter is a live local and the template is ours alone.
        let status = unsafe { (api.graph_instantiate)(raw.slot(), template.raw.raw(), 0) };
        self.context.check(CALL, status)?;
        let executable = Executable { raw, context: self.context.clone() };
        let ranks = NcclReplay::union(built.iter().map(BuiltNode::ranks));
        self.graphs.insert(Graph {
            running: BiasedLock::new(Running { executable, nodes: built, ranks: ranks.clone() }),
            outline: Mutex::new(Outline { template, is_current: true, ranks }),
            number: raw.number(),
        })
    }

    pub(crate) fn update_graph(&self, graph_id: GraphId, node: u32, command: &Command<'_>) -> Result<()> {
        const CALL: &str = "update_graph";
        check_node_command(CALL, command)?;
        let api = self.context.enter(CALL)?;
        let graph = self.graphs.pin(graph_id).map_err(|error| error.seen_by(CALL))?;
        if matches!(command, Command::Graph(child) if *child == graph_id) {
            return Err(Error::invalid(CALL, format!("{graph_id} inside of itself"), "name another graph"));
        }
        let parts = self.node_parts(CALL, api, command)?;
        let mut running = graph.running();
        let Running { executable, nodes, ranks } = &mut *running;
        let count = nodes.len();
        let Some(built) = nodes.get_mut(node as usize) else {
            let what = format!("{graph_id} has {count} nodes and no node {node}");
            return Err(Error::invalid(CALL, what, "count nodes from 0"));
        };
        let changed = self.change_node(CALL, api, &graph, executable.raw.raw(), built, parts);
        let found = NcclReplay::union(nodes.iter().map(BuiltNode::ranks));
        ranks.clone_from(&found);
        graph.outline().ranks = found;
        changed
    }

    #[inline(never)]
    pub(crate) fn submit_graph(
        &self,
        call: &'static str,
        stream: StreamId,
        graph: GraphId,
    ) -> Result<Submission> {
        let stream = self.streams.pin(stream).map_err(|error| error.seen_by(call))?;
        let api = stream.api(call)?;
        let graph = self.graphs.pin(graph).map_err(|error| error.seen_by(call))?;
        let running = graph.running();
        // SAFETY: graph and stream are pinned, and the lock keeps other threads from the executable meanwhile. What the
        // nodes may do was vouched for when the graph was built.
        let launch = |_| unsafe { (api.graph_launch)(running.executable.raw.raw(), stream.raw()) };
        if !running.ranks.is_empty() {
            return submit_collectives(call, api, &stream, &running.ranks, launch);
        }
        stream.queue(call, SubmissionKind::Graph, launch)
    }
}

/// Queues a graph with collectives, unless one of their communicators was aborted.
#[cold]
#[inline(never)]
fn submit_collectives(
    call: &'static str,
    api: &Api,
    stream: &Stream,
    ranks: &NcclReplay,
    launch: impl Fn(u64) -> Status,
) -> Result<Submission> {
    let failure: Cell<Option<LibraryFailure>> = Cell::new(None);
    // The turn of a rank comes after the lock of a stream, as for a collective alone.
    let submitted = stream.queue(call, SubmissionKind::Graph, |number| match ranks.begin() {
        Ok(_turn) => launch(number),
        Err(failed) => {
            let status = failed.status(api, stream.raw());
            failure.set(Some(failed));
            status
        }
    });
    submitted.map_err(|error| match failure.take() {
        Some(failed) if !error.is_sticky() => failed.error(call, "a graph with its collectives"),
        _ => error,
    })
}

impl Graph {
    /// The executable as a number.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The ranks whose collectives it has.
    pub(crate) fn ranks(&self) -> NcclReplay {
        self.outline().ranks.clone()
    }

    /// Lends the template to a call that makes it a node of another graph.
    pub(crate) fn with_template<R>(
        &self,
        call: &'static str,
        id: GraphId,
        use_it: impl FnOnce(sys::CUgraph) -> R,
    ) -> Result<R> {
        let outline = self.outline();
        if !outline.is_current {
            let why = "a graph inside of it was replaced, and CUDA cannot copy it since".into();
            return Err(Error::refused(call, Refusal::Busy { handle: id.to_string(), why }));
        }
        Ok(use_it(outline.template.raw.raw()))
    }

    /// Changes the template as its executable was changed.
    pub(crate) fn follow(&self, changed: Status, change: impl FnOnce() -> Status) -> Status {
        if changed != 0 {
            return 0;
        }
        let _outline = self.outline();
        change()
    }

    /// Records that the executable was changed in a way its template cannot be.
    pub(crate) fn leave_template_behind(&self) {
        self.outline().is_current = false;
    }

    fn running(&self) -> BiasedGuard<'_, Running> {
        self.running.lock()
    }

    fn outline(&self) -> MutexGuard<'_, Outline> {
        self.outline.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Templates that there are in this process.
static TEMPLATES: AtomicUsize = AtomicUsize::new(0);

/// How many graphs there are in this process.
pub(crate) fn live_graphs() -> usize {
    TEMPLATES.load(Ordering::Relaxed)
}

impl Template {
    fn create(call: &'static str, api: &Api, context: &Arc<Context>) -> Result<Self> {
        let mut raw = Native::NULL;
        // SAFETY: the out-parameter is a live local, and 0 is the only value the flags may have.
        let status = unsafe { (api.graph_create)(raw.slot(), 0) };
        context.check(call, status)?;
        TEMPLATES.fetch_add(1, Ordering::Relaxed);
        Ok(Self { raw, context: context.clone() })
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // SAFETY: this is the only owner; a launch that is still running is finished first by the driver.
        self.context.release(|api| unsafe { (api.graph_exec_destroy)(self.raw.raw()) });
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        // SAFETY: this is the only owner; graphs it became a node of have their own copy.
        self.context.release(|api| unsafe { (api.graph_destroy)(self.raw.raw()) });
        TEMPLATES.fetch_sub(1, Ordering::Relaxed);
    }
}
