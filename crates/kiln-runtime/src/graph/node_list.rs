//! The nodes of a graph being recorded, with the edges between them.

use super::edges::Edges;
use super::footprint::Footprint;
use super::hazards::Hazards;
use super::host_data::HostList;
use super::node::{NodeId, Work};
use super::node_access::Touch;

/// Nodes in the order of recording. Each new node gets edges from the earlier nodes it conflicts with.
#[derive(Default)]
pub(crate) struct NodeList {
    pub(super) graph: u64,
    pub(super) works: Vec<Work>,
    pub(super) hosts: HostList,
    pub(super) edges: Edges,
    pub(super) footprint: Footprint,
    hazards: Hazards,
}

impl NodeList {
    /// The empty list of a graph.
    pub(super) fn of_graph(graph: u64) -> Self {
        Self { graph, ..Self::default() }
    }

    /// Adds a node.
    pub(super) fn push(&mut self, work: Work) -> NodeId {
        let index = self.works.len() as u32;
        let touches = work.touches();
        let plain: Vec<Touch> = touches.iter().map(|(touch, _)| touch.clone()).collect();
        self.edges.push(self.hazards.add(index, &plain));
        for (touch, block) in touches {
            self.footprint.add(index, touch, block);
        }
        self.works.push(work);
        NodeId { graph: self.graph, index }
    }
}
