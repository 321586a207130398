//! Global memory for tests and tools: separate blocks with gaps between them.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::atomic_words::Words;
use super::global::{Cells, Declared, GlobalMemory, Miss, MissKind, Span, UndefinedStore};
use crate::exec::out_of_bounds_text::past_end;
use crate::exec::warp_register::lanes_where;

/// The first address given out; low addresses stay free so that a null pointer with an offset is caught.
const FIRST: u64 = 0x1_0000_0000;
/// Blocks start at multiples of this, with at least as much free behind each.
const ALIGN: u64 = 256;

/// A memory of separate blocks, each with its own bounds.
///
/// Addresses are never given out again, so every use of a freed block is seen.
///
/// ```
/// use kiln_ptx::exec::{GlobalMemory, SimpleMemory};
///
/// let mut memory = SimpleMemory::new();
/// let block = memory.allocate(12);
/// assert!(memory.write(block, &[1, 2, 3]));
/// assert_eq!(memory.read(block, 4), Some(vec![1, 2, 3, 0]));
/// memory.free(block);
/// let miss = memory.miss(block + 4, 4);
/// assert_eq!(miss.near, "4 bytes into a block of 12 bytes that was freed");
/// ```
#[derive(Debug, Default)]
pub struct SimpleMemory {
    /// By rising address.
    blocks: Vec<Block>,
}

#[derive(Debug)]
struct Block {
    start: u64,
    bytes: u64,
    live: bool,
    writable: bool,
    cells: Words,
    /// A one for every bit that was written; absent in a block that started out as zeros, until undefined bits are written there.
    written: OnceLock<Words>,
    /// The last store of an undefined value to each offset.
    undefined_stores: Mutex<BTreeMap<u64, UndefinedStore>>,
}

impl SimpleMemory {
    /// A memory without blocks.
    pub fn new() -> Self {
        Self::default()
    }

    /// A new block of zeros; its address.
    pub fn allocate(&mut self, bytes: u64) -> u64 {
        self.add(bytes, OnceLock::new())
    }

    /// A new block that was never written; its address.
    pub fn allocate_uninitialised(&mut self, bytes: u64) -> u64 {
        self.add(bytes, OnceLock::from(Words::zeroed(bytes)))
    }

    /// A new block with content; its address.
    pub fn allocate_with(&mut self, content: &[u8]) -> u64 {
        let address = self.allocate(content.len() as u64);
        self.write(address, content);
        address
    }

    /// Forbids kernels to write the block at `address`.
    pub fn protect(&mut self, address: u64) {
        if let Some(block) = self.blocks.iter_mut().find(|block| block.start == address) {
            block.writable = false;
        }
    }

    /// Frees the block that starts at `address`; false if there is none.
    pub fn free(&mut self, address: u64) -> bool {
        let block = self.blocks.iter_mut().find(|block| block.start == address && block.live);
        block.map(|block| block.live = false).is_some()
    }

    /// Copies bytes in; false if they do not lie in one live block.
    pub fn write(&self, address: u64, bytes: &[u8]) -> bool {
        let Some(block) = self.holding(address, bytes.len() as u64) else { return false };
        block.cells.write(address - block.start, bytes);
        if let Some(written) = block.written.get() {
            written.write(address - block.start, &vec![0xff; bytes.len()]);
        }
        true
    }

    /// Copies bytes out; `None` if they do not lie in one live block.
    pub fn read(&self, address: u64, bytes: u64) -> Option<Vec<u8>> {
        let block = self.holding(address, bytes)?;
        let mut out = vec![0; usize::try_from(bytes).ok()?];
        block.cells.read(address - block.start, &mut out);
        Some(out)
    }

    /// The undefined values that kernels stored to a block and that are still there, by address.
    pub fn undefined_stores(&self, address: u64) -> Vec<(u64, UndefinedStore)> {
        let Some(block) = self.holding(address, 1) else { return Vec::new() };
        let stores = block.undefined_stores.lock().unwrap_or_else(PoisonError::into_inner);
        let is_left = |offset: u64, store: &UndefinedStore| block.undefined_bits(offset, store.bytes) != 0;
        let left = stores.iter().filter(|(offset, store)| is_left(**offset, store));
        left.map(|(offset, store)| (block.start + offset, store.clone())).collect()
    }

    fn add(&mut self, bytes: u64, written: OnceLock<Words>) -> u64 {
        let end = self.blocks.last().map_or(FIRST, |last| last.start + last.bytes);
        let start = (end + ALIGN).next_multiple_of(ALIGN);
        let cells = Words::zeroed(bytes);
        let undefined_stores = Mutex::default();
        self.blocks.push(Block {
            start,
            bytes,
            live: true,
            writable: true,
            cells,
            written,
            undefined_stores,
        });
        start
    }

    /// The last block that starts at or below `address`.
    fn below(&self, address: u64) -> Option<&Block> {
        let after = self.blocks.partition_point(|block| block.start <= address);
        self.blocks.get(after.checked_sub(1)?)
    }

    fn holding(&self, address: u64, bytes: u64) -> Option<&Block> {
        let block = self.below(address).filter(|block| block.live)?;
        let end = address.checked_add(bytes)?;
        (end <= block.start + block.bytes).then_some(block)
    }
}

impl GlobalMemory for SimpleMemory {
    fn span(&self, address: u64) -> Option<Span<'_>> {
        let block = self.holding(address, 1)?;
        let end = block.start + block.bytes;
        Some(Span {
            start: block.start,
            end,
            origin: block.start,
            writable: block.writable,
            declared: Declared::ReadWrite,
            cells: block,
        })
    }

    fn miss(&self, address: u64, bytes: u64) -> Miss {
        let out = |near: String| Miss { kind: MissKind::OutOfBounds, near };
        let Some(block) = self.below(address) else {
            return out(match self.blocks.first() {
                Some(first) => format!("{} bytes below the first block", first.start - address),
                None => "where no block was ever allocated".to_owned(),
            });
        };
        let (offset, size) = (address - block.start, block.bytes);
        if offset < size && !block.live {
            let near = format!("{offset} bytes into a block of {size} bytes that was freed");
            return Miss { kind: MissKind::Freed, near };
        }
        if offset < size {
            return out(format!(
                "{} bytes over the end of a block of {size} bytes",
                offset.saturating_add(bytes).saturating_sub(size)
            ));
        }
        let freed = if block.live { "" } else { " that was freed" };
        out(format!("{} of a block of {size} bytes{freed}", past_end(offset - size)))
    }
}

impl Cells for Block {
    fn load(&self, offset: u64, bytes: u32) -> u64 {
        self.cells.load(offset, bytes)
    }

    fn store(&self, offset: u64, bytes: u32, value: u64) {
        self.cells.store(offset, bytes, value);
        if let Some(written) = self.written.get() {
            written.store(offset, bytes, u64::MAX);
        }
    }

    fn update(&self, offset: u64, bytes: u32, next: &mut dyn FnMut(u64) -> u64) -> u64 {
        if let Some(written) = self.written.get() {
            written.store(offset, bytes, u64::MAX);
        }
        self.cells.update(offset, bytes, next)
    }

    fn load_lanes(&self, offsets: &[u64; 32], mask: u32, bytes: u32, values: &mut [u64; 32]) {
        self.cells.load_lanes(offsets, mask, bytes, values);
    }

    fn store_lanes(&self, offsets: &[u64; 32], mask: u32, bytes: u32, values: &[u64; 32]) {
        self.cells.store_lanes(offsets, mask, bytes, values);
        if let Some(written) = self.written.get() {
            written.store_lanes(offsets, mask, bytes, &[u64::MAX; 32]);
        }
    }

    fn load_row(&self, offset: u64, bytes: u32, values: &mut [u64]) -> bool {
        self.cells.load_row(offset, bytes, values)
    }

    fn store_row(&self, offset: u64, bytes: u32, values: &[u64]) -> bool {
        let is_stored = self.cells.store_row(offset, bytes, values);
        if let (true, Some(written)) = (is_stored, self.written.get()) {
            written.store_row(offset, bytes, &[u64::MAX; 16][..values.len().min(16)]);
        }
        is_stored
    }

    fn load_words(&self, offset: u64, words: &mut [u32]) -> bool {
        self.cells.load_words(offset, words)
    }

    fn store_words(&self, offset: u64, words: &[u32]) -> bool {
        let is_stored = self.cells.store_words(offset, words);
        if let (true, Some(written)) = (is_stored, self.written.get()) {
            written.store_words(offset, &[u32::MAX; 32][..words.len().min(32)]);
        }
        is_stored
    }

    fn is_range_written(&self, offset: u64, bytes: u64) -> bool {
        let is_word_written = |written: &Words, at: u64| written.load(at, 8) == u64::MAX;
        self.written.get().is_none_or(|written| {
            offset.is_multiple_of(8)
                && bytes.is_multiple_of(8)
                && (offset..offset + bytes).step_by(8).all(|at| is_word_written(written, at))
        })
    }

    fn unwritten(&self, offsets: &[u64; 32], mask: u32, bytes: u32) -> u32 {
        let Some(written) = self.written.get() else { return 0 };
        lanes_where(mask, |lane| written.load(offsets[lane], bytes) != u64::MAX >> (64 - 8 * bytes))
    }

    fn undefined_bits(&self, offset: u64, bytes: u32) -> u64 {
        let written = self.written.get().map_or(u64::MAX, |written| written.load(offset, bytes));
        !written & (u64::MAX >> (64 - 8 * bytes))
    }

    fn undefine(&self, offset: u64, bytes: u32, bits: u64, _: u64, store: &dyn Fn() -> UndefinedStore) {
        let mut stores = self.undefined_stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.insert(offset, store());
        let all = || {
            let written = Words::zeroed(self.bytes);
            (0..self.bytes).step_by(8).for_each(|at| written.store(at, 8, u64::MAX));
            written
        };
        self.written.get_or_init(all).store(offset, bytes, !bits);
    }
}
