//! What reads the standard output.

use std::io;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Waits until what reads the standard output leaves, which is said of pipes, sockets and terminals; false if that cannot be waited for. A file
/// has no reader that leaves, so that this waits for ever.
pub(super) fn left() -> bool {
    let output = io::stdout();
    let mut ready = [PollFd::new(&output, PollFlags::empty())];
    loop {
        match poll(&mut ready, None) {
            // What is not asked for is said too: that the other end is gone.
            Ok(1..) => return true,
            Ok(0) | Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
