//! Bulk copies, done at once by the thread that issues them.

use std::ops::Range;

use super::access::Access;
use super::span_content::undefined_at;
use super::undefined_memory::StoredBits;
use super::{Done, Flow, Trouble, Warp};
use crate::exec::block::Cta;
use crate::exec::check::{BulkEnd, PendingBulk, ValueRule};
use crate::exec::finding::{AccessKind, ExecFindingKind};
use crate::exec::lowered_code::{BulkCopy, Strength, Update};
use crate::exec::memory::generic_address::{Place, cluster_address};
use crate::exec::undefined::Carried;
use crate::exec::warp_register::{LANES, LaneOrder};

/// What sizes and addresses are multiples of; so much is copied at once.
const CHUNK_BYTES: u64 = 16;
/// Bytes of a value that is copied.
const WORD_BYTES: u64 = 4;

/// Where a copy goes.
struct Target {
    write: Access,
    /// The block of the cluster whose memory it is, if it is another one.
    rank: Option<usize>,
}

impl Warp {
    pub(super) fn bulk_copy(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        copy: &BulkCopy,
        lanes: u32,
    ) -> Done<Flow> {
        self.watch.drop_state();
        cta.changes += 1;
        let (to, from) = (self.addresses(cta, at, copy.to), self.addresses(cta, at, copy.from));
        let sizes = *self.frames[self.lane_groups[at].frame].column(copy.bytes, &cta.launch.constants);
        for lane in (0..LANES).filter(|lane| lanes >> lane & 1 != 0) {
            let bytes = u64::from(sizes[lane] as u32);
            for (what, value) in [("size", bytes), ("destination", to[lane]), ("source", from[lane])] {
                if !value.is_multiple_of(CHUNK_BYTES) {
                    let text =
                        format!("the {what} of a bulk copy, {value:#x}, is no multiple of {CHUNK_BYTES}");
                    return Err(Trouble::new(lane, ExecFindingKind::BadOperand(text)));
                }
            }
            cta.untold += bytes / CHUNK_BYTES;
            let blocks = copy.blocks.map(|source| {
                self.frames[self.lane_groups[at].frame].column(source, &cta.launch.constants)[lane]
            });
            let targets = block_addresses(cta, blocks, to[lane]);
            let Some((place, object)) = copy.barrier else {
                if bytes > 0 {
                    self.copy_bytes(cta, at, copy, (to[lane], from[lane]), (bytes, lane))?;
                    cta.visit(None);
                    self.start_group_copy(cta, at, from[lane]..from[lane] + bytes, lane);
                }
                continue;
            };
            let place = if blocks.is_some() { Place::Cluster } else { place };
            let objects = block_addresses(cta, blocks, self.addresses(cta, at, object)[lane]);
            for (target, object) in targets.into_iter().zip(objects) {
                if bytes > 0 {
                    self.copy_bytes(cta, at, copy, (target, from[lane]), (bytes, lane))?;
                }
                cta.visit(None);
                let within = cta.owner(Place::Cluster, target).1;
                self.complete_copy(cta, at, (place, object), (bytes, within..within + bytes), lane)?;
            }
        }
        cta.visit(None);
        Ok(Flow::Next)
    }

    fn copy_bytes(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        copy: &BulkCopy,
        (to, from): (u64, u64),
        (bytes, lane): (u64, usize),
    ) -> Done<()> {
        let mask = 1 << lane;
        if copy.from_place == Place::Shared {
            let read = bulk_access(AccessKind::Read, Place::Shared, bytes as u32);
            self.check_shared(cta, at, &read, &[from; LANES], mask)?;
        }
        let mut write = bulk_access(AccessKind::Write, copy.to_place, bytes as u32);
        let mut places = [to; LANES];
        if copy.to_place == Place::Cluster {
            self.resolve(cta, at, &mut write, Place::Cluster, &mut places, mask)?;
        }
        if write.place == Place::Shared {
            self.check_shared(cta, at, &write, &places, mask)?;
        }
        let target = Target { write: Access { bytes: CHUNK_BYTES as u32, ..write }, rank: cta.visited };
        for chunk in (0..bytes).step_by(CHUNK_BYTES as usize) {
            let places = (places[lane].wrapping_add(chunk), from.wrapping_add(chunk));
            self.copy_chunk(cta, at, copy, places, (&target, lane))?;
        }
        Ok(())
    }

    fn copy_chunk(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        copy: &BulkCopy,
        (to, from): (u64, u64),
        (target, lane): (&Target, usize),
    ) -> Done<()> {
        cta.visit(None);
        let (mut words, mut undefined) = ([0; 4], [Carried::NOTHING; 4]);
        self.read_chunk(cta, at, copy, (from, lane), (&mut words, &mut undefined))?;
        if let Some((update, bytes)) = copy.reduce {
            return self.reduce_chunk(cta, at, (to, lane), (update, bytes), (target, words));
        }
        let (addresses, mask) = ([to; LANES], 1 << lane);
        cta.visit(target.rank);
        let write = target.write;
        let span = match write.place {
            Place::Shared => None,
            _ => Some(self.find(cta, at, &write, &addresses, mask)?.0),
        };
        self.watch(cta, at, &write, &addresses, mask, |_, _| false);
        let carries = cta.launch.rules.has(ValueRule::AsyncCopies);
        for (word, (value, undefined)) in (0..).zip(words.into_iter().zip(&undefined)) {
            let address = to.wrapping_add(word * WORD_BYTES);
            match &span {
                None => cta.shared.store(address, WORD_BYTES as u32, value),
                Some(span) => span.cells.store(address - span.origin, WORD_BYTES as u32, value),
            }
            if carries && undefined.bits[lane] != 0 {
                let bits = StoredBits::of(undefined.bits[lane], undefined.origins[lane]);
                self.undefine(cta, at, &write, (address, lane), bits, span.as_ref());
            }
        }
        Ok(())
    }

    fn read_chunk(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        copy: &BulkCopy,
        (from, lane): (u64, usize),
        (words, undefined): (&mut [u64; 4], &mut [Carried; 4]),
    ) -> Done<()> {
        let (addresses, mask) = ([from; LANES], 1 << lane);
        let place = copy.from_place;
        let read = bulk_access(AccessKind::Read, place, CHUNK_BYTES as u32);
        let checks = cta.launch.options.checks.uninitialised;
        let span = match place {
            Place::Shared => None,
            _ => Some(self.find(cta, at, &read, &addresses, mask)?.0),
        };
        if span.is_none_or(|span| span.writable) {
            self.watch(cta, at, &read, &addresses, mask, |_, _| false);
        }
        for (word, (value, undefined)) in (0..).zip(words.iter_mut().zip(undefined)) {
            let address = from.wrapping_add(word * WORD_BYTES);
            let part = [address; LANES];
            *value = match &span {
                None => cta.shared.load(address, WORD_BYTES as u32),
                Some(span) => span.cells.load(address - span.origin, WORD_BYTES as u32),
            };
            if !checks {
                continue;
            }
            let bare = match &span {
                None => cta.shared.unwritten(&part, mask, WORD_BYTES as u32),
                Some(span) => span.cells.unwritten(&[address - span.origin; LANES], mask, WORD_BYTES as u32),
            };
            if bare != 0 {
                *undefined = match &span {
                    None => {
                        let look = |_: usize, at: u64, bytes: u32| cta.shared.undefined(at, bytes);
                        self.undefined_in(cta, at, &read, (&addresses, &part), bare, look)
                    }
                    Some(span) => {
                        let look = |_: usize, at: u64, bytes: u32| undefined_at(span, at, bytes);
                        self.undefined_in(cta, at, &read, (&addresses, &part), bare, look)
                    }
                };
                if copy.reduce.is_some() {
                    cta.report_use(self.index, lane, self.lane_groups[at].pc, undefined.origins[lane]);
                }
            }
        }
        Ok(())
    }

    /// Updates memory, element by element.
    fn reduce_chunk(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        (to, lane): (u64, usize),
        (update, bytes): (Update, u32),
        (target, words): (&Target, [u64; 4]),
    ) -> Done<()> {
        let is_shared = target.write.place == Place::Shared;
        if is_shared {
            cta.visit(target.rank);
        }
        let chunk = words.iter().flat_map(|word| (*word as u32).to_le_bytes()).collect::<Vec<u8>>();
        for (element, value) in (0..).zip(chunk.chunks(bytes as usize)) {
            let value = value.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
            let address = to.wrapping_add(element * u64::from(bytes));
            if is_shared {
                self.reduce_shared(cta, at, (address, lane), (update, bytes), (target, value));
            } else {
                self.reduce_element(cta, at, (address, lane), (update, bytes), value)?;
            }
        }
        Ok(())
    }

    /// Updates an element of shared memory, which is there.
    fn reduce_shared(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        (address, lane): (u64, usize),
        (update, bytes): (Update, u32),
        (target, value): (&Target, u64),
    ) {
        let (addresses, mask) = ([address; LANES], 1 << lane);
        let strength = Strength { strong: true, cluster: true, ..Strength::default() };
        let kind = AccessKind::Atomic;
        let access = Access { kind, bytes, part_bytes: bytes, strength, ..target.write };
        if cta.launch.options.checks.uninitialised {
            let bare = cta.shared.unwritten(&addresses, mask, bytes);
            if bare != 0 {
                let look = |_: usize, at: u64, bytes: u32| cta.shared.undefined(at, bytes);
                self.use_unwritten(cta, at, &access, &addresses, bare, look);
            }
        }
        let old = cta.shared.load(address, bytes);
        cta.shared.store(address, bytes, update(old, value, 0));
        self.watch_updates(cta, at, &access, &addresses, (mask, mask, LaneOrder::default()), None);
    }

    /// Updates an element of global memory.
    pub(super) fn reduce_element(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        (address, lane): (u64, usize),
        (update, bytes): (Update, u32),
        value: u64,
    ) -> Done<()> {
        let (addresses, mask) = ([address; LANES], 1 << lane);
        let strength = Strength { strong: true, wide: true, ..Strength::default() };
        let access = Access { strength, ..Access::plain(AccessKind::Atomic, Place::Global, bytes, bytes) };
        let (span, _) = self.find(cta, at, &access, &addresses, mask)?;
        let ones = u64::MAX >> (64 - 8 * bytes);
        let offset = address - span.origin;
        if cta.launch.options.checks.uninitialised {
            let bare = span.cells.unwritten(&[offset; LANES], mask, bytes);
            if bare != 0 {
                let look = |_: usize, at: u64, bytes: u32| undefined_at(&span, at, bytes);
                self.use_unwritten(cta, at, &access, &addresses, bare, look);
            }
        }
        span.cells.update(offset, bytes, &mut |old| update(old, value, 0) & ones);
        self.watch_updates(cta, at, &access, &addresses, (mask, mask, LaneOrder::default()), None);
        Ok(())
    }

    /// Remembers a copy that reads shared memory until its thread has waited for its group.
    pub(super) fn start_group_copy(&self, cta: &mut Cta<'_>, at: usize, range: Range<u64>, lane: usize) {
        let pc = self.lane_groups[at].pc;
        if let Some(races) = &mut cta.races {
            let warp = u64::from(races.clocks.number(self.index));
            let end = BulkEnd::Group(races.copies.bulk.group(warp, lane));
            races.copies.bulk.start(PendingBulk { pc, warp, lane, range, end });
        }
    }
}

/// The blocks of a cluster that a mask can name.
const MASK_BLOCKS: u32 = 16;

/// An address of shared memory in each of the blocks of a mask; alone as it is without a mask.
pub(super) fn block_addresses(cta: &Cta<'_>, blocks: Option<u64>, address: u64) -> Vec<u64> {
    let Some(mask) = blocks else { return vec![address] };
    let (_, within) = cta.owner(Place::Cluster, address);
    let ranks = (0..MASK_BLOCKS).filter(|rank| mask >> rank & 1 != 0).map(u64::from);
    ranks.map(|rank| if rank == cta.rank() as u64 { within } else { cluster_address(rank, within) }).collect()
}

fn bulk_access(kind: AccessKind, place: Place, bytes: u32) -> Access {
    Access {
        kind,
        place,
        bytes,
        part_bytes: WORD_BYTES as u32,
        strength: Strength::default(),
        halves: None,
        block: None,
    }
}
