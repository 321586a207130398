//! Loads and stores of a whole warp at addresses of which the pattern is known: rows of neighbouring elements, or places that all lanes of half a warp reach.
//!
//! Alignment, bounds, what was written and the race check are looked at once for each half, and values move in rows. Whatever is unusual, and everything
//! that would be reported but for races, is left to the way that goes lane by lane: nothing was done then that cannot be done again.

use super::Warp;
use super::access::Access;
use super::frame::FrameId;
use super::global::is_told;
use super::memory::extended;
use super::span_content::{load_halves, store_halves};
use crate::exec::address_halves::{HALF, Half, Halves};
use crate::exec::block::Cta;
use crate::exec::finding::AccessKind;
use crate::exec::lane_pattern::LanePattern;
use crate::exec::lowered_code::{Address, Base, Load, PredSource, Reg, Special, Store};
use crate::exec::memory::generic_address::Place;
use crate::exec::memory::{Declared, Span};
use crate::exec::warp_register::{FULL, LANES};
use kiln_lanes::first_words_mut;

/// Bytes of the row of half a warp with elements of four bytes.
const ROW_BYTES: u64 = 4 * HALF as u64;

impl Warp {
    /// Puts the value of a special register into a register; false if it depends on more than the place of the thread.
    pub(super) fn special_in_line(&mut self, cta: &Cta<'_>, id: FrameId, to: Reg, which: Special) -> bool {
        if matches!(which, Special::Clock { .. } | Special::Timer { .. } | Special::LocalWindow) {
            return false;
        }
        if let Some(value) = self.shared_special(cta, which) {
            self.frames[id].registers[to.0 as usize].set_uniform(value);
            return true;
        }
        if let Some(pattern) = self.special_pattern(cta, which) {
            self.frames[id].registers[to.0 as usize].set_pattern(pattern);
            return true;
        }
        let mut values = [0; LANES];
        self.special_value(cta, which, &mut values);
        let register = &mut self.frames[id].registers[to.0 as usize];
        match LanePattern::of(&values) {
            Some(pattern) => register.set_pattern(pattern),
            None => {
                *self.result = values;
                register.take_lanes(&mut self.result);
            }
        }
        true
    }

    /// Loads in rows; false if nothing was done.
    #[inline]
    pub(super) fn load_in_rows(&mut self, cta: &mut Cta<'_>, (id, pc): (FrameId, u32), load: &Load) -> bool {
        let [to] = &*load.to else { return false };
        if load.strength.strong || load.used_where != PredSource::ALWAYS || to.0 == 0 {
            return false;
        }
        if load.place == Place::Param {
            return self.load_shared_argument(cta, id, load, *to);
        }
        if load.extend_to > load.bytes {
            return false;
        }
        let known = self.rows_of(cta, id, (load.place, load.address, load.bytes));
        let Some((place, halves)) = known else { return false };
        let access = access(AccessKind::Read, place, load.bytes, halves);
        if place == Place::Shared {
            return self.load_shared_rows(cta, (id, pc), (&access, &halves), *to);
        }
        let Some(span) = span_of(cta, &access, &halves) else { return false };
        if load.constant && span.writable && span.declared != Declared::Read {
            return false;
        }
        let told = cta.launch.options.checks.uninitialised && is_told(cta, &span);
        let cells = span.cells;
        let place = halves.halves.map(|half| half.start().wrapping_sub(span.origin));
        let watched = |cta: &mut Cta<'_>| !span.writable || self.watch_rows(cta, pc, &access, &halves);
        match halves.halves {
            [Half::Place(_), Half::Place(_)] => {
                let bare = |at: u64| cells.unwritten(&[at; 32], 1, load.bytes) != 0;
                if told && place.into_iter().any(bare) || !watched(cta) {
                    return false;
                }
                let first = cells.load(place[0], load.bytes);
                let starts =
                    [first, if place[0] == place[1] { first } else { cells.load(place[1], load.bytes) }];
                self.frames[id].registers[to.0 as usize].set_pattern(LanePattern { starts, step: 0 });
            }
            [Half::Row(_), Half::Row(_)] if load.bytes == 4 => {
                if told && !place.into_iter().all(|at| cells.is_range_written(at, ROW_BYTES)) || !watched(cta)
                {
                    return false;
                }
                let (low, high) = first_words_mut(&mut self.result).split_at_mut(HALF);
                if !(cells.load_words(place[0], low) && cells.load_words(place[1], high)) {
                    return false;
                }
                self.frames[id].registers[to.0 as usize].take_words(&mut self.result);
            }
            _ => {
                if !watched(cta) || !load_halves(&span, &halves, told, &mut self.result) {
                    return false;
                }
                self.frames[id].registers[to.0 as usize].take_lanes(&mut self.result);
            }
        }
        self.watch.read();
        true
    }

    /// Stores in rows; false if nothing was done.
    #[inline]
    pub(super) fn store_in_rows(
        &mut self,
        cta: &mut Cta<'_>,
        (id, pc): (FrameId, u32),
        store: &Store,
    ) -> bool {
        let [from] = &*store.from else { return false };
        if store.strength.strong {
            return false;
        }
        let known = self.rows_of(cta, id, (store.place, store.address, store.bytes));
        let Some((place, halves)) = known else { return false };
        let Some(rows) = halves.rows() else { return false };
        let access = access(AccessKind::Write, place, store.bytes, halves);
        let is_narrow = store.bytes == 4 && self.frames[id].narrow(*from);
        if !is_narrow {
            self.frames[id].settle_operand(*from);
        }
        if place == Place::Shared {
            if !is_narrow || !is_in_shared(cta, &halves) || !self.watch_rows(cta, pc, &access, &halves) {
                return false;
            }
            let (low, high) = self.frames[id].words(*from, cta.launch).split_at(HALF);
            cta.shared.store_words(rows[0], low);
            cta.shared.store_words(rows[1], high);
        } else {
            let Some(span) = span_of(cta, &access, &halves) else { return false };
            if !self.watch_rows(cta, pc, &access, &halves) {
                return false;
            }
            let place = rows.map(|start| start.wrapping_sub(span.origin));
            let frame = &self.frames[id];
            let is_stored = if is_narrow {
                let (low, high) = frame.words(*from, cta.launch).split_at(HALF);
                span.cells.store_words(place[0], low) && span.cells.store_words(place[1], high)
            } else {
                store_halves(&span, &halves, frame.column(*from, &cta.launch.constants))
            };
            if !is_stored {
                return false;
            }
        }
        self.watch.drop_state();
        cta.changes += 1;
        true
    }

    /// Loads an argument that all lanes name; false if it is another access, or one that is reported.
    fn load_shared_argument(&mut self, cta: &Cta<'_>, id: FrameId, load: &Load, to: Reg) -> bool {
        let Base::Zero = load.address.base else { return false };
        let (start, bytes) = (load.address.offset as usize, load.bytes as usize);
        let Some(from) = cta.launch.arguments.get(start..start.saturating_add(bytes)) else { return false };
        if !start.is_multiple_of(bytes.max(1)) {
            return false;
        }
        let mut value = [0; 8];
        value.iter_mut().zip(from).for_each(|(into, from)| *into = *from);
        let value = extended(u64::from_le_bytes(value), load);
        self.frames[id].registers[to.0 as usize].set_uniform(value);
        true
    }

    /// Loads from the shared memory of the block.
    #[inline(always)]
    fn load_shared_rows(
        &mut self,
        cta: &mut Cta<'_>,
        (id, pc): (FrameId, u32),
        (access, halves): (&Access, &Halves),
        to: Reg,
    ) -> bool {
        let starts = halves.halves.map(Half::start);
        let bytes = u64::from(halves.bytes);
        if !is_in_shared(cta, halves) {
            return false;
        }
        match halves.halves {
            [Half::Place(_), Half::Place(_)] => {
                let is_written = |start: u64| cta.shared.is_range_written(start, bytes);
                if !(is_written(starts[0])
                    && is_written(starts[1])
                    && self.watch_rows(cta, pc, access, halves))
                {
                    return false;
                }
                let starts = starts.map(|start| cta.shared.load(start, halves.bytes));
                self.frames[id].registers[to.0 as usize].set_pattern(LanePattern { starts, step: 0 });
            }
            [Half::Row(_), Half::Row(_)] if bytes == 4 => {
                let is_written = |start: u64| cta.shared.is_range_written(start, ROW_BYTES);
                if !(is_written(starts[0])
                    && is_written(starts[1])
                    && self.watch_rows(cta, pc, access, halves))
                {
                    return false;
                }
                let (low, high) = first_words_mut(&mut self.result).split_at_mut(HALF);
                cta.shared.load_words(starts[0], low);
                cta.shared.load_words(starts[1], high);
                self.frames[id].registers[to.0 as usize].take_words(&mut self.result);
            }
            _ => return false,
        }
        self.watch.read();
        true
    }

    /// The rows or places that an access reaches, and in which memory, if they are aligned and known from the registers.
    #[inline(always)]
    fn rows_of(
        &self,
        cta: &Cta<'_>,
        id: FrameId,
        (place, address, bytes): (Place, Address, u32),
    ) -> Option<(Place, Halves)> {
        let Base::Value(source) = address.base else { return None };
        if !matches!(bytes, 4 | 8) || cta.is_clustered() {
            return None;
        }
        let pattern = self.frames[id].pattern(source, &cta.launch.constants)?;
        let halves = pattern.plus(address.offset as u64).halves(bytes)?;
        let [first, second] = halves.halves.map(Half::start);
        if (first | second) & u64::from(bytes - 1) != 0 {
            return None;
        }
        let is_global = |start: u64| Place::at(start) == Place::Global;
        match place {
            Place::Global | Place::Shared => Some((place, halves)),
            Place::Generic if is_global(first) && is_global(second) => Some((Place::Global, halves)),
            _ => None,
        }
    }

    /// Lets the race check see an access in rows; false if it must see it lane by lane.
    #[inline(always)]
    fn watch_rows(&self, cta: &mut Cta<'_>, pc: u32, access: &Access, halves: &Halves) -> bool {
        let Some(races) = &mut cta.races else { return true };
        let writes = access.kind == AccessKind::Write;
        if !races.copies.is_empty()
            || races.copies.has_sources()
            || !races.copies.bulk.is_empty()
            || writes && access.place == Place::Shared && races.copies.generic.is_some()
            || writes && access.place != Place::Shared && races.launch.constant_reads.is_some()
        {
            return false;
        }
        races.clocks.end_polls(self.index, FULL);
        races.touch_halves(self.index, pc, (writes, access.place == Place::Shared), halves)
    }
}

fn access(kind: AccessKind, place: Place, bytes: u32, halves: Halves) -> Access {
    Access { halves: Some(halves), ..Access::plain(kind, place, bytes, bytes) }
}

/// Whether an access stays in one variable of shared memory, and reaches nothing that is more than memory.
#[inline(always)]
fn is_in_shared(cta: &Cta<'_>, halves: &Halves) -> bool {
    let (lowest, end) = halves.extent();
    cta.mbarriers.is_empty() && end <= cta.shared.len() && cta.launch.code.shared.is_one(lowest, end)
}

/// The block of global memory that an access stays in, if the access is one that was declared.
#[inline(always)]
fn span_of<'l>(cta: &mut Cta<'l>, access: &Access, halves: &Halves) -> Option<Span<'l>> {
    let (lowest, end) = halves.extent();
    let span = cta.spans.find(lowest)?;
    let writes = access.kind != AccessKind::Read;
    let is_allowed = !writes || span.writable && !cta.launch.is_constant(lowest);
    (lowest >= span.start && end <= span.end && is_allowed && span.declared.covers(access.kind))
        .then_some(span)
}
