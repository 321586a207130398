//! A page of the race check that the threads of a launch share.
//!
//! Most accesses of a warp change one word of a page, or find that it says enough: a place that all blocks read is remembered by two readers. So a thread first reads
//! the word with no lock and computes what it should say. If that is what it says, nothing is written, and pages that are only read stay in the caches of all
//! processors. If not, the thread takes the page for the moment in which it writes the word. Whatever takes more than one word is done while the page is held.
//!
//! # Why it is right
//!
//! The version is even while no thread holds the page; a thread that takes it makes it odd, and even and larger when it gives it back. All else in the page is written
//! between the two, by that thread alone.
//!
//! - A thread that takes the page reads, with acquire, a version that the one before stored with release. So it sees all that was written before.
//! - A thread that only reads loads the version with acquire, then the word, and then the version again behind an acquire fence. A thread that takes the page makes the
//!   version odd, and writes words behind a release fence. If the reader saw any of these words, its fence is behind that fence, and it sees the odd version or a
//!   later one and tries again. If both versions are the same and even, the word is what it was at a moment between, as if the reader had held the page then.
//! - A thread that writes a word takes the page with a compare-and-swap from the version it read the word at. If that succeeds, no thread held the page in between. The version
//!   has 64 bits and only grows.
//!
//! Words are atomics, so a word that is read while it is written is no undefined behaviour; what is computed of it is dropped.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::access_mark::Mark;
use super::access_order::Order;
use super::shadow_page::{Cell, Page, TouchHalf, Word};

/// How often a word is read again because another thread held the page, before the page is taken.
const TRIES: u32 = 8;
/// How often a thread looks for the page to be given back before it lets others run.
const LOOKS: u32 = 100;

/// A page behind its version.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct SharedPage {
    version: AtomicU64,
    page: Page,
}

/// A page that a thread holds.
pub(super) struct HeldPage<'p> {
    shared: &'p SharedPage,
    /// The version when it is given back.
    next: u64,
}

impl SharedPage {
    /// Whether the page was ever changed.
    pub(super) fn is_touched(&self) -> bool {
        self.version.load(Ordering::Acquire) != 0
    }

    /// Takes the page, as soon as no other thread holds it.
    pub(super) fn hold(&self) -> HeldPage<'_> {
        let mut looks = 0;
        loop {
            let version = self.version.load(Ordering::Relaxed);
            if let Some(held) = self.take(version) {
                return held;
            }
            looks += 1;
            if looks < LOOKS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }

    /// Takes the page if it has this version and no thread holds it.
    #[inline]
    fn take(&self, version: u64) -> Option<HeldPage<'_>> {
        let is_free = version.is_multiple_of(2);
        let taken = is_free && { &self.version }
            .compare_exchange(version, version + 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        // What is written from here on is not seen without the odd version.
        fence(Ordering::Release);
        taken.then(|| HeldPage { shared: self, next: version + 2 })
    }

    /// Lets a word become what `after` says, with the page held for no longer than that takes. Whether `after` says anything; `None`, and nothing is changed, if there
    /// is no such word, or other threads change the page too often.
    #[inline]
    fn change<'p>(
        &'p self,
        cell: impl Fn(&'p Page) -> Option<&'p Cell>,
        after: impl Fn(Word) -> Option<Word>,
    ) -> Option<bool> {
        for _ in 0..TRIES {
            let version = self.version.load(Ordering::Acquire);
            if !version.is_multiple_of(2) {
                std::hint::spin_loop();
                continue;
            }
            let cell = cell(&self.page)?;
            let word = cell.get();
            match after(word) {
                Some(next) if next != word => {
                    if let Some(_held) = self.take(version) {
                        cell.set(next);
                        return Some(true);
                    }
                }
                next => {
                    fence(Ordering::Acquire);
                    if self.version.load(Ordering::Relaxed) == version {
                        return Some(next.is_some());
                    }
                }
            }
        }
        None
    }
}

impl TouchHalf for SharedPage {
    #[inline]
    fn touch_row<O: Order>(&self, row: usize, new: Mark, order: &O) -> bool {
        let changed = self.change(|page| page.row_cell(row), |word| word.after_row(new, order));
        changed.unwrap_or_else(|| self.hold().touch_row(row, new, order))
    }

    #[inline]
    fn touch_place<O: Order>(&self, word: usize, new: [Mark; 2], orders: [O; 2]) -> bool {
        let changed = self.change(|page| page.word_cell(word), |word| word.after_place(new, &orders));
        changed.unwrap_or_else(|| self.hold().touch_place(word, new, orders))
    }
}

impl Deref for HeldPage<'_> {
    type Target = Page;

    #[inline(always)]
    fn deref(&self) -> &Page {
        &self.shared.page
    }
}

impl Drop for HeldPage<'_> {
    #[inline]
    fn drop(&mut self) {
        self.shared.version.store(self.next, Ordering::Release);
    }
}
