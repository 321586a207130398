//! The stack of a thread.

use std::ffi::{c_int, c_void};
use std::ops::Range;

use crate::thread_stack;

/// Frames that tell two stacks apart.
const FRAMES: usize = 32;

/// The innermost return addresses of a stack.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct NativeStack(Vec<usize>);

/// Where the return addresses of a stack lie, by which it is known again without walking it.
#[derive(Debug)]
pub(super) struct ReturnSlots(Vec<ReturnSlot>);

/// A place in the stack of a thread, and the return address that lay there.
#[derive(Debug)]
struct ReturnSlot {
    at: usize,
    holds: usize,
}

/// What the unwinder of the C library's compiler has.
#[repr(C)]
struct Context {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn _Unwind_Backtrace(each: extern "C" fn(*mut Context, *mut c_void) -> c_int, data: *mut c_void)
    -> c_int;
    fn _Unwind_GetIP(context: *mut Context) -> usize;
    fn _Unwind_GetCFA(context: *mut Context) -> usize;
}

/// A walk that is under way.
struct Walk {
    frames: Vec<usize>,
    /// As long as every return address was found in its place.
    slots: Option<Vec<ReturnSlot>>,
    /// Frames at lower addresses are those of the library itself.
    from: usize,
    /// The stack of the thread.
    stack: Range<usize>,
}

impl Walk {
    /// Notes a frame: where the code goes on in it, and where its stack began when it called the one before.
    fn note(&mut self, ip: usize, cfa: usize) {
        // The unwinder tells the end of the stack as a frame without code.
        if ip == 0 {
            return;
        }
        self.frames.push(ip);
        let Some(slots) = &mut self.slots else { return };
        let at = cfa.wrapping_sub(size_of::<usize>());
        if at < self.from {
            return;
        }
        // x86-64 keeps the return address below the frame. Where a compiler or a processor does not, or the stack is one that the program made for itself, the slot is not known.
        if !self.stack.contains(&at) || !at.is_multiple_of(align_of::<usize>()) || word_at(at) != ip {
            self.slots = None;
        } else {
            slots.push(ReturnSlot { at, holds: ip });
        }
    }
}

/// A word of the stack of this thread, above the frame of the caller.
fn word_at(at: usize) -> usize {
    // SAFETY: callers give aligned addresses of the stack of this thread above the current frame, which is mapped as long as the thread runs.
    unsafe { std::ptr::with_exposed_provenance::<usize>(at).read_volatile() }
}

impl NativeStack {
    /// The return addresses.
    pub(super) fn addresses(&self) -> &[usize] {
        &self.0
    }

    /// That of the calling thread, and, if they could be found, where its return addresses lie from an address of the caller's frame on.
    pub(super) fn walk(from: usize) -> (Self, Option<ReturnSlots>) {
        extern "C" fn each(context: *mut Context, data: *mut c_void) -> c_int {
            const GO_ON: c_int = 0;
            const END: c_int = 5;
            // SAFETY: `walk` gave its walk, which lives until it is over, and whose vector has room for so many.
            let walk = unsafe { &mut *data.cast::<Walk>() };
            // SAFETY: the unwinder gives the context of the frame.
            let (ip, cfa) = unsafe { (_Unwind_GetIP(context), _Unwind_GetCFA(context)) };
            walk.note(ip, cfa);
            if walk.frames.len() < FRAMES { GO_ON } else { END }
        }
        let stack = thread_stack::of_this_thread();
        let slots = stack.contains(&from).then(|| Vec::with_capacity(FRAMES));
        let mut walk = Walk { frames: Vec::with_capacity(FRAMES), slots, from, stack };
        let data: *mut Walk = &mut walk;
        // SAFETY: the function does not unwind, and gets the walk alone.
        unsafe { _Unwind_Backtrace(each, data.cast()) };
        (Self(walk.frames), walk.slots.filter(|slots| !slots.is_empty()).map(ReturnSlots))
    }
}

impl ReturnSlots {
    /// Whether all return addresses lie there still. To be asked by the thread that walked, at the same depth.
    pub(super) fn are_there(&self) -> bool {
        self.0.iter().all(|slot| word_at(slot.at) == slot.holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_place_has_one_stack() {
        let stacks: Vec<NativeStack> = (0..2).map(|_| NativeStack::walk(0).0).collect();
        assert!(stacks[0] == stacks[1] && !stacks[0].0.is_empty());
    }

    #[inline(never)]
    fn inner(known: &mut Vec<(usize, NativeStack, ReturnSlots)>) -> (bool, NativeStack) {
        let here = 0_usize;
        let from = (&raw const here).addr();
        let found = known.iter().find(|(at, _, slots)| *at == from && slots.are_there());
        let known_stack = found.map(|(_, stack, _)| stack.clone());
        let (stack, slots) = NativeStack::walk(from);
        let was_known = known_stack.is_some();
        assert!(known_stack.is_none_or(|known| known == stack), "another stack was taken for a known one");
        if let (false, Some(slots)) = (was_known, slots) {
            known.push((from, stack.clone(), slots));
        }
        (was_known, stack)
    }

    #[test]
    fn a_stack_is_known_again_and_another_at_the_same_depth_is_not() {
        // Deep in a test, and so close to the beginning of a thread that its end is seen.
        known_again();
        extern "C" fn begin(_: *mut c_void) -> *mut c_void {
            known_again();
            std::ptr::null_mut()
        }
        let mut thread = std::mem::MaybeUninit::<libc::pthread_t>::uninit();
        // SAFETY: the function takes nothing, and the thread is joined before its place is gone.
        let answers = unsafe {
            let made =
                libc::pthread_create(thread.as_mut_ptr(), std::ptr::null(), begin, std::ptr::null_mut());
            (made, libc::pthread_join(thread.assume_init(), std::ptr::null_mut()))
        };
        assert_eq!(answers, (0, 0));
    }

    fn known_again() {
        #[inline(never)]
        fn one(known: &mut Vec<(usize, NativeStack, ReturnSlots)>) -> (bool, NativeStack) {
            std::hint::black_box(inner(known))
        }
        #[inline(never)]
        fn other(known: &mut Vec<(usize, NativeStack, ReturnSlots)>) -> (bool, NativeStack) {
            std::hint::black_box(inner(known))
        }
        let mut known = Vec::new();
        let mut stacks: Vec<NativeStack> = Vec::new();
        let mut again = [0; 2];
        for round in 0..20 {
            let call = if round % 2 == 0 { one } else { other };
            let (was_known, stack) = call(&mut known);
            again[round % 2] += usize::from(was_known);
            if !stacks.contains(&stack) {
                stacks.push(stack);
            }
        }
        assert!(stacks.len() >= 2, "two callers have two stacks");
        if cfg!(target_arch = "x86_64") {
            assert_eq!(again, [9, 9], "the first call of each was walked, and no other");
        }
    }
}
