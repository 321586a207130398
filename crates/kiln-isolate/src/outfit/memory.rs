//! Addresses, physical memory, the one mapped at the other, and host blocks.

use std::collections::{BTreeMap, HashSet};
use std::os::fd::AsFd;
use std::sync::{Arc, PoisonError};

use kiln_driver::Protection;

use super::plan::{Objection, Plan};
use super::{CALL, Fitting, Placed, Unfit};
use crate::inventory::Inventory;
use crate::memory::{busy, take_memory};
use crate::objects::{Pages, Range};
use crate::wire::{Ask, WireObject};

/// What the client has.
struct Wanted {
    /// Pages that another process can have.
    pages: BTreeMap<u64, Arc<Pages>>,
    ranges: Vec<(Arc<Range>, BTreeMap<u64, Placed>)>,
}

impl Wanted {
    fn look(objects: &Inventory) -> Self {
        let mut pages = BTreeMap::new();
        for pinned in objects.pages.handles().into_iter().filter_map(|id| objects.pages.pin(id).ok()) {
            pages.insert(pinned.remote.id, Arc::clone(&pinned));
        }
        let handles = objects.reservations.handles().into_iter();
        let ranges = handles.filter_map(|id| objects.reservations.pin(id).ok());
        let ranges: Vec<_> = ranges.map(|range| (Arc::clone(&range), range.placed(&mut pages))).collect();
        pages.retain(|_, pages| pages.descriptor.is_some());
        Self { pages, ranges }
    }
}

impl Range {
    /// What lies where. Pages whose handle is gone live on in their mapping, and are added to those that are known.
    fn placed(&self, known: &mut BTreeMap<u64, Arc<Pages>>) -> BTreeMap<u64, Placed> {
        let mappings = self.mappings.read().unwrap_or_else(PoisonError::into_inner);
        let kept = mappings.iter().filter(|(_, mapping)| mapping.pages.descriptor.is_some());
        kept.map(|(offset, mapping)| {
            let (pages, bytes) = (mapping.pages.remote.id, mapping.pages.bytes);
            known.entry(pages).or_insert_with(|| mapping.pages.clone());
            (*offset, Placed { pages, bytes, protection: mapping.protection })
        })
        .collect()
    }
}

impl Fitting<'_> {
    /// Gives the worker the pages, at their addresses. Says whether it has all of them.
    pub(crate) fn fit_pages(&mut self) -> Result<bool, Unfit> {
        let wanted = Wanted::look(self.objects);
        let mut plan = Plan::default();
        self.take_back(&wanted, &mut plan);
        if !plan.run(self.link, self.outfit, self.pace)? {
            return Ok(false);
        }
        let pages: HashSet<u64> = wanted.pages.keys().copied().collect();
        self.forget(WireObject::Pages, &pages, |outfit| &mut outfit.pages)?;
        let mut plan = Plan::default();
        self.give(&wanted, &mut plan);
        let is_complete = plan.run(self.link, self.outfit, self.pace)?;
        self.fitted.kept_bytes = wanted.pages.values().map(|pages| pages.bytes).sum();
        Ok(is_complete)
    }

    /// Undoes mappings and ranges the client has no more, and those that are other ones now.
    fn take_back(&self, wanted: &Wanted, plan: &mut Plan<'_>) {
        let kept: BTreeMap<u64, &BTreeMap<u64, Placed>> =
            wanted.ranges.iter().map(|(range, placed)| (range.wire, placed)).collect();
        for (range, placed) in &self.outfit.ranges {
            let range = *range;
            let now = kept.get(&range);
            for (offset, old) in placed {
                let (offset, bytes) = (*offset, old.bytes);
                let new = now.and_then(|now| now.get(&offset));
                if new.is_some_and(|new| (new.pages, new.bytes) == (old.pages, old.bytes)) {
                    continue;
                }
                let ask = Ask::Unmap { reservation: range, offset, bytes };
                plan.add("room for other pages", ask, None, move |outfit| {
                    outfit.ranges.entry(range).or_default().remove(&offset);
                });
            }
            if now.is_none() {
                plan.add("the end of a range", Ask::DestroyReservation { id: range }, None, move |outfit| {
                    outfit.ranges.remove(&range);
                });
            }
        }
    }

    fn give<'a>(&self, wanted: &'a Wanted, plan: &mut Plan<'a>) {
        for (range, _) in
            wanted.ranges.iter().filter(|(range, _)| !self.outfit.ranges.contains_key(&range.wire))
        {
            reserve(range, plan);
        }
        for (id, pages) in wanted.pages.iter().filter(|(id, _)| !self.outfit.pages.contains(id)) {
            let ask = Ask::ImportPages { id: *id, bytes: pages.bytes };
            let descriptor = pages.descriptor.as_ref().map(AsFd::as_fd);
            let what = format_args!("{} bytes of pages", pages.bytes);
            plan.add(what, ask, descriptor, |outfit| {
                outfit.pages.insert(*id);
            });
        }
        for (range, placed) in &wanted.ranges {
            let there = self.outfit.ranges.get(&range.wire);
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

    /// Gives the worker the host blocks: the same memory, registered there.
    pub(crate) fn fit_hosts(&mut self) -> Result<bool, Unfit> {
        let objects = self.objects;
        let handles = objects.hosts.handles().into_iter();
        let hosts: Vec<_> = handles.filter_map(|id| objects.hosts.pin(id).ok()).collect();
        let wanted: HashSet<u64> = hosts.iter().map(|host| host.remote.id).collect();
        self.forget(WireObject::Host, &wanted, |outfit| &mut outfit.hosts)?;
        let mut plan = Plan::default();
        for host in hosts.iter().filter(|host| !self.outfit.hosts.contains(&host.remote.id)) {
            let (id, bytes) = (host.remote.id, host.file.bytes());
            let ask = Ask::RegisterHost { id, bytes };
            let what = format_args!("a host block of {bytes} bytes");
            plan.add(what, ask, Some(host.file.descriptor()), move |outfit| {
                outfit.hosts.insert(id);
            });
        }
        plan.run(self.link, self.outfit, self.pace)
    }
}

/// A reservation at its old address, which the worker must get exactly.
fn reserve<'a>(range: &'a Range, plan: &mut Plan<'a>) {
    let ask = Ask::Reserve { id: range.wire, bytes: range.bytes, at: Some(range.address) };
    plan.add_read(range.address, ask, None, |outfit, answer| {
        if take_memory(answer)? != (range.address, range.bytes) {
            let error = busy(CALL, &range.address, "the new worker got other addresses");
            return Err(Objection::Refused(error));
        }
        outfit.ranges.insert(range.wire, BTreeMap::new());
        Ok(())
    });
}

fn map<'a>(range: &'a Range, run: Vec<(u64, Placed)>, plan: &mut Plan<'a>) {
    let Some((offset, first)) = run.first().copied() else { return };
    let pages = run.iter().map(|(_, placed)| placed.pages).collect();
    let ask = Ask::Map { reservation: range.wire, offset, pages, protection: first.protection };
    plan.add(range.address, ask, None, |outfit| outfit.ranges.entry(range.wire).or_default().extend(run));
}

fn protect<'a>(range: &'a Range, offset: u64, new: Placed, plan: &mut Plan<'a>) {
    let Placed { bytes, protection, .. } = new;
    let ask = Ask::Protect { reservation: range.wire, offset, bytes, protection };
    plan.add(range.address, ask, None, move |outfit| {
        outfit.ranges.entry(range.wire).or_default().insert(offset, new);
    });
}

/// Pieces that lie side by side with the same protection, together.
fn runs<'a>(pieces: impl Iterator<Item = (&'a u64, &'a Placed)>) -> Vec<Vec<(u64, Placed)>> {
    let mut runs: Vec<Vec<(u64, Placed)>> = Vec::new();
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
