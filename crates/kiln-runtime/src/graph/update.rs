//! Nodes changed in place.
//!
//! The edges of a graph are fixed when it is built. A node may be given other buffers as long as every node it then shares bytes with is
//! ordered against it already, directly or through others. All of that is checked before the driver hears of the change.

use std::sync::Arc;

use kiln_driver::{Access, Dim3, Vouched};

use super::builder::{MAX_RANGES, copy_work};
use super::executable::Graph;
use super::node::{NodeId, Work};
use super::node_access::{Owner, Touch};
use crate::buffer::{Element, GpuRef, pattern};
use crate::counters::Count;
use crate::error::{Error, GraphError, Result};
use crate::launch::LaunchTemplate;
use crate::runtime::Inner;
use crate::tensor::DeviceTensorMap;

impl Graph {
    /// Begins to change a launch: what is not named stays. [`apply`](LaunchUpdate::apply) ends it.
    ///
    /// # Errors
    /// A node of another graph, or one that is no launch.
    pub fn update(&mut self, node: NodeId) -> Result<LaunchUpdate<'_>> {
        let index = self.check_node(node)?;
        let runtime = self.runtime()?;
        match &self.nodes[index] {
            Work::Launch { template, .. } => {
                let template = template.clone();
                Ok(LaunchUpdate { graph: self, runtime, index, template, wrong: None })
            }
            other => Err(kind(index, other, "a launch")),
        }
    }

    /// Makes a copy node copy between other buffers, of any length.
    ///
    /// # Errors
    /// As for [`GraphBuilder::copy`](crate::GraphBuilder::copy); a node that is no copy; buffers that would need an edge the graph does
    /// not have.
    pub fn update_copy<T: Element>(&mut self, node: NodeId, from: &GpuRef<T>, to: &GpuRef<T>) -> Result<()> {
        let index = self.check_node(node)?;
        let runtime = self.runtime()?;
        let work = copy_work(&runtime, from, to)?;
        match (&self.nodes[index], &work) {
            (Work::Copy { .. }, Work::Copy { .. }) => self.change(&runtime, index, work),
            (Work::Copy { .. } | Work::Nothing, _) => Err(GraphError::Empty { node: node.index }.into()),
            (other, _) => Err(kind(index, other, "a copy")),
        }
    }

    /// Makes a fill node write another value, or fill another buffer.
    ///
    /// # Errors
    /// A node that is no fill; a value of another size where the device cannot fill with it by itself; a buffer that would need an edge
    /// the graph does not have.
    pub fn update_fill<T: Element>(&mut self, node: NodeId, to: &GpuRef<T>, value: T) -> Result<()> {
        let index = self.check_node(node)?;
        let runtime = self.runtime()?;
        to.check_runtime(&runtime)?;
        let empty = || Error::new(GraphError::Empty { node: node.index });
        let held = to.held();
        match (&self.nodes[index], pattern(bytemuck::bytes_of(&value))) {
            (Work::Fill { .. }, Some(pattern)) => {
                let to = held.ok_or_else(empty)?;
                self.change(&runtime, index, Work::Fill { to, pattern })
            }
            (Work::Repeat { host, to: old }, _) => {
                let (host, to) = (*host, held.ok_or_else(empty)?);
                let fits = old.bytes() == to.bytes() && self.hosts.typed::<T>(host).is_some();
                if !fits {
                    return Err(kind(
                        index,
                        &self.nodes[index],
                        "a fill of elements of another type or number",
                    ));
                }
                self.change(&runtime, index, Work::Repeat { host, to })?;
                // Only this node reads the data, and replays that do are done when it can be written.
                if let Some(data) = self.hosts.typed::<T>(host) {
                    data.write()?.fill(value);
                }
                Ok(())
            }
            (Work::Nothing, _) => Err(empty()),
            (other, _) => Err(kind(index, other, "a fill of another kind")),
        }
    }

    /// Replaces what a node does, if every node it then shares bytes with is ordered against it.
    fn change(&mut self, runtime: &Arc<Inner>, index: usize, work: Work) -> Result<()> {
        let node = index as u32;
        let old: Vec<Touch> = self.nodes[index].touches().into_iter().map(|(touch, _)| touch).collect();
        let new = work.touches();
        let moves = new.iter().map(|(touch, _)| touch).ne(&old);
        if moves {
            self.check_ordered(index, new.iter().map(|(touch, _)| touch))?;
            self.check_spans(new.len())?;
        }
        let (native, slot, command) = (self.native, self.slots[index], work.command(&self.hosts));
        let ((Some(native), Some(slot)), Some(command)) = (native.zip(slot).unzip(), command) else {
            return Err(GraphError::Empty { node }.into());
        };
        runtime.driver().update_graph(native, slot, &command)?;
        runtime.counters().add(Count::GraphUpdates, 1);
        if moves {
            let mut owners: Vec<Owner> = old.iter().map(|touch| touch.owner).collect();
            owners.iter().for_each(|owner| self.footprint.remove(node, *owner));
            for (touch, block) in new {
                owners.push(touch.owner);
                self.footprint.add(node, touch, block);
            }
            owners.into_iter().for_each(|owner| self.footprint.merge(owner));
        }
        self.nodes[index] = work;
        Ok(())
    }

    fn check_ordered<'a>(&self, index: usize, mut touches: impl Iterator<Item = &'a Touch>) -> Result<()> {
        let ordered = self.edges.ordered_with(index);
        let is_ordered = |other: u32| ordered.get(other as usize).copied().unwrap_or(false);
        let conflict =
            |touch: &'a Touch| Some((self.footprint.conflict(index as u32, touch, is_ordered)?, touch.owner));
        match touches.find_map(conflict) {
            None => Ok(()),
            Some((other, owner)) => {
                let owner = match owner {
                    Owner::Device(block) => block.to_string(),
                    Owner::Host(place) => format!("host data {place}"),
                };
                Err(GraphError::Unordered { node: index as u32, other, owner }.into())
            }
        }
    }

    /// Refuses what may leave too many ranges: a touch cuts one in three at the most.
    fn check_spans(&self, new: usize) -> Result<()> {
        let ranges = self.footprint.span_count() + 2 * new;
        if ranges <= MAX_RANGES {
            Ok(())
        } else {
            Err(GraphError::TooManyRanges { ranges, limit: MAX_RANGES }.into())
        }
    }
}

/// A launch of a graph being changed: other values, buffers or sizes, by the place of the argument. What is not named stays.
#[must_use = "the graph is unchanged until `apply`"]
pub struct LaunchUpdate<'a> {
    graph: &'a mut Graph,
    runtime: Arc<Inner>,
    index: usize,
    template: LaunchTemplate,
    wrong: Option<Error>,
}

impl LaunchUpdate<'_> {
    /// Blocks in the grid.
    pub fn grid(&mut self, grid: impl Into<Dim3>) -> &mut Self {
        self.template.set_grid(grid.into());
        self
    }

    /// A number of threads in one dimension, as for [`Launch::threads`](crate::Launch::threads); the block stays as it is.
    pub fn threads(&mut self, count: u64) -> &mut Self {
        self.template.set_threads(count);
        self
    }

    /// Threads in a block.
    pub fn block(&mut self, block: impl Into<Dim3>) -> &mut Self {
        self.template.set_block(block.into());
        self
    }

    /// Dynamic shared memory.
    pub fn shared(&mut self, bytes: u32) -> &mut Self {
        self.template.set_shared(bytes);
        self
    }

    /// Argument `index`, counted from 0: a value.
    pub fn value<T: Element>(&mut self, index: usize, value: T) -> &mut Self {
        let replaced = self.template.replace_value(index, value);
        self.note(replaced)
    }

    /// Argument `index`: a buffer the kernel reads.
    pub fn read<T: Element>(&mut self, index: usize, buffer: &GpuRef<T>) -> &mut Self {
        self.buffer(index, buffer, Access::Read)
    }

    /// Argument `index`: a buffer the kernel overwrites.
    pub fn write<T: Element>(&mut self, index: usize, buffer: &GpuRef<T>) -> &mut Self {
        self.buffer(index, buffer, Access::Write)
    }

    /// Argument `index`: a buffer the kernel reads and writes.
    pub fn read_write<T: Element>(&mut self, index: usize, buffer: &GpuRef<T>) -> &mut Self {
        self.buffer(index, buffer, Access::ReadWrite)
    }

    /// Argument `index`: a tensor map of a buffer the kernel reads.
    pub fn read_map(&mut self, index: usize, map: &DeviceTensorMap) -> &mut Self {
        self.map(index, map, Access::Read)
    }

    /// Argument `index`: a tensor map of a buffer the kernel writes.
    pub fn write_map(&mut self, index: usize, map: &DeviceTensorMap) -> &mut Self {
        self.map(index, map, Access::ReadWrite)
    }

    /// Makes the change. Replays queued before keep what they had.
    ///
    /// # Safety
    /// As for [`Launch::record`](crate::Launch::record), with the arguments and the shape as they are then.
    ///
    /// # Errors
    /// What does not fit; buffers that would need an edge the graph does not have. The graph is as it was.
    pub unsafe fn apply(&mut self) -> Result<()> {
        if let Some(wrong) = self.wrong.take() {
            return Err(wrong);
        }
        self.template.check(&self.runtime)?;
        // SAFETY: as when it was recorded: the caller vouches for the kernel with these arguments, the layout was checked, and the node
        // holds the memory.
        let vouched = unsafe { Vouched::new() };
        let work = Work::Launch { template: self.template.clone(), vouched };
        self.graph.change(&self.runtime, self.index, work)
    }

    fn buffer<T: Element>(&mut self, index: usize, buffer: &GpuRef<T>, access: Access) -> &mut Self {
        let replaced = self.template.replace_buffer(&self.runtime, index, buffer, access);
        self.note(replaced)
    }

    fn map(&mut self, index: usize, map: &DeviceTensorMap, access: Access) -> &mut Self {
        let replaced = self.template.replace_map(&self.runtime, index, map, access);
        self.note(replaced)
    }

    fn note(&mut self, result: Result<()>) -> &mut Self {
        if let Err(error) = result {
            self.wrong.get_or_insert(error);
        }
        self
    }
}

fn kind(index: usize, work: &Work, wanted: &'static str) -> Error {
    GraphError::Kind { node: index as u32, is: work.name(), wanted }.into()
}
