//! Reserved addresses, pages, their mappings, and host blocks.

use std::collections::{BTreeMap, HashSet};
use std::os::fd::AsFd;
use std::sync::{Arc, PoisonError};

use kiln_driver::Protection;

use super::step_batch::{AnswerError, SyncPlan};
use super::{CALL, MappedPages, StateSync, SyncError};
use crate::client::memory::{busy, take_memory};
use crate::client::object_tables::ObjectTables;
use crate::client::objects::{Pages, Range};
use crate::protocol::wire::{Ask, WireObject};

/// The client's pages and where they are mapped.
struct ClientPages {
    /// Pages that another process can import.
    pages: BTreeMap<u64, Arc<Pages>>,
    ranges: Vec<(Arc<Range>, BTreeMap<u64, MappedPages>)>,
}

impl ClientPages {
    fn read(objects: &ObjectTables) -> Self {
        let mut pages = BTreeMap::new();
        for pinned in objects.pages.handles().into_iter().filter_map(|id| objects.pages.pin(id).ok()) {
            pages.insert(pinned.remote.id, Arc::clone(&pinned));
        }
        let handles = objects.reservations.handles().into_iter();
        let ranges = handles.filter_map(|id| objects.reservations.pin(id).ok());
        let ranges: Vec<_> =
            ranges.map(|range| (Arc::clone(&range), range.mapped_pages(&mut pages))).collect();
        pages.retain(|_, pages| pages.descriptor.is_some());
        Self { pages, ranges }
    }
}

impl Range {
    /// The mappings, by offset. Pages whose handle was destroyed exist as long as they are mapped, and are added to `known`.
    fn mapped_pages(&self, known: &mut BTreeMap<u64, Arc<Pages>>) -> BTreeMap<u64, MappedPages> {
        let mappings = self.mappings.read().unwrap_or_else(PoisonError::into_inner);
        let kept = mappings.iter().filter(|(_, mapping)| mapping.pages.descriptor.is_some());
        kept.map(|(offset, mapping)| {
            let (pages, bytes) = (mapping.pages.remote.id, mapping.pages.bytes);
            known.entry(pages).or_insert_with(|| mapping.pages.clone());
            (*offset, MappedPages { pages, bytes, protection: mapping.protection })
        })
        .collect()
    }
}

impl StateSync<'_> {
    /// Gives the worker the pages, at their addresses; returns whether it has all of them.
    pub(crate) fn sync_pages(&mut self) -> Result<bool, SyncError> {
        let wanted = ClientPages::read(self.objects);
        let mut plan = SyncPlan::default();
        self.plan_removals(&wanted, &mut plan);
        if !plan.run(self.link, self.state, self.pace)? {
            return Ok(false);
        }
        let pages: HashSet<u64> = wanted.pages.keys().copied().collect();
        self.destroy_unwanted(WireObject::Pages, &pages, |state| &mut state.pages)?;
        let mut plan = SyncPlan::default();
        self.plan_additions(&wanted, &mut plan);
        let is_complete = plan.run(self.link, self.state, self.pace)?;
        self.outcome.kept_bytes = wanted.pages.values().map(|pages| pages.bytes).sum();
        Ok(is_complete)
    }

    /// Undoes mappings and ranges that the client does not have, or has changed.
    fn plan_removals(&self, wanted: &ClientPages, plan: &mut SyncPlan<'_>) {
        let kept: BTreeMap<u64, &BTreeMap<u64, MappedPages>> =
            wanted.ranges.iter().map(|(range, placed)| (range.wire, placed)).collect();
        for (range, placed) in &self.state.ranges {
            let range = *range;
            let now = kept.get(&range);
            for (offset, old) in placed {
                let (offset, bytes) = (*offset, old.bytes);
                let new = now.and_then(|now| now.get(&offset));
                if new.is_some_and(|new| (new.pages, new.bytes) == (old.pages, old.bytes)) {
                    continue;
                }
                let ask = Ask::Unmap { reservation: range, offset, bytes };
                plan.add("the end of a mapping", ask, None, move |state| {
                    state.ranges.entry(range).or_default().remove(&offset);
                });
            }
            if now.is_none() {
                plan.add("the end of a range", Ask::DestroyReservation { id: range }, None, move |state| {
                    state.ranges.remove(&range);
                });
            }
        }
    }

    fn plan_additions<'a>(&self, wanted: &'a ClientPages, plan: &mut SyncPlan<'a>) {
        for (range, _) in
            wanted.ranges.iter().filter(|(range, _)| !self.state.ranges.contains_key(&range.wire))
        {
            reserve(range, plan);
        }
        for (id, pages) in wanted.pages.iter().filter(|(id, _)| !self.state.pages.contains(id)) {
            let ask = Ask::ImportPages { id: *id, bytes: pages.bytes };
            let descriptor = pages.descriptor.as_ref().map(AsFd::as_fd);
            let what = format_args!("{} bytes of pages", pages.bytes);
            plan.add(what, ask, descriptor, |state| {
                state.pages.insert(*id);
            });
        }
        for (range, placed) in &wanted.ranges {
            let there = self.state.ranges.get(&range.wire);
            let at = |offset: &u64| there.and_then(|there| there.get(offset));
            let missing = placed.iter().filter(|(offset, _)| at(offset).is_none());
            for run in runs(missing) {
                map(range, run, plan);
            }
            for (offset, new) in placed {
                if at(offset).is_some_and(|old| old.protection != new.protection) {
                    protect(range, *offset, *new, plan);
                }
            }
        }
    }

    /// Names the blocks in pages to a worker that checks accesses. Their contents are there.
    pub(crate) fn name_blocks(&self) -> Result<(), SyncError> {
        let memory = &self.objects.memory;
        for block in memory.handles().into_iter().filter_map(|id| memory.pin(id).ok()) {
            if let Some(request) = block.kept_part() {
                self.send(&request, "a block")?;
            }
        }
        Ok(())
    }

    /// Gives the worker the host blocks: the same memory, registered with its driver.
    pub(crate) fn sync_host_blocks(&mut self) -> Result<bool, SyncError> {
        let objects = self.objects;
        let handles = objects.hosts.handles().into_iter();
        let hosts: Vec<_> = handles.filter_map(|id| objects.hosts.pin(id).ok()).collect();
        let wanted: HashSet<u64> = hosts.iter().map(|host| host.remote.id).collect();
        self.destroy_unwanted(WireObject::Host, &wanted, |state| &mut state.hosts)?;
        let mut plan = SyncPlan::default();
        for host in hosts.iter().filter(|host| !self.state.hosts.contains(&host.remote.id)) {
            let (id, bytes) = (host.remote.id, host.file.bytes());
            let ask = Ask::RegisterHost { id, bytes };
            let what = format_args!("a host block of {bytes} bytes");
            plan.add(what, ask, Some(host.file.descriptor()), move |state| {
                state.hosts.insert(id);
            });
        }
        plan.run(self.link, self.state, self.pace)
    }
}

/// Reserves a range; the worker must get the address the client has.
fn reserve<'a>(range: &'a Range, plan: &mut SyncPlan<'a>) {
    let ask = Ask::Reserve { id: range.wire, bytes: range.bytes, at: Some(range.address) };
    plan.add_read(range.address, ask, None, |state, answer| {
        if take_memory(answer)? != (range.address, range.bytes) {
            let error = busy(CALL, &range.address, "the new worker reserved other addresses");
            return Err(AnswerError::Refused(error));
        }
        state.ranges.insert(range.wire, BTreeMap::new());
        Ok(())
    });
}

fn map<'a>(range: &'a Range, run: Vec<(u64, MappedPages)>, plan: &mut SyncPlan<'a>) {
    let Some((offset, first)) = run.first().copied() else { return };
    let pages = run.iter().map(|(_, placed)| placed.pages).collect();
    let ask = Ask::Map { reservation: range.wire, offset, pages, protection: first.protection };
    plan.add(range.address, ask, None, |state| state.ranges.entry(range.wire).or_default().extend(run));
}

fn protect<'a>(range: &'a Range, offset: u64, new: MappedPages, plan: &mut SyncPlan<'a>) {
    let MappedPages { bytes, protection, .. } = new;
    let ask = Ask::Protect { reservation: range.wire, offset, bytes, protection };
    plan.add(range.address, ask, None, move |state| {
        state.ranges.entry(range.wire).or_default().insert(offset, new);
    });
}

/// Groups adjacent mappings with the same protection, which one call can map.
fn runs<'a>(pieces: impl Iterator<Item = (&'a u64, &'a MappedPages)>) -> Vec<Vec<(u64, MappedPages)>> {
    let mut runs: Vec<Vec<(u64, MappedPages)>> = Vec::new();
    let mut before: Option<(u64, Protection)> = None;
    for (offset, piece) in pieces {
        match runs.last_mut() {
            Some(run) if before == Some((*offset, piece.protection)) => run.push((*offset, *piece)),
            _ => runs.push(vec![(*offset, *piece)]),
        }
        before = Some((offset.saturating_add(piece.bytes), piece.protection));
    }
    runs
}
