//! Recorded work run once, without a graph: the commands go to a stream in the order of recording, as one submission.

use std::cell::Cell;
use std::panic::Location;

use kiln_driver::{Driver, StreamId};
use kiln_order::{StreamState, Uses};
use kiln_trace::{KnownName, SubmissionKind, interned_name};

use super::builder::{GraphBuilder, MAX_RANGES};
use super::host_data::Output;
use super::node::{NodeId, Work};
use crate::buffer::{BlockRange, Element};
use crate::error::{GraphError, Result};
use crate::runtime::{Ticket, Timed, WorkLabel};
use crate::tracing_span;

/// Work of some nodes, which can be recorded again.
pub struct RecordedWork(Vec<Work>);

impl RecordedWork {
    /// How many commands it is.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What the sequences of `kiln-program` are made of.
#[doc(hidden)]
impl GraphBuilder {
    /// Queues everything recorded so far as one submission.
    #[track_caller]
    pub fn submit_once(&mut self) -> Result<Ticket> {
        let _context = self.runtime.inner().called_from(Location::caller());
        self.settle()?;
        let (lane, queued) = (self.home(), Cell::new(false));
        let mut uses = Uses::new();
        self.nodes.footprint.add_uses_once(&self.nodes.hosts, &mut uses);
        let submitted = {
            let _span = tracing_span::submission(lane.stream, "sequence");
            let work = |driver: &dyn Driver, stream| self.queue(driver, stream, lane, &queued);
            self.runtime.inner().submit_as(lane, &mut uses, || Some(self.label()), work)
        };
        self.is_queued |= queued.get();
        let stamp = submitted?;
        self.note_overwritten();
        Ok(Ticket::new(self.runtime.inner(), stamp))
    }

    /// As [`submit_once`](Self::submit_once), with the device's time for it.
    #[track_caller]
    pub fn submit_once_timed(&mut self) -> Result<Timed> {
        let _context = self.runtime.inner().called_from(Location::caller());
        self.settle()?;
        let (lane, queued) = (self.home(), Cell::new(false));
        let mut uses = Uses::new();
        self.nodes.footprint.add_uses_once(&self.nodes.hosts, &mut uses);
        let work = |driver: &dyn Driver, stream| self.queue(driver, stream, lane, &queued);
        let submitted = self.runtime.inner().submit_work_timed(lane, &mut uses, || Some(self.label()), work);
        self.is_queued |= queued.get();
        let timed = submitted?;
        self.note_overwritten();
        Ok(timed)
    }

    /// The work of some nodes, to be recorded again. Host data belongs to its builder, so nodes that copy it stay behind.
    pub fn works(&self, nodes: &[NodeId]) -> RecordedWork {
        let work = |node: &NodeId| self.nodes.works.get(node.index as usize).cloned();
        RecordedWork(nodes.iter().filter(|node| node.graph == self.nodes.graph).filter_map(work).collect())
    }

    /// Records work once more.
    pub fn again(&mut self, works: &RecordedWork) {
        for work in &works.0 {
            self.nodes.push(work.clone());
        }
    }

    /// Notes that what was queued did not end as it should: whatever it writes is in doubt. If nothing was, everything is as it was.
    pub fn doubt_written(&self) {
        if self.is_queued {
            self.nodes.footprint.written().for_each(|block| block.history().lock().doubt());
        }
    }

    /// What a download brought, once it is done.
    #[track_caller]
    pub fn output<T: Element>(&mut self, output: &Output<T>) -> Result<&[T]> {
        let foreign = GraphError::ForeignHandle { what: "output" };
        if output.node.graph != self.nodes.graph {
            return Err(foreign.into());
        }
        self.nodes.hosts.typed(output.index).ok_or(foreign)?.read()
    }
}

impl GraphBuilder {
    fn queue(
        &self,
        driver: &dyn Driver,
        stream: StreamId,
        lane: &StreamState,
        queued: &Cell<bool>,
    ) -> std::result::Result<(), kiln_driver::Error> {
        for command in self.nodes.works.iter().filter_map(|work| work.command(&self.nodes.hosts)) {
            driver.submit(stream, &command)?;
            queued.set(true);
            lane.counters().note(&command);
        }
        Ok(())
    }

    fn note_overwritten(&self) {
        self.nodes.works.iter().filter_map(Work::overwrites).for_each(BlockRange::overwritten);
    }

    fn settle(&mut self) -> Result<()> {
        self.nodes.footprint.merge_all();
        let ranges = self.nodes.footprint.span_count();
        if ranges > MAX_RANGES {
            return Err(GraphError::TooManyRanges { ranges, limit: MAX_RANGES }.into());
        }
        Ok(())
    }

    fn home(&self) -> &StreamState {
        self.runtime.main_stream().lane()
    }
}

/// The names of kernels that a submission of several commands has in a recording, at the most.
const NAMED_KERNELS: usize = 3;

impl GraphBuilder {
    /// What commands that are queued together are called in a recording: their kernels by name, each once, in the order of recording.
    fn label(&self) -> WorkLabel {
        let mut names: Vec<KnownName> = Vec::with_capacity(NAMED_KERNELS + 1);
        for name in self.nodes.works.iter().filter_map(Work::kernel_name) {
            if !names.iter().any(|known| known.text() == name.text()) {
                names.push(name);
                if names.len() > NAMED_KERNELS {
                    break;
                }
            }
        }
        let name = match &names[..] {
            [] => KnownName::of("sequence"),
            [only] => *only,
            several => {
                let mut text =
                    several.iter().take(NAMED_KERNELS).map(|name| name.text()).collect::<Vec<_>>().join(", ");
                if several.len() > NAMED_KERNELS {
                    text += " and others";
                }
                KnownName::of(interned_name(&text))
            }
        };
        WorkLabel::new(SubmissionKind::Graph, name, 0)
    }
}
