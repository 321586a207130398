//! Locks on the access histories of the blocks of a submission, in an array on the stack.

use std::mem::MaybeUninit;

use crate::access_history::AccessHistory;
use crate::sync_shim::BiasedGuard;

/// Blocks that need no heap.
pub(crate) const MOST: usize = 32;

/// Some held blocks, released when dropped.
pub(crate) struct Guards<'a> {
    len: usize,
    /// The first `len` are there.
    held: [MaybeUninit<BiasedGuard<'a, AccessHistory>>; MOST],
}

impl<'a> Guards<'a> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self { len: 0, held: [const { MaybeUninit::uninit() }; MOST] }
    }

    /// Holds one more. One too many is released at once; there is none as long as there are at most [`MOST`].
    #[inline(always)]
    pub(crate) fn push(&mut self, guard: BiasedGuard<'a, AccessHistory>) {
        if let Some(place) = self.held.get_mut(self.len) {
            place.write(guard);
            self.len += 1;
        }
    }

    /// Releases each, the last first, after something was done to it. Not by value: they would be copied.
    #[inline(always)]
    pub(crate) fn release(&mut self, mut last: impl FnMut(usize, &mut AccessHistory)) {
        while let Some(at) = self.len.checked_sub(1) {
            self.len = at;
            if let Some(place) = self.held.get(at) {
                // SAFETY: it was below `len` and is not any more, so that this is the only one who takes it out.
                let mut guard = unsafe { place.assume_init_read() };
                last(at, &mut guard);
            }
        }
    }
}

impl Drop for Guards<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        for place in self.held.iter_mut().take(self.len) {
            // SAFETY: the first `len` are there, and this is the last look at them.
            unsafe { place.assume_init_drop() };
        }
    }
}
