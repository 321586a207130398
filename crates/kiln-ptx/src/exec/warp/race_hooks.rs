//! What the race check sees of accesses.

use std::sync::MutexGuard;

use super::Warp;
use super::access::Access;
use crate::exec::block::Cta;
use crate::exec::check::{BlockRaces, Clocks, Conflict, ConstantTouch, Locations, RaceRule, Touch, Touching};
use crate::exec::finding::AccessKind;
use crate::exec::lowered_code::{Code, Fence, Load, Op, PredSource, Source, Store, Strength, Warpgroup};
use crate::exec::memory::generic_address::Place;
use crate::exec::warp_register::{Column, FULL, LANES, LaneOrder, each};
use crate::exec::warpgroup_order::GROUP_WARPS;

impl Access {
    fn touching(&self) -> Touching {
        match (self.kind, self.strength.strong) {
            (AccessKind::Atomic, _) => Touching::Update,
            (AccessKind::Read, false) => Touching::Read,
            (AccessKind::Read, true) => Touching::StrongRead,
            (AccessKind::Write, false) => Touching::Write,
            (AccessKind::Write, true) => Touching::StrongWrite,
        }
    }

    /// The addresses of its parts.
    fn parts(&self, address: u64) -> impl Iterator<Item = u64> + use<> {
        let part_bytes = u64::from(self.part_bytes.max(1));
        (0..u64::from(self.bytes) / part_bytes).map(move |part| address + part * part_bytes)
    }
}

impl Warp {
    /// Lets the race check see an access to shared or global memory, before it is made. `same` says whether a lane writes what another
    /// thread wrote before it.
    #[inline]
    pub(super) fn watch(
        &self,
        cta: &mut Cta<'_>,
        at: usize,
        access: &Access,
        addresses: &Column,
        lanes: u32,
        same: impl Fn(&Cta<'_>, usize) -> bool,
    ) {
        if !cta.mbarriers.is_empty() && access.place == Place::Shared {
            self.report_mbarrier_access(cta, at, access, addresses, lanes);
        }
        self.watch_order(cta, at, access, addresses, lanes, same);
    }

    /// Lets the race check see a load, in the lanes that use what it reads.
    #[inline]
    pub(super) fn watch_read(
        &self,
        cta: &mut Cta<'_>,
        at: usize,
        load: &Load,
        access: &Access,
        addresses: &Column,
        lanes: u32,
    ) {
        let lanes = match load.used_where {
            PredSource::ALWAYS => lanes,
            used_where => lanes & self.frames[self.lane_groups[at].frame].test(used_where),
        };
        if lanes != 0 {
            self.watch(cta, at, access, addresses, lanes, |_, _| false);
        }
    }

    /// The same for an access that may reach an `mbarrier` object.
    #[inline]
    pub(super) fn watch_order(
        &self,
        cta: &mut Cta<'_>,
        at: usize,
        access: &Access,
        addresses: &Column,
        lanes: u32,
        same: impl Fn(&Cta<'_>, usize) -> bool,
    ) {
        let Some(races) = &mut cta.races else { return };
        if lanes == 0 {
            return;
        }
        let touch = Touch {
            warp: self.index,
            mask: lanes,
            pc: self.lane_groups[at].pc,
            bytes: access.bytes,
            element_bytes: access.part_bytes,
            kind: access.touching(),
            wide: access.strength.wide,
            cluster: access.strength.cluster && cta.launch.clustered,
            halves: access.halves.filter(|_| lanes == FULL),
        };
        if touch.kind != Touching::StrongRead {
            races.clocks.end_polls(self.index, lanes);
        }
        let mut found = match access.place {
            Place::Shared => races.touch_shared(&touch, addresses),
            _ => races.touch_global(&touch, addresses),
        };
        if access.place == Place::Shared {
            if !found.is_empty() {
                // A product of the same warpgroup is done for a warp that has waited, whichever warp read.
                let (code, clocks) = (cta.launch.code, &races.clocks);
                found.retain(|conflict| !self.is_own_product(code, clocks, conflict));
            }
            let is_bulk = found.is_empty() && !races.copies.bulk.is_empty();
            let has_proxies =
                races.copies.generic.is_some() && (found.is_empty() || access.kind != AccessKind::Read);
            if !races.copies.is_empty() {
                self.watch_copies(cta, &touch, access, addresses);
            }
            if is_bulk {
                self.watch_bulk_copies(cta, &touch, access, addresses);
            }
            if has_proxies {
                self.watch_proxies(cta, &touch, access, addresses);
            }
        } else if access.kind != AccessKind::Read {
            let (has_sources, reads) = (races.copies.has_sources(), races.launch.constant_reads.is_some());
            if has_sources {
                self.watch_copy_sources(cta, &touch, access, addresses);
            }
            if reads {
                self.watch_constant(cta, at, access, addresses, lanes);
            }
        }
        if !found.is_empty() {
            self.report_conflicts(cta, &touch, access, addresses, &found, same);
        }
    }

    /// Whether the earlier access is the read of a matrix by a product of this warp's warpgroup.
    #[cold]
    fn is_own_product(&self, code: &Code, clocks: &Clocks, conflict: &Conflict) -> bool {
        let is_product = code.steps.get(conflict.pc as usize).is_some_and(
            |step| matches!(&step.op, Op::Warpgroup(step) if matches!(**step, Warpgroup::Multiply(_))),
        );
        let warp = clocks.own_warp(conflict.earlier_warp as u32);
        is_product && warp.is_some_and(|warp| warp / GROUP_WARPS == self.index / GROUP_WARPS)
    }

    #[cold]
    pub(super) fn report_conflicts(
        &self,
        cta: &Cta<'_>,
        touch: &Touch,
        access: &Access,
        addresses: &Column,
        found: &[Conflict],
        same: impl Fn(&Cta<'_>, usize) -> bool,
    ) {
        let rules = cta.races.as_ref().map(|races| races.launch.rules).unwrap_or_default();
        let mut told: Vec<(u32, bool)> = Vec::new();
        for conflict in found {
            let same = conflict.is_between_writes(touch.kind)
                && rules.has(RaceRule::SameValue)
                && same(cta, conflict.lane);
            if !told.contains(&(conflict.pc, same)) {
                told.push((conflict.pc, same));
                let bad = access.bad(addresses[conflict.lane], String::new());
                cta.report_race(self.index, touch.pc, bad, *conflict, same);
            }
        }
    }

    /// Reports lanes that use the place of a copy that is not done.
    fn watch_copies(&self, cta: &Cta<'_>, touch: &Touch, access: &Access, addresses: &Column) {
        let Some(races) = cta.races.as_ref().filter(|races| races.launch.rules.has(RaceRule::PendingCopy))
        else {
            return;
        };
        let pending = |lane: usize| races.copies.at(addresses[lane], touch.bytes).map(|copy| (lane, copy));
        let mut lanes = (0..LANES).filter(|lane| touch.mask >> lane & 1 != 0);
        if let Some((lane, copy)) = lanes.find_map(pending) {
            let bad = access.bad(addresses[lane], String::new());
            cta.report_pending(self.index, lane, touch.pc, bad, copy);
        }
    }

    /// Reports lanes that use the place of a bulk copy that is not done, or write what it reads.
    fn watch_bulk_copies(&self, cta: &Cta<'_>, touch: &Touch, access: &Access, addresses: &Column) {
        let Some(races) = cta.races.as_ref().filter(|races| races.launch.rules.has(RaceRule::PendingCopy))
        else {
            return;
        };
        let writes = access.kind != AccessKind::Read;
        let pending =
            |lane: usize| races.copies.bulk.at(addresses[lane], touch.bytes, writes).map(|copy| (lane, copy));
        let mut lanes = (0..LANES).filter(|lane| touch.mask >> lane & 1 != 0);
        if let Some((lane, copy)) = lanes.find_map(pending) {
            let bad = access.bad(addresses[lane], String::new());
            cta.report_pending_bulk(self.index, lane, touch.pc, bad, copy);
        }
        let matrix = |lane: usize| {
            let found = races.copies.bulk.matrix_at(self.index, addresses[lane], touch.bytes);
            found.map(|matrix| (lane, matrix))
        };
        let mut lanes = (0..LANES).filter(|lane| writes && touch.mask >> lane & 1 != 0);
        if let Some((lane, matrix)) = lanes.find_map(matrix) {
            let bad = access.bad(addresses[lane], String::new());
            self.tell_pending_matrix(cta, (touch.pc, lane), &bad, matrix);
        }
    }

    /// Reports lanes that write what a copy that is not done reads.
    fn watch_copy_sources(&self, cta: &Cta<'_>, touch: &Touch, access: &Access, addresses: &Column) {
        let Some(races) = cta.races.as_ref().filter(|races| races.launch.rules.has(RaceRule::CopySource))
        else {
            return;
        };
        let pending =
            |lane: usize| races.copies.reading(addresses[lane], touch.bytes).map(|copy| (lane, copy));
        let mut lanes = (0..LANES).filter(|lane| touch.mask >> lane & 1 != 0);
        if let Some((lane, copy)) = lanes.find_map(pending) {
            let bad = access.bad(addresses[lane], String::new());
            cta.report_pending(self.index, lane, touch.pc, bad, copy);
        }
    }

    /// Lets the check of constant reads see a write to global memory, or a read as a constant.
    pub(super) fn watch_constant(
        &self,
        cta: &Cta<'_>,
        at: usize,
        access: &Access,
        addresses: &Column,
        lanes: u32,
    ) {
        let Some(races) = &cta.races else { return };
        let Some(reads) = &races.launch.constant_reads else { return };
        let touch = ConstantTouch {
            warp: races.clocks.number(self.index),
            mask: lanes,
            pc: self.lane_groups[at].pc,
            bytes: access.bytes,
            writes: access.kind != AccessKind::Read,
        };
        if let Some(found) = reads.touch(&touch, addresses) {
            let bad = access.bad(addresses[found.lane], String::new());
            cta.report_non_coherent(self.index, touch.pc, bad, found);
        }
    }

    /// Whether a lane stores what is there already, or what a lower lane stores to the same place in the same step.
    pub(super) fn writes_same(
        &self,
        cta: &Cta<'_>,
        at: usize,
        store: &Store,
        addresses: &Column,
        (lanes, lane): (u32, usize),
        content: impl Fn(u64) -> u64,
    ) -> bool {
        let frame = &self.frames[self.lane_groups[at].frame];
        let ones = u64::MAX >> (64 - 8 * store.bytes);
        let below = |other: &usize| lanes >> other & 1 != 0 && addresses[*other] == addresses[lane];
        let before = (0..lane).rev().find(below);
        (0u64..).zip(&store.from).all(|(part, from)| {
            let values = frame.column(*from, &cta.launch.constants);
            let there = match before {
                Some(other) => values[other],
                None => content(addresses[lane].wrapping_add(part * u64::from(store.bytes))),
            };
            values[lane] & ones == there & ones
        })
    }

    /// Takes over what was released where a strong access reads. The access itself is ordered behind it, if it acquires.
    pub(super) fn acquire(
        &self,
        cta: &mut Cta<'_>,
        at: usize,
        access: &Access,
        addresses: &Column,
        lanes: u32,
        global: &Locations,
    ) {
        let Some(races) = &mut cta.races else { return };
        let BlockRaces { clocks, locations, launch, window, .. } = races;
        // The shared memory of a cluster lies at the generic addresses of its blocks.
        let window = window.filter(|_| access.place == Place::Shared);
        let table = if access.place == Place::Shared && window.is_none() { &*locations } else { global };
        let Strength { acquire, .. } = access.strength;
        let pc = self.lane_groups[at].pc;
        each(lanes, |lane| {
            let party = clocks.party(self.index, lane, access.strength);
            let parts = || access.parts(addresses[lane].wrapping_add(window.unwrap_or(0)));
            if access.kind == AccessKind::Read {
                let finds = parts().any(|address| !table.read(address, party, launch.rules).is_empty());
                clocks.poll(self.index, lane, (pc, addresses[lane]), finds);
            }
            parts().for_each(|address| {
                let found = table.read(address, party, launch.rules);
                clocks.acquired(self.index, lane, &found, acquire);
            });
            if launch.is_wait(pc) {
                parts().for_each(|address| {
                    clocks.hear(self.index, lane, (pc, address), table.flags.at(address));
                });
            }
        });
    }

    /// Leaves what is released where a strong access wrote.
    pub(super) fn release_at(
        &self,
        cta: &mut Cta<'_>,
        access: &Access,
        addresses: &Column,
        lanes: u32,
        global: &mut Locations,
    ) {
        let Some(races) = &mut cta.races else { return };
        let BlockRaces { clocks, locations, launch, window, .. } = races;
        let window = window.filter(|_| access.place == Place::Shared);
        let table = if access.place == Place::Shared && window.is_none() { locations } else { global };
        let Strength { release, .. } = access.strength;
        let updates = access.kind == AccessKind::Atomic;
        each(lanes, |lane| {
            let party = clocks.party(self.index, lane, access.strength);
            access.parts(addresses[lane].wrapping_add(window.unwrap_or(0))).for_each(|address| {
                let released = clocks.released(self.index, lane, release, party.is_wide());
                table.write(address, party, released, updates, launch.rules);
                if let Some(published) =
                    launch.has_waits().then(|| clocks.published(self.index, lane)).flatten()
                {
                    table.flags.write(address, published, updates);
                }
            });
        });
        if (release || launch.has_waits()) && lanes != 0 {
            clocks.tick(self.index);
        }
    }

    /// Lets the race check see atomic updates, of which those in `wrote` changed memory. Where threads synchronise, each lane acquires
    /// what the lanes before it released.
    pub(super) fn watch_updates(
        &self,
        cta: &mut Cta<'_>,
        at: usize,
        access: &Access,
        addresses: &Column,
        (lanes, wrote, order): (u32, u32, LaneOrder),
        locations: Option<&mut Locations>,
    ) {
        let read = Access { kind: AccessKind::Read, ..*access };
        let Some(locations) = locations else {
            if order.is_rising() || are_rising(addresses, lanes) {
                self.watch(cta, at, access, addresses, wrote, |_, _| false);
                self.watch(cta, at, &read, addresses, lanes & !wrote, |_, _| false);
                return;
            }
            // Each update observes those before it.
            order.each(lanes, |lane| {
                let access = if wrote >> lane & 1 == 0 { &read } else { access };
                self.watch(cta, at, access, addresses, 1 << lane, |_, _| false);
            });
            return;
        };
        order.each(lanes, |lane| {
            let wrote = wrote & 1 << lane;
            let access = if wrote == 0 { &read } else { access };
            self.acquire(cta, at, access, addresses, 1 << lane, locations);
            self.watch(cta, at, access, addresses, 1 << lane, |_, _| false);
            self.release_at(cta, access, addresses, wrote, locations);
        });
    }

    pub(super) fn fence(&self, cta: &mut Cta<'_>, fence: Fence, lanes: u32) {
        if let Some(races) = &mut cta.races {
            if fence.proxy {
                races.fence_proxies(self.index, lanes);
            }
            if !fence.orders() {
                return;
            }
            let wide = fence.wide || fence.cluster && cta.launch.clustered;
            races.clocks.fence(self.index, lanes, wide, fence.acquire, fence.release);
        }
    }

    pub(super) fn commit_copies(&self, cta: &mut Cta<'_>, lanes: u32) {
        if let Some(races) = &mut cta.races {
            each(lanes, |lane| races.copies.commit(self.index, lane));
        }
    }

    pub(super) fn commit_bulk_copies(&self, cta: &mut Cta<'_>, lanes: u32) {
        if let Some(races) = &mut cta.races {
            let warp = u64::from(races.clocks.number(self.index));
            each(lanes, |lane| races.copies.bulk.commit(warp, lane));
        }
    }

    pub(super) fn wait_for_bulk_copies(&self, cta: &mut Cta<'_>, at: usize, open: Source, lanes: u32) {
        let frame = &self.frames[self.lane_groups[at].frame];
        let open = *frame.column(open, &cta.launch.constants);
        if let Some(races) = &mut cta.races {
            let warp = u64::from(races.clocks.number(self.index));
            each(lanes, |lane| races.copies.bulk.wait(warp, lane, open[lane] as u32));
        }
    }

    /// Copies are done: their data is written now, by the thread that waited.
    pub(super) fn wait_for_copies(&self, cta: &mut Cta<'_>, at: usize, open: Option<Source>, lanes: u32) {
        let frame = &self.frames[self.lane_groups[at].frame];
        let open = open.map(|source| *frame.column(source, &cta.launch.constants));
        let Some(races) = &mut cta.races else { return };
        let mut changed = Vec::new();
        each(lanes, |lane| {
            let done = races.copies.wait(self.index, lane, open.map(|open| open[lane] as u32));
            for copy in done {
                let touch = Touch {
                    warp: self.index,
                    mask: 1 << lane,
                    pc: copy.pc,
                    bytes: copy.bytes,
                    element_bytes: 4,
                    kind: Touching::Write,
                    wide: false,
                    cluster: false,
                    halves: None,
                };
                // What was read or written in between is told as use of a pending copy.
                races.touch_shared(&touch, &[copy.address; LANES]);
                // So is a write of this block to the source. Other blocks know nothing of the copy.
                if let Some((from, bytes)) = copy.source {
                    let read = Touch { bytes, kind: Touching::Read, ..touch };
                    let found = races.touch_global(&read, &[from; LANES]);
                    let foreign =
                        |conflict: &Conflict| races.clocks.own_warp(conflict.earlier_warp as u32).is_none();
                    changed.extend(found.into_iter().filter(foreign).map(|conflict| (copy, conflict)));
                }
            }
        });
        for (copy, conflict) in changed {
            let (address, bytes) = copy.source.unwrap_or_default();
            let (place, strength) = (Place::Global, Strength::default());
            let read = Access {
                kind: AccessKind::Read,
                place,
                bytes,
                part_bytes: bytes,
                strength,
                halves: None,
                block: None,
            };
            cta.report_race(self.index, copy.pc, read.bad(address, String::new()), conflict, false);
        }
    }
}

/// Whether the addresses of lanes rise, so that no two are the same.
fn are_rising(addresses: &Column, lanes: u32) -> bool {
    let mut last = None;
    let mut rise = true;
    each(lanes, |lane| rise &= last.replace(addresses[lane]).is_none_or(|before| before < addresses[lane]));
    rise
}

/// Keeps strong accesses to memory that threads synchronise at apart from those of other blocks.
pub(super) fn lock_locations<'l>(cta: &Cta<'l>, strength: Strength) -> Option<MutexGuard<'l, Locations>> {
    let races = cta.launch.races.as_ref().filter(|races| strength.strong && races.synchronises)?;
    Some(races.locations())
}
