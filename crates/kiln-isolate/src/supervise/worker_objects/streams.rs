//! Streams, which continue their numbering; events, which count as never signalled; and graphs.

use std::collections::HashSet;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::{CALL, StateSync, SyncError};
use crate::client::code::ask_to_build;
use crate::client::objects::{Event, Stream};
use crate::protocol::wire::{Request, WireObject};

impl StateSync<'_> {
    /// Destroys those that the client destroyed. It comes first, because they use everything else.
    pub(crate) fn release_queues(&mut self) -> Result<(), SyncError> {
        let objects = self.objects;
        let graphs = objects.graphs.handles().into_iter().filter_map(|id| objects.graphs.pin(id).ok());
        let graphs: HashSet<u64> = graphs.map(|graph| graph.remote.id).collect();
        let gone: Vec<u64> = self.state.graphs.keys().filter(|id| !graphs.contains(id)).copied().collect();
        gone.into_iter().try_for_each(|id| self.forget_graph(id))?;
        let streams = objects.streams.handles().into_iter().filter_map(|id| objects.streams.pin(id).ok());
        let streams: HashSet<u64> = streams.map(|stream| stream.count.wire).collect();
        self.destroy_unwanted(WireObject::Stream, &streams, |state| &mut state.streams)?;
        let events = objects.events.handles().into_iter().filter_map(|id| objects.events.pin(id).ok());
        let events: HashSet<u64> = events.map(|event| event.remote.id).collect();
        self.destroy_unwanted(WireObject::Event, &events, |state| &mut state.events)
    }

    /// Makes streams, events and graphs ahead of time. The streams are numbered in the takeover.
    pub(crate) fn create_queues(&mut self) -> Result<bool, SyncError> {
        let objects = self.objects;
        for stream in objects.streams.handles().into_iter().filter_map(|id| objects.streams.pin(id).ok()) {
            if !self.state.streams.contains(&stream.count.wire) {
                self.create_stream(&stream, 0)?;
            }
        }
        for event in objects.events.handles().into_iter().filter_map(|id| objects.events.pin(id).ok()) {
            if !self.state.events.contains(&event.remote.id) {
                self.create_event(&event)?;
            }
        }
        if !self.pace.may_continue() {
            return Ok(false);
        }
        self.wait_for_worker()?;
        self.sync_graphs()
    }

    /// Numbers the streams, makes what is missing, and waits until the worker is done.
    pub(crate) fn resume_queues(&mut self) -> Result<(), SyncError> {
        // The worker writes to the cell of a destroyed stream or event last; the cell may belong to another by now.
        self.wait_for_worker()?;
        let objects = self.objects;
        for stream in objects.streams.handles().into_iter().filter_map(|id| objects.streams.pin(id).ok()) {
            let count = &stream.count;
            let start = count.submitted.load(Ordering::Acquire);
            count.cell.set(&self.link.segment, start);
            if self.state.streams.contains(&count.wire) {
                self.send(&Request::ResumeStream { id: count.wire, start }, "a stream")?;
            } else {
                self.create_stream(&stream, start)?;
            }
        }
        for event in objects.events.handles().into_iter().filter_map(|id| objects.events.pin(id).ok()) {
            event.cell.set(&self.link.segment, 0);
            if !self.state.events.contains(&event.remote.id) {
                self.create_event(&event)?;
            }
        }
        self.sync_graphs()?;
        self.wait_for_worker()
    }

    fn create_stream(&mut self, stream: &Stream, start: u64) -> Result<(), SyncError> {
        let (id, cell, priority) = (stream.count.wire, stream.count.cell.index(), stream.priority);
        self.send(&Request::CreateStream { id, cell, priority, start }, "a stream")?;
        self.state.streams.insert(id);
        Ok(())
    }

    fn create_event(&mut self, event: &Event) -> Result<(), SyncError> {
        let (id, cell, timed) = (event.remote.id, event.cell.index(), event.timed);
        self.send(&Request::CreateEvent { id, cell, timed }, "an event")?;
        self.state.events.insert(id);
        Ok(())
    }

    fn sync_graphs(&mut self) -> Result<bool, SyncError> {
        let objects = self.objects;
        let handles = objects.graphs.handles();
        let pinned = |id| objects.graphs.pin(id).ok();
        for handle in handles {
            let Some(graph) = pinned(handle) else { continue };
            if !self.pace.may_continue() {
                return Ok(false);
            }
            let id = graph.remote.id;
            let nodes = graph.nodes.lock().unwrap_or_else(PoisonError::into_inner);
            let (version, nodes) = (graph.version.load(Ordering::Acquire), nodes.clone());
            match self.state.graphs.get(&id) {
                Some(there) if *there == version => continue,
                Some(_) => self.forget_graph(id)?,
                None => {}
            }
            match ask_to_build(CALL, self.link, id, &nodes) {
                Ok(()) => drop(self.state.graphs.insert(id, version)),
                // It uses something that existed in the old worker only.
                Err(error) if error.is_refused() => self.outcome.lost_graphs.push(handle),
                Err(error) => return Err(SyncError::new(handle)(error)),
            }
        }
        Ok(true)
    }

    fn forget_graph(&mut self, id: u64) -> Result<(), SyncError> {
        self.send(&Request::Destroy { object: WireObject::Graph, id }, "the end of a graph")?;
        self.state.graphs.remove(&id);
        Ok(())
    }
}
