//! `GraphBuilder`: records copies, fills and launches as nodes of a graph.

use std::sync::atomic::{AtomicU64, Ordering};

use kiln_driver::{GraphId, GraphNode};
use kiln_mem::{AllocTag, MemoryResourceExt};

use super::executable::Graph;
use super::host_data::{Input, Output};
use super::node::{NodeId, Work};
use super::node_list::NodeList;
use crate::buffer::{Element, GpuRef, PinnedBuffer, pattern};
use crate::counters::Count;
use crate::error::{Error, GraphError, Misuse, Result};
use crate::runtime::{DeviceRuntime, Inner};
use crate::tracing_span;

/// Separate ranges of memory one graph may use: each is locked for a moment when it is replayed.
pub(super) const MAX_RANGES: usize = 4096;

/// Work being recorded. Nothing runs until the graph it becomes is replayed.
///
/// Nodes are ordered by what they do to which bytes, whatever the order of recording would allow besides.
///
/// ```
/// # let gpu = kiln::DeviceRuntime::simulated(1)?;
/// let (a, b) = (gpu.zeros::<u32>(8)?, gpu.zeros::<u32>(8)?);
/// let mut builder = gpu.graph();
/// builder.fill(&a, 7)?;
/// builder.copy(&a, &b)?;
/// let graph = builder.build()?;
/// assert_eq!(graph.edges().collect::<Vec<_>>(), [(0, 1)]);
/// graph.replay()?;
/// assert_eq!(b.download()?, [7; 8]);
/// # Ok::<(), kiln::Error>(())
/// ```
#[must_use = "nothing is recorded until `build`"]
pub struct GraphBuilder {
    pub(super) runtime: DeviceRuntime,
    pub(super) nodes: NodeList,
    /// Whether some of it was queued already.
    pub(super) is_queued: bool,
}

impl DeviceRuntime {
    /// Begins to record a graph.
    pub fn graph(&self) -> GraphBuilder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        GraphBuilder {
            runtime: self.clone(),
            nodes: NodeList::of_graph(NEXT.fetch_add(1, Ordering::Relaxed)),
            is_queued: false,
        }
    }

    /// Records what a function does with a builder, and builds the graph. What the function returns (nodes, inputs, outputs) comes
    /// along.
    ///
    /// # Errors
    /// What the function answers; as for [`GraphBuilder::build`].
    pub fn record<R>(&self, work: impl FnOnce(&mut GraphBuilder) -> Result<R>) -> Result<(Graph, R)> {
        let mut builder = self.graph();
        let result = work(&mut builder)?;
        Ok((builder.build()?, result))
    }
}

impl GraphBuilder {
    /// Records a copy of all elements from one buffer to another.
    ///
    /// # Errors
    /// If the lengths differ, the buffers overlap, or one belongs to another runtime.
    pub fn copy<T: Element>(&mut self, from: &GpuRef<T>, to: &GpuRef<T>) -> Result<NodeId> {
        let work = copy_work(self.runtime.inner(), from, to)?;
        Ok(self.nodes.push(work))
    }

    /// Records that every element is set to a value.
    ///
    /// # Errors
    /// A buffer of another runtime; out of pinned memory, for a value that no device can fill with by itself.
    pub fn fill<T: Element>(&mut self, to: &GpuRef<T>, value: T) -> Result<NodeId> {
        to.check_runtime(self.runtime.inner())?;
        let Some(held) = to.held() else { return Ok(self.nodes.push(Work::Nothing)) };
        let work = match pattern(bytemuck::bytes_of(&value)) {
            Some(pattern) => Work::Fill { to: held, pattern },
            None => {
                let mut data = self.runtime.pinned_uninit(to.len())?;
                data.write()?.fill(value);
                Work::Repeat { host: self.nodes.hosts.push(data), to: held }
            }
        };
        Ok(self.nodes.push(work))
    }

    /// Records an upload. The data is copied now, to pinned memory of the graph; [`Graph::input`] changes it between replays.
    ///
    /// # Errors
    /// If the lengths differ; a buffer of another runtime; out of pinned memory.
    pub fn upload<T: Element>(&mut self, to: &GpuRef<T>, data: &[T]) -> Result<Input<T>> {
        check_len(to, data.len())?;
        let mut pinned = self.runtime.pinned_uninit(data.len())?;
        pinned.write()?.copy_from_slice(data);
        self.upload_pinned(to, pinned)
    }

    /// Records an upload of pinned data, which the graph takes over; [`Graph::input`] changes it between replays.
    ///
    /// # Errors
    /// If the lengths differ; a buffer of another runtime.
    pub fn upload_pinned<T: Element>(&mut self, to: &GpuRef<T>, data: PinnedBuffer<T>) -> Result<Input<T>> {
        check_len(to, data.len())?;
        to.check_runtime(self.runtime.inner())?;
        data.check_runtime(self.runtime.inner())?;
        let host = self.nodes.hosts.push(data);
        let work = to.held().map_or(Work::Nothing, |to| Work::Upload { host, to });
        Ok(Input::new(self.nodes.push(work), host))
    }

    /// Records a download into pinned memory of the graph; [`Graph::output`] reads it after a replay.
    ///
    /// # Errors
    /// A buffer of another runtime; out of pinned memory.
    pub fn download<T: Element>(&mut self, from: &GpuRef<T>) -> Result<Output<T>> {
        from.check_runtime(self.runtime.inner())?;
        let host = self.nodes.hosts.push(self.runtime.pinned::<T>(from.len())?);
        let work = from.held().map_or(Work::Nothing, |from| Work::Download { from, host });
        Ok(Output::new(self.nodes.push(work), host))
    }

    /// Memory for the graph's own use, with nothing known of its contents. Its address stays while a node uses it, and it is freed
    /// with the graph.
    ///
    /// # Errors
    /// Out of memory.
    pub fn scratch<T: Element>(&mut self, len: usize) -> Result<GpuRef<T>> {
        let tag = AllocTag::new("graph").unwrap_or_default();
        self.runtime.allocate_tagged(self.runtime.main_stream(), len, tag)
    }

    /// Nodes recorded so far.
    pub fn len(&self) -> usize {
        self.nodes.works.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.nodes.works.is_empty()
    }

    /// Builds the graph. A graph of nothing is one, and its replays do nothing.
    ///
    /// # Errors
    /// More ranges of memory than one submission may use; what the driver says.
    pub fn build(mut self) -> Result<Graph> {
        self.nodes.footprint.merge_all();
        let ranges = self.nodes.footprint.span_count();
        if ranges > MAX_RANGES {
            return Err(GraphError::TooManyRanges { ranges, limit: MAX_RANGES }.into());
        }
        // Nodes that do nothing are left out, so the driver counts the others alone. Nothing is ordered after such a node.
        let mut slots: Vec<Option<u32>> = Vec::with_capacity(self.nodes.works.len());
        let mut listed = Vec::with_capacity(self.nodes.works.len());
        let mut edges = 0_usize;
        let rules = self.runtime.inner().tracker().rules();
        for (at, work) in self.nodes.works.iter().enumerate() {
            let Some(command) = work.command(&self.nodes.hosts) else {
                slots.push(None);
                continue;
            };
            let mut after: Vec<u32> = Vec::with_capacity(self.nodes.edges.of(at).len());
            for before in self.nodes.edges.of(at) {
                if rules.has_graph_edge(edges) {
                    after.extend(slots.get(*before as usize).copied().flatten());
                }
                edges += 1;
            }
            slots.push(Some(listed.len() as u32));
            listed.push((command, after));
        }
        let nodes: Vec<GraphNode<'_>> =
            listed.iter().map(|(command, after)| GraphNode { command: *command, after }).collect();
        let _span = tracing_span::graph(nodes.len(), edges);
        let native = if nodes.is_empty() { None } else { Some(self.instantiate(&nodes)?) };
        self.runtime.inner().counters().add(Count::GraphsBuilt, u64::from(native.is_some()));
        drop(listed);
        Ok(Graph::new(self, native, slots))
    }

    /// Has the driver build the graph. It keeps graphs in device memory that is not the runtime's; where it finds none, the runtime gives
    /// back what is not used, and asks once more.
    fn instantiate(&self, nodes: &[GraphNode<'_>]) -> Result<GraphId> {
        let driver = self.runtime.driver();
        match driver.build_graph(nodes) {
            Err(error) if error.is_oom() => {
                self.runtime.reap_pending()?;
                self.runtime.memory().trim()?;
                Ok(driver.build_graph(nodes)?)
            }
            built => Ok(built?),
        }
    }

    /// The runtime whose work it records.
    pub fn runtime(&self) -> &DeviceRuntime {
        &self.runtime
    }
}

impl std::fmt::Debug for GraphBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "graph of {} nodes, being recorded", self.nodes.works.len())
    }
}

/// A copy between device buffers, checked.
pub(super) fn copy_work<T: Element>(runtime: &Inner, from: &GpuRef<T>, to: &GpuRef<T>) -> Result<Work> {
    from.check_runtime(runtime)?;
    to.check_runtime(runtime)?;
    check_len(to, from.len())?;
    match from.held().zip(to.held()) {
        Some((from, to)) if from.overlaps(&to) => Err(Misuse::CopyOverlap.into()),
        Some((from, to)) => Ok(Work::Copy { from, to }),
        None => Ok(Work::Nothing),
    }
}

fn check_len<T: Element>(buffer: &GpuRef<T>, given: usize) -> Result<()> {
    if buffer.len() == given {
        Ok(())
    } else {
        Err(Error::new(Misuse::Length { buffer: buffer.len(), given }))
    }
}
