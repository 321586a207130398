//! A picture of memory: address against time.
//!
//! The largest blocks are drawn as they are. The others, and those that are only known as sums, are drawn into cells: how much of a cell is
//! covered, and by which tag most.

use serde::Serialize;

use crate::block_axis::{AddressAxis, AddressRange};
use crate::block_map::{BlockCell, DeviceBlocks, KeptBlock};
use crate::name_table::{NameId, NameTable};
use crate::watch_error::WatchError;
use crate::watched_recording::WatchedRecording;

/// Cells of a picture, along time and along addresses.
const COLUMNS: usize = 400;
const ROWS: usize = 160;
/// A cell of which less is covered is empty.
const HARDLY: f64 = 1.0 / 256.0;
/// Blocks that are drawn as they are.
const MAX_BLOCKS: usize = 1500;

/// Which part of the memory of a device is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockQuery {
    /// The device.
    pub device: u32,
    /// From when.
    pub begin_ns: u64,
    /// To when.
    pub end_ns: u64,
    /// From where on the axis of addresses.
    pub low: u64,
    /// To where; 0 is the end of the axis.
    pub high: u64,
}

/// A picture of memory.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BlockPicture {
    /// The device.
    pub device: u32,
    /// From where to where on the axis, and how long that is.
    pub low: u64,
    /// To where.
    pub high: u64,
    /// How long the axis is.
    pub axis_bytes: u64,
    /// The addresses on the axis.
    pub ranges: Vec<AddressRange>,
    /// The largest blocks, by beginning.
    pub blocks: Vec<DrawnBlock>,
    /// How many columns and rows of cells there are.
    pub size: (usize, usize),
    /// Cells that other blocks cover.
    pub cells: DrawnCells,
    /// Blocks that are only known as sums, of the whole recording.
    pub added_up: u64,
    /// Where the largest hole was when an allocation was refused: when, where on the axis, how many bytes, and how many were asked for.
    pub holes: Vec<(u64, u64, u64, u64)>,
}

/// A block as it is drawn.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DrawnBlock {
    /// Its number.
    pub block: u64,
    /// Its address, in hexadecimal digits.
    pub address: String,
    /// Where it is on the axis.
    pub position: u64,
    /// Its size.
    pub bytes: u64,
    /// When it was given out.
    pub begin_ns: u64,
    /// When it was given back; none if it is in use.
    pub end_ns: Option<u64>,
    /// Its tag.
    pub tag: NameId,
    /// Which line asked for it.
    pub line: Option<String>,
}

/// Cells in rows: each entry is some cells of one row that look alike.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct DrawnCells {
    /// The row, from the lowest address on.
    pub row: Vec<u32>,
    /// The first column.
    pub column: Vec<u32>,
    /// How many columns.
    pub length: Vec<u32>,
    /// The tag that covers most.
    pub tag: Vec<NameId>,
    /// How much is covered, of 16.
    pub cover: Vec<u8>,
}

/// The part of address and time that a picture shows.
struct Frame<'a> {
    axis: &'a AddressAxis,
    begin: f64,
    ns: f64,
    low: f64,
    bytes: f64,
}

/// A rectangle in cells: columns and rows, with fractions.
#[derive(Clone, Copy)]
struct Place {
    left: f64,
    right: f64,
    bottom: f64,
    top: f64,
}

impl WatchedRecording {
    /// The memory of a device by address, over a part of the time.
    ///
    /// # Errors
    /// A device whose addresses are not recorded.
    pub fn blocks(&self, query: BlockQuery) -> Result<BlockPicture, WatchError> {
        let shared = self.read();
        let index = &shared.index;
        let unknown = WatchError::Unknown("no addresses of this device are recorded");
        let blocks = index.blocks.device(query.device).ok_or(unknown)?;
        let mut picture = drawn(blocks, query, &index.names);
        let axis = blocks.used.axis();
        let own = index.refusals.iter().filter(|refusal| refusal.device == query.device);
        picture.holes = own
            .filter_map(|refusal| {
                let hole = refusal.hole.as_ref()?;
                Some((refusal.time_ns, axis.position(hole.begin)?, hole.bytes, refusal.bytes))
            })
            .collect();
        Ok(picture)
    }
}

fn drawn(blocks: &DeviceBlocks, query: BlockQuery, names: &NameTable) -> BlockPicture {
    let axis = blocks.used.axis();
    let high = if query.high == 0 { axis.bytes } else { query.high.min(axis.bytes) }.max(1);
    let low = query.low.min(high - 1);
    let end_ns = query.end_ns.max(query.begin_ns.saturating_add(1));
    let frame = Frame {
        axis: &axis,
        begin: query.begin_ns as f64,
        ns: ((end_ns - query.begin_ns) as f64).max(1.0),
        low: low as f64,
        bytes: (high - low) as f64,
    };
    let all = blocks.done.iter().chain(blocks.live.values());
    let mut seen: Vec<(KeptBlock, u64, Place)> = all
        .filter(|block| block.begin_ns < end_ns && block.end_ns > query.begin_ns)
        .filter_map(|block| {
            let position = axis.position(block.address)?;
            Some((*block, position, frame.place((block.begin_ns, block.end_ns), (position, block.bytes))?))
        })
        .collect();
    if seen.len() > MAX_BLOCKS {
        seen.select_nth_unstable_by(MAX_BLOCKS, |a, b| b.2.room().total_cmp(&a.2.room()));
    }
    let mut cells = vec![BlockCell::default(); COLUMNS * ROWS];
    for (block, _, place) in seen.iter().skip(MAX_BLOCKS) {
        place.cover(&mut cells, 1.0, block.tag);
    }
    for (span, (from, to), cell) in blocks.cells.cells() {
        let inside =
            axis.position(from).or_else(|| axis.position(to - 1).map(|at| at.saturating_sub(to - 1 - from)));
        if let Some(place) = inside.and_then(|position| frame.place(span, (position, to - from))) {
            let whole = (span.1 - span.0) as f64 * (to - from) as f64;
            place.cover(&mut cells, (cell.covered / whole).min(1.0), cell.tag);
        }
    }
    seen.truncate(MAX_BLOCKS);
    let mut blocks_seen: Vec<DrawnBlock> =
        seen.into_iter().map(|(block, position, _)| named(&block, position, names)).collect();
    blocks_seen.sort_by_key(|block| (block.begin_ns, block.position));
    BlockPicture {
        device: query.device,
        low,
        high,
        axis_bytes: axis.bytes,
        blocks: blocks_seen,
        size: (COLUMNS, ROWS),
        cells: DrawnCells::of(&cells),
        added_up: blocks.added_up,
        holes: Vec::new(),
        ranges: axis.ranges,
    }
}

fn named(block: &KeptBlock, position: u64, names: &NameTable) -> DrawnBlock {
    DrawnBlock {
        block: block.block,
        address: format!("{:#x}", block.address),
        position,
        bytes: block.bytes,
        begin_ns: block.begin_ns,
        end_ns: (block.end_ns != u64::MAX).then_some(block.end_ns),
        tag: block.tag,
        line: block.line.map(|line| names.text(line).to_owned()),
    }
}

impl Frame<'_> {
    /// Where something is in cells; none if it is outside.
    fn place(&self, (begin, end): (u64, u64), (position, bytes): (u64, u64)) -> Option<Place> {
        let column =
            |ns: u64| ((ns as f64 - self.begin) / self.ns * COLUMNS as f64).clamp(0.0, COLUMNS as f64);
        let row = |at: u64| ((at as f64 - self.low) / self.bytes * ROWS as f64).clamp(0.0, ROWS as f64);
        let top = position.saturating_add(bytes).min(self.axis.bytes);
        let place = Place { left: column(begin), right: column(end), bottom: row(position), top: row(top) };
        (place.left < place.right && place.bottom < place.top).then_some(place)
    }
}

impl Place {
    fn room(&self) -> f64 {
        (self.right - self.left) * (self.top - self.bottom)
    }

    /// Adds what it covers to the cells it touches.
    fn cover(&self, cells: &mut [BlockCell], share: f64, tag: NameId) {
        let last = |end: f64, count: usize| (end.ceil() as usize).clamp(1, count) - 1;
        let part = |begin: f64, end: f64, cell: usize| {
            (end.min(cell as f64 + 1.0) - begin.max(cell as f64)).max(0.0)
        };
        for row in self.bottom as usize..=last(self.top, ROWS) {
            let high = part(self.bottom, self.top, row);
            for column in self.left as usize..=last(self.right, COLUMNS) {
                if let Some(cell) = cells.get_mut(row * COLUMNS + column) {
                    cell.add(high * part(self.left, self.right, column) * share, tag);
                }
            }
        }
    }
}

impl DrawnCells {
    fn of(cells: &[BlockCell]) -> Self {
        let mut drawn = Self::default();
        for (row, of_row) in (0..).zip(cells.chunks(COLUMNS)) {
            let mut last: Option<(u32, NameId, u8)> = None;
            for (column, cell) in (0..).zip(of_row) {
                // What is hardly covered is a hole.
                let cover = if cell.covered < HARDLY {
                    0
                } else {
                    (cell.covered * 16.0).round().clamp(1.0, 16.0) as u8
                };
                let look = (cover > 0).then_some((row, cell.tag, cover));
                match (look, drawn.length.last_mut()) {
                    (Some(look), Some(length)) if last == Some(look) => *length += 1,
                    (Some((row, tag, cover)), _) => {
                        drawn.row.push(row);
                        drawn.column.push(column);
                        drawn.length.push(1);
                        drawn.tag.push(tag);
                        drawn.cover.push(cover);
                    }
                    (None, _) => {}
                }
                last = look;
            }
        }
        drawn
    }
}
