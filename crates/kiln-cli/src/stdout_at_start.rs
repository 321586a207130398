//! Whether the standard output was closed when the process began.
//!
//! Rust opens `/dev/null` in its place before `main`, so that writing to it never fails; what a command printed would be lost without a word.
//! The loader calls the functions of `.init_array` before that.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether the standard output was closed when the process began. Known on Linux.
pub(crate) fn was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

#[cfg(target_os = "linux")]
mod before_main {
    use std::os::fd::BorrowedFd;
    use std::sync::atomic::Ordering;

    // SAFETY: the loader calls what stands in this section once, with the C calling convention, before `main`. `look` uses nothing that the
    // runtime of Rust sets up: it asks the kernel about a number and stores a bool.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;

    extern "C" fn look() {
        // SAFETY: the number is only asked about, and no other code runs yet that could close it.
        let output = unsafe { BorrowedFd::borrow_raw(1) };
        let is_open = rustix::io::fcntl_getfd(output).is_ok();
        super::CLOSED.store(!is_open, Ordering::Relaxed);
    }
}
