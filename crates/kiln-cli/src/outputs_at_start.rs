//! Whether the standard output or the standard error was closed when the process began.
//!
//! Rust opens `/dev/null` in its place before `main`, so that writing to it never fails; what a command printed would be lost without a word.
//! The loader calls the functions of `.init_array` before that.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

static OUTPUT_CLOSED: AtomicBool = AtomicBool::new(false);
static ERROR_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether the standard output was closed when the process began. Known on Linux.
pub(crate) fn output_was_closed() -> bool {
    OUTPUT_CLOSED.load(Ordering::Relaxed)
}

/// The standard error, to which nothing can be written if it was closed when the process began. That is known on Linux.
pub(crate) struct StandardError;

impl Write for StandardError {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match ERROR_CLOSED.load(Ordering::Relaxed) {
            true => Err(io::Error::other("the standard error is closed")),
            false => io::stderr().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(target_os = "linux")]
mod before_main {
    use std::os::fd::BorrowedFd;
    use std::sync::atomic::Ordering;

    // SAFETY: the loader calls what stands in this section once, with the C calling convention, before `main`. `look` uses nothing that the
    // runtime of Rust sets up: it asks the kernel about two numbers and stores two bools.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;

    extern "C" fn look() {
        for (number, closed) in [(1, &super::OUTPUT_CLOSED), (2, &super::ERROR_CLOSED)] {
            // SAFETY: the number is only asked about, and no other code runs yet that could close it.
            let stream = unsafe { BorrowedFd::borrow_raw(number) };
            let is_open = rustix::io::fcntl_getfd(stream).is_ok();
            closed.store(!is_open, Ordering::Relaxed);
        }
    }
}
