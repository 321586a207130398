//! Loads and stores.
//!
//! Addresses of all lanes are computed and checked first. Lanes that reach the same memory go together: usually all
//! of them, into one block, with one call.

use super::access::Access;
use super::frame::{Frame, FrameId};
use super::lane_group::LaneGroup;
use super::race_hooks::lock_locations;
use super::repeated_poll::Poll;
use super::{Done, Flow, Trouble, Warp};
use crate::PtxFunctionId;
use crate::exec::address_halves::Halves;
use crate::exec::block::Cta;
use crate::exec::check::ValueRule;
use crate::exec::finding::{AccessKind, AddressMistake, ExecFindingKind};
use crate::exec::lowered_code::{Address, Base, Load, Store};
use crate::exec::memory::generic_address::Place;
use crate::exec::out_of_bounds_text::{below_zero, byte_count, past_end};
use crate::exec::warp_register::{Column, FULL, LANES, each, first_lane, lanes_where};

/// Strong loads from global memory, and atomics there that change nothing, after which a block lets others run: it is probably waiting for them.
pub(crate) const MAX_POLLS: u32 = 64;

impl Warp {
    pub(super) fn load(&mut self, cta: &mut Cta<'_>, at: usize, load: &Load, lanes: u32) -> Done<Flow> {
        if load.place == Place::Param {
            if self.load_argument(cta, at, load, lanes) {
                return Ok(Flow::Next);
            }
        } else {
            self.watch.read();
        }
        let mut addresses = self.addresses(cta, at, load.address);
        let bytes = load.bytes * load.to.len() as u32;
        let Load { place, strength, bytes: part_bytes, .. } = *load;
        let halves = halves(cta, &addresses, lanes, bytes, part_bytes);
        let mut access =
            Access { kind: AccessKind::Read, place, bytes, part_bytes, strength, halves, block: None };
        check_aligned(&access, &addresses, lanes)?;
        let locations = lock_locations(cta, strength);
        let mut rest = lanes;
        while rest != 0 {
            let group = self.resolve(cta, at, &mut access, load.place, &mut addresses, rest)?;
            if let Some(locations) = &locations {
                self.acquire(cta, at, &access, &addresses, group, locations);
            }
            match access.place {
                Place::Shared => self.load_shared(cta, at, load, &access, &addresses, group)?,
                Place::Local => self.load_local(cta, at, load, &access, &addresses, group)?,
                Place::Param => self.load_param(cta, at, load, &access, &addresses, group)?,
                Place::Global | Place::Generic | Place::Cluster => {
                    self.load_global(cta, at, load, &access, &addresses, group)?
                }
            }
            rest &= !group;
        }
        cta.visit(None);
        if load.strength.strong {
            cta.polls += u32::from(access.place == Place::Global || cta.is_clustered());
            let parts = load.to.len();
            let poll = Poll { place: access.place, addresses: &addresses, lanes, bytes: part_bytes, parts };
            let lets_lanes = self.lets_others_run(cta, at, &poll, self.has_other_lanes(at));
            if lets_lanes || cta.polls > MAX_POLLS {
                return Ok(Flow::Yield);
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn store(&mut self, cta: &mut Cta<'_>, at: usize, store: &Store, lanes: u32) -> Done<Flow> {
        self.watch.drop_state();
        cta.changes += 1;
        let mut addresses = self.addresses(cta, at, store.address);
        let bytes = store.bytes * store.from.len() as u32;
        let Store { place, strength, bytes: part_bytes, .. } = *store;
        let halves = halves(cta, &addresses, lanes, bytes, part_bytes);
        let mut access =
            Access { kind: AccessKind::Write, place, bytes, part_bytes, strength, halves, block: None };
        check_aligned(&access, &addresses, lanes)?;
        let mut locations = lock_locations(cta, strength);
        let mut rest = lanes;
        while rest != 0 {
            let group = self.resolve(cta, at, &mut access, store.place, &mut addresses, rest)?;
            match access.place {
                Place::Shared => self.store_shared(cta, at, store, &access, &addresses, group)?,
                Place::Local => self.store_local(cta, at, store, &access, &addresses, group)?,
                Place::Param => {
                    let lane = first_lane(group);
                    let bad = access.bad(addresses[lane], String::new());
                    return Err(Trouble::new(lane, ExecFindingKind::ReadOnly(bad)));
                }
                Place::Global | Place::Generic | Place::Cluster => {
                    self.store_global(cta, at, store, &access, &addresses, group)?;
                }
            }
            if let Some(locations) = locations.as_deref_mut() {
                self.release_at(cta, &access, &addresses, group, locations);
            }
            rest &= !group;
        }
        cta.visit(None);
        Ok(Flow::Next)
    }

    /// The addresses all lanes of a lane group mean.
    pub(super) fn addresses(&self, cta: &Cta<'_>, at: usize, address: Address) -> Column {
        let frame = &self.frames[self.lane_groups[at].frame];
        let offset = address.offset as u64;
        match address.base {
            Base::Value(source) => {
                let mut addresses = *frame.column(source, &cta.launch.constants);
                addresses.iter_mut().for_each(|address| *address = address.wrapping_add(offset));
                addresses
            }
            Base::Frame => [frame.base.wrapping_add(offset); LANES],
            Base::Zero => [offset; LANES],
        }
    }

    fn load_shared(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        load: &Load,
        access: &Access,
        addresses: &Column,
        lanes: u32,
    ) -> Done<()> {
        self.check_shared(cta, at, access, addresses, lanes)?;
        self.watch_read(cta, at, load, access, addresses, lanes);
        if let (Some(halves), FULL, [to]) = (&access.halves, lanes, &*load.to)
            && cta.shared.load_halves(halves, &mut self.result)
        {
            extend(&mut self.result, load);
            if to.0 != 0 {
                self.frames[self.lane_groups[at].frame].take(*to, &mut self.result, lanes);
            }
            return Ok(());
        }
        for (part, to) in load.parts() {
            let mut out = [0; LANES];
            let part = addresses.map(|address| address.wrapping_add(part * u64::from(load.bytes)));
            let bare = cta.shared.unwritten(&part, lanes, load.bytes);
            cta.shared.load_lanes(&part, lanes, load.bytes, &mut out);
            extend(&mut out, load);
            self.frames[self.lane_groups[at].frame].write(*to, &out, lanes);
            if bare != 0 {
                let look = |_: usize, at: u64, bytes: u32| cta.shared.undefined(at, bytes);
                let carried = self.undefined_in(cta, at, access, (addresses, &part), bare, look);
                self.mark_loaded(cta, at, *to, load, carried, bare);
            }
        }
        Ok(())
    }

    fn load_local(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        load: &Load,
        access: &Access,
        addresses: &Column,
        lanes: u32,
    ) -> Done<()> {
        let frame = self.lane_groups[at].frame;
        self.check_local(cta, at, access, addresses, lanes)?;
        for (part, to) in load.parts() {
            let mut out = [0; LANES];
            let part = addresses.map(|address| address.wrapping_add(part * u64::from(load.bytes)));
            let bare = self.local.unwritten(&part, lanes, load.bytes);
            self.local.load(&part, lanes, load.bytes, &mut out);
            extend(&mut out, load);
            self.frames[frame].write(*to, &out, lanes);
            if bare != 0 {
                let look = |lane: usize, at: u64, bytes: u32| self.local.undefined(at, lane, bytes);
                let carried = self.undefined_in(cta, at, access, (addresses, &part), bare, look);
                self.mark_loaded(cta, at, *to, load, carried, bare);
            }
        }
        Ok(())
    }

    /// Loads an argument that all lanes name. False if it is another access, or one that is reported.
    fn load_argument(&mut self, cta: &Cta<'_>, at: usize, load: &Load, lanes: u32) -> bool {
        let (Base::Zero, [to]) = (load.address.base, &*load.to) else { return false };
        let (start, bytes) = (load.address.offset as usize, load.bytes as usize);
        let Some(from) = cta.launch.arguments.get(start..start.saturating_add(bytes)) else { return false };
        if !start.is_multiple_of(bytes.max(1)) || load.strength.strong || to.0 == 0 {
            return false;
        }
        let mut value = [0; 8];
        value.iter_mut().zip(from).for_each(|(into, from)| *into = *from);
        self.result.fill(u64::from_le_bytes(value));
        extend(&mut self.result, load);
        self.frames[self.lane_groups[at].frame].take(*to, &mut self.result, lanes);
        true
    }

    fn load_param(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        load: &Load,
        access: &Access,
        addresses: &Column,
        lanes: u32,
    ) -> Done<()> {
        let arguments = cta.launch.arguments;
        check_bounds(access, addresses, lanes, arguments.len() as u64, "of the arguments of the kernel")?;
        for (part, to) in (0u64..).zip(&load.to) {
            let read = |address: u64| {
                let start = (address + part * u64::from(load.bytes)) as usize;
                let mut bytes = [0; 8];
                let from = arguments.get(start..start + load.bytes as usize).unwrap_or(&[]);
                bytes.iter_mut().zip(from).for_each(|(into, from)| *into = *from);
                u64::from_le_bytes(bytes)
            };
            let mut out = match load.address.base {
                Base::Zero => [read(addresses[0]); LANES],
                _ => {
                    addresses.map(|address| if address < arguments.len() as u64 { read(address) } else { 0 })
                }
            };
            extend(&mut out, load);
            self.frames[self.lane_groups[at].frame].write(*to, &out, lanes);
        }
        Ok(())
    }

    fn store_shared(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        store: &Store,
        access: &Access,
        addresses: &Column,
        lanes: u32,
    ) -> Done<()> {
        self.check_shared(cta, at, access, addresses, lanes)?;
        self.watch(cta, at, access, addresses, lanes, |cta, lane| {
            let content = |address: u64| cta.shared.load(address, store.bytes);
            self.writes_same(cta, at, store, addresses, (lanes, lane), content)
        });
        let LaneGroup { frame, .. } = self.lane_groups[at];
        if let (Some(halves), FULL, [from]) = (&access.halves, lanes, &*store.from)
            && !self.frames[frame].undefined.any()
        {
            let values = self.frames[frame].column(*from, &cta.launch.constants);
            if cta.shared.store_halves(halves, values) {
                return Ok(());
            }
        }
        for (part, from) in (0u64..).zip(&store.from) {
            let values = self.frames[frame].column(*from, &cta.launch.constants);
            let part = addresses.map(|address| address.wrapping_add(part * u64::from(store.bytes)));
            cta.shared.store_lanes(&part, lanes, store.bytes, values);
            if self.frames[frame].undefined.any() {
                self.mark_stored(cta, at, access, &part, (lanes, *from, 0), None);
            }
        }
        Ok(())
    }

    fn store_local(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        store: &Store,
        access: &Access,
        addresses: &Column,
        lanes: u32,
    ) -> Done<()> {
        let frame = self.lane_groups[at].frame;
        self.check_local(cta, at, access, addresses, lanes)?;
        for (part, from) in (0u64..).zip(&store.from) {
            let part = addresses.map(|address| address.wrapping_add(part * u64::from(store.bytes)));
            let values = self.frames[frame].column(*from, &cta.launch.constants);
            self.local.store(&part, lanes, store.bytes, values);
            if self.frames[frame].undefined.any() {
                self.mark_stored(cta, at, access, &part, (lanes, *from, 0), None);
            }
        }
        Ok(())
    }
}

impl Warp {
    /// Compares accesses to shared memory with its end, and reports those that leave a variable. These are made, as on hardware.
    #[inline]
    pub(super) fn check_shared(
        &self,
        cta: &Cta<'_>,
        at: usize,
        access: &Access,
        addresses: &Column,
        lanes: u32,
    ) -> Done<()> {
        let (bytes, map) = (u64::from(access.bytes), &cta.launch.code.shared);
        let (lowest, end) = match &access.halves {
            Some(halves) if lanes == FULL => halves.extent(),
            _ => {
                let (mut lowest, mut highest) = (u64::MAX, 0);
                each(lanes, |lane| {
                    lowest = addresses[lane].min(lowest);
                    highest = addresses[lane].max(highest);
                });
                (lowest, highest.saturating_add(bytes))
            }
        };
        if end <= cta.shared.len() && map.is_one(lowest, end) {
            return Ok(());
        }
        self.find_outside(cta, at, access, addresses, lanes)
    }

    /// Compares accesses to local memory with the end of the stack, and reports those that reach the gap before the local variables of a function. These are
    /// made, as on hardware.
    fn check_local(
        &self,
        cta: &Cta<'_>,
        at: usize,
        access: &Access,
        addresses: &Column,
        lanes: u32,
    ) -> Done<()> {
        let LaneGroup { frame, pc, .. } = self.lane_groups[at];
        let end = self.frames[frame].top;
        if self.frames[frame].gap_bytes != 0 && cta.launch.rules.has(ValueRule::LocalGaps) {
            let near = |lane: usize| self.gap_words(cta, frame, addresses[lane], u64::from(access.bytes));
            let first =
                (0..LANES).filter(|lane| lanes >> lane & 1 != 0).find_map(|lane| Some((lane, near(lane)?)));
            if let Some((lane, near)) = first {
                cta.report(
                    self.index,
                    lane,
                    pc,
                    ExecFindingKind::OutOfBounds(access.bad(addresses[lane], near)),
                );
            }
        }
        let mut checked = check_bounds(access, addresses, lanes, end, "of the stack of the thread");
        if let Err(trouble) = &mut checked
            && let ExecFindingKind::OutOfBounds(bad) = &mut trouble.kind
            && let Some(near) = self.foreign_words(cta, trouble.lane, Place::Local, bad.address)
        {
            bad.near = near;
        } else if let Err(trouble) = &mut checked
            && let ExecFindingKind::OutOfBounds(bad) = &mut trouble.kind
            && (end..self.local.used_bytes()).contains(&bad.address)
        {
            bad.near = "in the local memory of a function that has returned: a pointer to a local variable is not valid any more when its function \
                        returns"
                .to_owned();
            bad.mistake = Some(AddressMistake::ReturnedFunction);
        }
        checked
    }

    /// Where an access to local memory lies that touches a gap of a frame or of those below it.
    fn gap_words(&self, cta: &Cta<'_>, frame: FrameId, address: u64, bytes: u64) -> Option<String> {
        let mut next = Some(frame);
        while let Some(id) = next {
            let Frame { base, function, parent, .. } = self.frames[id];
            let code = Self::code(cta).functions.get(function as usize)?;
            let (start, end) = (address.wrapping_sub(base), address.wrapping_sub(base).wrapping_add(bytes));
            let gap = code.gaps.iter().find(|gap| start < gap.end && gap.start < end && start < end);
            if let Some(gap) = gap {
                let name = cta.launch.code.module.function(PtxFunctionId(code.id)).map_or("?", |f| &*f.name);
                let is_before = start + (gap.end - gap.start) / 2 >= gap.end || start < gap.start;
                let place = match start >= gap.start && is_before || gap.start == 0 {
                    true => format!("{} before the start", byte_count(gap.end - start.min(gap.end))),
                    false => past_end(start.saturating_sub(gap.start)),
                };
                return Some(format!("{place} of the local variables of `{name}`"));
            }
            if address >= base {
                return None;
            }
            next = parent;
        }
        None
    }

    #[cold]
    #[inline(never)]
    fn find_outside(
        &self,
        cta: &Cta<'_>,
        at: usize,
        access: &Access,
        addresses: &Column,
        lanes: u32,
    ) -> Done<()> {
        let (launch, bytes) = (cta.launch, u64::from(access.bytes));
        let dynamic_bytes = u64::from(launch.shape.dynamic_shared_bytes);
        let bad = |lane: usize| {
            let foreign = self.foreign_words(cta, lane, Place::Shared, addresses[lane]);
            let near =
                foreign.unwrap_or_else(|| launch.code.shared.near(addresses[lane], bytes, dynamic_bytes));
            ExecFindingKind::OutOfBounds(access.bad(addresses[lane], near))
        };
        let fits = |address: u64| address.checked_add(bytes).is_some_and(|end| end <= cta.shared.len());
        let beyond = lanes_where(lanes, |lane| !fits(addresses[lane]));
        if beyond != 0 {
            return Err(Trouble::new(first_lane(beyond), bad(first_lane(beyond))));
        }
        let is_one = |address: u64| launch.code.shared.is_one(address, address + bytes);
        let outside = lanes_where(lanes, |lane| !is_one(addresses[lane]));
        if launch.rules.has(ValueRule::SharedVariables) {
            each(outside, |lane| cta.report(self.index, lane, self.lane_groups[at].pc, bad(lane)));
        }
        Ok(())
    }
}

/// The pattern of the addresses of an access with one part, if it has one and patterns are used.
#[inline]
fn halves(cta: &Cta<'_>, addresses: &Column, lanes: u32, bytes: u32, part_bytes: u32) -> Option<Halves> {
    let is_used = bytes == part_bytes && !cta.launch.options.portable;
    is_used.then(|| Halves::of(cta.launch.set, addresses, lanes, bytes)).flatten()
}

pub(super) fn check_aligned(access: &Access, addresses: &Column, lanes: u32) -> Done<()> {
    let low = u64::from(access.bytes) - 1;
    let mut bits = 0;
    match &access.halves {
        Some(Halves { halves: [first, second], .. }) if lanes == FULL => {
            bits = first.start() | second.start()
        }
        _ => each(lanes, |lane| bits |= addresses[lane]),
    }
    if bits & low == 0 {
        return Ok(());
    }
    let lane = first_lane(lanes_where(lanes, |lane| addresses[lane] & low != 0));
    let near = format!("no multiple of {}", access.bytes);
    Err(Trouble::new(lane, ExecFindingKind::Misaligned(access.bad(addresses[lane], near))))
}

pub(super) fn check_bounds(access: &Access, addresses: &Column, lanes: u32, end: u64, of: &str) -> Done<()> {
    let bytes = u64::from(access.bytes);
    let fits = |address: u64| address.checked_add(bytes).is_some_and(|last| last <= end);
    let mut highest = 0;
    each(lanes, |lane| highest = addresses[lane].max(highest));
    if fits(highest) {
        return Ok(());
    }
    let lane = first_lane(lanes_where(lanes, |lane| !fits(addresses[lane])));
    let address = addresses[lane];
    let place = match (below_zero(address), address.checked_sub(end)) {
        (Some(before), _) => format!("{} before the start", byte_count(before)),
        (_, Some(past)) => past_end(past),
        _ => format!("{} over the end", byte_count(address + bytes - end)),
    };
    let near = format!("{place} of the {} {of}", byte_count(end));
    Err(Trouble::new(lane, ExecFindingKind::OutOfBounds(access.bad(address, near))))
}

/// The same for one value.
pub(super) fn extended(value: u64, load: &Load) -> u64 {
    let mut values = [value; LANES];
    if load.extend_to != 0 {
        extend(&mut values, load);
    }
    values[0]
}

/// Extends the sign of what was loaded to the register.
#[inline(always)]
pub(super) fn extend(values: &mut Column, load: &Load) {
    if load.extend_to == 0 {
        return;
    }
    let shift = 64 - 8 * load.bytes;
    let ones = u64::MAX >> (64 - 8 * load.extend_to);
    values.iter_mut().for_each(|value| *value = ((*value << shift) as i64 >> shift) as u64 & ones);
}
