//! What is done with the content of a span for all lanes at once.

use crate::exec::address_halves::{HALF, Half, Halves};
use crate::exec::memory::Span;
use crate::exec::warp_register::{Column, LANES};

/// Loads for a pattern of addresses inside of a span. False if bytes may not be written that must be (`told`), or if lanes are better loaded one by one.
pub(super) fn load_halves(span: &Span<'_>, halves: &Halves, told: bool, out: &mut Column) -> bool {
    let size = u64::from(halves.bytes);
    let is_written = |half: &Half| match *half {
        Half::Row(start) => span.cells.is_range_written(start - span.origin, size * HALF as u64),
        Half::Place(start) => span.cells.unwritten(&[start - span.origin; LANES], 1, halves.bytes) == 0,
    };
    if told && !halves.halves.iter().all(is_written) {
        return false;
    }
    out.chunks_exact_mut(HALF).zip(&halves.halves).all(|(out, half)| match *half {
        Half::Row(start) => span.cells.load_row(start - span.origin, halves.bytes, out),
        Half::Place(start) => {
            out.fill(span.cells.load(start - span.origin, halves.bytes));
            true
        }
    })
}

/// Stores for a pattern of addresses inside of a span. False if lanes are better stored one by one; it can be done again.
pub(super) fn store_halves(span: &Span<'_>, halves: &Halves, values: &Column) -> bool {
    let Some(rows) = halves.rows() else { return false };
    values
        .chunks_exact(HALF)
        .zip(rows)
        .all(|(values, start)| span.cells.store_row(start - span.origin, halves.bytes, values))
}

/// The undefined bits at an address; all of them outside of the span.
pub(super) fn undefined_at(span: &Span<'_>, address: u64, bytes: u32) -> u64 {
    let is_inside = address >= span.start && span.end.saturating_sub(address) >= u64::from(bytes);
    if is_inside {
        span.cells.undefined_bits(address - span.origin, bytes)
    } else {
        u64::MAX >> (64 - 8 * bytes.clamp(1, 8))
    }
}
