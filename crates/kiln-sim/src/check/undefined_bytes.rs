//! Bytes of a segment to which a kernel copied undefined contents: padding, or what was never written.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_ptx::exec::ExecFinding;

use crate::check::touched_bytes::Touched;

/// Of each page the first copy is remembered.
const PAGE_BYTES: u64 = 4096;
/// The most runs of undefined bytes that one kernel leaves behind in a segment. The bytes of further ones count as written.
const MAX_RUNS: usize = 1 << 16;

/// Undefined bytes that were written.
#[derive(Debug)]
pub(crate) struct UndefinedBytes {
    bytes: Touched,
    partial: Mutex<HashMap<u64, u8>>,
    copies: Mutex<BTreeMap<u64, Arc<ExecFinding>>>,
}

impl UndefinedBytes {
    /// For a segment of that size.
    pub(crate) fn new(bytes: u64) -> Self {
        Self { bytes: Touched::new(bytes), partial: Mutex::default(), copies: Mutex::default() }
    }

    /// Whether any byte of an access is undefined, or a part of it.
    #[inline]
    pub(crate) fn any(&self, offset: u64, bytes: u64) -> bool {
        self.bytes.any_in_word(offset, bytes)
    }

    /// Marks bits of an access.
    pub(crate) fn mark(&self, offset: u64, bytes: u32, bits: u64, copied: &dyn Fn() -> Arc<ExecFinding>) {
        for byte in 0..u64::from(bytes) {
            let mask = (bits >> (8 * byte)) as u8;
            let at = offset + byte;
            match mask {
                0 => {}
                0xff => {
                    lock(&self.partial).remove(&at);
                }
                mask => {
                    lock(&self.partial).insert(at, mask);
                }
            }
            if mask != 0 {
                self.bytes.set_in_word(at, 1);
            }
        }
        lock(&self.copies).entry(offset / PAGE_BYTES).or_insert_with(copied);
    }

    /// New contents were written.
    #[inline]
    pub(crate) fn define(&self, offset: u64, bytes: u64) {
        self.bytes.clear_in_word(offset, bytes);
    }

    /// The undefined bits of a byte.
    pub(crate) fn bits(&self, offset: u64) -> u8 {
        match self.bytes.any_in_word(offset, 1) {
            true => lock(&self.partial).get(&offset).copied().unwrap_or(0xff),
            false => 0,
        }
    }

    /// The runs of bytes that are undefined as a whole, each with what was copied there. A byte of which some bits were written counts as written.
    pub(crate) fn runs(&self) -> Vec<(Range<u64>, Option<Arc<ExecFinding>>)> {
        let (partial, copies) = (lock(&self.partial), lock(&self.copies));
        let mut runs = Vec::new();
        for run in self.bytes.runs() {
            let mut at = run.start;
            while at < run.end && runs.len() < MAX_RUNS {
                let page_end = (at / PAGE_BYTES + 1) * PAGE_BYTES;
                let limit = run.end.min(page_end);
                let stop = match partial.is_empty() {
                    true => limit,
                    false => (at..limit).find(|byte| partial.contains_key(byte)).unwrap_or(limit),
                };
                if at < stop {
                    runs.push((at..stop, copies.get(&(at / PAGE_BYTES)).cloned()));
                }
                at = if stop < limit { stop + 1 } else { stop };
            }
        }
        runs
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
