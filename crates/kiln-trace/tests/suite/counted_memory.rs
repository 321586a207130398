//! How much memory a thread takes from the heap at the most.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which counts.
struct Counted;

thread_local! {
    /// Bytes that this thread holds, and the most it held.
    static HELD: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

fn count(bytes: i64) {
    // A thread that ends has no counter any more.
    let _ = HELD.try_with(|held| {
        let (now, most) = held.get();
        held.set((now + bytes, most.max(now + bytes)));
    });
}

// SAFETY: every call goes to the system's allocator as it came, and counting takes no memory.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as for this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as for this function.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes as i64);
        // SAFETY: as for this function.
        let moved = unsafe { System.realloc(block, layout, bytes) };
        count(-(layout.size() as i64));
        moved
    }
}

#[global_allocator]
static COUNTED: Counted = Counted;

/// The most bytes that this thread held at once during some work, beyond those it held before.
pub(crate) fn most_bytes<T>(work: impl FnOnce() -> T) -> u64 {
    let before = HELD.get().0;
    HELD.set((before, before));
    drop(work());
    u64::try_from(HELD.get().1 - before).unwrap()
}
