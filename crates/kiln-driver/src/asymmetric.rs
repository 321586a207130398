//! Two fences of unequal price.
//!
//! Two threads each write one word and then read the other's; at least one must see what the other wrote. The usual fence makes both
//! pay some twenty cycles each time. Here the one that does it a million times a second pays nothing but a promise of the compiler, and
//! the one that does it once in a while asks the kernel to run a full fence on every processor that runs a thread of this process
//! (`membarrier`). Where the kernel does not offer that, both sides use the ordinary fence.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

use rustix::thread::{MembarrierCommand, membarrier};

/// Whether the frequent side may leave the fence to the other. Set once, before the first light fence of any thread.
static ASYMMETRIC: AtomicBool = AtomicBool::new(false);

/// Asks the kernel once whether it offers the barrier. To be called before anything that is fenced here is shared.
pub(crate) fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Under the interpreter there is no kernel to ask.
        let offered = !cfg!(miri)
            && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
            && membarrier(MembarrierCommand::PrivateExpedited).is_ok();
        ASYMMETRIC.store(offered, Ordering::Relaxed);
    });
}

/// The frequent side: between its write and its read.
#[inline(always)]
pub(crate) fn light() {
    if ASYMMETRIC.load(Ordering::Relaxed) {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// The rare side: between its write and its read.
#[cold]
pub(crate) fn heavy() {
    fence(Ordering::SeqCst);
    if ASYMMETRIC.load(Ordering::Relaxed) && membarrier(MembarrierCommand::PrivateExpedited).is_err() {
        // It worked when it was tried first. The child of a fork may have to register again.
        let _ = membarrier(MembarrierCommand::RegisterPrivateExpedited);
        let _ = membarrier(MembarrierCommand::PrivateExpedited);
    }
    fence(Ordering::SeqCst);
}
