//! A copy of one or more rows between two places, of whatever kind they are.
//!
//! Pageable memory of the program is staged: rows that go to the device are read during the call, rows that come from it are written before the call
//! returns. That is what the API promises for such memory.

use kiln_driver::{Code, Command, HostBlock, Place};

use crate::boundary::{Answer, OrCode};
use crate::caller_memory::{fetch, fetch_slice, store};
use crate::calls::context::Context;
use crate::calls::process_state::ProcessState;
use crate::calls::row_values::RowValues;
use crate::calls::staging::StagedBlock;
use crate::calls::stream_order::StreamChoice;
use crate::calls::streams::{wait, wait_for_room};

/// Rows of one copy; more are refused.
const MOST_ROWS: usize = 1 << 24;

/// Addresses of the host below this one have no memory.
const FIRST_PAGE_BYTES: u64 = 4096;

/// What a call says about an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// It is memory of the host.
    Host,
    /// It is memory of a device.
    Device,
    /// The address tells.
    Any,
}

/// One end of a copy: the address of the first row, and how far apart rows and planes are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowsOf {
    pub(crate) side: Side,
    pub(crate) address: u64,
    pub(crate) row_pitch: u64,
    pub(crate) plane_pitch: u64,
}

/// How many rows there are, and how long each is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) row_bytes: u64,
    pub(crate) rows: u64,
    pub(crate) planes: u64,
}

/// Whether the call returns when the copy is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Returning {
    /// When it is done, unless both ends are memory of devices.
    Done,
    /// As soon as the ends allow it.
    Early,
}

impl RowsOf {
    /// One row.
    pub(crate) fn line(side: Side, address: u64) -> Self {
        Self { side, address, row_pitch: 0, plane_pitch: 0 }
    }

    fn addresses(self, extent: Extent) -> Answer<RowValues<u64>> {
        let count = extent.rows.checked_mul(extent.planes).ok_or(Code::INVALID_VALUE)?;
        if count > MOST_ROWS as u64 {
            return Err(Code::INVALID_VALUE);
        }
        RowValues::new(count, |row| {
            let (plane, row) = (row / extent.rows, row % extent.rows);
            let offset = plane.checked_mul(self.plane_pitch).zip(row.checked_mul(self.row_pitch));
            let offset = offset.and_then(|(plane, row)| plane.checked_add(row));
            let address = offset.and_then(|offset| self.address.checked_add(offset));
            address.ok_or(Code::INVALID_VALUE)
        })
    }
}

/// One end, looked up.
enum End {
    /// A place for each row, and whether all are memory of devices alone.
    Known { places: RowValues<Place>, is_of_host: bool },
    /// Pageable memory: an address for each row.
    Pageable(RowValues<u64>),
}

/// Copies rows on a stream.
pub(crate) fn copy(
    state: &ProcessState,
    (context, choice): (&Context, &StreamChoice),
    (to, from): (RowsOf, RowsOf),
    extent: Extent,
    returning: Returning,
) -> Answer {
    if extent.row_bytes == 0 || extent.rows == 0 || extent.planes == 0 {
        return Ok(());
    }
    if extent.rows == 1
        && extent.planes == 1
        && let Some(waits) = copy_row(state, (context, choice), (to, from), extent.row_bytes, returning)?
    {
        return if waits { wait(state, context, choice) } else { Ok(()) };
    }
    let in_graph = context.order()?.get()?.is_capturing(choice);
    let to = look_up(state, (context.device, in_graph), to, extent)?;
    let from = look_up(state, (context.device, in_graph), from, extent)?;
    let is_staged = matches!(to, End::Pageable(_)) || matches!(from, End::Pageable(_));
    if is_staged || returning == Returning::Done {
        // A graph would have to copy pageable memory when it runs, and a capture cannot wait.
        context.order()?.get()?.refuse_capture(choice)?;
    }
    match (to, from) {
        (
            End::Known { places: to, is_of_host: to_host },
            End::Known { places: from, is_of_host: from_host },
        ) => {
            submit(context, choice, (to.as_slice(), from.as_slice()), extent.row_bytes)?;
            let waits = returning == Returning::Done && (to_host || from_host);
            if waits { wait(state, context, choice) } else { Ok(()) }
        }
        (End::Known { places, .. }, End::Pageable(addresses)) => {
            let ends = (places.as_slice(), addresses.as_slice());
            upload(state, (context, choice), ends, extent.row_bytes, returning)
        }
        (End::Pageable(addresses), End::Known { places, .. }) => {
            let ends = (addresses.as_slice(), places.as_slice());
            download(state, (context, choice), ends, extent.row_bytes)
        }
        (End::Pageable(to), End::Pageable(from)) => {
            wait(state, context, choice)?;
            move_on_host(to.as_slice(), from.as_slice(), extent.row_bytes)
        }
    }
}

/// Copies one row between memory that is known, as most copies are, and says whether to wait for it; nothing if one end is pageable.
fn copy_row(
    state: &ProcessState,
    (context, choice): (&Context, &StreamChoice),
    (to, from): (RowsOf, RowsOf),
    bytes: u64,
    returning: Returning,
) -> Answer<Option<bool>> {
    let mut order = context.order()?;
    let order = order.get()?;
    let place_of = (context.device, order.is_capturing(choice));
    let found = state.memory.two_places(place_of, [to.address, from.address], bytes)?;
    let Some([(to_place, to_host), (from_place, from_host)]) = found else { return Ok(None) };
    if to.side == Side::Host && !to_host || from.side == Side::Host && !from_host {
        return Err(Code::INVALID_VALUE);
    }
    if returning == Returning::Done {
        order.refuse_capture(choice)?;
    }
    if to_place != from_place {
        order.submit(choice, &Command::Copy { from: from_place, to: to_place, bytes })?;
    }
    Ok(Some(returning == Returning::Done && (to_host || from_host)))
}

/// A copy as a graph has it: copies by the host before and after those of the device, for rows in pageable memory.
#[derive(Default)]
pub(crate) struct GraphCopy {
    /// To, from, bytes.
    pub(crate) before: Vec<[usize; 3]>,
    pub(crate) rows: Vec<(Place, Place)>,
    pub(crate) after: Vec<[usize; 3]>,
    /// What the rows are staged in.
    pub(crate) block: Option<HostBlock>,
}

/// Looks up what a copy of a graph does each time it is launched.
pub(crate) fn graph_copy(
    state: &ProcessState,
    context: &Context,
    (to, from): (RowsOf, RowsOf),
    extent: Extent,
) -> Answer<GraphCopy> {
    let mut copy = GraphCopy::default();
    let bytes = extent.row_bytes;
    if bytes == 0 || extent.rows == 0 || extent.planes == 0 {
        return Ok(copy);
    }
    let to = look_up(state, (context.device, true), to, extent)?;
    let from = look_up(state, (context.device, true), from, extent)?;
    let staged = |count: usize| -> Answer<(HostBlock, Vec<Place>, Vec<u64>)> {
        let all = bytes.checked_mul(count as u64).ok_or(Code::INVALID_VALUE)?;
        let block = context.driver.allocate_host(all).or_code()?;
        let start = block.bytes().as_ptr().addr() as u64;
        let rows = (0..count).map(|row| row_of(&block, row, bytes)).collect();
        Ok((block, rows, (0..count as u64).map(|row| start + row * bytes).collect()))
    };
    let triple = |(to, from): (&u64, &u64)| [*to as usize, *from as usize, bytes as usize];
    let pair = |(from, to): (&Place, &Place)| (*from, *to);
    match (to, from) {
        (End::Known { places: to, .. }, End::Known { places: from, .. }) => {
            let rows = from.as_slice().iter().zip(to.as_slice()).map(pair);
            copy.rows = rows.filter(|(from, to)| from != to).collect();
        }
        (End::Known { places, .. }, End::Pageable(addresses)) => {
            let (addresses, places) = (addresses.as_slice(), places.as_slice());
            let (block, rows, starts) = staged(addresses.len())?;
            copy.before = starts.iter().zip(addresses).map(triple).collect();
            copy.rows = rows.iter().zip(places).map(pair).collect();
            copy.block = Some(block);
        }
        (End::Pageable(addresses), End::Known { places, .. }) => {
            let (addresses, places) = (addresses.as_slice(), places.as_slice());
            let (block, rows, starts) = staged(addresses.len())?;
            copy.rows = places.iter().zip(&rows).map(pair).collect();
            copy.after = addresses.iter().zip(&starts).map(triple).collect();
            copy.block = Some(block);
        }
        (End::Pageable(to), End::Pageable(from)) => {
            copy.before = to.as_slice().iter().zip(from.as_slice()).map(triple).collect();
        }
    }
    Ok(copy)
}

/// Looks rows up; those of a graph may be in memory that a launch makes.
fn look_up(
    state: &ProcessState,
    (device, in_graph): (u32, bool),
    rows: RowsOf,
    extent: Extent,
) -> Answer<End> {
    let addresses = rows.addresses(extent)?;
    let all = addresses.as_slice();
    let is_known = all.first().is_some_and(|first| state.memory.around_in(in_graph, *first).is_some());
    if !is_known {
        return if rows.side == Side::Device {
            Err(Code::INVALID_VALUE)
        } else {
            Ok(End::Pageable(addresses))
        };
    }
    let mut is_of_host = false;
    let places = RowValues::new(all.len() as u64, |row| {
        let address = all.get(row as usize).copied().ok_or(Code::INVALID_VALUE)?;
        let found = state.memory.place((device, in_graph), address, extent.row_bytes)?;
        let (place, is_seen_by_host) = found.ok_or(Code::INVALID_VALUE)?;
        if rows.side == Side::Host && !is_seen_by_host {
            return Err(Code::INVALID_VALUE);
        }
        is_of_host |= is_seen_by_host;
        Ok(place)
    })?;
    Ok(End::Known { places, is_of_host })
}

fn submit(context: &Context, choice: &StreamChoice, (to, from): (&[Place], &[Place]), bytes: u64) -> Answer {
    let mut order = context.order()?;
    let order = order.get()?;
    for (to, from) in to.iter().zip(from).filter(|(to, from)| to != from) {
        order.submit(choice, &Command::Copy { from: *from, to: *to, bytes })?;
    }
    Ok(())
}

fn upload(
    state: &ProcessState,
    (context, choice): (&Context, &StreamChoice),
    (to, from): (&[Place], &[u64]),
    row_bytes: u64,
    returning: Returning,
) -> Answer {
    let staged = stage(context, from.len(), row_bytes)?;
    let row = row_bytes as usize;
    let fetched = from.iter().enumerate().try_for_each(|(index, address)| {
        let into = staged.block.bytes().as_ptr().wrapping_add(index * row);
        // SAFETY: the block has room for a row for each address; no work uses it, and no other thread has it.
        unsafe { fetch(*address as usize, into, row) }
    });
    if let Err(code) = fetched {
        context.give_back_staged(staged);
        return Err(code);
    }
    let block = staged.block.id();
    let copies = to.iter().zip(0_u64..).map(|(to, row)| {
        let from = Place::Host { block, offset: row * row_bytes };
        Command::Copy { from, to: *to, bytes: row_bytes }
    });
    let is_full = context.submit_staged(choice, staged, copies)?;
    if is_full {
        return wait_for_room(state, context, choice);
    }
    if returning == Returning::Done { wait(state, context, choice) } else { Ok(()) }
}

fn download(
    state: &ProcessState,
    (context, choice): (&Context, &StreamChoice),
    (to, from): (&[u64], &[Place]),
    row_bytes: u64,
) -> Answer {
    // What is refused is no read of the source.
    if to.iter().any(|address| *address < FIRST_PAGE_BYTES) {
        return Err(Code::INVALID_VALUE);
    }
    let staged = stage(context, to.len(), row_bytes)?;
    let row = row_bytes as usize;
    let rows = RowValues::new(to.len() as u64, |row| Ok(row_of(&staged.block, row as usize, row_bytes)))?;
    let queued = submit(context, choice, (rows.as_slice(), from), row_bytes);
    if let Err(code) = queued.and_then(|()| wait(state, context, choice)) {
        // Some copies may be queued, and not be done.
        context.keep_staged(choice, staged)?;
        return Err(code);
    }
    let stored = to.iter().enumerate().try_for_each(|(index, address)| {
        let source = staged.block.bytes().as_ptr().wrapping_add(index * row);
        // SAFETY: the block has a row for each address; the copies into it are done, so nothing writes it.
        unsafe { store(*address as usize, source, row) }
    });
    context.give_back_staged(staged);
    stored
}

/// Pinned memory for all rows of one copy.
fn stage(context: &Context, rows: usize, row_bytes: u64) -> Answer<StagedBlock> {
    context.stage(row_bytes.checked_mul(rows as u64).ok_or(Code::INVALID_VALUE)?)
}

/// Where a row is in a block that has them one after the other.
fn row_of(block: &HostBlock, row: usize, row_bytes: u64) -> Place {
    Place::Host { block: block.id(), offset: row as u64 * row_bytes }
}

/// Copies between two places of the program.
fn move_on_host(to: &[u64], from: &[u64], row_bytes: u64) -> Answer {
    let bytes = usize::try_from(row_bytes).map_err(|_| Code::INVALID_VALUE)?;
    let mut row = Vec::new();
    row.try_reserve_exact(bytes).map_err(|_| Code::OUT_OF_MEMORY)?;
    row.resize(bytes, 0);
    for (to, from) in to.iter().zip(from) {
        fetch_slice(*from as usize, &mut row)?;
        // SAFETY: the row has so many bytes.
        unsafe { store(*to as usize, row.as_ptr(), row.len()) }?;
    }
    Ok(())
}
