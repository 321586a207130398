//! Undefined bits on their way between registers and memory.

use super::Warp;
use super::frame::FrameId;
use super::lane_group::LaneGroup;
use super::memory::Access;
use crate::exec::block::Cta;
use crate::exec::check::ValueRule;
use crate::exec::code::{Load, Pred, PredSource, Reg, Source, Store};
use crate::exec::column::{Column, LANES, each, first_lane, lanes_where};
use crate::exec::memory::Span;
use crate::exec::memory::window::{Place, WINDOWS_START};
use crate::exec::undefined::{Carried, Origin};

/// The largest store that may be one of padding alone, as a memcpy makes them.
const PADDING_BYTES: u32 = 3;

impl Warp {
    /// What lanes read from bytes that were never written. `bits` are the undefined ones of a lane.
    #[cold]
    pub(super) fn undefined_in(
        &self,
        cta: &Cta<'_>,
        at: usize,
        access: &Access,
        addresses: &Column,
        bare: u32,
        bits: impl Fn(usize) -> u64,
    ) -> Carried {
        let mut carried = Carried::NOTHING;
        each(bare, |lane| {
            let bits = bits(lane);
            if bits != 0 {
                let first = addresses[lane] + u64::from(bits.trailing_zeros() / 8);
                let origin = self.origin_at(cta, access.place, first, lane);
                let here = || self.origin_here(cta, at, access, addresses[lane], lane);
                carried.mark(lane, bits, origin.unwrap_or_else(here));
            }
        });
        carried
    }

    /// Marks what a load put into a register.
    pub(super) fn mark_loaded(
        &mut self,
        cta: &Cta<'_>,
        at: usize,
        to: Reg,
        load: &Load,
        mut carried: Carried,
        bare: u32,
    ) {
        if !cta.launch.rules.has(ValueRule::Loads) {
            return self.report_uses(cta, self.lane_groups[at].pc, &carried.origins, bare);
        }
        super::memory::extend(&mut carried.bits, load);
        self.frames[self.lane_groups[at].frame].undefined.set(to, &carried, bare);
    }

    /// Reports lanes that compute with bytes of memory that were never written, as atomics do.
    #[cold]
    pub(super) fn use_unwritten(
        &self,
        cta: &Cta<'_>,
        at: usize,
        access: &Access,
        addresses: &Column,
        bare: u32,
    ) {
        let mut told = false;
        each(bare, |lane| {
            if !std::mem::replace(&mut told, true) {
                let known = self.origin_at(cta, access.place, addresses[lane], lane);
                let origin =
                    known.unwrap_or_else(|| self.origin_here(cta, at, access, addresses[lane], lane));
                cta.report_use(self.index, lane, self.lane_groups[at].pc, origin);
            }
        });
    }

    /// Marks memory after undefined bits of a register were stored to it.
    pub(super) fn mark_stored(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        access: &Access,
        addresses: &Column,
        (lanes, from): (u32, Source),
        span: Option<&Span<'_>>,
    ) {
        let frame = self.lane_groups[at].frame;
        let Some(known) = self.frames[frame].undefined.column(from).cloned() else { return };
        // Of lanes that store to one place the highest stays. Stacks are places of their lanes.
        let stays = |lane: usize| {
            let meets = |other: usize| lanes >> other & 1 != 0 && addresses[other] == addresses[lane];
            access.place == Place::Local || !(lane + 1..LANES).any(meets)
        };
        each(lanes, |lane| {
            if known.bits[lane] != 0 && stays(lane) {
                self.undefine(
                    cta,
                    at,
                    access,
                    (addresses[lane], lane),
                    (known.bits[lane], known.origins[lane]),
                    span,
                );
            }
        });
    }

    /// Notes a store to global memory of which no bit is defined. Padding is smaller, or stands beside something that was written.
    pub(super) fn note_copies(&self, cta: &Cta<'_>, at: usize, store: &Store, lanes: u32) {
        if store.bytes * store.from.len() as u32 <= PADDING_BYTES {
            return;
        }
        let LaneGroup { pc, frame, .. } = self.lane_groups[at];
        let ones = u64::MAX >> (64 - 8 * store.bytes.clamp(1, 8));
        let undefined = &self.frames[frame].undefined;
        let is_bare = |lane: usize| {
            let parts = store.from.iter().map(|from| undefined.column(*from));
            { parts }.all(|part| part.is_some_and(|known| known.bits[lane] & ones == ones))
        };
        let bare = lanes_where(lanes, is_bare);
        let origin = store.from.first().and_then(|from| undefined.column(*from));
        if let Some(known) = origin.filter(|_| bare != 0) {
            let lane = first_lane(bare);
            cta.note_copy(self.index, lane, pc, known.origins[lane]);
        }
    }

    /// Bits of one lane are stored that are undefined.
    pub(super) fn undefine(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        access: &Access,
        (address, lane): (u64, usize),
        (bits, origin): (u64, Origin),
        span: Option<&Span<'_>>,
    ) {
        let bytes = access.part_bytes;
        let ones = u64::MAX >> (64 - 8 * bytes.clamp(1, 8));
        let bits = bits & ones;
        if bits == 0 || !cta.launch.rules.has(ValueRule::Stores) {
            return;
        }
        match access.place {
            Place::Shared => cta.shared.undefine(address, bytes, bits),
            Place::Local => self.local.undefine(address, lane, bytes, bits),
            _ => {
                let Some(span) = span else { return };
                let pc = self.lane_groups[at].pc;
                let copied = || cta.copied(self.index, lane, pc, origin);
                span.cells.undefine(address - span.origin, bytes, bits, &copied);
            }
        }
        for byte in (0..u64::from(bytes)).filter(|byte| bits >> (8 * byte) & 0xff != 0) {
            self.note_origin(cta, access.place, address + byte, lane, origin);
        }
    }

    /// The undefined bits of a value in a frame on the stacks.
    pub(super) fn frame_bits(
        &self,
        cta: &Cta<'_>,
        at: usize,
        (frame, offset, bytes): (FrameId, u64, u64),
        lanes: u32,
    ) -> Option<Carried> {
        let (address, bytes) = (self.frames[frame].base + offset, bytes.clamp(1, 8) as u32);
        let bare = self.local.unwritten(&[address; LANES], lanes, bytes);
        (bare != 0).then(|| {
            let bits = |lane: usize| self.local.undefined(address, lane, bytes);
            self.undefined_in(cta, at, &Access::stack(bytes), &[address; LANES], bare, bits)
        })
    }

    /// Reports bytes on the stack of a lane that are used and undefined.
    pub(super) fn use_stack(&self, cta: &Cta<'_>, at: usize, lane: usize, address: u64, bytes: u32) {
        let bits = self.local.undefined(address, lane, bytes);
        if bits != 0 && cta.launch.rules.has(ValueRule::Printing) {
            let addresses = [address; LANES];
            let found = self.undefined_in(cta, at, &Access::stack(bytes), &addresses, 1 << lane, |_| bits);
            cta.report_use(self.index, lane, self.lane_groups[at].pc, found.origins[lane]);
        }
    }

    /// Marks a value in a frame on the stacks.
    pub(super) fn mark_frame(
        &mut self,
        (frame, offset, bytes): (FrameId, u64, u64),
        carried: Option<Carried>,
        lanes: u32,
    ) {
        let Some(carried) = carried else { return };
        let address = self.frames[frame].base + offset;
        let bytes = bytes.clamp(1, 8) as u32;
        each(lanes, |lane| {
            self.local.undefine(address, lane, bytes, carried.bits[lane]);
            for byte in (0..u64::from(bytes)).filter(|byte| carried.bits[lane] >> (8 * byte) & 0xff != 0) {
                self.local_origins.note(local_byte(address + byte, lane), carried.origins[lane]);
            }
        });
    }

    /// Marks a register of another frame.
    pub(super) fn mark_register(&mut self, frame: FrameId, to: Reg, carried: Option<Carried>, lanes: u32) {
        if let Some(carried) = carried {
            self.frames[frame].undefined.set(to, &carried, lanes);
        }
    }

    /// Marks a predicate of another frame.
    pub(super) fn mark_predicate(
        &mut self,
        (from, inner): (PredSource, FrameId),
        (to, outer): (Pred, FrameId),
        lanes: u32,
    ) {
        let undefined = &self.frames[inner].undefined;
        let marked = undefined.predicate(from);
        if marked != 0 {
            let origins: [Origin; LANES] = std::array::from_fn(|lane| undefined.predicate_origin(from, lane));
            self.frames[outer].undefined.set_predicate(to, marked, |lane| origins[lane], lanes);
        }
    }

    /// Marks the registers of a new frame that may be read before they are assigned.
    pub(super) fn mark_unassigned(&mut self, cta: &Cta<'_>, frame: FrameId, function: u32, lanes: u32) {
        if !cta.launch.options.checks.uninitialised || !cta.launch.rules.has(ValueRule::Unassigned) {
            return;
        }
        let Some(code) = Self::code(cta).functions.get(function as usize) else { return };
        let undefined = &mut self.frames[frame].undefined;
        for (to, register) in &code.unassigned {
            let origin = Origin::Register { function, register: *register };
            let carried = Carried { bits: [u64::MAX; LANES], origins: [origin; LANES] };
            undefined.set(*to, &carried, lanes);
        }
        for (to, register) in &code.unassigned_predicates {
            let origin = Origin::Register { function, register: *register };
            undefined.set_predicate(*to, lanes, |_| origin, lanes);
        }
    }

    /// Forgets where the bytes of a new frame came from.
    pub(super) fn forget_origins(&mut self, start: u64, end: u64) {
        self.local_origins.forget(|byte| (start..end).contains(&(byte / LANES as u64)));
    }

    /// Remembers where bytes came from that a call copies on the stacks.
    pub(super) fn copy_origins(&mut self, from: u64, to: u64, bytes: u64, lanes: u32) {
        if self.local_origins.is_empty() {
            return;
        }
        for byte in 0..bytes {
            each(lanes, |lane| {
                if let Some(origin) = self.local_origins.at(local_byte(from + byte, lane)) {
                    self.local_origins.note(local_byte(to + byte, lane), origin);
                }
            });
        }
    }

    fn origin_here(&self, cta: &Cta<'_>, at: usize, access: &Access, address: u64, lane: usize) -> Origin {
        let LaneGroup { pc, .. } = self.lane_groups[at];
        let (place, bytes) = (access.place, access.part_bytes);
        Origin::Memory {
            pc,
            block: cta.index,
            thread: (self.index * LANES + lane) as u32,
            place,
            address,
            bytes,
        }
    }

    fn origin_at(&self, cta: &Cta<'_>, place: Place, address: u64, lane: usize) -> Option<Origin> {
        match place {
            Place::Shared => cta.origins.at(address),
            Place::Local => self.local_origins.at(local_byte(address, lane)),
            Place::Param => None,
            Place::Global | Place::Generic => cta.launch.origins().at(address),
        }
    }

    fn note_origin(&mut self, cta: &mut Cta<'_>, place: Place, address: u64, lane: usize, origin: Origin) {
        match place {
            Place::Shared => cta.origins.note(address, origin),
            Place::Local => self.local_origins.note(local_byte(address, lane), origin),
            Place::Param => {}
            // A block of the device heap is handed out again.
            Place::Global | Place::Generic if address >= WINDOWS_START => {}
            Place::Global | Place::Generic => cta.launch.origins().note(address, origin),
        }
    }
}

fn local_byte(address: u64, lane: usize) -> u64 {
    address * LANES as u64 + lane as u64
}
