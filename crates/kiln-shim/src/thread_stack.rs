//! The stack that the system gave the calling thread.

use std::cell::Cell;
use std::ffi::c_void;
use std::ops::Range;

thread_local! {
    /// Nothing before the first call that looks.
    static STACK: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// Its addresses; empty if the system does not say. A program may run on another stack, such as that of a coroutine.
pub(crate) fn of_this_thread() -> Range<usize> {
    let (start, end) = STACK.get().unwrap_or_else(|| {
        let found = ask().unwrap_or_default();
        STACK.set(Some(found));
        found
    });
    start..end
}

#[cold]
fn ask() -> Option<(usize, usize)> {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the place is for attributes, which the call makes if it answers 0.
    if unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let (mut start, mut bytes) = (std::ptr::null_mut::<c_void>(), 0);
    // SAFETY: the attributes were made by the call above, and are ended once; the other places are live locals.
    let answered = unsafe {
        let answered = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut start, &raw mut bytes);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        answered
    };
    (answered == 0).then(|| (start.addr(), start.addr().saturating_add(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_is_on_the_stack_of_its_thread_and_on_no_other() {
        let here = 0_u8;
        let at = (&raw const here).addr();
        assert!(of_this_thread().contains(&at) && of_this_thread().contains(&at));
        assert!(!std::thread::spawn(move || of_this_thread().contains(&at)).join().unwrap());
    }
}
