//! Tensor maps in memory: how a copy reads one, and how `tensormap` changes one.

use super::access::Access;
use super::span_content::undefined_at;
use super::{Done, Flow, Trouble, Warp};
use crate::exec::block::Cta;
use crate::exec::finding::{AccessKind, ExecFindingKind};
use crate::exec::lowered_code::{MapEdit, TensorMapEdit};
use crate::exec::memory::Span;
use crate::exec::memory::generic_address::Place;
use crate::exec::tensor_element::TensorElement;
use crate::exec::tensor_form::MapField;
use crate::exec::tensor_map::TensorMap;
use crate::exec::tensor_record::{MAP_BYTES, TensorRecord, fill, interleave, swizzle};
use crate::exec::warp_register::{LANES, first_lane};

/// Bytes that are moved at once.
const WORD: u64 = 8;

type MapBytes = [u8; MAP_BYTES];

impl Warp {
    /// The tensor map at a generic address, which must describe a tensor.
    pub(super) fn tensor_map(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        address: u64,
        lane: usize,
    ) -> Done<TensorRecord> {
        check_map_address(address, lane)?;
        let bytes = match Place::at(address) {
            Place::Param => {
                let start = address.wrapping_sub(Place::Param.base()) as usize;
                let arguments = cta.launch.arguments.get(start..);
                arguments.and_then(|rest| rest.first_chunk()).copied().ok_or_else(|| {
                    let text = format!(
                        "the tensor map at {address:#x} reaches over the end of the arguments of the kernel; a parameter for it has {MAP_BYTES} bytes"
                    );
                    Trouble::new(lane, ExecFindingKind::BadOperand(text))
                })?
            }
            Place::Shared | Place::Local => {
                let text = format!(
                    "the tensor map at {address:#x} lies in {} memory; a copy reads it from parameter, constant or global memory",
                    Place::at(address).name()
                );
                return Err(Trouble::new(lane, ExecFindingKind::BadOperand(text)));
            }
            _ => self.read_map(cta, at, address, lane)?,
        };
        let record = map_of(&bytes, address, lane)?;
        record.check().map_err(|error| {
            let text = format!("{error} (the map at {address:#x})");
            Trouble::new(lane, ExecFindingKind::BadOperand(text))
        })?;
        Ok(record)
    }

    /// The bytes of a map in global memory, read as any thread reads them.
    fn read_map(&mut self, cta: &mut Cta<'_>, at: usize, address: u64, lane: usize) -> Done<MapBytes> {
        let (addresses, mask) = ([address; LANES], 1 << lane);
        let access = Access::plain(AccessKind::Read, Place::Global, MAP_BYTES as u32, WORD as u32);
        let (span, _) = self.find(cta, at, &access, &addresses, mask)?;
        if span.writable {
            self.watch(cta, at, &access, &addresses, mask, |_, _| false);
        }
        if cta.launch.options.checks.uninitialised {
            for word in (0..MAP_BYTES as u64).step_by(WORD as usize) {
                let part = [address + word; LANES];
                let bare = span.cells.unwritten(&[address + word - span.origin; LANES], mask, WORD as u32);
                if bare != 0 {
                    let look = |_: usize, at: u64, bytes: u32| undefined_at(&span, at, bytes);
                    self.use_unwritten(cta, at, &access, &part, bare, look);
                    break;
                }
            }
        }
        Ok(map_bytes(|word| span.cells.load(address + word - span.origin, WORD as u32)))
    }

    /// `tensormap.replace` and `tensormap.cp_fenceproxy`.
    pub(super) fn edit_tensor_map(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        step: &TensorMapEdit,
        lanes: u32,
    ) -> Done<Flow> {
        self.watch.drop_state();
        cta.changes += 1;
        let addresses = self.addresses(cta, at, step.address);
        let mut writing = lanes;
        if let MapEdit::Copy { from } = step.edit {
            // Threads of a warp copy one map together: all of them read it, one writes it.
            let from = self.addresses(cta, at, from);
            let read = Access::plain(AccessKind::Read, Place::Shared, MAP_BYTES as u32, WORD as u32);
            self.check_shared(cta, at, &read, &from, lanes)?;
            self.watch(cta, at, &read, &from, lanes, |_, _| false);
            writing = 1 << first_lane(lanes);
        }
        for lane in (0..LANES).filter(|lane| writing >> lane & 1 != 0) {
            self.edit_map(cta, at, step, (addresses[lane], lane))?;
        }
        cta.visit(None);
        Ok(Flow::Next)
    }

    fn edit_map(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        step: &TensorMapEdit,
        (address, lane): (u64, usize),
    ) -> Done<()> {
        check_map_address(address, lane)?;
        let (mut addresses, mask) = ([address; LANES], 1 << lane);
        let mut access = Access::plain(AccessKind::Write, step.place, MAP_BYTES as u32, WORD as u32);
        self.resolve(cta, at, &mut access, step.place, &mut addresses, mask)?;
        let span = match access.place {
            Place::Shared => {
                self.check_shared(cta, at, &access, &addresses, mask)?;
                None
            }
            Place::Local | Place::Param => {
                let bad = access.bad(addresses[lane], String::new());
                return Err(Trouble::new(lane, ExecFindingKind::ReadOnly(bad)));
            }
            _ => Some(self.find(cta, at, &access, &addresses, mask)?.0),
        };
        let to = addresses[lane];
        let bytes = match step.edit {
            MapEdit::Replace { field, index, value } => {
                let frame = self.lane_groups[at].frame;
                let value = self.frames[frame].column(value, &cta.launch.constants)[lane];
                let old = load_map(cta, span.as_ref(), to);
                let mut record = map_of(&old, address, lane)?;
                replace(&mut record, field, index, value)
                    .ok_or_else(|| bad_value(field, index, value, lane))?;
                record.to_bytes()
            }
            MapEdit::Copy { from } => {
                let from = self.addresses(cta, at, from)[lane];
                check_map_address(from, lane)?;
                let bytes = load_map(cta, None, from);
                map_of(&bytes, from, lane)?;
                bytes
            }
        };
        self.watch(cta, at, &access, &addresses, mask, |_, _| false);
        for (word, part) in (0..).step_by(WORD as usize).zip(bytes.chunks(WORD as usize)) {
            let value = part.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
            match &span {
                None => cta.shared.store(to + word, WORD as u32, value),
                Some(span) => span.cells.store(to + word - span.origin, WORD as u32, value),
            }
        }
        Ok(())
    }
}

/// The bytes of a map by its words.
fn map_bytes(load: impl Fn(u64) -> u64) -> MapBytes {
    let mut bytes = [0; MAP_BYTES];
    for (word, part) in (0..).step_by(WORD as usize).zip(bytes.chunks_mut(WORD as usize)) {
        part.copy_from_slice(&load(word).to_le_bytes());
    }
    bytes
}

fn load_map(cta: &Cta<'_>, span: Option<&Span<'_>>, address: u64) -> MapBytes {
    map_bytes(|word| match span {
        None => cta.shared.load(address + word, WORD as u32),
        Some(span) => span.cells.load(address + word - span.origin, WORD as u32),
    })
}

/// The map that bytes hold.
fn map_of(bytes: &MapBytes, address: u64, lane: usize) -> Done<TensorRecord> {
    TensorRecord::read(bytes).ok_or_else(|| {
        let text = format!(
            "the {MAP_BYTES} bytes at {address:#x} are no tensor map; make one with `TensorMap` (cuTensorMapEncodeTiled on CUDA), and pass it as a \
             parameter `const __grid_constant__ CUtensorMap` or copy it to global memory as it is"
        );
        Trouble::new(lane, ExecFindingKind::BadOperand(text))
    })
}

fn check_map_address(address: u64, lane: usize) -> Done<()> {
    if address.is_multiple_of(TensorMap::ALIGN) {
        return Ok(());
    }
    let text = format!(
        "the tensor map at {address:#x} is not aligned to {} bytes; declare it with `alignas(64)` (`.align 64`)",
        TensorMap::ALIGN
    );
    Err(Trouble::new(lane, ExecFindingKind::BadOperand(text)))
}

/// Changes a field; `None` if it has no such index or value.
fn replace(record: &mut TensorRecord, field: MapField, index: usize, value: u64) -> Option<()> {
    let low = u64::from(value as u32);
    match field {
        MapField::Address => record.address = value,
        // The rank is counted from zero.
        MapField::Rank => record.rank = (low as u8).checked_add(1)?.into(),
        MapField::BoxDim => *record.box_dim.get_mut(index)? = u16::try_from(low).ok()?.into(),
        MapField::GlobalDim => *record.dimensions.get_mut(index)? = low,
        MapField::GlobalStride => *record.strides.get_mut(index)? = value,
        MapField::ElementStride => *record.element_strides.get_mut(index)? = u8::try_from(low).ok()?.into(),
        MapField::Element => record.element = TensorElement::of_code(u8::try_from(low).ok()?)?,
        MapField::Interleave => record.interleave = interleave(low)?,
        MapField::Swizzle => record.swizzle = swizzle(low)?,
        MapField::Fill => record.fill = fill(low)?,
    }
    Some(())
}

fn bad_value(field: MapField, index: usize, value: u64, lane: usize) -> Box<Trouble> {
    let index = if field.is_list() { format!("[{index}]") } else { String::new() };
    let text = format!("`{}{index}` of a tensor map cannot be {value}", field.name());
    Trouble::new(lane, ExecFindingKind::BadOperand(text))
}
