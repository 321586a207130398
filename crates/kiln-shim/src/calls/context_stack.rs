//! The contexts of a thread, in a place that is there until the thread has ended.

use std::cell::RefCell;
use std::mem::ManuallyDrop;

use crate::handle_table::RawHandle;

/// Contexts that a thread pushes before the stack needs memory of the heap.
const INLINE: usize = 8;

thread_local! {
    /// Needs no destructor. Programs call the API from `atexit`, from destructors of static objects and of keys of threads, and those run after the destructors
    /// of a thread's variables.
    static STACK: RefCell<ContextStack> = const { RefCell::new(ContextStack::new()) };
}

// A variable of a thread that has a destructor cannot be read any more once it ran.
const _: () = assert!(!std::mem::needs_drop::<RefCell<ContextStack>>());

/// The contexts that a thread pushed; the last one is current.
struct ContextStack {
    inline: [RawHandle; INLINE],
    depth: usize,
    /// Those above the first ones. The memory is given back when the stack shrinks; a thread that ends with more than it pops leaves it.
    above: ManuallyDrop<Vec<RawHandle>>,
}

impl ContextStack {
    const fn new() -> Self {
        Self { inline: [0; INLINE], depth: 0, above: ManuallyDrop::new(Vec::new()) }
    }

    fn last(&self) -> Option<RawHandle> {
        let top = self.depth.checked_sub(1)?;
        self.inline.get(top).or_else(|| self.above.last()).copied()
    }

    fn push(&mut self, handle: RawHandle) {
        match self.inline.get_mut(self.depth) {
            Some(place) => *place = handle,
            None => self.above.push(handle),
        }
        self.depth += 1;
    }

    fn pop(&mut self) -> Option<RawHandle> {
        let last = self.last()?;
        self.depth -= 1;
        if self.depth >= INLINE {
            self.above.pop();
        } else if self.depth + 1 == INLINE {
            drop(std::mem::take(&mut *self.above));
        }
        Some(last)
    }
}

/// The handle of the thread's current context; 0 if there is none.
pub(crate) fn last() -> RawHandle {
    STACK.with_borrow(|stack| stack.last().unwrap_or(0))
}

/// Makes a context the current one, above those that the thread has.
pub(crate) fn push(handle: RawHandle) {
    STACK.with_borrow_mut(|stack| stack.push(handle));
}

/// Takes the current context away.
pub(crate) fn pop() -> Option<RawHandle> {
    STACK.with_borrow_mut(ContextStack::pop)
}

/// Replaces the current context; 0 takes it away.
pub(crate) fn set(handle: RawHandle) {
    STACK.with_borrow_mut(|stack| {
        stack.pop();
        if handle != 0 {
            stack.push(handle);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_come_back_in_the_reverse_order_however_many_there_are() {
        let mut stack = ContextStack::new();
        for round in 0..2 {
            assert_eq!(stack.last(), None);
            for handle in 1..=20 {
                stack.push(handle + round);
                assert_eq!(stack.last(), Some(handle + round));
            }
            for handle in (1..=20).rev() {
                assert_eq!(stack.pop(), Some(handle + round));
            }
            assert_eq!(stack.pop(), None);
        }
    }
}
