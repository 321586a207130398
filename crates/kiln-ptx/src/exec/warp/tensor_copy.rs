//! Tensor copies, done at once by the thread that issues them.
//!
//! A load reads the rows of the box that lie inside of the tensor, puts zeros or NaN for the rest, and writes all of the box to shared memory. A store
//! and a reduction touch what lies inside of the tensor alone.

use std::ops::Range;

use super::access::Access;
use super::bulk_copy::block_addresses;
use super::global::is_told;
use super::span_content::undefined_at;
use super::tensor_rules::{check_fits, check_start, outside_column};
use super::undefined_memory::StoredBits;
use super::{Done, Flow, Trouble, Warp};
use crate::Operation;
use crate::exec::block::Cta;
use crate::exec::check::ValueRule;
use crate::exec::finding::{AccessKind, ExecFindingKind};
use crate::exec::lower::bulk_update;
use crate::exec::lowered_code::{Source, TensorCopy};
use crate::exec::memory::generic_address::Place;
use crate::exec::tensor_box::{BoxRow, BoxStart, four_rows, rows};
use crate::exec::tensor_element::TensorElement;
use crate::exec::tensor_form::TensorAction;
use crate::exec::tensor_map::{TensorFill, TensorSwizzle};
use crate::exec::tensor_record::TensorRecord;
use crate::exec::undefined::Origin;
use crate::exec::warp_register::LANES;

/// What the address of a box in shared memory is a multiple of.
const BOX_ALIGN: u64 = 128;
/// Bytes that a swizzle keeps together.
pub(super) const PIECE: u64 = 16;
/// Rows of a box that a coordinate each names.
const FOUR_ROWS: u32 = 4;
/// Bytes that are moved at once in shared memory.
const WORD: u64 = 8;

/// The bytes of a box, and those of them that are undefined.
struct BoxContent {
    bytes: Vec<u8>,
    undefined: Vec<UndefinedByte>,
}

/// An undefined byte, by its place in the box without a swizzle.
struct UndefinedByte {
    offset: u64,
    bits: u8,
    origin: Origin,
}

/// A box in shared memory.
#[derive(Clone, Copy)]
struct BoxPlace {
    address: u64,
    swizzle: TensorSwizzle,
}

impl BoxPlace {
    fn of(self, offset: u64) -> u64 {
        self.swizzle.place(self.address.wrapping_add(offset))
    }

    /// Parts of shared memory that together hold a part of a box, lines of 128 bytes as a whole.
    fn parts(self, range: Range<u64>) -> Vec<Range<u64>> {
        let is_whole = self.swizzle == TensorSwizzle::None
            || range.start.is_multiple_of(BOX_ALIGN) && range.end.is_multiple_of(BOX_ALIGN);
        if is_whole {
            return std::iter::once(self.address + range.start..self.address + range.end).collect();
        }
        let mut parts = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let next = (at / PIECE + 1) * PIECE;
            let (place, end) = (self.of(at), next.min(range.end));
            parts.push(place..place + (end - at));
            at = end;
        }
        parts
    }
}

impl Warp {
    pub(super) fn tensor_copy(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        copy: &TensorCopy,
        lanes: u32,
    ) -> Done<Flow> {
        self.watch.drop_state();
        cta.changes += 1;
        for lane in (0..LANES).filter(|lane| lanes >> lane & 1 != 0) {
            self.copy_box(cta, at, copy, lane)?;
        }
        cta.visit(None);
        Ok(Flow::Next)
    }

    fn operand(&self, cta: &Cta<'_>, at: usize, source: Source, lane: usize) -> u64 {
        self.frames[self.lane_groups[at].frame].column(source, &cta.launch.constants)[lane]
    }

    fn copy_box(&mut self, cta: &mut Cta<'_>, at: usize, copy: &TensorCopy, lane: usize) -> Done<()> {
        let map = self.operand(cta, at, copy.map, lane);
        let mut record = self.tensor_map(cta, at, map, lane)?;
        check_fits(copy, &record, lane)?;
        if copy.four_rows {
            record.box_dim[1] = FOUR_ROWS;
        }
        let Some((place, shared)) = copy.shared else { return Ok(()) };
        let address = self.addresses(cta, at, shared)[lane];
        let bytes = record.shared_bytes();
        self.check_box(cta, at, (copy, place), (address, bytes), lane)?;
        let mut start = BoxStart::default();
        for (to, source) in start.coordinates.iter_mut().zip(&copy.coordinates) {
            *to = i64::from(self.operand(cta, at, *source, lane) as i32);
        }
        for (to, source) in start.offsets.iter_mut().zip(&copy.offsets) {
            *to = i64::from(self.operand(cta, at, *source, lane) as u16);
        }
        check_start(copy, &record, &start, lane)?;
        let rows = match copy.four_rows {
            true => four_rows(&record, &start),
            false => rows(&record, &start).map_err(|outside| outside_column(&outside, lane))?,
        };
        cta.untold += record.box_bytes() / PIECE;
        match copy.action {
            TensorAction::Load { .. } => {
                let content = self.read_rows(cta, at, &record, (&rows, lane))?;
                self.load_box(cta, at, copy, (&record, &content), (address, lane))
            }
            TensorAction::Prefetch => Ok(()),
            action => {
                let place = BoxPlace { address, swizzle: record.swizzle };
                let content = self.read_box(cta, at, (place, &record), (&rows, lane));
                match action {
                    TensorAction::Reduce(operation) => {
                        self.reduce_rows(cta, at, (&record, operation), (&rows, &content, lane))?;
                    }
                    _ => self.write_rows(cta, at, &record, (&rows, &content, lane))?,
                }
                self.start_group_copy(cta, at, address..address + bytes, lane);
                Ok(())
            }
        }
    }

    /// Looks at the place of a box in shared memory, before anything is moved.
    fn check_box(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        (copy, place): (&TensorCopy, Place),
        (address, bytes): (u64, u64),
        lane: usize,
    ) -> Done<()> {
        let (kind, what) = match copy.action {
            TensorAction::Load { .. } => (AccessKind::Write, "destination"),
            _ => (AccessKind::Read, "source"),
        };
        if !address.is_multiple_of(BOX_ALIGN) {
            let text = format!(
                "the {what} of a tensor copy, shared address {address:#x}, is no multiple of {BOX_ALIGN}; declare the shared memory with \
                 `alignas({BOX_ALIGN})`, or with the bytes after which the pattern of the swizzle repeats (256, 512 or 1024)"
            );
            return Err(Trouble::new(lane, ExecFindingKind::BadOperand(text)));
        }
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let (mut access, mut places) = (Access::plain(kind, place, bytes, 4), [address; LANES]);
        if place == Place::Cluster {
            self.resolve(cta, at, &mut access, place, &mut places, 1 << lane)?;
        }
        self.check_shared(cta, at, &access, &places, 1 << lane)?;
        cta.visit(None);
        Ok(())
    }

    /// Writes a box to shared memory, to that of each block that gets it, and completes its bytes there.
    fn load_box(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        copy: &TensorCopy,
        (record, content): (&TensorRecord, &BoxContent),
        (address, lane): (u64, usize),
    ) -> Done<()> {
        let Some((barrier_place, barrier)) = copy.barrier else { return Ok(()) };
        let barrier = self.addresses(cta, at, barrier)[lane];
        let blocks = copy.blocks.map(|source| self.operand(cta, at, source, lane));
        let targets = block_addresses(cta, blocks, address);
        let objects = block_addresses(cta, blocks, barrier);
        let place = copy.shared.map_or(Place::Shared, |(place, _)| place);
        let barrier_place = if blocks.is_some() { Place::Cluster } else { barrier_place };
        let (bytes, room) = (record.box_bytes(), record.shared_bytes());
        for (target, object) in targets.into_iter().zip(objects) {
            let mut access = Access::plain(AccessKind::Write, place, room as u32, 4);
            let mut places = [target; LANES];
            if place == Place::Cluster {
                self.resolve(cta, at, &mut access, place, &mut places, 1 << lane)?;
            }
            let target = BoxPlace { address: places[lane], swizzle: record.swizzle };
            self.write_box(cta, at, &access, (target, record, content), lane)?;
            let range = target.address..target.address + room;
            cta.visit(None);
            self.complete_copy(cta, at, (barrier_place, object), (bytes, range), lane)?;
        }
        Ok(())
    }

    fn write_box(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        access: &Access,
        (place, record, content): (BoxPlace, &TensorRecord, &BoxContent),
        lane: usize,
    ) -> Done<()> {
        let ranges = row_ranges(record);
        for part in ranges.iter().flat_map(|range| place.parts(range.clone())) {
            let access = Access { bytes: (part.end - part.start) as u32, ..*access };
            let addresses = [part.start; LANES];
            self.check_shared(cta, at, &access, &addresses, 1 << lane)?;
            self.watch(cta, at, &access, &addresses, 1 << lane, |_, _| false);
        }
        for offset in ranges.into_iter().flat_map(|range| range.step_by(WORD as usize)) {
            cta.shared.store(place.of(offset), WORD as u32, value_at(&content.bytes, offset, WORD as u32));
        }
        let access = Access { part_bytes: 1, ..*access };
        for byte in &content.undefined {
            let bits = StoredBits::of(u64::from(byte.bits), byte.origin);
            self.undefine(cta, at, &access, (place.of(byte.offset), lane), bits, None);
        }
        Ok(())
    }

    /// Reads the rows of a box from global memory.
    fn read_rows(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        record: &TensorRecord,
        (rows, lane): (&[BoxRow], usize),
    ) -> Done<BoxContent> {
        let mut content = BoxContent { bytes: filled(record), undefined: Vec::new() };
        for row in rows.iter().filter(|row| !row.inside.is_empty()) {
            self.read_row(cta, at, row, (&mut content, lane))?;
            let range = (row.offset + row.inside.start) as usize..(row.offset + row.inside.end) as usize;
            if let Some(bytes) = content.bytes.get_mut(range).filter(|_| record.element.converts()) {
                for element in bytes.as_chunks_mut::<4>().0 {
                    *element = record.element.converted(u32::from_le_bytes(*element)).to_le_bytes();
                }
            }
        }
        Ok(content)
    }

    fn read_row(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        row: &BoxRow,
        (content, lane): (&mut BoxContent, usize),
    ) -> Done<()> {
        let (start, bytes) = (row.address.wrapping_add(row.inside.start), row.inside.end - row.inside.start);
        let (addresses, mask) = ([start; LANES], 1 << lane);
        let unit = unit(start, bytes);
        let access = Access::plain(AccessKind::Read, Place::Global, bytes as u32, unit);
        let (span, _) = self.find(cta, at, &access, &addresses, mask)?;
        if span.writable {
            self.watch(cta, at, &access, &addresses, mask, |_, _| false);
        }
        let checks = cta.launch.options.checks.uninitialised
            && is_told(cta, &span)
            && cta.launch.rules.has(ValueRule::AsyncCopies)
            && !span.cells.is_range_written(start - span.origin, bytes);
        for part in (0..bytes).step_by(unit as usize) {
            let offset = start + part - span.origin;
            let into = row.offset + row.inside.start + part;
            let value = span.cells.load(offset, unit).to_le_bytes();
            let to = content.bytes.iter_mut().skip(into as usize).zip(value).take(unit as usize);
            to.for_each(|(to, byte)| *to = byte);
            if checks && span.cells.unwritten(&[offset; LANES], mask, unit) != 0 {
                let look = |_: usize, at: u64, bytes: u32| undefined_at(&span, at, bytes);
                let found =
                    self.undefined_in(cta, at, &access, (&addresses, &[start + part; LANES]), mask, look);
                note_undefined(&mut content.undefined, into, found.bits[lane], found.origins[lane]);
            }
        }
        Ok(())
    }

    /// Reads what rows of a box need of it from shared memory.
    fn read_box(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        (place, record): (BoxPlace, &TensorRecord),
        (rows, lane): (&[BoxRow], usize),
    ) -> BoxContent {
        let (mask, bytes) = (1 << lane, record.shared_bytes());
        let is_whole = rows.iter().all(|row| row.inside == (0..record.row_bytes()));
        let used: Vec<Range<u64>> = match is_whole {
            true => row_ranges(record),
            false => {
                let inside = rows.iter().filter(|row| !row.inside.is_empty());
                inside.map(|row| row.offset + row.inside.start..row.offset + row.inside.end).collect()
            }
        };
        let read = |bytes: u64| Access::plain(AccessKind::Read, Place::Shared, bytes as u32, 1);
        let mut content = BoxContent { bytes: Vec::with_capacity(bytes as usize), undefined: Vec::new() };
        for range in &used {
            for part in place.parts(range.clone()) {
                let access = read(part.end - part.start);
                self.watch(cta, at, &access, &[part.start; LANES], mask, |_, _| false);
            }
        }
        for offset in (0..bytes).step_by(WORD as usize) {
            content.bytes.extend(cta.shared.load(place.of(offset), WORD as u32).to_le_bytes());
        }
        if !cta.launch.options.checks.uninitialised {
            return content;
        }
        for offset in used.into_iter().flatten() {
            let address = place.of(offset);
            if cta.shared.undefined(address, 1) != 0 {
                let look = |_: usize, at: u64, bytes: u32| cta.shared.undefined(at, bytes);
                let addresses = [address; LANES];
                let found = self.undefined_in(cta, at, &read(1), (&addresses, &addresses), mask, look);
                note_undefined(&mut content.undefined, offset, found.bits[lane], found.origins[lane]);
            }
        }
        content
    }

    /// Writes the rows of a box to global memory.
    fn write_rows(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        record: &TensorRecord,
        (rows, content, lane): (&[BoxRow], &BoxContent, usize),
    ) -> Done<()> {
        let carries = cta.launch.rules.has(ValueRule::AsyncCopies);
        for row in rows.iter().filter(|row| !row.inside.is_empty()) {
            // Whole pieces are written, also where a row of the tensor ends in one.
            let end = row.inside.end.next_multiple_of(PIECE).min(record.end().wrapping_sub(row.address));
            let (start, bytes) = (row.address.wrapping_add(row.inside.start), end - row.inside.start);
            let (addresses, mask) = ([start; LANES], 1 << lane);
            let unit = unit(start, bytes);
            let access = Access::plain(AccessKind::Write, Place::Global, bytes as u32, unit);
            let (span, _) = self.find(cta, at, &access, &addresses, mask)?;
            self.watch(cta, at, &access, &addresses, mask, |_, _| false);
            let from = row.offset + row.inside.start;
            for part in (0..bytes).step_by(unit as usize) {
                let value = value_at(&content.bytes, from + part, unit);
                span.cells.store(start + part - span.origin, unit, value);
            }
            let access = Access { part_bytes: 1, ..access };
            let undefined = content.undefined.iter().filter(|_| carries);
            for byte in undefined.filter(|byte| (from..from + bytes).contains(&byte.offset)) {
                let bits = StoredBits::of(u64::from(byte.bits), byte.origin);
                self.undefine(cta, at, &access, (start + byte.offset - from, lane), bits, Some(&span));
            }
        }
        Ok(())
    }

    /// Updates the elements of the rows of a box in global memory.
    fn reduce_rows(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        (record, operation): (&TensorRecord, Operation),
        (rows, content, lane): (&[BoxRow], &BoxContent, usize),
    ) -> Done<()> {
        let (element, bytes) = (record.element, record.element.bytes());
        let is_bitwise = matches!(operation, Operation::And | Operation::Or | Operation::Xor);
        let update = bulk_update(operation, element.scalar()).filter(|_| {
            bytes >= 2 && !(is_bitwise && (element.is_float() || bytes < 4 || element == TensorElement::S64))
        });
        let Some(update) = update else {
            let text = format!("a tensor of {element:?} cannot be reduced with `.{}`", operation.keyword());
            return Err(Trouble::new(lane, ExecFindingKind::BadOperand(text)));
        };
        for row in rows.iter().filter(|row| !row.inside.is_empty()) {
            let from = row.offset + row.inside.start;
            let used = from..row.offset + row.inside.end;
            if let Some(byte) = content.undefined.iter().find(|byte| used.contains(&byte.offset)) {
                cta.report_use(self.index, lane, self.lane_groups[at].pc, byte.origin);
            }
            // Whole pieces are updated, also where the tensor ends in one and its next row does not begin there.
            for part in (row.inside.start..row.inside.end.next_multiple_of(PIECE)).step_by(bytes as usize) {
                let value = value_at(&content.bytes, row.offset + part, bytes);
                let address = row.address.wrapping_add(part);
                if address >= record.end() {
                    break;
                }
                self.reduce_element(cta, at, (address, lane), (update, bytes), value)?;
            }
        }
        Ok(())
    }
}

/// The rows of a box in shared memory, or all of it if nothing lies between them.
fn row_ranges(record: &TensorRecord) -> Vec<Range<u64>> {
    let (row, pitch) = (record.row_bytes(), record.pitch_bytes());
    match row == pitch {
        true => std::iter::once(0..record.shared_bytes()).collect(),
        false => (0..record.rows()).map(|at| at * pitch..at * pitch + row).collect(),
    }
}

/// A box as it is where nothing lies inside of the tensor.
fn filled(record: &TensorRecord) -> Vec<u8> {
    let bytes = record.shared_bytes() as usize;
    match record.fill {
        TensorFill::Zero => vec![0; bytes],
        TensorFill::Nan => TensorElement::OUTSIDE_NAN.into_iter().cycle().take(bytes).collect(),
    }
}

/// The largest value that a range can be moved in.
fn unit(start: u64, bytes: u64) -> u32 {
    1 << (start | bytes).trailing_zeros().min(3)
}

fn value_at(bytes: &[u8], offset: u64, count: u32) -> u64 {
    let part = bytes.iter().skip(offset as usize).take(count as usize);
    part.rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn note_undefined(undefined: &mut Vec<UndefinedByte>, offset: u64, bits: u64, origin: Origin) {
    for (byte, bits) in (0..).zip(bits.to_le_bytes()).filter(|(_, bits)| *bits != 0) {
        undefined.push(UndefinedByte { offset: offset + byte, bits, origin });
    }
}
