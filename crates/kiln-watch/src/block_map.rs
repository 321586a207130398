//! Blocks of memory by address and time.
//!
//! Kept are the blocks that are in use, and of those that were given back the ones that take most room in a picture of address and time.
//! What the others covered is added up in cells, which become wider when there are too many. So what is kept is bounded, however long the
//! recording is, and a hole stays a hole.

use std::collections::{BTreeMap, HashMap};

use kiln_trace::AllocationRecord;
use serde::Serialize;

use crate::block_axis::UsedAddresses;
use crate::name_table::NameId;

/// Blocks of a device that were given back and are kept; twice as many before the smaller half is added up.
const MAX_KEPT: usize = 1 << 16;
/// Blocks in use of a device.
const MAX_LIVE: usize = 1 << 20;
/// Devices whose memory is shown.
const MAX_DEVICES: usize = 64;
/// Cells of a device.
const MAX_CELLS: usize = 1 << 16;
/// The first width of a cell is 2 to the power of this, in nanoseconds and in bytes.
const FIRST_TIME_LEVEL: u32 = 16;
const FIRST_ADDRESS_LEVEL: u32 = 16;

/// A block of memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct KeptBlock {
    pub(crate) block: u64,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) begin_ns: u64,
    /// When it was given back; the largest number while it is in use.
    pub(crate) end_ns: u64,
    pub(crate) tag: NameId,
    pub(crate) line: Option<NameId>,
}

/// Blocks of all devices.
#[derive(Default)]
pub(crate) struct BlockMap {
    devices: BTreeMap<u32, DeviceBlocks>,
}

/// Blocks of one device.
#[derive(Default)]
pub(crate) struct DeviceBlocks {
    pub(crate) live: HashMap<u64, KeptBlock>,
    pub(crate) done: Vec<KeptBlock>,
    pub(crate) cells: BlockCells,
    pub(crate) used: UsedAddresses,
    /// Blocks that are added up.
    pub(crate) added_up: u64,
}

/// What small blocks covered.
pub(crate) struct BlockCells {
    time_level: u32,
    address_level: u32,
    cells: HashMap<(u64, u64), BlockCell>,
}

/// What small blocks covered of a cell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlockCell {
    /// Bytes times nanoseconds.
    pub(crate) covered: f64,
    /// The tag that most of it has.
    pub(crate) tag: NameId,
    weight: f64,
}

/// The largest hole between blocks at some moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MemoryHole {
    /// Where it begins, in hexadecimal digits.
    pub address: String,
    /// How many bytes it has.
    pub bytes: u64,
    #[serde(skip)]
    pub(crate) begin: u64,
}

impl KeptBlock {
    pub(crate) fn new(block: &AllocationRecord<'_>, tag: NameId, line: Option<NameId>) -> Self {
        let AllocationRecord { block, address, bytes, time_ns, .. } = *block;
        Self { block, address, bytes, begin_ns: time_ns, end_ns: u64::MAX, tag, line }
    }

    /// How much room it takes in a picture.
    fn room(&self) -> f64 {
        self.bytes as f64 * (self.end_ns.saturating_sub(self.begin_ns) as f64 + 1.0)
    }
}

impl BlockMap {
    /// A block was given out. One whose address is not recorded is not shown.
    pub(crate) fn allocated(&mut self, device: u32, block: KeptBlock) {
        if block.address == 0 || (self.devices.len() >= MAX_DEVICES && !self.devices.contains_key(&device)) {
            return;
        }
        let blocks = self.devices.entry(device).or_default();
        if blocks.live.len() < MAX_LIVE {
            blocks.used.add(block.address, block.bytes);
            blocks.live.insert(block.block, block);
        }
    }

    /// A block was given back.
    pub(crate) fn freed(&mut self, device: u32, block: u64, time_ns: u64) {
        let Some(blocks) = self.devices.get_mut(&device) else { return };
        if let Some(live) = blocks.live.remove(&block) {
            blocks.done.push(KeptBlock { end_ns: time_ns.max(live.begin_ns), ..live });
            if blocks.done.len() >= 2 * MAX_KEPT {
                blocks.add_up();
            }
        }
    }

    pub(crate) fn device(&self, device: u32) -> Option<&DeviceBlocks> {
        self.devices.get(&device)
    }

    /// Devices whose addresses are known.
    pub(crate) fn devices(&self) -> Vec<u32> {
        self.devices.keys().copied().collect()
    }

    /// The largest hole between the blocks that a device has in use now.
    pub(crate) fn largest_hole(&self, device: u32) -> Option<MemoryHole> {
        let blocks = self.devices.get(&device)?;
        let mut live: Vec<(u64, u64)> = blocks
            .live
            .values()
            .map(|block| (block.address, block.address.saturating_add(block.bytes)))
            .collect();
        live.sort_unstable();
        let mut largest: Option<(u64, u64)> = None;
        for range in &blocks.used.axis().ranges {
            let (mut at, end) = (range.begin, range.begin.saturating_add(range.bytes));
            let inside = live.iter().filter(|(begin, _)| (range.begin..end).contains(begin));
            for (begin, behind) in inside.copied().chain([(end, end)]) {
                if begin > at && largest.is_none_or(|(_, bytes)| begin - at > bytes) {
                    largest = Some((at, begin - at));
                }
                at = at.max(behind);
            }
        }
        largest.map(|(begin, bytes)| MemoryHole { address: format!("{begin:#x}"), bytes, begin })
    }
}

impl DeviceBlocks {
    /// Keeps the blocks that take most room, and adds the others up.
    fn add_up(&mut self) {
        let by_room = |a: &KeptBlock, b: &KeptBlock| b.room().total_cmp(&a.room());
        self.done.select_nth_unstable_by(MAX_KEPT, by_room);
        for block in self.done.drain(MAX_KEPT..) {
            self.cells.add(&block);
            self.added_up += 1;
        }
    }
}

impl Default for BlockCells {
    fn default() -> Self {
        Self { time_level: FIRST_TIME_LEVEL, address_level: FIRST_ADDRESS_LEVEL, cells: HashMap::new() }
    }
}

impl BlockCells {
    /// The cells: from when to when, from which address to which, and what is covered.
    pub(crate) fn cells(&self) -> impl Iterator<Item = ((u64, u64), (u64, u64), &BlockCell)> {
        let (time, address) = (self.time_level, self.address_level);
        let ends = |at: u64, level: u32| (at << level, (at << level).saturating_add(1 << level));
        self.cells.iter().map(move |((column, row), cell)| (ends(*column, time), ends(*row, address), cell))
    }

    fn add(&mut self, block: &KeptBlock) {
        let last = |begin: u64, end: u64| end.max(begin.saturating_add(1)) - 1;
        // A block that covers many cells would take as long as it lives.
        while (block.end_ns - block.begin_ns) >> self.time_level > 256 {
            self.widen(true);
        }
        while block.bytes >> self.address_level > 256 {
            self.widen(false);
        }
        let (time, address) = (self.time_level, self.address_level);
        let behind = block.address.saturating_add(block.bytes);
        for column in block.begin_ns >> time..=last(block.begin_ns, block.end_ns) >> time {
            let ns =
                overlap((block.begin_ns, block.end_ns.max(block.begin_ns.saturating_add(1))), column, time);
            for row in block.address >> address..=last(block.address, behind) >> address {
                let covered = ns * overlap((block.address, behind), row, address);
                self.cells.entry((column, row)).or_default().add(covered, block.tag);
            }
        }
        while self.cells.len() > MAX_CELLS {
            let is_time = self.time_level - FIRST_TIME_LEVEL <= self.address_level - FIRST_ADDRESS_LEVEL;
            self.widen(is_time);
        }
    }

    /// Makes cells twice as wide.
    fn widen(&mut self, is_time: bool) {
        let (time, address) = if is_time { (1, 0) } else { (0, 1) };
        (self.time_level, self.address_level) = (self.time_level + time, self.address_level + address);
        for ((column, row), cell) in std::mem::take(&mut self.cells) {
            self.cells.entry((column >> time, row >> address)).or_default().add(cell.covered, cell.tag);
        }
    }
}

impl BlockCell {
    /// The tag with the most votes, of which each is worth what it covers.
    pub(crate) fn add(&mut self, covered: f64, tag: NameId) {
        self.covered += covered;
        if self.tag == tag {
            self.weight += covered;
        } else if covered > self.weight {
            (self.tag, self.weight) = (tag, covered - self.weight);
        } else {
            self.weight -= covered;
        }
    }
}

/// How much of a span is in a cell of a width.
fn overlap((begin, end): (u64, u64), cell: u64, level: u32) -> f64 {
    let (left, right) = (cell << level, (cell << level).saturating_add(1 << level));
    end.min(right).saturating_sub(begin.max(left)) as f64
}
