//! The blocks that one submission reads and writes, as an inline list.
//!
//! Room for as many as a launch has in practice lies inline and is not cleared beforehand. Adding one is a comparison and the stores of its
//! fields; what is rare stands apart, so that the way of every launch is short.

use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

use kiln_driver::Access;

use crate::access_history::AccessHistory;
use crate::plan_and_publish::Use;
use crate::sync_shim::BiasedLock;

/// Blocks of one submission that need no heap.
const INLINE_USES: usize = 32;

/// The blocks of one submission.
// In this order: the first uses lie beside their number.
#[repr(C)]
pub struct Uses<'a> {
    len: usize,
    /// The first `len` are written, unless all moved to `spill`.
    inline: [MaybeUninit<Use<'a>>; INLINE_USES],
    /// All of them, once they are more than fit inline.
    spill: Vec<Use<'a>>,
}

impl Default for Uses<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> Uses<'a> {
    /// None yet.
    #[inline(always)]
    pub fn new() -> Self {
        Self { len: 0, inline: [const { MaybeUninit::uninit() }; INLINE_USES], spill: Vec::new() }
    }

    /// Whether there is room for one more inline.
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        self.len < INLINE_USES
    }

    /// Adds one.
    #[inline(always)]
    pub fn push(&mut self, each: Use<'a>) {
        // In parts, so that none of them goes through memory before it is where it belongs.
        let Use { history, range, access, argument } = each;
        match self.inline.get_mut(self.len) {
            Some(place) => {
                place.write(Use { history, range, access, argument });
                self.len += 1;
            }
            None => self.push_spilled(history, range.start, range.end, access, argument),
        }
    }

    #[cold]
    #[inline(never)]
    fn push_spilled(
        &mut self,
        history: &'a BiasedLock<AccessHistory>,
        start: u64,
        end: u64,
        access: Access,
        argument: u16,
    ) {
        if self.spill.is_empty() {
            self.spill = self.to_vec();
        }
        self.spill.push(Use { history, range: start..end, access, argument });
    }
}

impl<'a> Deref for Uses<'a> {
    type Target = [Use<'a>];

    #[inline(always)]
    fn deref(&self) -> &[Use<'a>] {
        if !self.spill.is_empty() {
            return &self.spill;
        }
        // SAFETY: `push` alone raises `len`, within the array, and has written the place below it then.
        unsafe { std::slice::from_raw_parts(self.inline.as_ptr().cast(), self.len) }
    }
}

impl DerefMut for Uses<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        if !self.spill.is_empty() {
            return &mut self.spill;
        }
        // SAFETY: as for `deref`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.inline.as_mut_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::Stamp;

    #[test]
    fn many_uses_move_to_the_heap_and_stay_in_order() {
        let history = BiasedLock::new(AccessHistory::new(8, Stamp::default()));
        for count in [0, 1, INLINE_USES, INLINE_USES + 1, 3 * INLINE_USES] {
            let mut uses = Uses::new();
            for argument in 0..count as u16 {
                uses.push(Use { history: &history, range: 0..8, access: Access::Read, argument });
            }
            uses.iter_mut().for_each(|each| each.range.end += u64::from(each.argument));
            let expected: Vec<(u16, u64)> = (0..count as u16).map(|at| (at, 8 + u64::from(at))).collect();
            assert_eq!(uses.iter().map(|each| (each.argument, each.range.end)).collect::<Vec<_>>(), expected);
        }
    }
}
