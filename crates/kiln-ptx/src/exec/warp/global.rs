//! Accesses to global memory, atomics, and asynchronous copies.
//!
//! Bytes that the launch did not declare are reported as undeclared, and not as never written too.

use super::access::Access;
use super::memory::{MAX_POLLS, check_aligned, extend};
use super::race_hooks::lock_locations;
use super::repeated_poll::Poll;
use super::span_content::{load_halves, store_halves, undefined_at};
use super::undefined_memory::StoredBits;
use super::{Done, Flow, Trouble, Warp};
use crate::exec::block::Cta;
use crate::exec::check::{Copy, LaunchRaces, ValueRule};
use crate::exec::finding::{AccessKind, ExecFindingKind};
use crate::exec::lowered_code::{Atomic, CopyAsync, Load, Store};
use crate::exec::memory::generic_address::{HEAP, Place};
use crate::exec::memory::{Declared, Span};
use crate::exec::undefined::Carried;
use crate::exec::warp_register::{Column, FULL, LANES, LaneOrder, each, first_lane, lanes_where};

/// An atomic while lanes execute it.
struct Update<'a> {
    atomic: &'a Atomic,
    access: Access,
    b: Column,
    c: Column,
    /// Undefined bits of what is stored.
    carried: Option<Carried>,
    /// The values before, and their undefined bits.
    old: Column,
    before: Carried,
    /// Whether memory has changed.
    changed: bool,
    /// In which order the lanes reach memory.
    order: LaneOrder,
}

impl Update<'_> {
    /// Whether a lane wrote. A comparison that fails only reads.
    fn writes(&self, lane: usize) -> bool {
        !self.atomic.compares || self.old[lane] == self.b[lane]
    }

    /// Takes the undefined bits of the value before.
    fn take(&mut self, lane: usize, found: &Carried) {
        self.before.mark(lane, found.bits[lane], found.origins[lane]);
    }

    /// The undefined bits that a lane stored.
    fn given(&self, lane: usize) -> Option<StoredBits> {
        let carried = self.carried.as_ref().filter(|_| self.writes(lane))?;
        Some(StoredBits::of(carried.bits[lane], carried.origins[lane]))
    }
}

impl Warp {
    pub(super) fn load_global(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        load: &Load,
        access: &Access,
        addresses: &Column,
        lanes: u32,
    ) -> Done<()> {
        let checks = cta.launch.options.checks.uninitialised;
        let mut rest = lanes;
        while rest != 0 {
            let (span, group) = self.find(cta, at, access, addresses, rest)?;
            if span.writable {
                self.watch_read(cta, at, load, access, addresses, group);
                if load.constant && span.declared != Declared::Read {
                    self.watch_constant(cta, at, access, addresses, group);
                }
            }
            let told = checks && is_told(cta, &span);
            if let (Some(halves), FULL, [to]) = (&access.halves, group, &*load.to)
                && to.0 != 0
                && load_halves(&span, halves, told, &mut self.result)
            {
                extend(&mut self.result, load);
                self.frames[self.lane_groups[at].frame].take(*to, &mut self.result, group);
                return Ok(());
            }
            for (part, to) in load.parts() {
                let mut out = [0; LANES];
                let skip = span.origin.wrapping_sub(part * u64::from(load.bytes));
                let offsets = addresses.map(|address| address.wrapping_sub(skip));
                let bare = if told { span.cells.unwritten(&offsets, group, load.bytes) } else { 0 };
                span.cells.load_lanes(&offsets, group, load.bytes, &mut out);
                extend(&mut out, load);
                self.frames[self.lane_groups[at].frame].write(*to, &out, group);
                if bare != 0 {
                    let part = addresses.map(|address| address.wrapping_add(part * u64::from(load.bytes)));
                    let look = |_: usize, at: u64, bytes: u32| undefined_at(&span, at, bytes);
                    let carried = self.undefined_in(cta, at, access, (addresses, &part), bare, look);
                    self.mark_loaded(cta, at, *to, load, carried, bare);
                }
            }
            rest &= !group;
        }
        Ok(())
    }

    pub(super) fn store_global(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        store: &Store,
        access: &Access,
        addresses: &Column,
        lanes: u32,
    ) -> Done<()> {
        let mut rest = lanes;
        while rest != 0 {
            let (span, group) = self.find(cta, at, access, addresses, rest)?;
            self.watch(cta, at, access, addresses, group, |cta, lane| {
                let content = |address: u64| span.cells.peek(address - span.origin, store.bytes);
                self.writes_same(cta, at, store, addresses, (group, lane), content)
            });
            let marked = self.frames[self.lane_groups[at].frame].undefined.any();
            let bare = if marked { self.bare_stores(at, store, group) } else { 0 };
            if let (Some(halves), FULL, [from], false) = (&access.halves, group, &*store.from, marked) {
                let values = self.frames[self.lane_groups[at].frame].column(*from, &cta.launch.constants);
                if store_halves(&span, halves, values) {
                    return Ok(());
                }
            }
            for (part, from) in (0u64..).zip(&store.from) {
                let skip = span.origin.wrapping_sub(part * u64::from(store.bytes));
                let offsets = addresses.map(|address| address.wrapping_sub(skip));
                let values = self.frames[self.lane_groups[at].frame].column(*from, &cta.launch.constants);
                span.cells.store_lanes(&offsets, group, store.bytes, values);
                if marked {
                    let part = addresses.map(|address| address.wrapping_add(part * u64::from(store.bytes)));
                    self.mark_stored(cta, at, access, &part, (group, *from, bare), Some(&span));
                }
            }
            rest &= !group;
        }
        Ok(())
    }

    pub(super) fn atomic(&mut self, cta: &mut Cta<'_>, at: usize, atomic: &Atomic, lanes: u32) -> Done<Flow> {
        let mut addresses = self.addresses(cta, at, atomic.address);
        let Atomic { place, bytes, strength, .. } = *atomic;
        let access = Access {
            kind: AccessKind::Atomic,
            place,
            bytes,
            part_bytes: bytes,
            strength,
            halves: None,
            block: None,
        };
        check_aligned(&Access { bytes: atomic.align, ..access }, &addresses, lanes)?;
        let frame = self.lane_groups[at].frame;
        let [b, c] = [atomic.b, atomic.c].map(|s| *self.frames[frame].column(s, &cta.launch.constants));
        let new = if atomic.compares { atomic.c } else { atomic.b };
        let carried = match cta.launch.rules.has(ValueRule::Exchanges) && (atomic.compares || !atomic.reads) {
            true => self.frames[frame].undefined.column(new).cloned(),
            false => None,
        };
        let (old, before) = ([0; LANES], Carried::NOTHING);
        let order = cta.atomic_order();
        let mut update = Update { atomic, access, b, c, carried, old, before, changed: false, order };
        self.watch.read();
        let mut locations = lock_locations(cta, strength);
        let races = cta.launch.races.as_ref().filter(|_| locations.is_none());
        let _apart = races.map(LaunchRaces::updates);
        let mut rest = lanes;
        while rest != 0 {
            let mut group = self.resolve(cta, at, &mut update.access, place, &mut addresses, rest)?;
            match update.access.place {
                Place::Shared if atomic.is_vector() => {
                    return Err(out_of_reach(&update.access, &addresses, group, "atomics on vectors"));
                }
                Place::Shared => self.update_shared(cta, at, &mut update, &addresses, group)?,
                Place::Global | Place::Generic | Place::Cluster => {
                    let (span, inside) = self.find(cta, at, &update.access, &addresses, group)?;
                    group = inside;
                    self.update_global(cta, at, &mut update, &addresses, (&span, group));
                }
                Place::Local | Place::Param => {
                    return Err(out_of_reach(&update.access, &addresses, group, "atomics"));
                }
            }
            let wrote = lanes_where(group, |lane| update.writes(lane));
            let lanes = (group, wrote, update.order);
            self.watch_updates(cta, at, &update.access, &addresses, lanes, locations.as_deref_mut());
            rest &= !group;
        }
        cta.visit(None);
        let Update { access, old, before, changed, .. } = update;
        if let Some(to) = atomic.to {
            self.frames[frame].write(to, &old, lanes);
            if cta.launch.rules.has(ValueRule::Exchanges) {
                self.frames[frame].undefined.set(to, &before, lanes);
            }
        }
        self.last_changed = changed;
        cta.untold += u64::from(lanes.count_ones().saturating_sub(1));
        if changed {
            self.watch.drop_state();
            cta.changes += 1;
        }
        // One that changes nothing probably waits for another thread: `atomicAdd(p, 0)`, a compare-and-swap that fails.
        let polls = !changed && (access.place == Place::Global || cta.is_clustered());
        cta.polls += u32::from(polls);
        let poll = Poll { place: access.place, addresses: &addresses, lanes, bytes, parts: 1 };
        let lets_lanes = !changed && self.lets_others_run(cta, at, &poll, self.lane_groups.len() > 1);
        Ok(if lets_lanes || polls && cta.polls > MAX_POLLS { Flow::Yield } else { Flow::Next })
    }

    fn update_shared(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        update: &mut Update<'_>,
        addresses: &Column,
        group: u32,
    ) -> Done<()> {
        let (access, bytes) = (update.access, update.atomic.bytes);
        self.check_shared(cta, at, &access, addresses, group)?;
        let track = cta.launch.options.checks.uninitialised;
        let bare = if track { cta.shared.unwritten(addresses, group, bytes) } else { 0 };
        self.use_operand(cta, at, update, addresses, bare, |_, at, bytes| cta.shared.undefined(at, bytes));
        update.order.each(group, |lane| {
            if bare >> lane & 1 != 0 && !update.atomic.reads {
                let look = |_: usize, at: u64, bytes: u32| cta.shared.undefined(at, bytes);
                let whole = (addresses, addresses);
                update.take(lane, &self.undefined_in(cta, at, &access, whole, 1 << lane, look));
            }
            let old = cta.shared.load(addresses[lane], bytes);
            let new = (update.atomic.update)(old, update.b[lane], update.c[lane]);
            update.old[lane] = old;
            update.changed |= new != old;
            cta.shared.store(addresses[lane], bytes, new);
            if let Some(bits) = update.given(lane) {
                self.undefine(cta, at, &access, (addresses[lane], lane), bits, None);
            }
        });
        Ok(())
    }

    fn update_global(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        update: &mut Update<'_>,
        addresses: &Column,
        (span, group): (&Span<'_>, u32),
    ) {
        let (access, bytes) = (update.access, update.atomic.bytes);
        let offsets = addresses.map(|address| address.wrapping_sub(span.origin));
        let told = cta.launch.options.checks.uninitialised && is_told(cta, span);
        let bare = if told { span.cells.unwritten(&offsets, group, bytes) } else { 0 };
        let look = |_: usize, at: u64, bytes: u32| undefined_at(span, at, bytes);
        self.use_operand(cta, at, update, addresses, bare, look);
        update.order.each(group, |lane| {
            if bare >> lane & 1 != 0 && !update.atomic.reads {
                let whole = (addresses, addresses);
                update.take(lane, &self.undefined_in(cta, at, &access, whole, 1 << lane, look));
            }
            let (b, c, run) = (update.b[lane], update.c[lane], update.atomic.update_global);
            let mut next = |old| {
                let new = run(old, b, c);
                update.changed |= new != old;
                new
            };
            update.old[lane] = span.cells.update(offsets[lane], bytes, &mut next);
            if let Some(bits) = update.given(lane) {
                self.undefine(cta, at, &access, (addresses[lane], lane), bits, Some(span));
            }
        });
    }

    /// Reports lanes whose update uses bytes that were never written.
    fn use_operand(
        &self,
        cta: &Cta<'_>,
        at: usize,
        update: &Update<'_>,
        addresses: &Column,
        bare: u32,
        look: impl Fn(usize, u64, u32) -> u64,
    ) {
        if bare != 0 && update.atomic.reads && cta.launch.rules.has(ValueRule::AtomicOperand) {
            self.use_unwritten(cta, at, &update.access, addresses, bare, look);
        }
    }

    /// `cp.async`, done at once.
    pub(super) fn copy_async(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        copy: &CopyAsync,
        lanes: u32,
    ) -> Done<Flow> {
        self.watch.drop_state();
        cta.changes += 1;
        let bytes = copy.bytes;
        let (to, from) = (self.addresses(cta, at, copy.to), self.addresses(cta, at, copy.from));
        let read = Access::plain(AccessKind::Read, Place::Global, bytes, 4);
        let write = Access::plain(AccessKind::Write, Place::Shared, bytes, 4);
        check_aligned(&read, &from, lanes)?;
        check_aligned(&write, &to, lanes)?;
        self.check_shared(cta, at, &write, &to, lanes)?;
        let frame = &self.frames[self.lane_groups[at].frame];
        let all = [u64::from(bytes); LANES];
        let sizes = copy.size.map_or(all, |s| *frame.column(s, &cta.launch.constants));
        let reading = lanes_where(lanes & !frame.test(copy.ignore), |lane| sizes[lane] != 0);
        let mut changing = 0;
        for word in 0..u64::from(bytes / 4) {
            let mut values = [0; LANES];
            let mut undefined = Carried::NOTHING;
            let mut rest = lanes_where(reading, |lane| sizes[lane] > word * 4);
            while rest != 0 {
                let wanted = Access { bytes: 4, ..read };
                let part = from.map(|address| address.wrapping_add(word * 4));
                let (span, group) = self.find(cta, at, &wanted, &part, rest)?;
                if span.writable {
                    self.watch(cta, at, &wanted, &part, group, |_, _| false);
                    changing |= if span.declared == Declared::Read { 0 } else { group };
                }
                let offsets = part.map(|address| address.wrapping_sub(span.origin));
                if cta.launch.options.checks.uninitialised && is_told(cta, &span) {
                    let bare = span.cells.unwritten(&offsets, group, 4);
                    if bare != 0 {
                        let look = |_: usize, at: u64, bytes: u32| undefined_at(&span, at, bytes);
                        let found = self.undefined_in(cta, at, &read, (&from, &part), bare, look);
                        each(bare, |lane| undefined.mark(lane, found.bits[lane], found.origins[lane]));
                    }
                }
                span.cells.load_lanes(&offsets, group, 4, &mut values);
                rest &= !group;
            }
            each(reading, |lane| {
                let kept = sizes[lane].saturating_sub(word * 4).min(4) as u32;
                let ones = u64::MAX.checked_shr(64 - 8 * kept).unwrap_or(0);
                values[lane] &= ones;
                undefined.bits[lane] &= ones;
            });
            let into = to.map(|address| address.wrapping_add(word * 4));
            cta.shared.store_lanes(&into, lanes, 4, &values);
            let carried = if cta.launch.rules.has(ValueRule::AsyncCopies) { undefined.lanes() } else { 0 };
            each(carried, |lane| {
                let bits = StoredBits::of(undefined.bits[lane], undefined.origins[lane]);
                self.undefine(cta, at, &write, (into[lane], lane), bits, None);
            });
        }
        self.watch(cta, at, &write, &to, lanes, |_, _| false);
        let source = |lane: usize| {
            let read = sizes[lane].min(u64::from(bytes)) as u32;
            (changing >> lane & 1 != 0).then_some((from[lane], read))
        };
        self.start_copies(cta, at, (&to, bytes), lanes, source);
        Ok(Flow::Next)
    }

    /// Remembers copies that have not been waited for; `source` is what a lane's copy reads that the launch may change.
    fn start_copies(
        &self,
        cta: &mut Cta<'_>,
        at: usize,
        (to, bytes): (&Column, u32),
        lanes: u32,
        source: impl Fn(usize) -> Option<(u64, u32)>,
    ) {
        let pc = self.lane_groups[at].pc;
        if let Some(races) = &mut cta.races {
            each(lanes, |lane| {
                let copy = Copy::new((self.index, lane), pc, to[lane], bytes);
                races.copies.start(copy.reading_from(source(lane)));
            });
        }
    }

    /// The block of global memory the first lane reaches, and the lanes that stay inside it.
    #[inline]
    pub(super) fn find<'l>(
        &self,
        cta: &mut Cta<'l>,
        at: usize,
        access: &Access,
        addresses: &Column,
        lanes: u32,
    ) -> Done<(Span<'l>, u32)> {
        let lane = first_lane(lanes);
        let (address, bytes) = (addresses[lane], u64::from(access.bytes));
        let writes = access.kind != AccessKind::Read;
        if let Some(span) = cta.spans.find(address) {
            let room = span.end - span.start;
            let fits = |address: u64| address.wrapping_sub(span.start) <= room.wrapping_sub(bytes);
            if bytes <= room && fits(address) {
                if writes && (!span.writable || cta.launch.is_constant(address)) {
                    let bad = access.bad(address, String::new());
                    return Err(Trouble::new(lane, ExecFindingKind::ReadOnly(bad)));
                }
                if !span.declared.covers(access.kind) {
                    self.report_undeclared(cta, at, access, address, lane);
                }
                if let (Some(halves), FULL) = (&access.halves, lanes) {
                    let (lowest, end) = halves.extent();
                    if lowest >= span.start && end <= span.end {
                        return Ok((span, lanes));
                    }
                }
                return Ok((span, lanes_where(lanes, |lane| fits(addresses[lane]))));
            }
        }
        self.find_across(cta, at, access, address, lane)
    }

    /// An access that leaves what the launch declared: it is made if memory is mapped there.
    #[cold]
    #[inline(never)]
    fn find_across<'l>(
        &self,
        cta: &mut Cta<'l>,
        at: usize,
        access: &Access,
        address: u64,
        lane: usize,
    ) -> Done<(Span<'l>, u32)> {
        let (owner, bytes) = (cta.spans.owner(address), u64::from(access.bytes));
        let mapped = owner.mapped(address).filter(|span| span.end - address >= bytes);
        let Some(span) = mapped else {
            let miss = owner.miss(address, bytes);
            let kind = ExecFindingKind::missed(miss, access.bad(address, String::new()));
            return Err(Trouble::new(lane, self.with_base(cta, at, kind)));
        };
        if access.kind != AccessKind::Read && (!span.writable || cta.launch.is_constant(address)) {
            return Err(Trouble::new(lane, ExecFindingKind::ReadOnly(access.bad(address, String::new()))));
        }
        self.report_undeclared(cta, at, access, address, lane);
        Ok((span, 1 << lane))
    }

    #[cold]
    #[inline(never)]
    fn report_undeclared(&self, cta: &mut Cta<'_>, at: usize, access: &Access, address: u64, lane: usize) {
        let pc = self.lane_groups[at].pc;
        if cta.launch.log.count_again((pc, pc), |known| matches!(known, ExecFindingKind::Undeclared(_))) {
            return;
        }
        let why = cta.spans.owner(address).undeclared(address, u64::from(access.bytes), access.kind);
        if let Some(near) = why {
            let bad = ExecFindingKind::Undeclared(access.bad(address, near));
            cta.report(self.index, lane, pc, self.with_base(cta, at, bad));
        }
    }

    /// A finding with what its address was computed from; of a variable it tells the distance.
    fn with_base(&self, cta: &Cta<'_>, at: usize, mut kind: ExecFindingKind) -> ExecFindingKind {
        let is_freed = matches!(kind, ExecFindingKind::UseAfterFree(_));
        if let Some(bad) = kind.access_mut() {
            let near = || cta.variable_near(bad.address).filter(|_| !is_freed);
            bad.base = cta.address_base(self.lane_groups[at].pc).or_else(near);
            let near = bad.base.as_ref().and_then(|base| base.near(bad.address, bad.bytes));
            bad.near = near.unwrap_or(std::mem::take(&mut bad.near));
        }
        kind
    }
}

/// Whether bytes of a span that were never written are undefined. What was not declared is reported as that.
pub(super) fn is_told(cta: &Cta<'_>, span: &Span<'_>) -> bool {
    let rules = cta.launch.rules;
    let is_heap = span.origin == HEAP;
    span.declared != Declared::Nothing
        && rules.has(if is_heap { ValueRule::HeapContents } else { ValueRule::GlobalContents })
}

/// An atomic on memory that atomics do not reach.
#[cold]
fn out_of_reach(access: &Access, addresses: &Column, lanes: u32, what: &str) -> Box<Trouble> {
    let lane = first_lane(lanes);
    let near = format!("{} memory, which {what} do not reach", access.place.name());
    Trouble::new(lane, ExecFindingKind::OutOfBounds(access.bad(addresses[lane], near)))
}
