//! A fence of which one side is free.
//!
//! Two threads that each write their own flag and then read the other's need a full fence between the two steps, on
//! both sides. When one side does this a million times a second and the other almost never, the rare side can pay for
//! both: on Linux, `membarrier` makes every running thread of the process pass a full fence. The frequent side then
//! only has to keep the compiler from swapping its two steps. Where the system has no such call, both sides fence.

use std::sync::atomic::{AtomicU8, Ordering, compiler_fence, fence};

use rustix::thread::{MembarrierCommand, membarrier};

const UNKNOWN: u8 = 0;
const ONE_SIDED: u8 = 1;
const BOTH_SIDES: u8 = 2;

/// Which kind the system has; once known it never changes.
static KIND: AtomicU8 = AtomicU8::new(UNKNOWN);

/// The frequent side's fence. Free where the system helps.
#[inline]
pub(crate) fn light() {
    if KIND.load(Ordering::Relaxed) == ONE_SIDED {
        compiler_fence(Ordering::SeqCst);
    } else {
        first_light();
    }
}

/// The rare side's fence: whatever other threads did before their last [`light`] is seen after it, and whatever they
/// do after their next one comes after whatever was done before it.
pub(crate) fn heavy() {
    fence(Ordering::SeqCst);
    if kind() == ONE_SIDED {
        // A registered process is refused only for a moment, when the system is out of memory.
        while membarrier(MembarrierCommand::PrivateExpedited).is_err()
            && membarrier(MembarrierCommand::Global).is_err()
        {
            std::thread::yield_now();
        }
    }
    fence(Ordering::SeqCst);
}

#[cold]
fn first_light() {
    kind();
    fence(Ordering::SeqCst);
}

/// The kind, asked for once. A side that fenced before it was known has fenced in full, which suits both kinds.
fn kind() -> u8 {
    let known = KIND.load(Ordering::SeqCst);
    if known != UNKNOWN {
        return known;
    }
    // An interpreter that looks for undefined behaviour knows no such call and runs no processor that could be fenced.
    let registered = !cfg!(miri) && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok();
    let kind = if registered { ONE_SIDED } else { BOTH_SIDES };
    KIND.compare_exchange(UNKNOWN, kind, Ordering::SeqCst, Ordering::SeqCst)
        .map_or_else(|other| other, |_| kind)
}
