//! A child process, held by a process descriptor (pidfd).
//!
//! The program may ignore how its children end (`SIGCHLD`), or wait for all of them. Then the exit status is gone before this crate asks for it,
//! and the process id may belong to another process. A process descriptor always refers to the same process, so it is used to watch, wait for
//! and kill one.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, pidfd_open, pidfd_send_signal, waitid,
};

use crate::protocol::futex_wait::timespec;

/// A child process. Dropping it kills the process and waits for its end.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    id: u32,
    handle: OwnedFd,
}

/// How a process ended. The status is missing if other code waited for the process first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ended {
    pub(crate) status: Option<ExitStatus>,
}

impl ChildProcess {
    /// Takes ownership of a process that was just started.
    ///
    /// # Errors
    /// The system has no process descriptor for it; the process was killed then.
    pub(crate) fn adopt(mut child: Child) -> io::Result<Self> {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let handle = match pid {
            Some(pid) => pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        match handle {
            Ok(handle) => Ok(Self { id: child.id(), handle }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Its process id, valid until it has ended.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// A descriptor that is readable once it has ended.
    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// Kills it, and does not wait for its end.
    pub(crate) fn kill(&self) {
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
    }

    /// How it ended, if it has. The system returns the status once.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.wait_with(WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
    }

    /// Waits for its end up to a limit; returns whether it has ended.
    pub(crate) fn ends_within(&self, limit: Duration) -> bool {
        let begun = Instant::now();
        let mut waiting = [PollFd::from_borrowed_fd(self.handle(), PollFlags::IN)];
        let poll = || poll(&mut waiting, Some(&timespec(limit.saturating_sub(begun.elapsed()))));
        matches!(retry_on_intr(poll), Ok(1..))
    }

    fn wait_with(&self, options: WaitIdOptions) -> Option<Ended> {
        match retry_on_intr(|| waitid(WaitId::PidFd(self.handle()), options)) {
            Ok(None) => None,
            Ok(Some(status)) => Some(Ended { status: exit_status(&status) }),
            // It is no child of this process any more: the program ignores SIGCHLD, or other code waited for it.
            Err(_) => Some(Ended { status: None }),
        }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // Both fail for a process that has ended and was waited for.
        self.kill();
        let _ = self.wait_with(WaitIdOptions::EXITED);
    }
}

/// The status in the standard library's form: an exit code in the second byte, or a signal in the first.
fn exit_status(status: &WaitIdStatus) -> Option<ExitStatus> {
    let code = status.exit_status().map(|code| (code & 0xff) << 8);
    code.or_else(|| status.terminating_signal()).map(ExitStatus::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_tells_its_status_once_and_ends_with_its_owner() {
        let start = |script: &str| {
            let child = Command::new("/bin/sh").args(["-c", script]).spawn().unwrap();
            ChildProcess::adopt(child).unwrap()
        };
        let process = start("exit 7");
        assert!(process.ends_within(Duration::from_secs(60)));
        assert_eq!(process.ended().unwrap().status.unwrap().code(), Some(7));
        assert_eq!(process.ended(), Some(Ended { status: None }));
        let process = start("exec sleep 1000");
        assert_eq!(process.ended(), None);
        assert!(!process.ends_within(Duration::ZERO));
        process.kill();
        assert!(process.ends_within(Duration::from_secs(60)));
        assert_eq!(process.ended().unwrap().status.unwrap().signal(), Some(9));
        let process = start("exec sleep 1000");
        let folder = format!("/proc/{}", process.id());
        assert!(std::fs::exists(&folder).unwrap());
        drop(process);
        assert!(!std::fs::exists(&folder).unwrap(), "neither it nor its remains are there");
    }
}
