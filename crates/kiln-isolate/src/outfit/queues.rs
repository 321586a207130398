//! Streams, which count on; events, which were never signalled; graphs, where all they name is there.

use std::collections::HashSet;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::{CALL, Fitting, Unfit};
use crate::code::ask_to_build;
use crate::objects::{Event, Stream};
use crate::wire::{Request, WireObject};

impl Fitting<'_> {
    /// Takes back what ended of these; the first to go, because they hold on to everything else.
    pub(crate) fn let_go(&mut self) -> Result<(), Unfit> {
        let objects = self.objects;
        let graphs = objects.graphs.handles().into_iter().filter_map(|id| objects.graphs.pin(id).ok());
        let graphs: HashSet<u64> = graphs.map(|graph| graph.remote.id).collect();
        let gone: Vec<u64> = self.outfit.graphs.keys().filter(|id| !graphs.contains(id)).copied().collect();
        gone.into_iter().try_for_each(|id| self.forget_graph(id))?;
        let streams = objects.streams.handles().into_iter().filter_map(|id| objects.streams.pin(id).ok());
        let streams: HashSet<u64> = streams.map(|stream| stream.count.wire).collect();
        self.forget(WireObject::Stream, &streams, |outfit| &mut outfit.streams)?;
        let events = objects.events.handles().into_iter().filter_map(|id| objects.events.pin(id).ok());
        let events: HashSet<u64> = events.map(|event| event.remote.id).collect();
        self.forget(WireObject::Event, &events, |outfit| &mut outfit.events)
    }

    /// Makes streams, events and graphs ahead of time. No stream counts yet.
    pub(crate) fn prepare_queues(&mut self) -> Result<bool, Unfit> {
        let objects = self.objects;
        for stream in objects.streams.handles().into_iter().filter_map(|id| objects.streams.pin(id).ok()) {
            if !self.outfit.streams.contains(&stream.count.wire) {
                self.create_stream(&stream, 0)?;
            }
        }
        for event in objects.events.handles().into_iter().filter_map(|id| objects.events.pin(id).ok()) {
            if !self.outfit.events.contains(&event.remote.id) {
                self.create_event(&event)?;
            }
        }
        if !self.pace.may_go_on() {
            return Ok(false);
        }
        self.await_all()?;
        self.fit_graphs()
    }

    /// Puts streams, events and graphs to work.
    pub(crate) fn resume_queues(&mut self) -> Result<(), Unfit> {
        // A stream or an event that ended says so in its cell last, which may belong to another by now.
        self.await_all()?;
        let objects = self.objects;
        for stream in objects.streams.handles().into_iter().filter_map(|id| objects.streams.pin(id).ok()) {
            let count = &stream.count;
            let start = count.submitted.load(Ordering::Acquire);
            count.cell.set(&self.link.area, start);
            if self.outfit.streams.contains(&count.wire) {
                self.send(&Request::ResumeStream { id: count.wire, start }, "a stream")?;
            } else {
                self.create_stream(&stream, start)?;
            }
        }
        for event in objects.events.handles().into_iter().filter_map(|id| objects.events.pin(id).ok()) {
            event.cell.set(&self.link.area, 0);
            if !self.outfit.events.contains(&event.remote.id) {
                self.create_event(&event)?;
            }
        }
        self.fit_graphs()?;
        self.await_all()
    }

    fn create_stream(&mut self, stream: &Stream, start: u64) -> Result<(), Unfit> {
        let (id, cell, priority) = (stream.count.wire, stream.count.cell.index(), stream.priority);
        self.send(&Request::CreateStream { id, cell, priority, start }, "a stream")?;
        self.outfit.streams.insert(id);
        Ok(())
    }

    fn create_event(&mut self, event: &Event) -> Result<(), Unfit> {
        let (id, cell, timed) = (event.remote.id, event.cell.index(), event.timed);
        self.send(&Request::CreateEvent { id, cell, timed }, "an event")?;
        self.outfit.events.insert(id);
        Ok(())
    }

    fn fit_graphs(&mut self) -> Result<bool, Unfit> {
        let objects = self.objects;
        let handles = objects.graphs.handles();
        let pinned = |id| objects.graphs.pin(id).ok();
        for handle in handles {
            let Some(graph) = pinned(handle) else { continue };
            if !self.pace.may_go_on() {
                return Ok(false);
            }
            let id = graph.remote.id;
            let nodes = graph.nodes.lock().unwrap_or_else(PoisonError::into_inner);
            let (version, nodes) = (graph.version.load(Ordering::Acquire), nodes.clone());
            match self.outfit.graphs.get(&id) {
                Some(there) if *there == version => continue,
                Some(_) => self.forget_graph(id)?,
                None => {}
            }
            match ask_to_build(CALL, self.link, id, &nodes) {
                Ok(()) => drop(self.outfit.graphs.insert(id, version)),
                // Something it names was in the old worker alone.
                Err(error) if error.is_refused() => self.fitted.lost_graphs.push(handle),
                Err(error) => return Err(Unfit::new(handle)(error)),
            }
        }
        Ok(true)
    }

    fn forget_graph(&mut self, id: u64) -> Result<(), Unfit> {
        self.send(&Request::Destroy { object: WireObject::Graph, id }, "an end")?;
        self.outfit.graphs.remove(&id);
        Ok(())
    }
}
