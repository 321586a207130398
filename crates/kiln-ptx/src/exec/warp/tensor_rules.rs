//! What a tensor copy, its map and where it begins must keep to.

use super::tensor_copy::PIECE;
use super::{Done, Trouble};
use crate::exec::finding::ExecFindingKind;
use crate::exec::lowered_code::TensorCopy;
use crate::exec::tensor_box::{BoxStart, OutsideColumn};
use crate::exec::tensor_form::TensorAction;
use crate::exec::tensor_map::TensorInterleave;
use crate::exec::tensor_record::TensorRecord;

/// Looks whether an instruction and a tensor map belong together.
pub(super) fn check_fits(copy: &TensorCopy, record: &TensorRecord, lane: usize) -> Done<()> {
    let mode = |im2col: bool| if im2col { "im2col" } else { "tile" };
    let dimensions = if copy.four_rows { 2 } else { copy.coordinates.len() };
    let has_one_row = record.box_dim[1] == 1 && record.step(1) == 1;
    let text = if record.rank as usize != dimensions {
        format!(
            "the instruction is `.{dimensions}d`, and the tensor of its map has {} dimensions",
            record.rank
        )
    } else if record.im2col != copy.im2col {
        format!(
            "the instruction is `.{}`, and its tensor map was made for `.{}`",
            mode(copy.im2col),
            mode(record.im2col)
        )
    } else if copy.four_rows && !has_one_row {
        format!(
            "the box of the tensor map has {} rows with a step of {}; for `tile::gather4` and `tile::scatter4` it must have one, since the instruction names its four rows itself",
            record.box_dim[1],
            record.step(1)
        )
    } else if record.interleave != TensorInterleave::None {
        let text =
            "a copy of an interleaved tensor: the simulator does not know how CUDA lays it out".to_owned();
        return Err(Trouble::new(lane, ExecFindingKind::Unsupported(text)));
    } else {
        return Ok(());
    };
    Err(Trouble::new(lane, ExecFindingKind::BadOperand(text)))
}

/// Looks at where a box begins.
pub(super) fn check_start(
    copy: &TensorCopy,
    record: &TensorRecord,
    start: &BoxStart,
    lane: usize,
) -> Done<()> {
    let coordinates = start.coordinates.iter().take(copy.coordinates.len());
    let first = start.coordinates[0].wrapping_mul(record.element.bytes().into());
    let is_load = matches!(copy.action, TensorAction::Load { .. });
    let text = if first % PIECE as i64 != 0 {
        format!(
            "the box begins at byte {first} of its rows, coordinate {}; it must be a multiple of {PIECE} bytes",
            start.coordinates[0]
        )
    } else if let Some((dimension, value)) =
        coordinates.enumerate().find(|(_, value)| !is_load && **value < 0)
    {
        format!(
            "coordinate {dimension} is {value}; what is stored or reduced cannot begin in front of the tensor"
        )
    } else if let Some((name, corner)) = outer_corner(record).filter(|_| !is_load && copy.im2col) {
        format!(
            "the tensor map has {name} corner of {corner}; columns that are stored or reduced cannot leave the tensor: lower corners are 0 or more, upper ones 0 or less"
        )
    } else {
        return Ok(());
    };
    Err(Trouble::new(lane, ExecFindingKind::BadOperand(text)))
}

/// A corner of the columns of a map that lies outside of the tensor.
fn outer_corner(record: &TensorRecord) -> Option<(&'static str, i32)> {
    let lower = record.lower.iter().find(|corner| **corner < 0).map(|corner| ("a lower", *corner));
    lower.or_else(|| record.upper.iter().find(|corner| **corner > 0).map(|corner| ("an upper", *corner)))
}

#[cold]
pub(super) fn outside_column(outside: &OutsideColumn, lane: usize) -> Box<Trouble> {
    let OutsideColumn { dimension, value, range } = outside;
    let text = format!(
        "coordinate {dimension} of the column is {value}; it must be from {} to {}, between the corners of the tensor map",
        range.start,
        range.end - 1
    );
    Trouble::new(lane, ExecFindingKind::BadOperand(text))
}
