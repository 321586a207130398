//! Records a kernel launch as a node of a graph.

use kiln_driver::Vouched;

use super::builder::GraphBuilder;
use super::node::{NodeId, Work};
use super::node_list::NodeList;
use crate::error::Result;
use crate::launch::{Kept, Kernel, Launch};

/// The target of a launch that becomes a node of a graph. There is no stream to choose: a graph runs on the one it is replayed on.
pub struct IntoGraph<'a> {
    nodes: &'a mut NodeList,
}

impl GraphBuilder {
    /// Begins a launch; [`record`](Launch::record) ends it.
    pub fn launch<'a>(&'a mut self, kernel: &'a Kernel) -> Launch<'a, IntoGraph<'a>> {
        let target = IntoGraph { nodes: &mut self.nodes };
        Launch::new(self.runtime.inner(), kernel, target, Kept::in_graph(kernel))
    }
}

impl Launch<'_, IntoGraph<'_>> {
    /// Makes the launch a node of the graph.
    ///
    /// # Safety
    /// The kernel comes from outside. Run with these arguments and this shape, at each replay, it reads and writes only inside the
    /// buffers given, as declared, or its own memory; it ends.
    ///
    /// # Errors
    /// What does not fit; the graph is unchanged.
    pub unsafe fn record(&mut self) -> Result<NodeId> {
        let template = self.template()?;
        // SAFETY: the caller says of the kernel what this asks; that the arguments have the layout of the parameters was checked as each
        // was given, where the layout is known; the node holds the memory, and each replay stamps it.
        let vouched = unsafe { Vouched::new() };
        Ok(self.target_mut().nodes.push(Work::Launch { template, vouched }))
    }
}
