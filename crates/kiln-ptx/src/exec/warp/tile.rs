//! Checks before a warp meets for a matrix: where its lanes read or write one of `wmma`, and the metadata of one that is sparse.

use super::access::Access;
use super::{Done, LaneGroup, Trouble, Warp};
use crate::exec::block::Cta;
use crate::exec::code_location::CodeSite;
use crate::exec::finding::{AccessKind, AddressMistake, BadAccess, ExecFindingKind};
use crate::exec::lowered_code::{Op, Source, Strength, TileAddresses};
use crate::exec::matrix::SparseMultiply;
use crate::exec::warp_register::first_lane;

impl Warp {
    /// Ends the launch where metadata of a sparse matrix names an element twice or out of order.
    pub(super) fn check_metadata(
        &self,
        cta: &Cta<'_>,
        at: usize,
        sparse: SparseMultiply,
        metadata: Source,
        lanes: u32,
    ) -> Done<()> {
        let words = self.frames[self.lane_groups[at].frame].column(metadata, &cta.launch.constants);
        let Some((lane, bits)) = sparse.bad_metadata(words, lanes) else { return Ok(()) };
        let text = format!(
            "the sparsity metadata {:#010x} has the index {bits:#06b}, which stands for no two elements of a chunk \
             that this instruction allows; give each chunk two different indices, the smaller one first",
            words[lane]
        );
        Err(Trouble::new(lane, ExecFindingKind::BadOperand(text)))
    }

    /// Adds to a finding about a misaligned row of `ldmatrix` or `stmatrix` that the distance between rows is at fault, if it is.
    pub(super) fn explain_misaligned_row(&self, cta: &Cta<'_>, at: usize, kind: &mut ExecFindingKind) {
        let ExecFindingKind::Misaligned(bad) = kind else { return };
        let LaneGroup { pc, mask, .. } = self.lane_groups[at];
        let instruction = CodeSite::of(cta.launch.code, pc).instruction;
        if !instruction.starts_with("ldmatrix") && !instruction.starts_with("stmatrix") {
            return;
        }
        let address = match cta.launch.code.steps.get(pc as usize).map(|step| &step.op) {
            Some(Op::Load(load)) => load.address,
            Some(Op::Store(store)) => store.address,
            _ => return,
        };
        // Each lane of eight gives the address of a row.
        let rows = self.addresses(cta, at, address);
        let (first, second) = (first_lane(mask), first_lane(mask & (mask - 1)));
        let row_bytes = rows[second].wrapping_sub(rows[first]);
        let (align, is_next) = (u64::from(bad.bytes), second == first + 1);
        if is_next && rows[first].is_multiple_of(align) && !row_bytes.is_multiple_of(align) {
            bad.near = format!(
                "no multiple of {align}, as each row of this matrix must be: its rows lie {} bytes apart",
                row_bytes as i64
            );
            bad.mistake = Some(AddressMistake::RowDistance(row_bytes));
        }
    }

    /// Computes the addresses of all pieces, after a look at the alignment of the matrix.
    pub(super) fn tile_addresses(
        &mut self,
        cta: &Cta<'_>,
        at: usize,
        tile: &TileAddresses,
        lanes: u32,
    ) -> Done<()> {
        let frame = &mut self.frames[self.lane_groups[at].frame];
        let pointers = *frame.column(tile.pointer, &cta.launch.constants);
        let strides = *frame.column(tile.stride, &cta.launch.constants);
        let lane = first_lane(lanes);
        let (form, start) = (tile.tile.tile, pointers[lane].wrapping_add_signed(tile.offset));
        let (align, stride_align) = (form.align_bytes(), form.stride_align_bytes());
        let stride_bytes = form.bytes(u64::from(strides[lane] as u32));
        let is_stride = start.is_multiple_of(align);
        let near = if !is_stride {
            Some(format!("no multiple of {align}, as the start of this matrix must be"))
        } else if !stride_bytes.is_multiple_of(stride_align) {
            Some(format!(
                "the start of a matrix with a stride (leading dimension) of {stride_bytes} bytes, which is no multiple of {stride_align}"
            ))
        } else {
            None
        };
        if let Some(near) = near {
            let kind = if tile.loads { AccessKind::Read } else { AccessKind::Write };
            let (place, strength, bytes) = (tile.place, Strength::default(), align as u32);
            let access =
                Access { kind, place, bytes, part_bytes: bytes, strength, halves: None, block: None };
            let bad = BadAccess {
                mistake: is_stride.then_some(AddressMistake::RowDistance(stride_bytes)),
                ..access.bad(start, near)
            };
            return Err(Trouble::new(lane, ExecFindingKind::Misaligned(bad)));
        }
        for (piece, to) in form.pieces(tile.tile.row_major).into_iter().zip(&tile.to) {
            let address = |lane: usize| {
                let stride = u64::from(strides[lane] as u32);
                let elements = form.offset(piece, lane, tile.tile.row_major, stride);
                pointers[lane].wrapping_add_signed(tile.offset).wrapping_add(form.bytes(elements))
            };
            frame.write(*to, &std::array::from_fn(address), lanes);
        }
        Ok(())
    }
}
