//! Two fences of unequal price.
//!
//! Two threads each write one word and then read the other's; at least one must see what the other wrote. The usual fence makes both
//! pay some twenty cycles each time. Here the one that does it a million times a second pays nothing but a promise of the compiler, and
//! the one that does it once in a while asks the kernel to run a full fence on every processor that runs a thread of this process
//! (`membarrier`). Where the kernel does not offer that, nobody takes the frequent side: latches belong to nobody, and pins are counted.

use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence, fence};

use rustix::thread::{MembarrierCommand, membarrier};

/// Whether the frequent side may leave the fence to the other. What is to use [`light`] asks before anything of it is shared, and goes
/// another way if the answer is no; asked once, the answer stays.
pub(crate) fn is_offered() -> bool {
    static OFFERED: OnceLock<bool> = OnceLock::new();
    *OFFERED.get_or_init(|| {
        // Under the interpreter there is no kernel to ask, and both sides have an ordinary fence.
        cfg!(miri)
            || membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
                && membarrier(MembarrierCommand::PrivateExpedited).is_ok()
    })
}

/// The frequent side: between its write and its read.
#[inline(always)]
pub(crate) fn light() {
    if cfg!(miri) {
        fence(Ordering::SeqCst);
    } else {
        compiler_fence(Ordering::SeqCst);
    }
}

/// The rare side: between its write and its read.
#[cold]
pub(crate) fn heavy() {
    fence(Ordering::SeqCst);
    if !cfg!(miri) && is_offered() && membarrier(MembarrierCommand::PrivateExpedited).is_err() {
        // It worked when it was tried first. The child of a fork may have to register again.
        let _ = membarrier(MembarrierCommand::RegisterPrivateExpedited);
        let _ = membarrier(MembarrierCommand::PrivateExpedited);
    }
    fence(Ordering::SeqCst);
}
