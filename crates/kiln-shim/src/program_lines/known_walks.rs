//! The stacks that a thread walked, which are known again by their return addresses.
//!
//! A loop makes the same calls in the same order. So each walk remembers which one came after it, and that is looked at first; the others are searched only where the
//! order changes.

use std::cell::RefCell;

use super::native_frames::ReturnSlots;
use super::{ProgramPlace, loaded_files};

/// Walks of a thread that are kept; the oldest is replaced.
const MOST_WALKS: usize = 256;

/// What a walk found.
pub(super) struct KnownStack {
    pub(super) slots: ReturnSlots,
    /// How many files had been unloaded then, if some of its code is in one that may be: another file can have the same return addresses.
    pub(super) unloads: Option<u64>,
    pub(super) place: Option<&'static ProgramPlace>,
}

/// A stack that a thread walked.
struct KnownWalk {
    /// The function of the API, and an address in the frame that walked.
    function: &'static str,
    from: usize,
    stack: KnownStack,
    /// Which one was found after it.
    next: usize,
}

/// Those of a thread.
pub(super) struct KnownWalks {
    walks: Vec<KnownWalk>,
    /// Which is replaced next.
    oldest: usize,
    /// Which was found last.
    last: usize,
}

thread_local! {
    static KNOWN: RefCell<KnownWalks> =
        const { RefCell::new(KnownWalks { walks: Vec::new(), oldest: 0, last: 0 }) };
}

impl KnownWalk {
    #[inline]
    fn is_of(&self, function: &'static str, from: usize) -> bool {
        self.from == from
            && std::ptr::eq(self.function, function)
            && self.stack.slots.are_there()
            && self.stack.unloads.is_none_or(|unloads| unloads == loaded_files::unloads())
    }
}

/// The place of a stack that this thread walked before, from a function of the API and an address in the frame that asks.
#[inline]
pub(super) fn find(function: &'static str, from: usize) -> Option<Option<&'static ProgramPlace>> {
    // A thread that ends has none any more.
    KNOWN.try_with(|known| known.borrow_mut().find(function, from)).ok().flatten()
}

/// Keeps a walk.
pub(super) fn keep(function: &'static str, from: usize, stack: KnownStack) {
    let _ = KNOWN.try_with(|known| known.borrow_mut().keep(KnownWalk { function, from, stack, next: 0 }));
}

impl KnownWalks {
    #[inline]
    fn find(&mut self, function: &'static str, from: usize) -> Option<Option<&'static ProgramPlace>> {
        let expected = self.walks.get(self.last)?.next;
        let at = match self.walks.get(expected) {
            Some(walk) if walk.is_of(function, from) => expected,
            _ => self.search(function, from)?,
        };
        self.last = at;
        self.walks.get(at).map(|walk| walk.stack.place)
    }

    #[cold]
    fn search(&mut self, function: &'static str, from: usize) -> Option<usize> {
        let at = self.walks.iter().position(|walk| walk.is_of(function, from))?;
        self.follow(at);
        Some(at)
    }

    /// Remembers which walk comes after the last one.
    fn follow(&mut self, next: usize) {
        if let Some(last) = self.walks.get_mut(self.last) {
            last.next = next;
        }
    }

    fn keep(&mut self, walk: KnownWalk) {
        let at = self.oldest;
        self.follow(at);
        match self.walks.get_mut(at) {
            Some(oldest) => *oldest = walk,
            None => self.walks.push(walk),
        }
        self.last = at;
        self.oldest = (at + 1) % MOST_WALKS;
    }
}
