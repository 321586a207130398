//! Makes everything again in another worker, under the same numbers.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use kiln_driver::{Error, FunctionAttributes, Protection, Result};

use super::{Takeover, TakeoverError};
use crate::code::ask_to_build;
use crate::device::IsolatedDevice;
use crate::link::Link;
use crate::memory::{busy, take_memory};
use crate::objects::{Mapping, Pages, Range};
use crate::wire::{Ask, Request, Take};

const CALL: &str = "take_over";

fn failed(what: impl std::fmt::Display) -> impl FnOnce(Error) -> TakeoverError {
    move |error| TakeoverError::Rebuild { what: what.to_string(), error }
}

impl IsolatedDevice {
    /// Addresses, physical memory, and the one mapped at the other.
    pub(super) fn rebuild_pages(
        &self,
        link: &Link,
        takeover: &mut Takeover,
    ) -> std::result::Result<(), TakeoverError> {
        let mut pages: BTreeMap<u64, Arc<Pages>> = BTreeMap::new();
        for id in self.pages.handles() {
            let Ok(pinned) = self.pages.pin(id) else { continue };
            if pinned.descriptor.is_none() {
                takeover.lost_pages.push(id);
            } else {
                pages.insert(pinned.remote.id, Arc::clone(&pinned));
            }
        }
        let handles = self.reservations.handles().into_iter();
        let ranges: Vec<Arc<Range>> =
            handles.filter_map(|id| self.reservations.pin(id).ok().map(|range| Arc::clone(&range))).collect();
        for range in &ranges {
            let mappings = range.mappings.read().unwrap_or_else(PoisonError::into_inner);
            // Pages whose handle is gone live on in their mapping.
            pages.extend(mappings.values().map(|mapping| (mapping.pages.remote.id, mapping.pages.clone())));
        }
        for (id, pages) in &pages {
            let Some(descriptor) = &pages.descriptor else { continue };
            let ask = Ask::ImportPages { id: *id, bytes: pages.bytes };
            link.ask(CALL, &ask, Some(descriptor.as_fd()), |_| Ok(()))
                .map_err(failed(format_args!("{} bytes of pages", pages.bytes)))?;
            takeover.kept_bytes += pages.bytes;
        }
        ranges.iter().try_for_each(|range| rebuild_range(link, range).map_err(failed(range.address)))
    }

    /// Host blocks: the same memory, registered again.
    pub(super) fn rebuild_hosts(&self, link: &Link) -> std::result::Result<(), TakeoverError> {
        for id in self.hosts.handles() {
            let Ok(host) = self.hosts.pin(id) else { continue };
            let ask = Ask::RegisterHost { id: host.remote.id, bytes: host.file.bytes() };
            link.ask(CALL, &ask, Some(host.file.descriptor()), |_| Ok(())).map_err(failed(id))?;
        }
        Ok(())
    }

    /// Images, and the kernels that were looked up in them.
    pub(super) fn rebuild_code(&self, link: &Link) -> std::result::Result<(), TakeoverError> {
        for id in self.modules.handles() {
            let Ok(module) = self.modules.pin(id) else { continue };
            let code = &module.code;
            let ask = Ask::Load { id: code.remote.id, kind: code.kind, bytes: code.image.bytes() };
            link.ask(CALL, &ask, Some(code.image.descriptor()), |_| Ok(())).map_err(failed(id))?;
        }
        for id in self.functions.handles() {
            let Ok(kernel) = self.functions.pin(id) else { continue };
            let ask = Ask::Function { id: kernel.wire, module: kernel.code.remote.id, name: &kernel.name };
            let asked = link.ask(CALL, &ask, None, FunctionAttributes::take);
            let (attributes, _) = asked.map_err(failed(&kernel.name))?;
            if attributes.parameters != kernel.attributes.parameters {
                let error = busy(CALL, &id, "it has other parameters now");
                return Err(TakeoverError::Rebuild { what: kernel.name.clone(), error });
            }
        }
        Ok(())
    }

    /// Streams, which count on; events, which were never signalled; graphs, where all they name is there.
    pub(super) fn rebuild_queues(
        &self,
        link: &Link,
        takeover: &mut Takeover,
    ) -> std::result::Result<(), TakeoverError> {
        takeover.lost_memory = self.memory.handles();
        for id in self.streams.handles() {
            let Ok(stream) = self.streams.pin(id) else { continue };
            let count = &stream.count;
            let start = count.submitted.load(Ordering::Acquire);
            count.cell.set(&link.area, start);
            let (cell, priority) = (count.cell.index(), stream.priority);
            let request = Request::CreateStream { id: count.wire, cell, priority, start };
            link.send(CALL, &request).map_err(failed(id))?;
        }
        for id in self.events.handles() {
            let Ok(event) = self.events.pin(id) else { continue };
            event.cell.set(&link.area, 0);
            let (cell, timed) = (event.cell.index(), event.timed);
            let request = Request::CreateEvent { id: event.remote.id, cell, timed };
            link.send(CALL, &request).map_err(failed(id))?;
        }
        for id in self.graphs.handles() {
            let Ok(graph) = self.graphs.pin(id) else { continue };
            let nodes = graph.nodes.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match ask_to_build(CALL, link, graph.remote.id, &nodes) {
                Ok(()) => {}
                Err(error) if error.is_refused() => takeover.lost_graphs.push(id),
                Err(error) => return Err(failed(id)(error)),
            }
        }
        // The answer comes after everything before it was done.
        link.ask(CALL, &Ask::MemoryInfo, None, kiln_driver::MemoryInfo::take).map_err(failed("itself"))?;
        Ok(())
    }

    /// What is gone is gone on this side, too. Nothing is changed here before the new worker has everything, so that a
    /// takeover that failed can be tried again.
    pub(super) fn let_go(&self, takeover: &Takeover) {
        takeover.lost_memory.iter().for_each(|id| drop(self.memory.remove(*id)));
        takeover.lost_graphs.iter().for_each(|id| drop(self.graphs.remove(*id)));
        takeover.lost_pages.iter().for_each(|id| drop(self.pages.remove(*id)));
        for range in self.reservations.handles().into_iter().filter_map(|id| self.reservations.pin(id).ok()) {
            let mut mappings = range.mappings.write().unwrap_or_else(PoisonError::into_inner);
            mappings.retain(|_, mapping| mapping.pages.descriptor.is_some());
        }
        for module in self.modules.handles().into_iter().filter_map(|id| self.modules.pin(id).ok()) {
            module.variables.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        for stream in self.streams.handles().into_iter().filter_map(|id| self.streams.pin(id).ok()) {
            stream.count.learn(stream.count.submitted.load(Ordering::Acquire));
        }
        for event in self.events.handles().into_iter().filter_map(|id| self.events.pin(id).ok()) {
            *event.last() = None;
        }
    }
}

/// A reservation at its old address, with its mappings; one call for each run of pages with the same protection.
fn rebuild_range(link: &Link, range: &Range) -> Result<()> {
    let ask = Ask::Reserve { id: range.wire, bytes: range.bytes, at: Some(range.address) };
    let ((address, bytes), _) = link.ask(CALL, &ask, None, take_memory)?;
    if (address, bytes) != (range.address, range.bytes) {
        return Err(busy(CALL, &range.address, "the new worker got other addresses"));
    }
    let mappings = range.mappings.read().unwrap_or_else(PoisonError::into_inner);
    for (offset, pages, protection) in runs(&mappings) {
        link.ask(CALL, &Ask::Map { reservation: range.wire, offset, pages, protection }, None, |_| Ok(()))?;
    }
    Ok(())
}

/// Mappings that lie side by side with the same protection, as one.
fn runs(mappings: &BTreeMap<u64, Mapping>) -> Vec<(u64, Vec<u64>, Protection)> {
    let mut runs: Vec<(u64, Vec<u64>, Protection)> = Vec::new();
    let mut end = None;
    for (offset, mapping) in mappings.iter().filter(|(_, mapping)| mapping.pages.descriptor.is_some()) {
        let page = mapping.pages.remote.id;
        match runs.last_mut() {
            Some((_, pages, protection)) if end == Some(*offset) && *protection == mapping.protection => {
                pages.push(page);
            }
            _ => runs.push((*offset, vec![page], mapping.protection)),
        }
        end = offset.checked_add(mapping.pages.bytes);
    }
    runs
}
