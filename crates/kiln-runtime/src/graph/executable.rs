//! A graph that can be replayed.

use std::fmt;
use std::panic::Location;
use std::sync::{Arc, Weak};

use kiln_driver::{Command, GraphId};
use kiln_order::{Stamp, StreamCount, StreamState, Uses};

use super::builder::GraphBuilder;
use super::edges::Edges;
use super::footprint::Footprint;
use super::host_data::{HostList, Input, Output};
use super::node::{NodeId, Work};
use super::node_list::NodeList;
use crate::buffer::Element;
use crate::error::{Error, GraphError, Misuse, Result, Stale};
use crate::runtime::{Block, Inner, Stream, Ticket, Timed, WorkLabel};
use crate::tracing_span;

/// Recorded work. The [builder](crate::GraphBuilder) has an example.
///
/// Replaying takes `&self` and may be done from any thread; changing takes `&mut self`. The graph holds what it uses and does not hold the
/// device: when the runtime is gone, it says so.
pub struct Graph {
    pub(super) runtime: Weak<Inner>,
    id: u64,
    /// None if there is nothing to do.
    pub(super) native: Option<GraphId>,
    pub(super) nodes: Vec<Work>,
    /// The driver's number of each node; none for one that does nothing.
    pub(super) slots: Vec<Option<u32>>,
    pub(super) hosts: HostList,
    pub(super) edges: Edges,
    pub(super) footprint: Footprint,
    /// The first block that is written; its home is where a replay goes when nothing else is said.
    home: Option<Arc<Block>>,
}

impl Graph {
    /// What was recorded, as the driver built it.
    pub(super) fn new(recorded: GraphBuilder, native: Option<GraphId>, slots: Vec<Option<u32>>) -> Self {
        let GraphBuilder { runtime, nodes, is_queued: _ } = recorded;
        let NodeList { graph: id, works: nodes, hosts, edges, footprint, .. } = nodes;
        let touches = nodes.iter().flat_map(Work::touches);
        let home = touches.filter(|(touch, _)| touch.access.writes()).find_map(|(_, block)| block.cloned());
        if let Some(native) = native {
            runtime.inner().lend(native);
        }
        let runtime = Arc::downgrade(runtime.inner());
        Self { runtime, id, native, nodes, slots, hosts, edges, footprint, home }
    }

    /// Queues everything as one submission, after everything it has to come after, on the home of the first buffer it writes.
    ///
    /// # Errors
    /// If the device is lost; a runtime that is gone.
    #[track_caller]
    pub fn replay(&self) -> Result<Ticket> {
        let runtime = self.runtime()?;
        let _context = runtime.called_from(Location::caller());
        let stamp = self.at_home(&runtime, |lane| self.submit(&runtime, lane))?;
        Ok(Ticket::new(&runtime, stamp))
    }

    /// As [`replay`](Self::replay), on a stream.
    ///
    /// # Errors
    /// As for [`replay`](Self::replay); a stream of another runtime.
    #[track_caller]
    pub fn replay_on(&self, stream: &Stream) -> Result<Ticket> {
        let runtime = self.runtime()?;
        let _context = runtime.called_from(Location::caller());
        if !stream.belongs_to(&runtime) {
            return Err(Misuse::ForeignStream { stream: stream.id().to_string() }.into());
        }
        let stamp = self.submit(&runtime, stream.lane())?;
        Ok(Ticket::new(&runtime, stamp))
    }

    /// As [`replay`](Self::replay), with the device's time for it.
    ///
    /// # Errors
    /// As for [`replay`](Self::replay).
    #[track_caller]
    pub fn replay_timed(&self) -> Result<Timed> {
        let runtime = self.runtime()?;
        let _context = runtime.called_from(Location::caller());
        let mut uses = Uses::new();
        self.footprint.add_uses(&self.hosts, &mut uses);
        self.at_home(&runtime, |lane| {
            runtime.submit_timed(lane, &mut uses, self.native.map(Command::Graph), None, || {
                self.native.and_then(|native| WorkLabel::of(&Command::Graph(native)))
            })
        })
    }

    /// The elements an upload reads, to be changed, once every replay that reads them is done.
    ///
    /// # Errors
    /// An input of another graph; the fault, if the device is lost.
    #[track_caller]
    pub fn input<T: Element>(&mut self, input: &Input<T>) -> Result<&mut [T]> {
        let foreign = GraphError::ForeignHandle { what: "input" };
        if input.node.graph != self.id {
            return Err(foreign.into());
        }
        self.hosts.typed(input.index).ok_or(foreign)?.write()
    }

    /// The elements a download wrote, once every replay is done; zeros before the first one.
    ///
    /// # Errors
    /// An output of another graph; the fault, if the device is lost.
    #[track_caller]
    pub fn output<T: Element>(&mut self, output: &Output<T>) -> Result<&[T]> {
        let foreign = GraphError::ForeignHandle { what: "output" };
        if output.node.graph != self.id {
            return Err(foreign.into());
        }
        self.hosts.typed(output.index).ok_or(foreign)?.read()
    }

    /// Nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The edges as (before, after), nodes counted from 0 in the order of recording. An edge that others imply is not among them.
    pub fn edges(&self) -> impl Iterator<Item = (u32, u32)> {
        self.edges.iter()
    }

    pub(super) fn runtime(&self) -> Result<Arc<Inner>> {
        self.runtime.upgrade().ok_or_else(|| Error::new(Stale::DeviceDropped))
    }

    pub(super) fn check_node(&self, node: NodeId) -> Result<usize> {
        if node.graph == self.id {
            Ok(node.index as usize)
        } else {
            Err(GraphError::ForeignHandle { what: "node" }.into())
        }
    }

    /// Does something on the home of the first buffer it writes.
    #[inline]
    fn at_home<R>(&self, runtime: &Inner, mut run: impl FnMut(&StreamState) -> Result<R>) -> Result<R> {
        match &self.home {
            Some(block) => block.at_home(runtime, run),
            None => run(runtime.main_stream().lane()),
        }
    }

    /// The ticket is the caller's to make, of the very hold on the runtime it has already.
    fn submit(&self, runtime: &Inner, lane: &StreamState) -> Result<Stamp> {
        let Some(native) = self.native else {
            return Ok(Stamp { stream: lane.key, number: 0 });
        };
        if tracing_span::is_submission_heard() {
            self.submit_heard(runtime, lane, native)
        } else {
            self.queue(runtime, lane, native)
        }
    }

    #[cold]
    #[inline(never)]
    fn submit_heard(&self, runtime: &Inner, lane: &StreamState, native: GraphId) -> Result<Stamp> {
        let _span = tracing_span::submission(lane.stream, Command::Graph(native).name());
        self.queue(runtime, lane, native)
    }

    #[inline(always)]
    fn queue(&self, runtime: &Inner, lane: &StreamState, native: GraphId) -> Result<Stamp> {
        let mut uses = Uses::new();
        self.footprint.add_uses(&self.hosts, &mut uses);
        let label = || WorkLabel::of(&Command::Graph(native));
        runtime.submit_as(lane, &mut uses, label, |driver, stream| {
            driver.submit(stream, &Command::Graph(native))?;
            lane.counters().add_entered(StreamCount::Replays, 1);
            Ok(())
        })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // A runtime that is gone has taken its graphs along.
        if let (Some(runtime), Some(native)) = (self.runtime.upgrade(), self.native.take()) {
            runtime.retire(native);
        }
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "graph of {} nodes and {} edges", self.nodes.len(), self.edges.iter().count())
    }
}
