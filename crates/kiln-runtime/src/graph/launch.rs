//! A launch being recorded.

use kiln_driver::{Access, Dim3, Vouched};

use super::builder::GraphBuilder;
use super::node::{NodeId, Work};
use crate::buffer::{Element, GpuRef};
use crate::error::{Error, Result};
use crate::launch::{Accept, Kernel, LaunchTemplate, Pass};

/// A launch being recorded: shape, arguments in the order of the parameters, then [`record`](Self::record).
///
/// The calls and the checks are those of a [`Launch`](crate::Launch). There is no stream to choose: a graph runs on the one it is
/// replayed on.
#[must_use = "a launch is not part of the graph until it is recorded"]
pub struct GraphLaunch<'a> {
    builder: &'a mut GraphBuilder,
    template: LaunchTemplate,
    wrong: Option<Error>,
}

impl<'a> GraphLaunch<'a> {
    pub(super) fn new(builder: &'a mut GraphBuilder, kernel: &Kernel) -> Self {
        Self { builder, template: LaunchTemplate::new(kernel), wrong: None }
    }

    /// Blocks in the grid.
    pub fn grid(&mut self, grid: impl Into<Dim3>) -> &mut Self {
        self.template.set_grid(grid.into());
        self
    }

    /// Threads in a block.
    pub fn block(&mut self, block: impl Into<Dim3>) -> &mut Self {
        self.template.set_block(block.into());
        self
    }

    /// Blocks in a cluster.
    pub fn cluster(&mut self, cluster: impl Into<Dim3>) -> &mut Self {
        self.template.set_cluster(cluster.into());
        self
    }

    /// Dynamic shared memory; what lies beyond the usual limit is opted in to.
    pub fn shared(&mut self, bytes: u32) -> &mut Self {
        self.template.set_shared(bytes);
        self
    }

    /// Asks that all blocks are resident at once, so that they may wait for each other.
    pub fn cooperative(&mut self) -> &mut Self {
        self.template.set_cooperative();
        self
    }

    /// The next argument: a value.
    pub fn value<T: Element>(&mut self, value: T) -> &mut Self {
        let pushed = self.template.push_value(value);
        self.note(pushed)
    }

    /// The next argument: a buffer the kernel reads.
    pub fn read<T: Element>(&mut self, buffer: &GpuRef<T>) -> &mut Self {
        self.buffer(buffer, Access::Read)
    }

    /// The next argument: a buffer the kernel overwrites.
    pub fn write<T: Element>(&mut self, buffer: &GpuRef<T>) -> &mut Self {
        self.buffer(buffer, Access::Write)
    }

    /// The next argument: a buffer the kernel reads and writes.
    pub fn read_write<T: Element>(&mut self, buffer: &GpuRef<T>) -> &mut Self {
        self.buffer(buffer, Access::ReadWrite)
    }

    /// The next arguments, several at once.
    pub fn pass<'b>(&mut self, arguments: impl Pass<'b>) -> &mut Self {
        arguments.pass(self);
        self
    }

    /// Makes the launch a node of the graph.
    ///
    /// # Safety
    /// The kernel comes from outside. Run with these arguments and this shape, at each replay, it reads and writes only inside the
    /// buffers given, as declared, or memory of its own; it ends.
    ///
    /// # Errors
    /// What does not fit; the graph is as it was.
    pub unsafe fn record(&mut self) -> Result<NodeId> {
        if let Some(wrong) = self.wrong.take() {
            return Err(wrong);
        }
        self.template.check(self.builder.runtime().inner())?;
        // SAFETY: the caller says of the kernel what this asks; that the arguments have the layout of the parameters was checked as each
        // was given, where the layout is known; the node holds the memory, and each replay stamps it.
        let vouched = unsafe { Vouched::new() };
        Ok(self.builder.push(Work::Launch { template: self.template.clone(), vouched }))
    }

    fn buffer<T: Element>(&mut self, buffer: &GpuRef<T>, access: Access) -> &mut Self {
        let pushed = self.template.push_buffer(self.builder.runtime().inner(), buffer, access);
        self.note(pushed)
    }

    /// The first thing that does not fit is what `record` answers.
    fn note(&mut self, result: Result<()>) -> &mut Self {
        if let Err(error) = result {
            self.wrong.get_or_insert(error);
        }
        self
    }
}

impl<'b> Accept<'b> for GraphLaunch<'_> {
    fn accept_value<T: Element>(&mut self, value: T) {
        self.value(value);
    }

    fn accept_buffer<T: Element>(&mut self, buffer: &'b GpuRef<T>, access: Access) {
        self.buffer(buffer, access);
    }
}
