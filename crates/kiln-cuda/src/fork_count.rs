//! Whether this process was forked, without a system call.
//!
//! A CUDA context does not survive `fork`: in the child every call on it fails or hangs. Asking the kernel for the
//! process id costs a system call, too much for every launch, so a handler that `fork` runs in the child counts
//! up, and a comparison of two integers tells whether a device was opened on the other side of a fork.

use std::ffi::c_int;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many times this process and its ancestors were forked since the count began.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process in which an object was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Birth(u32);

impl Birth {
    /// The current process.
    pub(crate) fn here() -> Self {
        static COUNT: Once = Once::new();
        COUNT.call_once(|| {
            // SAFETY: the handler is a plain function that adds to an atomic, which is allowed between `fork` and
            // `exec` whatever the other threads were doing. If registering fails for lack of memory, forks go
            // unseen and the driver itself refuses the child's calls.
            unsafe { pthread_atfork(None, None, Some(count_fork)) };
        });
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Whether this is still the process in which it was made.
    pub(crate) fn is_here(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }
}

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
}
