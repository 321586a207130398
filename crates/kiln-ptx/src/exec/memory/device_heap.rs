//! The heap kernels allocate from with `malloc`.
//!
//! Bookkeeping stands apart from the bytes, so a kernel that runs off a block cannot damage it and is caught. The heap
//! outlives launches: what one kernel allocates another may free.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::atomic_words::Words;
use super::generic_address::HEAP;
use super::global::{Cells, Declared, GlobalMemory, Miss, MissKind, Span, UndefinedStore};
use crate::exec::code_location::{CodeSite, Line};
use crate::exec::finding::{ExecFinding, ExecFindingKind};
use crate::exec::out_of_bounds_text::{byte_count, past_end};
use crate::exec::warp_register::lanes_where;

/// Blocks start at multiples of this, as those of CUDA do.
const ALIGN: u64 = 16;

/// At least so many bytes between two blocks belong to none, so that an access just past the end of one is found.
const GAP: u64 = 16;

/// The device heap behind `malloc` and `free` in kernels.
///
/// ```
/// use kiln_ptx::exec::{DeviceHeap, GlobalMemory};
///
/// let heap = DeviceHeap::new(1 << 20);
/// let block = heap.allocate(100).expect("room");
/// assert!(heap.span(block + 99).is_some() && heap.span(block + 100).is_none());
/// assert!(heap.free(block) && !heap.free(block));
/// ```
#[derive(Debug)]
pub struct DeviceHeap {
    limit: u64,
    content: OnceLock<Content>,
    blocks: Mutex<Blocks>,
}

/// The bytes of the heap, and which of them were written since their block was allocated.
#[derive(Debug)]
struct Content {
    words: Words,
    /// A one for every bit that was written.
    written: Words,
}

#[derive(Debug, Default)]
struct Blocks {
    /// Start and size of every live block, relative to the heap.
    live: BTreeMap<u64, u64>,
    /// Where kernels allocated them, by start.
    sites: BTreeMap<u64, CodeSite>,
    /// Blocks freed and not yet covered by a new one.
    freed: BTreeMap<u64, u64>,
    /// Where the next search starts: behind the last block, so that a freed one is not reused at once.
    cursor: u64,
    /// Bytes of all live blocks, each rounded up to the alignment. Gaps do not count.
    taken: u64,
}

impl DeviceHeap {
    /// The size CUDA gives the heap unless told otherwise.
    pub const DEFAULT_BYTES: u64 = 8 << 20;

    /// A heap of at most `limit` bytes, and at most 1 GiB; they are not taken before the first allocation.
    pub fn new(limit: u64) -> Self {
        Self { limit: limit.min(1 << 30), content: OnceLock::new(), blocks: Mutex::default() }
    }

    /// A block of at least one byte; `None` when there is no room.
    pub fn allocate(&self, bytes: u64) -> Option<u64> {
        let size = bytes.max(1).checked_next_multiple_of(ALIGN)?;
        let mut blocks = self.blocks();
        if blocks.taken.checked_add(size)? > self.limit {
            return None;
        }
        let start = blocks.find(size, self.extent())?;
        blocks.taken += size;
        blocks.live.insert(start, bytes.max(1));
        blocks.freed.retain(|at, size_freed| *at >= start + size || at + *size_freed <= start);
        blocks.cursor = start + size + GAP;
        if let Some(content) = self.content.get() {
            (start..start + size).step_by(8).for_each(|at| content.written.store(at, 8, 0));
        }
        Some(HEAP + start)
    }

    /// The same, for a kernel at that place.
    pub(crate) fn allocate_at(&self, bytes: u64, site: CodeSite) -> Option<u64> {
        let address = self.allocate(bytes)?;
        self.blocks().sites.insert(address - HEAP, site);
        Some(address)
    }

    /// The blocks that kernels allocated and that were not freed, one note for each line.
    pub fn leaks(&self) -> Vec<ExecFinding> {
        let blocks = self.blocks();
        let mut leaks: Vec<ExecFinding> = Vec::new();
        for (start, site) in &blocks.sites {
            let size = blocks.live.get(start).copied().unwrap_or(0);
            let line = |site: &CodeSite| (site.kernel.clone(), site.function.clone(), site.ptx_line);
            let known = leaks.iter_mut().find(|leak| line(&leak.site) == line(site));
            match known.map(|leak| &mut leak.kind) {
                Some(ExecFindingKind::HeapLeak { blocks, bytes }) => {
                    *blocks += 1;
                    *bytes += size;
                }
                _ => {
                    let kind = ExecFindingKind::HeapLeak { blocks: 1, bytes: size };
                    leaks.push(ExecFinding { kind, site: site.clone(), times: 1 });
                }
            }
        }
        leaks
    }

    /// Frees a block by its address; false when there is no such block.
    pub fn free(&self, address: u64) -> bool {
        let mut blocks = self.blocks();
        let start = address.wrapping_sub(HEAP);
        let Some(size) = blocks.live.remove(&start) else { return false };
        blocks.taken = blocks.taken.saturating_sub(size.next_multiple_of(ALIGN));
        blocks.sites.remove(&start);
        blocks.freed.insert(start, size);
        true
    }

    /// The size of a live block by its address.
    pub(crate) fn block_bytes(&self, address: u64) -> Option<u64> {
        self.blocks().live.get(&address.wrapping_sub(HEAP)).copied()
    }

    /// Bytes in live blocks.
    pub fn used_bytes(&self) -> u64 {
        self.blocks().live.values().sum()
    }

    /// Bytes of addresses: no block is smaller than the gap behind it.
    fn extent(&self) -> u64 {
        2 * self.limit.next_multiple_of(ALIGN)
    }

    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for DeviceHeap {
    fn default() -> Self {
        Self::new(Self::DEFAULT_BYTES)
    }
}

impl Blocks {
    /// Room for `size` bytes and the gaps around them behind the cursor, else anywhere.
    fn find(&self, size: u64, limit: u64) -> Option<u64> {
        self.find_from(self.cursor, size, limit).or_else(|| self.find_from(0, size, limit))
    }

    fn find_from(&self, from: u64, size: u64, limit: u64) -> Option<u64> {
        let behind = |start: &u64, taken: &u64| (start + taken + GAP).next_multiple_of(ALIGN);
        let before = self.live.range(..from).next_back().map_or(0, |(start, taken)| behind(start, taken));
        let mut at = before.max(from.next_multiple_of(ALIGN));
        for (start, taken) in self.live.range(from..) {
            if at.checked_add(size)?.checked_add(GAP)? <= *start {
                return Some(at);
            }
            at = behind(start, taken);
        }
        (at.checked_add(size)? <= limit).then_some(at)
    }

    /// The live block that an access missed, with the distance and the line of its `malloc`.
    fn near(&self, offset: u64, bytes: u64) -> String {
        let before = self.live.range(..=offset).next_back();
        let next = self.live.range(offset..).next().map(|(start, size)| (start - offset, start, size));
        let (place, start, size) = match (before, next) {
            (Some((start, size)), _) if offset < start + size => {
                let over = offset.saturating_add(bytes) - (start + size);
                (format!("{} over the end", byte_count(over)), start, size)
            }
            (Some((start, size)), next) if next.is_none_or(|(far, ..)| offset - (start + size) < far) => {
                (past_end(offset - (start + size)), start, size)
            }
            (_, Some((far, start, size))) => (format!("{} before the start", byte_count(far)), start, size),
            _ => return "in the device heap, where no block is".to_owned(),
        };
        let site = self.sites.get(start).map(|site| format!(", allocated at {}", Line(site)));
        format!("{place} of a block of {} in the device heap{}", byte_count(*size), site.unwrap_or_default())
    }
}

impl GlobalMemory for DeviceHeap {
    fn span(&self, address: u64) -> Option<Span<'_>> {
        let offset = address.checked_sub(HEAP)?;
        let blocks = self.blocks();
        let (start, size) = blocks.live.range(..=offset).next_back()?;
        let zeros = || Words::zeroed(self.extent());
        let cells = self.content.get_or_init(|| Content { words: zeros(), written: zeros() });
        (offset < start + size).then_some(Span {
            start: HEAP + start,
            end: HEAP + start + size,
            origin: HEAP,
            writable: true,
            declared: Declared::ReadWrite,
            cells,
        })
    }

    fn miss(&self, address: u64, bytes: u64) -> Miss {
        let offset = address.wrapping_sub(HEAP);
        let blocks = self.blocks();
        if let Some((start, size)) =
            blocks.freed.range(..=offset).next_back().filter(|(s, n)| offset < **s + **n)
        {
            let into = offset - start;
            let (into, size) = (byte_count(into), byte_count(*size));
            let near = format!("{into} into a block of {size} that was freed in the device heap");
            return Miss { kind: MissKind::Freed, near };
        }
        Miss { kind: MissKind::OutOfBounds, near: blocks.near(offset, bytes) }
    }
}

impl Cells for Content {
    fn load(&self, offset: u64, bytes: u32) -> u64 {
        self.words.load(offset, bytes)
    }

    fn store(&self, offset: u64, bytes: u32, value: u64) {
        self.written.store(offset, bytes, u64::MAX);
        self.words.store(offset, bytes, value);
    }

    fn update(&self, offset: u64, bytes: u32, next: &mut dyn FnMut(u64) -> u64) -> u64 {
        self.written.store(offset, bytes, u64::MAX);
        self.words.update(offset, bytes, next)
    }

    fn unwritten(&self, offsets: &[u64; 32], mask: u32, bytes: u32) -> u32 {
        lanes_where(mask, |lane| self.written.load(offsets[lane], bytes) != u64::MAX >> (64 - 8 * bytes))
    }

    fn undefined_bits(&self, offset: u64, bytes: u32) -> u64 {
        !self.written.load(offset, bytes) & (u64::MAX >> (64 - 8 * bytes))
    }

    fn undefine(&self, offset: u64, bytes: u32, bits: u64, _: u64, _: &dyn Fn() -> UndefinedStore) {
        self.written.store(offset, bytes, !bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_room_is_used_again_when_the_rest_is_gone() {
        let heap = DeviceHeap::new(64);
        let [a, b] = [heap.allocate(16), heap.allocate(32)].map(Option::unwrap);
        assert!(heap.free(a));
        assert_eq!(heap.miss(a, 4).kind, MissKind::Freed);
        let c = heap.allocate(16).unwrap();
        assert!(c > b, "the freed block is not the first to be taken");
        assert!(heap.free(heap.allocate(16).unwrap()));
        assert_eq!(heap.allocate(16), Some(a));
        assert_eq!(heap.allocate(1), None);
        assert_eq!(heap.used_bytes(), 64);
    }

    #[test]
    fn no_block_touches_another() {
        let heap = DeviceHeap::new(1 << 12);
        let sizes = [16, 1, 64, 32, 17, 16];
        let mut starts = sizes.map(|size| heap.allocate(size).unwrap());
        assert!(heap.free(starts[2]));
        starts[2] = starts[5];
        while let Some(block) = heap.allocate(16) {
            assert_eq!(block % ALIGN, 0);
            let gap = (block + 16..block + 32).chain(block - 16..block);
            assert!(gap.clone().all(|at| at < HEAP || heap.span(at).is_none()), "{block:#x}");
        }
        let past = heap.miss(starts[0] + 16, 4);
        assert_eq!(past.near, "just past the end of a block of 16 bytes in the device heap");
        let before = heap.miss(starts[1] - 4, 4);
        assert_eq!(before.near, "4 bytes before the start of a block of 1 byte in the device heap");
    }

    #[test]
    fn a_block_that_is_given_out_again_was_not_written() {
        let heap = DeviceHeap::new(32);
        for _ in 0..4 {
            let block = heap.allocate(24).unwrap();
            let span = heap.span(block).unwrap();
            let offsets = std::array::from_fn(|lane| block - span.origin + 4 * (lane as u64 % 6));
            assert_eq!(span.cells.unwritten(&offsets, 0x3f, 4), 0x3f);
            span.cells.store(offsets[1], 4, 9);
            span.cells.update(offsets[2], 2, &mut |old| old + 1);
            assert_eq!(span.cells.unwritten(&offsets, 0x3f, 4), 0x3d);
            assert_eq!(span.cells.unwritten(&offsets, 0x3f, 2), 0x39);
            assert!(heap.free(block));
        }
    }
}
