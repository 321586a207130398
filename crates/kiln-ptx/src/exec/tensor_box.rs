//! The elements of a box of a tensor: where each row of them lies in global memory, and how much of it is inside of the tensor.

use std::ops::Range;

use super::tensor_record::{MAX_RANK, TensorRecord};

/// A row of a box: elements that lie together in global memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BoxRow {
    /// Bytes of shared memory before it.
    pub(crate) offset: u64,
    /// The address of its first element, also where that is outside of the tensor.
    pub(crate) address: u64,
    /// Its bytes that are inside of the tensor.
    pub(crate) inside: Range<u64>,
}

/// Where a copy begins.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BoxStart {
    pub(crate) coordinates: [i64; MAX_RANK],
    /// What is added to the place of each pixel of a column.
    pub(crate) offsets: [i64; 3],
}

/// A coordinate that a column cannot begin at: its dimension, its value and what is possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutsideColumn {
    pub(crate) dimension: usize,
    pub(crate) value: i64,
    pub(crate) range: Range<i64>,
}

/// The rows of a box, in the order in which they lie in shared memory.
pub(crate) fn rows(record: &TensorRecord, start: &BoxStart) -> Result<Vec<BoxRow>, OutsideColumn> {
    if record.im2col {
        return column_rows(record, start);
    }
    let rank = record.rank as usize;
    let mut rows = Vec::with_capacity(record.rows() as usize);
    let mut at = [0u64; MAX_RANK];
    for _ in 0..record.rows() {
        let mut place = start.coordinates;
        for dimension in 1..rank {
            place[dimension] += at[dimension] as i64 * i64::from(record.step(dimension));
        }
        rows.push(row(record, &place, rows.len() as u64));
        for (dimension, at) in at.iter_mut().enumerate().take(rank).skip(1) {
            *at += 1;
            if *at < record.box_size(dimension) {
                break;
            }
            *at = 0;
        }
    }
    Ok(rows)
}

/// Four rows of a matrix, of which each has a coordinate behind that of the column; the record has a box of four rows.
pub(crate) fn four_rows(record: &TensorRecord, start: &BoxStart) -> Vec<BoxRow> {
    let [column, rows @ ..] = start.coordinates;
    let place = |row: i64| [column, row, 0, 0, 0];
    (0..).zip(rows).map(|(number, at)| row(record, &place(at), number)).collect()
}

/// The pixels of a column: they go through the box of corners, width first, and on through the images.
fn column_rows(record: &TensorRecord, start: &BoxStart) -> Result<Vec<BoxRow>, OutsideColumn> {
    let rank = record.rank as usize;
    let inner = rank - 2;
    let low = |k: usize| i64::from(record.lower[k]);
    let end = |k: usize| record.dimensions[k + 1] as i64 + i64::from(record.upper[k]);
    let mut place = start.coordinates;
    for k in 0..inner {
        let range = low(k)..end(k);
        if !range.contains(&place[k + 1]) {
            return Err(OutsideColumn { dimension: k + 1, value: place[k + 1], range });
        }
    }
    let mut rows = Vec::with_capacity(record.pixels as usize);
    for _ in 0..record.pixels {
        let mut pixel = place;
        (0..inner).for_each(|k| pixel[k + 1] += start.offsets[k]);
        rows.push(row(record, &pixel, rows.len() as u64));
        let mut k = 0;
        while k < inner {
            place[k + 1] += i64::from(record.step(k + 1));
            if place[k + 1] < end(k) {
                break;
            }
            place[k + 1] = low(k);
            k += 1;
        }
        if k == inner {
            place[rank - 1] += 1;
        }
    }
    Ok(rows)
}

fn row(record: &TensorRecord, place: &[i64; MAX_RANK], number: u64) -> BoxRow {
    let bytes = u64::from(record.element.bytes());
    let rank = record.rank as usize;
    let mut address = record.address.wrapping_add_signed(place[0].wrapping_mul(bytes as i64));
    let mut is_inside = true;
    for (dimension, &at) in place.iter().enumerate().take(rank).skip(1) {
        is_inside &= (0..record.dimensions[dimension] as i64).contains(&at);
        address = address.wrapping_add_signed(at.wrapping_mul(record.strides[dimension - 1] as i64));
    }
    let row_bytes = record.row_bytes();
    let limit = |elements: i64| (elements.max(0) as u64).saturating_mul(bytes).min(row_bytes);
    let (from, to) = (limit(-place[0]), limit(record.dimensions[0] as i64 - place[0]));
    let inside = if is_inside && from < to { from..to } else { 0..0 };
    BoxRow { offset: number * record.pitch_bytes(), address, inside }
}
