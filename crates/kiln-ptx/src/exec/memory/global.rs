//! The trait `GlobalMemory`, through which the executor reads and writes the caller's memory.
//!
//! The executor finds the span that holds an address once and then works inside it, bounds checked against the span,
//! until an access leaves it. So an implementation pays for a lookup per span and not per access, and the calls that
//! are made often move the values of a whole warp.

use crate::exec::finding::{AccessKind, ExecFinding};
use crate::exec::warp_register::each;

/// The global memory of a launch.
///
/// Kernels run on several threads at once: everything takes `&self`.
///
/// ```
/// use kiln_ptx::exec::{GlobalMemory, SimpleMemory};
///
/// let mut memory = SimpleMemory::new();
/// let block = memory.allocate(64);
/// let span = memory.span(block + 8).expect("inside the block");
/// assert_eq!((span.start, span.end), (block, block + 64));
/// assert!(memory.span(block + 64).is_none());
/// ```
pub trait GlobalMemory: Sync {
    /// What holds `address`: one block in which any byte may be accessed. `None` where nothing may be.
    ///
    /// Two blocks are never answered as one span, so that running off the end of one is seen.
    fn span(&self, address: u64) -> Option<Span<'_>>;

    /// Why `bytes` at `address` may not be accessed: the words of a finding. Asked only after
    /// [`span`](Self::span) gave nothing, or a span that ends too early.
    fn miss(&self, address: u64, bytes: u64) -> Miss;

    /// The whole block of mapped memory that holds `address`, whatever the launch declared of it. Asked only after
    /// [`span`](Self::span) gave a span that ends too early.
    fn mapped(&self, address: u64) -> Option<Span<'_>> {
        self.span(address)
    }

    /// Why the launch did not declare this access, in words that complete "which is ..."; `None` if it did. Asked only about
    /// accesses that [`Span::declared`] does not cover.
    fn undeclared(&self, address: u64, bytes: u64, access: AccessKind) -> Option<String> {
        let _ = (address, bytes, access);
        None
    }
}

/// What a launch declared of a [`Span`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Declared {
    /// Every access.
    #[default]
    ReadWrite,
    /// Reads alone.
    Read,
    /// Nothing: the memory is mapped, and belongs to none of the buffers of the launch.
    Nothing,
}

impl Declared {
    /// Whether an access is covered.
    #[inline]
    pub fn covers(self, access: AccessKind) -> bool {
        match self {
            Self::ReadWrite => true,
            Self::Read => access == AccessKind::Read,
            Self::Nothing => false,
        }
    }
}

/// A block of global memory.
#[derive(Clone, Copy)]
pub struct Span<'m> {
    /// Its first address.
    pub start: u64,
    /// The address behind its last byte.
    pub end: u64,
    /// The address that is offset 0 of `cells`; the start, or lower when the block is part of something larger.
    pub origin: u64,
    /// Whether kernels may write it.
    pub writable: bool,
    /// What the launch declared of it. An access that is not covered is reported, and then made.
    pub declared: Declared,
    /// Its content.
    pub cells: &'m dyn Cells,
}

/// The content of a [`Span`]: little-endian bytes, addressed from [`Span::origin`].
///
/// The executor never reaches outside of the span and keeps every access aligned to its size, which is 1, 2, 4 or 8
/// bytes.
pub trait Cells: Sync {
    /// The value at an offset.
    fn load(&self, offset: u64, bytes: u32) -> u64;

    /// Writes the low bytes of `value`.
    fn store(&self, offset: u64, bytes: u32, value: u64);

    /// Replaces a value by what `next` makes of it, in one atomic step; answers the value before. `next` may be called
    /// more than once.
    fn update(&self, offset: u64, bytes: u32, next: &mut dyn FnMut(u64) -> u64) -> u64;

    /// Loads for every lane in `mask`.
    fn load_lanes(&self, offsets: &[u64; 32], mask: u32, bytes: u32, values: &mut [u64; 32]) {
        each(mask, |lane| values[lane] = self.load(offsets[lane], bytes));
    }

    /// Stores for every lane in `mask`, the lowest lane first: when two lanes hit one place the higher one stays.
    fn store_lanes(&self, offsets: &[u64; 32], mask: u32, bytes: u32, values: &[u64; 32]) {
        each(mask, |lane| self.store(offsets[lane], bytes, values[lane]));
    }

    /// Loads 16 neighbouring values of 4 or 8 bytes, as [`load`](Self::load) does one by one. False, and nothing is done, where that is not faster.
    fn load_row(&self, offset: u64, bytes: u32, values: &mut [u64]) -> bool {
        let _ = (offset, bytes, values);
        false
    }

    /// Loads as many neighbouring values of four bytes as there is room for, as [`load`](Self::load) does one by one. False where that is not faster; `words`
    /// may have changed then.
    fn load_words(&self, offset: u64, words: &mut [u32]) -> bool {
        let _ = (offset, words);
        false
    }

    /// Stores neighbouring values of four bytes, as [`store`](Self::store) does one by one. False, and nothing is done, where that is not faster.
    fn store_words(&self, offset: u64, words: &[u32]) -> bool {
        let _ = (offset, words);
        false
    }

    /// Stores 16 neighbouring values of 4 or 8 bytes, as [`store`](Self::store) does one by one. False, and nothing is done, where that is not faster.
    fn store_row(&self, offset: u64, bytes: u32, values: &[u64]) -> bool {
        let _ = (offset, bytes, values);
        false
    }

    /// Whether all bytes of so many are known to be written. False also where that is not known without a look at each.
    fn is_range_written(&self, offset: u64, bytes: u64) -> bool {
        let _ = (offset, bytes);
        false
    }

    /// The value at an offset, for a check: the kernel does not read it. An implementation that remembers what kernels read leaves this out.
    fn peek(&self, offset: u64, bytes: u32) -> u64 {
        self.load(offset, bytes)
    }

    /// The lanes of `mask` whose bytes were not all written. Asked before each read of a launch that checks for it.
    fn unwritten(&self, offsets: &[u64; 32], mask: u32, bytes: u32) -> u32 {
        let _ = (offsets, mask, bytes);
        0
    }

    /// The bits at an offset that are undefined: not written, or written with undefined bits. Asked where [`unwritten`](Self::unwritten) has a lane.
    fn undefined_bits(&self, offset: u64, bytes: u32) -> u64 {
        match self.unwritten(&[offset; 32], 1, bytes) {
            0 => 0,
            _ => u64::MAX >> (64 - 8 * bytes.clamp(1, 8)),
        }
    }

    /// Marks bits as undefined, after they were stored. `store` says what was stored there; stores with one key are about the same instruction and
    /// the same read, and need not be asked for again.
    fn undefine(&self, offset: u64, bytes: u32, bits: u64, key: u64, store: &dyn Fn() -> UndefinedStore) {
        let _ = (offset, bytes, bits, key, store);
    }
}

/// A store of an undefined value to global memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndefinedStore {
    /// The store, and where its value came from.
    pub finding: ExecFinding,
    /// The bytes of one element of the store.
    pub bytes: u32,
    /// Whether the undefined bits may be padding that was copied along. A value that something was computed from is not, nor one that was read without
    /// anything defined beside it.
    pub may_be_padding: bool,
}

/// Why an address may not be accessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// What kind of mistake it is.
    pub kind: MissKind,
    /// What is nearest, in words that complete "which is ...": `4 bytes past the end of a block of 64 bytes`.
    pub near: String,
}

/// The kinds of a [`Miss`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MissKind {
    /// No block is there.
    OutOfBounds,
    /// A block was there and has been freed.
    Freed,
}
