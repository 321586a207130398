//! Fills of one and two dimensions.

use std::ffi::{c_uchar, c_uint, c_ushort};

use kiln_driver::{Code, Command, HostBlock, Pattern, Place};

use crate::boundary::Answer;
use crate::calls::context::Context;
use crate::calls::process_state::state;
use crate::calls::refused_addresses;
use crate::calls::row_values::RowValues;
use crate::calls::stream_order::StreamChoice;
use crate::calls::streams::{chosen, wait, wait_for_room};
use crate::handle_table::RawHandle;

/// Bytes of a pattern that are staged at most.
const STAGED_BYTES: u64 = 1 << 20;

/// Whether a call returns when the fill is queued, or done where the host has the memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Returning {
    Queued,
    /// The form without `Async`: it waits for memory that the host has, as it can look at once.
    SeenByHost,
}

/// Fills rows on a stream.
fn fill(
    to: u64,
    pitch: usize,
    pattern: Pattern,
    (width, height): (usize, usize),
    stream: RawHandle,
    returning: Returning,
) -> Answer {
    let state = state()?;
    let (context, choice) = chosen(state, stream)?;
    let row_bytes = pattern.bytes().checked_mul(width as u64).ok_or(Code::INVALID_VALUE)?;
    if row_bytes == 0 || height == 0 {
        return Ok(());
    }
    let is_aligned = to.is_multiple_of(pattern.bytes()) && (pitch as u64).is_multiple_of(pattern.bytes());
    if !is_aligned || height > 1 && (pitch as u64) < row_bytes {
        return Err(Code::INVALID_VALUE);
    }
    // All rows are looked up before the first is queued, so that a refused fill changes nothing.
    let in_graph = context.order()?.get()?.is_capturing(&choice);
    let mut is_of_host = false;
    let rows = RowValues::new(height as u64, |row| {
        let offset = row.checked_mul(pitch as u64).and_then(|offset| to.checked_add(offset));
        let address = offset.ok_or(Code::INVALID_VALUE)?;
        let found = state.memory.place((context.device, in_graph), address, row_bytes);
        let found = found.and_then(|found| found.ok_or(Code::INVALID_VALUE));
        let (place, is_seen_by_host) =
            found.inspect_err(|_| refused_addresses::note_range(state, "a fill", address, row_bytes))?;
        is_of_host |= is_seen_by_host;
        match place {
            Place::Device(_) => Ok(place),
            // A graph would have to keep what is staged.
            Place::Host { .. } if !in_graph => Ok(place),
            // Memory of another device, which fills do not reach.
            _ => Err(Code::NOT_SUPPORTED),
        }
    })?;
    let mut guard = context.order()?;
    let order = guard.get()?;
    let mut has_host = false;
    for place in rows.as_slice() {
        match *place {
            Place::Device(to) => {
                order.submit(&choice, &Command::Fill { to, pattern, count: width as u64 })?;
            }
            _ => has_host = true,
        }
    }
    drop(guard);
    let is_full = has_host && fill_host(&context, &choice, rows.as_slice(), (pattern, row_bytes))?;
    if is_full {
        return wait_for_room(state, &context, &choice);
    }
    let waits = returning == Returning::SeenByHost && is_of_host && !in_graph;
    if waits { wait(state, &context, &choice) } else { Ok(()) }
}

/// Fills memory that lies below in the host, which a fill of the device does not reach, by copies of a staged pattern. Says whether so much is staged that it is to be waited for.
fn fill_host(
    context: &Context,
    choice: &StreamChoice,
    rows: &[Place],
    (pattern, row_bytes): (Pattern, u64),
) -> Answer<bool> {
    let bytes = row_bytes.min(STAGED_BYTES);
    let staged = context.stage(bytes)?;
    write_pattern(&staged.block, bytes as usize, pattern);
    let from = Place::Host { block: staged.block.id(), offset: 0 };
    let of_host = rows.iter().filter_map(|row| match *row {
        Place::Host { block, offset } => Some((block, offset)),
        _ => None,
    });
    let copies = of_host.flat_map(|(block, row)| {
        (0..row_bytes).step_by(STAGED_BYTES as usize).map(move |at| {
            let to = Place::Host { block, offset: row + at };
            Command::Copy { from, to, bytes: STAGED_BYTES.min(row_bytes - at) }
        })
    });
    context.submit_staged(choice, staged, copies)
}

/// Writes a pattern to the first bytes of a block again and again.
fn write_pattern(block: &HostBlock, bytes: usize, pattern: Pattern) {
    let of_pattern = match pattern {
        Pattern::U8(value) => vec![value],
        Pattern::U16(value) => value.to_ne_bytes().to_vec(),
        Pattern::U32(value) => value.to_ne_bytes().to_vec(),
    };
    let start = block.bytes().as_ptr().cast::<u8>();
    for (at, byte) in of_pattern.iter().cycle().take(bytes.min(block.len())).enumerate() {
        // SAFETY: the place is inside of the block, and neither work nor another thread uses the block now.
        unsafe { start.wrapping_add(at).write(*byte) };
    }
}

driver_api! {
    fn cuMemsetD8_v2 | cuMemsetD8_v2_ptds (to: u64, value: c_uchar, count: usize) {
        fill(to, 0, Pattern::U8(value), (count, 1), 0, Returning::SeenByHost)
    }

    fn cuMemsetD16_v2 | cuMemsetD16_v2_ptds (to: u64, value: c_ushort, count: usize) {
        fill(to, 0, Pattern::U16(value), (count, 1), 0, Returning::SeenByHost)
    }

    fn cuMemsetD32_v2 | cuMemsetD32_v2_ptds (to: u64, value: c_uint, count: usize) {
        fill(to, 0, Pattern::U32(value), (count, 1), 0, Returning::SeenByHost)
    }

    fn cuMemsetD8Async | cuMemsetD8Async_ptsz (to: u64, value: c_uchar, count: usize, stream: RawHandle) {
        fill(to, 0, Pattern::U8(value), (count, 1), stream, Returning::Queued)
    }

    fn cuMemsetD16Async | cuMemsetD16Async_ptsz (to: u64, value: c_ushort, count: usize, stream: RawHandle) {
        fill(to, 0, Pattern::U16(value), (count, 1), stream, Returning::Queued)
    }

    fn cuMemsetD32Async | cuMemsetD32Async_ptsz (to: u64, value: c_uint, count: usize, stream: RawHandle) {
        fill(to, 0, Pattern::U32(value), (count, 1), stream, Returning::Queued)
    }

    fn cuMemsetD2D8_v2 | cuMemsetD2D8_v2_ptds (to: u64, pitch: usize, value: c_uchar, width: usize, height: usize) {
        fill(to, pitch, Pattern::U8(value), (width, height), 0, Returning::SeenByHost)
    }

    fn cuMemsetD2D16_v2 | cuMemsetD2D16_v2_ptds (to: u64, pitch: usize, value: c_ushort, width: usize, height: usize) {
        fill(to, pitch, Pattern::U16(value), (width, height), 0, Returning::SeenByHost)
    }

    fn cuMemsetD2D32_v2 | cuMemsetD2D32_v2_ptds (to: u64, pitch: usize, value: c_uint, width: usize, height: usize) {
        fill(to, pitch, Pattern::U32(value), (width, height), 0, Returning::SeenByHost)
    }

    fn cuMemsetD2D8Async | cuMemsetD2D8Async_ptsz (
        to: u64, pitch: usize, value: c_uchar, width: usize, height: usize, stream: RawHandle
    ) {
        fill(to, pitch, Pattern::U8(value), (width, height), stream, Returning::Queued)
    }

    fn cuMemsetD2D16Async | cuMemsetD2D16Async_ptsz (
        to: u64, pitch: usize, value: c_ushort, width: usize, height: usize, stream: RawHandle
    ) {
        fill(to, pitch, Pattern::U16(value), (width, height), stream, Returning::Queued)
    }

    fn cuMemsetD2D32Async | cuMemsetD2D32Async_ptsz (
        to: u64, pitch: usize, value: c_uint, width: usize, height: usize, stream: RawHandle
    ) {
        fill(to, pitch, Pattern::U32(value), (width, height), stream, Returning::Queued)
    }
}
