//! Edges of a graph: added, removed and listed.

use crate::boundary::Answer;
use crate::caller_memory::{In, Out};
use crate::calls::graph_body::GraphBody;
use crate::calls::graphs::{Graph, graph, node, write_list};
use crate::calls::process_state::{ProcessState, state};
use crate::handle_table::RawHandle;
use crate::records;
use kiln_driver::Code;

/// The structure `CUgraphEdgeData`: an edge to a part of a kernel has numbers other than zero.
type EdgeData = [u8; 8];

/// Changes edges of a graph: all, or none if one is wrong.
fn change(
    handle: RawHandle,
    (from, to, data): (In<RawHandle>, In<RawHandle>, In<EdgeData>),
    count: usize,
    change: impl Fn(&mut GraphBody, u32, u32) -> Answer,
) -> Answer {
    let state = state()?;
    let graph = graph(state, handle)?;
    let mut body = graph.body();
    let mut changed = body.clone();
    let number = |list: In<RawHandle>, index: usize| {
        let node = state.graph_nodes.get(list.at(index)?).filter(|node| node.graph == handle);
        node.map(|node| node.number).ok_or(Code::INVALID_VALUE)
    };
    for index in 0..count {
        if !data.is_null() && data.at(index)? != EdgeData::default() {
            records::note_once(
                "edge data",
                "an edge of a graph has data, for a launch that depends on a part of another; kiln has none",
            );
            return Err(Code::NOT_SUPPORTED);
        }
        change(&mut changed, number(from, index)?, number(to, index)?)?;
    }
    *body = changed;
    Ok(())
}

/// Takes an edge away; the order of memory nodes stays.
fn disconnect(body: &mut GraphBody, from: u32, to: u32) -> Answer {
    if body.has_memory() { Err(Code::NOT_SUPPORTED) } else { body.disconnect(from, to) }
}

/// Lists all edges of a graph.
fn list_edges(
    handle: RawHandle,
    (from, to, data): (Out<RawHandle>, Out<RawHandle>, Out<EdgeData>),
    count: Out<usize>,
) -> Answer {
    let state = state()?;
    let graph = graph(state, handle)?;
    count.check()?;
    let edges = graph.body().edges();
    if from.check().is_err() || to.check().is_err() {
        return count.set(edges.len());
    }
    let room = count.get()?;
    for index in 0..room {
        let handle_of =
            |number: Option<u32>| number.map_or(Ok(0), |number| graph.handle(state, handle, number));
        from.set_at(index, handle_of(edges.get(index).map(|edge| edge.0))?)?;
        to.set_at(index, handle_of(edges.get(index).map(|edge| edge.1))?)?;
        if data.check().is_ok() {
            data.set_at(index, EdgeData::default())?;
        }
    }
    count.set(room.min(edges.len()))
}

/// Lists nodes beside a node.
fn beside(
    handle: RawHandle,
    (out, data): (Out<RawHandle>, Out<EdgeData>),
    count: Out<usize>,
    select: impl Fn(&GraphBody, u32) -> Vec<u32>,
) -> Answer {
    let state = state()?;
    let (graph, node) = node(state, handle)?;
    count.check()?;
    let numbers = select(&graph.body(), node.number);
    let handles = handles(state, &graph, node.graph, &numbers)?;
    if data.check().is_ok() && out.check().is_ok() {
        for index in 0..count.get()? {
            data.set_at(index, EdgeData::default())?;
        }
    }
    write_list(&handles, out, count)
}

fn handles(state: &ProcessState, graph: &Graph, ours: RawHandle, numbers: &[u32]) -> Answer<Vec<RawHandle>> {
    numbers.iter().map(|number| graph.handle(state, ours, *number)).collect()
}

fn before(body: &GraphBody, number: u32) -> Vec<u32> {
    body.get(number).map(|node| node.after.clone()).unwrap_or_default()
}

fn behind(body: &GraphBody, number: u32) -> Vec<u32> {
    body.nodes().filter(|(_, node)| node.after.contains(&number)).map(|(other, _)| other).collect()
}

fn no_data<T: Copy>() -> Out<T> {
    Out::at(std::ptr::null_mut())
}

driver_api! {
    fn cuGraphAddDependencies(graph: RawHandle, from: In<RawHandle>, to: In<RawHandle>, count: usize) {
        change(graph, (from, to, In::null()), count, GraphBody::connect)
    }

    fn cuGraphAddDependencies_v2(graph: RawHandle, from: In<RawHandle>, to: In<RawHandle>, data: In<EdgeData>, count: usize) {
        change(graph, (from, to, data), count, GraphBody::connect)
    }

    fn cuGraphRemoveDependencies(graph: RawHandle, from: In<RawHandle>, to: In<RawHandle>, count: usize) {
        change(graph, (from, to, In::null()), count, disconnect)
    }

    fn cuGraphRemoveDependencies_v2(graph: RawHandle, from: In<RawHandle>, to: In<RawHandle>, data: In<EdgeData>, count: usize) {
        change(graph, (from, to, data), count, disconnect)
    }

    fn cuGraphGetEdges(graph: RawHandle, from: Out<RawHandle>, to: Out<RawHandle>, count: Out<usize>) {
        list_edges(graph, (from, to, no_data()), count)
    }

    fn cuGraphGetEdges_v2(graph: RawHandle, from: Out<RawHandle>, to: Out<RawHandle>, data: Out<EdgeData>, count: Out<usize>) {
        list_edges(graph, (from, to, data), count)
    }

    fn cuGraphNodeGetDependencies(node: RawHandle, out: Out<RawHandle>, count: Out<usize>) {
        beside(node, (out, no_data()), count, before)
    }

    fn cuGraphNodeGetDependencies_v2(node: RawHandle, out: Out<RawHandle>, data: Out<EdgeData>, count: Out<usize>) {
        beside(node, (out, data), count, before)
    }

    fn cuGraphNodeGetDependentNodes(node: RawHandle, out: Out<RawHandle>, count: Out<usize>) {
        beside(node, (out, no_data()), count, behind)
    }

    fn cuGraphNodeGetDependentNodes_v2(node: RawHandle, out: Out<RawHandle>, data: Out<EdgeData>, count: Out<usize>) {
        beside(node, (out, data), count, behind)
    }
}
