//! Graphs: made by hand or by a capture, cloned, made executable and launched.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_uint, c_ulonglong};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys;
use kiln_driver::{Code, Command, GraphId};

use crate::boundary::Answer;
use crate::caller_memory::Out;
use crate::calls::condition_runs::ConditionRun;
use crate::calls::context::Context;
use crate::calls::graph_body::{BodyNode, GraphBody};
use crate::calls::graph_conditions::{Condition, has_fitting_conditions};
use crate::calls::graph_streams::GraphStreams;
use crate::calls::graph_work::{ChildGraph, NodeWork};
use crate::calls::last_launch::LastLaunch;
use crate::calls::process_state::{ProcessState, current, state};
use crate::calls::streams::chosen;
use crate::calls::user_objects::UserReferences;
use crate::handle_table::RawHandle;

/// A graph that can be made executable.
pub(crate) struct Graph {
    pub(crate) context: Arc<Context>,
    body: Mutex<GraphBody>,
    /// The handles of its nodes that were asked for.
    handles: Mutex<HashMap<u32, RawHandle>>,
    /// The graph it was cloned from.
    original: Option<RawHandle>,
    /// Objects of the program that it keeps.
    pub(crate) objects: UserReferences,
    /// Conditions that were made for it and for the graphs of its conditional nodes, which share the list.
    conditions: SharedConditions,
    /// Whether it is one that a condition selects, which belongs to its node.
    is_body: bool,
}

/// The conditions of a graph.
type SharedConditions = Arc<Mutex<Vec<Arc<Condition>>>>;

impl Graph {
    pub(crate) fn new(context: Arc<Context>, body: GraphBody) -> Arc<Self> {
        Self::cloned(context, body, None, UserReferences::default())
    }

    fn cloned(
        context: Arc<Context>,
        body: GraphBody,
        original: Option<RawHandle>,
        objects: UserReferences,
    ) -> Arc<Self> {
        let (body, handles, conditions) = (Mutex::new(body), Mutex::default(), Arc::default());
        Arc::new(Self { context, body, handles, original, objects, conditions, is_body: false })
    }

    /// A graph that a condition of this one selects.
    pub(crate) fn selected(&self, context: Arc<Context>, body: GraphBody) -> Arc<Self> {
        Arc::new(Self {
            context,
            body: Mutex::new(body),
            handles: Mutex::default(),
            original: None,
            objects: UserReferences::default(),
            conditions: self.conditions.clone(),
            is_body: true,
        })
    }

    /// Whether each of its conditions has a node.
    fn has_no_loose_condition(&self) -> bool {
        let conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        conditions.iter().all(|condition| condition.has_node())
    }

    pub(crate) fn keep_condition(&self, condition: Arc<Condition>) {
        self.conditions.lock().unwrap_or_else(PoisonError::into_inner).push(condition);
    }

    /// The condition with an address, if it is one of this graph.
    pub(crate) fn condition(&self, address: u64) -> Option<Arc<Condition>> {
        let conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        conditions.iter().find(|condition| condition.address == address).cloned()
    }

    pub(crate) fn body(&self) -> MutexGuard<'_, GraphBody> {
        self.body.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handle of a node of this graph, whose own handle is `ours`.
    pub(crate) fn handle(&self, state: &ProcessState, ours: RawHandle, number: u32) -> Answer<RawHandle> {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = handles.get(&number) {
            return Ok(*handle);
        }
        let handle = state.graph_nodes.insert(Arc::new(Node { graph: ours, number }));
        let handle = handle.ok_or(Code::OUT_OF_MEMORY)?;
        handles.insert(number, handle);
        Ok(handle)
    }
}

/// A node of a graph.
pub(crate) struct Node {
    /// The handle of the graph.
    pub(crate) graph: RawHandle,
    pub(crate) number: u32,
}

/// The graph of a handle.
pub(crate) fn graph(state: &ProcessState, handle: RawHandle) -> Answer<Arc<Graph>> {
    state.graphs.get(handle).ok_or(Code::INVALID_VALUE)
}

/// The node of a handle, with its graph.
pub(crate) fn node(state: &ProcessState, handle: RawHandle) -> Answer<(Arc<Graph>, Arc<Node>)> {
    let node = state.graph_nodes.get(handle).ok_or(Code::INVALID_VALUE)?;
    Ok((graph(state, node.graph)?, node))
}

/// The handle of the context of a node's graph.
pub(crate) fn context_of(handle: RawHandle) -> Answer<RawHandle> {
    let state = state()?;
    let (graph, _) = node(state, handle)?;
    let ours = graph.context.number;
    state.contexts.find(|context| context.number == ours).ok_or(Code::INVALID_VALUE)
}

/// Takes a graph, its nodes and the graphs in it away.
fn destroy(state: &ProcessState, handle: RawHandle) -> Answer {
    let gone = state.graphs.remove(handle).ok_or(Code::INVALID_VALUE)?;
    state.graph_nodes.remove_where(|node| node.graph == handle);
    let children: Vec<RawHandle> = gone
        .body()
        .nodes()
        .flat_map(|(_, node)| node.work.children())
        .filter_map(ChildGraph::handle)
        .collect();
    for child in children {
        // One that a program destroyed itself is gone.
        let _ = destroy(state, child);
    }
    gone.objects.release_all(state);
    Ok(())
}

/// Writes a list, or says how long it is where there is no room for it.
pub(crate) fn write_list(list: &[RawHandle], out: Out<RawHandle>, count: Out<usize>) -> Answer {
    count.check()?;
    if out.check().is_err() {
        return count.set(list.len());
    }
    // The list has room for `count`; places beyond the nodes are zero.
    let room = count.get()?;
    for index in 0..room {
        out.set_at(index, list.get(index).copied().unwrap_or(0))?;
    }
    count.set(room.min(list.len()))
}

/// Lists nodes of a graph.
fn list(
    handle: RawHandle,
    out: Out<RawHandle>,
    count: Out<usize>,
    is_listed: impl Fn(&BodyNode) -> bool,
) -> Answer {
    let state = state()?;
    let graph = graph(state, handle)?;
    count.check()?;
    let numbers: Vec<u32> =
        graph.body().nodes().filter(|(_, node)| is_listed(node)).map(|(number, _)| number).collect();
    let nodes: Vec<RawHandle> =
        numbers.into_iter().map(|number| graph.handle(state, handle, number)).collect::<Answer<_>>()?;
    write_list(&nodes, out, count)
}

/// An executable graph.
pub(crate) struct GraphExec {
    pub(crate) context: Arc<Context>,
    /// The handle of the graph it was made of, whose nodes name its own.
    pub(crate) graph: RawHandle,
    flags: u64,
    built: Mutex<Built>,
    /// Objects of the program that it keeps.
    objects: UserReferences,
}

/// What it does; without work nothing is below, and with work that is no graph below its nodes are queued one by one.
struct Built {
    body: GraphBody,
    id: Option<GraphId>,
    streams: Option<GraphStreams>,
    last: LastLaunch,
}

impl GraphExec {
    /// Takes it back with its context, whose work is done.
    pub(crate) fn end(&self) {
        let mut built = self.lock();
        if let Some(id) = built.id.take() {
            // A lost device keeps nothing.
            let _ = self.context.driver.destroy(id.into());
        }
        if let Some(streams) = &mut built.streams {
            streams.end(&self.context.driver);
        }
        if let Some(event) = built.last.take() {
            let _ = self.context.driver.destroy(event.into());
        }
    }

    /// Changes it for launches from here on; those that are queued keep what it was. An error changes nothing.
    pub(crate) fn change(&self, change: impl FnOnce(&mut GraphBody) -> Answer) -> Answer {
        let mut built = self.lock();
        let mut body = built.body.clone();
        change(&mut body)?;
        let id = body.build(&*self.context.driver)?;
        built.body = body;
        match std::mem::replace(&mut built.id, id) {
            Some(id) => {
                self.context.order()?.get()?.retire(id);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// What it does.
    pub(crate) fn body(&self) -> GraphBody {
        self.lock().body.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Built> {
        self.built.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The executable graph of a handle.
pub(crate) fn executable(state: &ProcessState, handle: RawHandle) -> Answer<Arc<GraphExec>> {
    state.executables.get(handle).ok_or(Code::INVALID_VALUE)
}

const AUTO_FREE: u64 =
    sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH.0 as u64;
const DEVICE_LAUNCH: u64 = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH.0 as u64;
const ALL_FLAGS: u64 = 15;

/// The structure `CUDA_GRAPH_INSTANTIATE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Instantiation {
    flags: u64,
    upload_stream: RawHandle,
    error_node: RawHandle,
    result: c_uint,
}

const _: () = assert!(size_of::<Instantiation>() == size_of::<sys::CUDA_GRAPH_INSTANTIATE_PARAMS>());

fn instantiate(out: Out<RawHandle>, handle: RawHandle, flags: u64) -> Answer {
    let state = state()?;
    out.check()?;
    let graph = graph(state, handle)?;
    if flags & !ALL_FLAGS != 0 || flags & AUTO_FREE != 0 && flags & DEVICE_LAUNCH != 0 {
        return Err(Code::INVALID_VALUE);
    }
    if flags & DEVICE_LAUNCH != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    let body = graph.body().clone();
    if graph.is_body {
        return Err(Code::NOT_SUPPORTED);
    }
    let host = state.device(graph.context.device as c_int)?.host_function();
    if !graph.has_no_loose_condition() || !has_fitting_conditions(&body, host) {
        return Err(Code::INVALID_VALUE);
    }
    // Memory has one owner.
    let is_owned = || state.executables.find(|other| other.graph == handle).is_some();
    if body.has_memory() && is_owned() {
        return Err(Code::NOT_SUPPORTED);
    }
    let id = body.build(&*graph.context.driver)?;
    let streams = body.needs_streams().then(GraphStreams::default);
    let built = Mutex::new(Built { body, id, streams, last: LastLaunch::default() });
    let (context, objects) = (graph.context.clone(), graph.objects.copy(state));
    let executable = GraphExec { context, graph: handle, flags, built, objects };
    out.set(state.executables.insert(Arc::new(executable)).ok_or(Code::OUT_OF_MEMORY)?)
}

driver_api! {
    fn cuGraphCreate(out: Out<RawHandle>, flags: c_uint) {
        let (state, context) = current()?;
        out.check()?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let graph = Graph::new(context, GraphBody::default());
        out.set(state.graphs.insert(graph).ok_or(Code::OUT_OF_MEMORY)?)
    }

    fn cuGraphDestroy(handle: RawHandle) {
        let state = state()?;
        if graph(state, handle)?.is_body {
            return Err(Code::INVALID_VALUE);
        }
        destroy(state, handle)
    }

    fn cuGraphClone(out: Out<RawHandle>, handle: RawHandle) {
        let state = state()?;
        out.check()?;
        let graph = graph(state, handle)?;
        let body = graph.body().clone();
        if body.has_one_owner() || graph.is_body {
            return Err(Code::NOT_SUPPORTED);
        }
        let objects = graph.objects.copy(state);
        let copy = Graph::cloned(graph.context.clone(), body, Some(handle), objects);
        out.set(state.graphs.insert(copy).ok_or(Code::OUT_OF_MEMORY)?)
    }

    fn cuGraphNodeFindInClone(out: Out<RawHandle>, original: RawHandle, clone: RawHandle) {
        let state = state()?;
        out.check()?;
        let node = state.graph_nodes.get(original).ok_or(Code::INVALID_VALUE)?;
        let graph = graph(state, clone)?;
        if graph.original != Some(node.graph) {
            return Err(Code::INVALID_VALUE);
        }
        graph.body().get(node.number)?;
        out.set(graph.handle(state, clone, node.number)?)
    }

    fn cuGraphGetNodes(handle: RawHandle, out: Out<RawHandle>, count: Out<usize>) {
        list(handle, out, count, |_| true)
    }

    fn cuGraphGetRootNodes(handle: RawHandle, out: Out<RawHandle>, count: Out<usize>) {
        list(handle, out, count, |node| node.after.is_empty())
    }

    fn cuGraphInstantiateWithFlags(out: Out<RawHandle>, graph: RawHandle, flags: c_ulonglong) {
        instantiate(out, graph, flags)
    }

    fn cuGraphInstantiate_v2(out: Out<RawHandle>, graph: RawHandle, error_node: Out<RawHandle>, log: Out<c_char>, room: usize) = cuGraphInstantiate {
        error_node.set_if_wanted(0);
        if room > 0 {
            log.set_if_wanted(0);
        }
        instantiate(out, graph, 0)
    }

    fn cuGraphInstantiateWithParams(out: Out<RawHandle>, graph: RawHandle, parameters: Out<Instantiation>) {
        let given = parameters.get()?;
        let made = instantiate(out, graph, given.flags);
        let result = c_uint::from(made.is_err());
        parameters.set(Instantiation { error_node: 0, result, ..given })?;
        made
    }

    fn cuGraphExecGetFlags(handle: RawHandle, flags: Out<c_ulonglong>) {
        flags.set(executable(state()?, handle)?.flags)
    }

    fn cuGraphUpload | cuGraphUpload_ptsz (handle: RawHandle, stream: RawHandle) {
        let state = state()?;
        executable(state, handle)?;
        chosen(state, stream).map(|_| ())
    }

    fn cuGraphLaunch | cuGraphLaunch_ptsz (handle: RawHandle, stream: RawHandle) {
        let state = state()?;
        let executable = executable(state, handle)?;
        let (context, choice) = chosen(state, stream)?;
        if context.device != executable.context.device {
            return Err(Code::INVALID_VALUE);
        }
        // An update by another thread comes before the launch or after it.
        let mut built = executable.lock();
        let Built { body, id, streams, last } = &mut *built;
        if context.order()?.get()?.is_capturing(&choice) {
            if body.has_one_owner() {
                return Err(Code::NOT_SUPPORTED);
            }
            let child = NodeWork::Child(ChildGraph::new(body.clone()));
            return context.order()?.get()?.record(&choice, child);
        }
        let frees_first = executable.flags & AUTO_FREE != 0;
        if body.has_conditions() {
            let run = ConditionRun { state, context: &context, choice: &choice };
            return last.then(&context, &choice, || run.launch(body, frees_first));
        }
        match (id, streams) {
            (Some(id), _) => last.then(&context, &choice, || {
                context.order()?.get()?.submit(&choice, &Command::Graph(*id))
            }),
            (None, Some(streams)) => streams.launch(state, &context, &choice, body, frees_first),
            (None, None) => Ok(()),
        }
    }

    fn cuGraphExecDestroy(handle: RawHandle) {
        let state = state()?;
        let gone = state.executables.remove(handle).ok_or(Code::INVALID_VALUE)?;
        let mut built = gone.lock();
        // Launches that are queued may still need it, which is allowed. Without its context it is gone already.
        if let (Some(id), Ok(mut order)) = (built.id.take(), gone.context.order()) {
            order.get()?.retire(id);
        }
        if let (Some(event), Ok(mut order)) = (built.last.take(), gone.context.order()) {
            order.get()?.give_back(event);
        }
        if let Some(streams) = &mut built.streams {
            streams.end(&gone.context.driver);
        }
        gone.objects.release_all(state);
        Ok(())
    }
}
