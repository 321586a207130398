//! Undefined bits on their way between registers and memory.

use super::Warp;
use super::access::Access;
use super::frame::FrameId;
use super::lane_group::LaneGroup;
use crate::exec::block::Cta;
use crate::exec::check::ValueRule;
use crate::exec::lowered_code::{Load, Pred, PredSource, Reg, Source, Store};
use crate::exec::memory::Span;
use crate::exec::memory::generic_address::{Place, WINDOWS_START};
use crate::exec::undefined::{Carried, Origin};
use crate::exec::warp_register::{Column, LANES, each, first_lane, lanes_where};

/// A load of fewer bytes than this may read padding alone, as a memcpy by bytes does.
const WORD_BYTES: u32 = 4;
/// Bytes beside such a load of which one must be defined for that.
const NEIGHBOUR_BYTES: u64 = 8;

/// Undefined bits that a lane stores.
#[derive(Clone, Copy)]
pub(super) struct StoredBits {
    pub(super) bits: u64,
    pub(super) origin: Origin,
    /// Whether the store has no defined bit and is too large for padding.
    pub(super) is_bare: bool,
}

impl StoredBits {
    /// Bits of a store of which nothing else is known.
    pub(super) fn of(bits: u64, origin: Origin) -> Self {
        Self { bits, origin, is_bare: false }
    }
}

impl Warp {
    /// What lanes read from bytes that are undefined, of a part of an access. `look` answers the undefined bits at an address as a lane sees it.
    #[cold]
    pub(super) fn undefined_in(
        &self,
        cta: &Cta<'_>,
        at: usize,
        access: &Access,
        (addresses, part): (&Column, &Column),
        bare: u32,
        look: impl Fn(usize, u64, u32) -> u64,
    ) -> Carried {
        let mut carried = Carried::NOTHING;
        each(bare, |lane| {
            let bits = look(lane, part[lane], access.part_bytes);
            if bits != 0 {
                let first = part[lane] + u64::from(bits.trailing_zeros() / 8);
                let origin = self.origin_at(cta, access.place, first, lane).unwrap_or_else(|| {
                    let is_value = is_value(access, addresses[lane], |at, bytes| look(lane, at, bytes));
                    self.origin_here(cta, at, access, (part[lane], lane), (bits, is_value))
                });
                carried.mark(lane, bits, origin);
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
        self.frames[self.lane_groups[at].frame].undefined.put(to, &mut carried, bare);
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
        look: impl Fn(usize, u64, u32) -> u64,
    ) {
        let lane = first_lane(bare);
        let found = self.undefined_in(cta, at, access, (addresses, addresses), 1 << lane, look);
        cta.report_use(self.index, lane, self.lane_groups[at].pc, found.origins[lane]);
    }

    /// Marks memory after undefined bits of a register were stored to it; `bare` are the lanes whose store has no defined bit.
    pub(super) fn mark_stored(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        access: &Access,
        addresses: &Column,
        (lanes, from, bare): (u32, Source, u32),
        span: Option<&Span<'_>>,
    ) {
        let frame = self.lane_groups[at].frame;
        let Some(known) = self.frames[frame].undefined.column(from) else { return };
        let (bits, origins) = (known.bits, known.origins);
        // Of lanes that store to one place the highest stays. Stacks are places of their lanes.
        let stays = |lane: usize| {
            let meets = |other: usize| lanes >> other & 1 != 0 && addresses[other] == addresses[lane];
            access.place == Place::Local || !(lane + 1..LANES).any(meets)
        };
        each(lanes, |lane| {
            if bits[lane] != 0 && stays(lane) {
                let is_bare = bare >> lane & 1 != 0;
                let stored = StoredBits { bits: bits[lane], origin: origins[lane], is_bare };
                self.undefine(cta, at, access, (addresses[lane], lane), stored, span);
            }
        });
    }

    /// The lanes whose store has no defined bit and is larger than padding that is copied alone.
    pub(super) fn bare_stores(&self, at: usize, store: &Store, lanes: u32) -> u32 {
        if store.bytes * (store.from.len() as u32) < WORD_BYTES {
            return 0;
        }
        let ones = ones(store.bytes);
        let undefined = &self.frames[self.lane_groups[at].frame].undefined;
        lanes_where(lanes, |lane| {
            let mut parts = store.from.iter().map(|from| undefined.column(*from));
            parts.all(|part| part.is_some_and(|known| known.bits[lane] & ones == ones))
        })
    }

    /// Bits of one lane are stored that are undefined.
    pub(super) fn undefine(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        access: &Access,
        (address, lane): (u64, usize),
        stored: StoredBits,
        span: Option<&Span<'_>>,
    ) {
        let bytes = access.part_bytes;
        let StoredBits { origin, is_bare, .. } = stored;
        let bits = stored.bits & ones(bytes);
        if bits == 0 || !cta.launch.rules.has(ValueRule::Stores) {
            return;
        }
        match access.place {
            Place::Shared | Place::Cluster => cta.shared.undefine(address, bytes, bits),
            Place::Local => self.local.undefine(address, lane, bytes, bits),
            _ => {
                let Some(span) = span else { return };
                let pc = self.lane_groups[at].pc;
                let padding = origin.may_be_padding() && !is_bare && cta.launch.rules.has(ValueRule::Padding);
                let key = u64::from(pc) << 33 | u64::from(origin.pc_or(pc)) << 1 | u64::from(padding);
                let store = || cta.undefined_store((self.index, lane, pc), origin, (bytes, padding));
                span.cells.undefine(address - span.origin, bytes, bits, key, &store);
            }
        }
        let undefined = (0..u64::from(bytes)).filter(|byte| bits >> (8 * byte) & 0xff != 0);
        self.note_origins(cta, access.place, undefined.map(|byte| address + byte), lane, origin);
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
            let look = |lane: usize, at: u64, bytes: u32| self.local.undefined(at, lane, bytes);
            let addresses = [address; LANES];
            self.undefined_in(cta, at, &Access::stack(bytes), (&addresses, &addresses), bare, look)
        })
    }

    /// Reports bytes on the stack of a lane that are used and undefined.
    pub(super) fn use_stack(&self, cta: &Cta<'_>, at: usize, lane: usize, address: u64, bytes: u32) {
        let bits = self.local.undefined(address, lane, bytes);
        if bits != 0 && cta.launch.rules.has(ValueRule::Printing) {
            let addresses = [address; LANES];
            let look = |lane: usize, at: u64, bytes: u32| self.local.undefined(at, lane, bytes);
            let access = Access::stack(bytes);
            let found = self.undefined_in(cta, at, &access, (&addresses, &addresses), 1 << lane, look);
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
            let width = code.widths.get(to.0 as usize).copied().unwrap_or(64);
            let ones = u64::MAX >> (64 - u32::from(width.clamp(1, 64)));
            let carried = Carried { bits: [ones; LANES], origins: [origin; LANES], alternatives: None };
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

    fn origin_here(
        &self,
        cta: &Cta<'_>,
        at: usize,
        access: &Access,
        (address, lane): (u64, usize),
        (bits, is_value): (u64, bool),
    ) -> Origin {
        let LaneGroup { pc, .. } = self.lane_groups[at];
        let (place, bytes) = (access.place, access.part_bytes);
        Origin::Memory {
            pc,
            block: cta.index,
            thread: (self.index * LANES + lane) as u32,
            place,
            address,
            bytes,
            bits,
            is_value,
        }
    }

    fn origin_at(&self, cta: &Cta<'_>, place: Place, address: u64, lane: usize) -> Option<Origin> {
        match place {
            Place::Shared | Place::Cluster => cta.origins.at(address),
            Place::Local => self.local_origins.at(local_byte(address, lane)),
            Place::Param => None,
            Place::Global | Place::Generic => cta.launch.origins().at(address),
        }
    }

    /// Remembers where undefined bytes come from that a lane stores.
    fn note_origins(
        &mut self,
        cta: &mut Cta<'_>,
        place: Place,
        addresses: impl Iterator<Item = u64> + Clone,
        lane: usize,
        origin: Origin,
    ) {
        match place {
            Place::Shared | Place::Cluster => addresses.for_each(|address| cta.origins.note(address, origin)),
            Place::Local => {
                addresses.for_each(|address| self.local_origins.note(local_byte(address, lane), origin));
            }
            Place::Param => {}
            // A block of the device heap is handed out again.
            Place::Global | Place::Generic if addresses.clone().any(|address| address >= WINDOWS_START) => {}
            Place::Global | Place::Generic => {
                let mut notes = cta.launch.origins();
                addresses.for_each(|address| notes.note(address, origin));
            }
        }
    }
}

/// Whether an undefined part of an access is a value that the program means. Padding is read together with something that is defined, or byte by byte
/// beside it.
fn is_value(access: &Access, address: u64, look: impl Fn(u64, u32) -> u64) -> bool {
    let Access { bytes, part_bytes, .. } = *access;
    if bytes >= WORD_BYTES {
        let parts = (0..u64::from(bytes / part_bytes)).map(|part| address + part * u64::from(part_bytes));
        return { parts }.all(|part| look(part, part_bytes) == ones(part_bytes));
    }
    let start = address / NEIGHBOUR_BYTES * NEIGHBOUR_BYTES;
    (start..start + NEIGHBOUR_BYTES).all(|byte| look(byte, 1) == 0xff)
}

/// A one for every bit of so many bytes.
fn ones(bytes: u32) -> u64 {
    u64::MAX >> (64 - 8 * bytes.clamp(1, 8))
}

fn local_byte(address: u64, lane: usize) -> u64 {
    address * LANES as u64 + lane as u64
}
