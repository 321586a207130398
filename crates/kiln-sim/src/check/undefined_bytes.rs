//! Bytes of a segment to which a kernel stored undefined values: padding, or what was never written.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_ptx::exec::UndefinedStore;

use crate::check::touched_bytes::Touched;

/// Of each page the first store is remembered, where too many are.
const PAGE_BYTES: u64 = 4096;
/// Bytes of which the store is remembered by itself.
const WORD_BYTES: u64 = 4;
/// The most words whose store is remembered.
const MAX_WORDS: usize = 1 << 20;
/// The most runs of undefined bytes that one kernel leaves behind in a segment. The bytes of further ones count as written.
const MAX_RUNS: usize = 1 << 16;

/// Undefined bytes that were written.
#[derive(Debug)]
pub(crate) struct UndefinedBytes {
    bytes: Touched,
    details: Mutex<Details>,
}

#[derive(Debug, Default)]
struct Details {
    /// The undefined bits of bytes that are undefined in part.
    partial: HashMap<u64, u8>,
    /// The numbers of stores by their keys, and the stores.
    numbers: HashMap<u64, u32>,
    stores: Vec<Arc<UndefinedStore>>,
    /// The last store to each word, and the first to each page.
    words: HashMap<u64, u32>,
    pages: HashMap<u64, u32>,
}

/// Neighbouring bytes with the same undefined bits, and the store that put them there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct UndefinedRun {
    pub(crate) bytes: Range<u64>,
    /// The undefined bits of each of them.
    pub(crate) bits: u8,
    pub(crate) store: Option<Arc<UndefinedStore>>,
}

impl UndefinedBytes {
    /// For a segment of that size.
    pub(crate) fn new(bytes: u64) -> Self {
        Self { bytes: Touched::new(bytes), details: Mutex::default() }
    }

    /// Whether any byte of an access is undefined, or a part of it.
    #[inline]
    pub(crate) fn any(&self, offset: u64, bytes: u64) -> bool {
        self.bytes.any_in_word(offset, bytes)
    }

    /// Marks bits of an access.
    pub(crate) fn mark(
        &self,
        offset: u64,
        bytes: u32,
        bits: u64,
        key: u64,
        store: &dyn Fn() -> UndefinedStore,
    ) {
        let mut details = self.details();
        for byte in 0..u64::from(bytes) {
            let (mask, at) = ((bits >> (8 * byte)) as u8, offset + byte);
            match mask {
                0 => continue,
                0xff => _ = details.partial.remove(&at),
                mask => _ = details.partial.insert(at, mask),
            }
            self.bytes.set_in_word(at, 1);
        }
        let number = details.number(key, store);
        details.pages.entry(offset / PAGE_BYTES).or_insert(number);
        for word in offset / WORD_BYTES..=(offset + u64::from(bytes) - 1) / WORD_BYTES {
            if details.words.len() < MAX_WORDS || details.words.contains_key(&word) {
                details.words.insert(word, number);
            }
        }
    }

    /// New contents were written.
    #[inline]
    pub(crate) fn define(&self, offset: u64, bytes: u64) {
        self.bytes.clear_in_word(offset, bytes);
    }

    /// The undefined bits of a byte.
    pub(crate) fn bits(&self, offset: u64) -> u8 {
        match self.bytes.any_in_word(offset, 1) {
            true => self.details().partial.get(&offset).copied().unwrap_or(0xff),
            false => 0,
        }
    }

    /// The runs of bytes that are undefined, as a whole or in part.
    pub(crate) fn runs(&self) -> Vec<UndefinedRun> {
        let details = self.details();
        let mut runs: Vec<UndefinedRun> = Vec::new();
        for at in self.bytes.runs().into_iter().flatten() {
            let bits = details.partial.get(&at).copied().unwrap_or(0xff);
            let store = details.store_at(at);
            let is_full = runs.len() == MAX_RUNS;
            match runs.last_mut() {
                Some(last) if last.bytes.end == at && last.bits == bits && is_same(&last.store, store) => {
                    last.bytes.end += 1;
                }
                _ if is_full => break,
                _ => runs.push(UndefinedRun { bytes: at..at + 1, bits, store: store.cloned() }),
            }
        }
        runs
    }

    fn details(&self) -> MutexGuard<'_, Details> {
        self.details.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Details {
    fn number(&mut self, key: u64, store: &dyn Fn() -> UndefinedStore) -> u32 {
        let Self { numbers, stores, .. } = self;
        *numbers.entry(key).or_insert_with(|| {
            stores.push(Arc::new(store()));
            stores.len() as u32 - 1
        })
    }

    fn store_at(&self, byte: u64) -> Option<&Arc<UndefinedStore>> {
        let number = self.words.get(&(byte / WORD_BYTES)).or_else(|| self.pages.get(&(byte / PAGE_BYTES)))?;
        self.stores.get(*number as usize)
    }
}

fn is_same(a: &Option<Arc<UndefinedStore>>, b: Option<&Arc<UndefinedStore>>) -> bool {
    a.as_ref().map(Arc::as_ptr) == b.map(Arc::as_ptr)
}
