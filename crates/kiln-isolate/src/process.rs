//! A process that was started here and whose end others may wait for as well.
//!
//! The program around us may ignore how its children end, or wait for all of them. Then the status is gone before we ask for it, and
//! the number may be somebody else's by the time we use it. So a process is watched, waited for and ended by its handle, which stays its own.

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

use crate::bell::timespec;

/// A process. It ends, and is waited for, when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    id: u32,
    handle: OwnedFd,
}

/// How a process ended, where nobody else was told instead of us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ended {
    pub(crate) status: Option<ExitStatus>,
}

impl Process {
    /// Takes charge of a process that was just started.
    ///
    /// # Errors
    /// The system has no handle for it; it was ended then.
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

    /// Its number, as long as it lives.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Readable once it ended.
    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// Ends it at once, whatever it does, and does not wait for that.
    pub(crate) fn strike(&self) {
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
    }

    /// How it ended, if it did. The system tells that once.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.wait_with(WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
    }

    /// Waits until it ended, but no longer than this; says whether it did.
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
            // It is nobody's child any more: the program ignores how children end, or somebody else waited for it.
            Err(_) => Some(Ended { status: None }),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both are refused for one that ended and was waited for.
        self.strike();
        let _ = self.wait_with(WaitIdOptions::EXITED);
    }
}

/// The same as the standard library says it: an exit code in the second byte, or a signal in the first.
fn exit_status(status: &WaitIdStatus) -> Option<ExitStatus> {
    let code = status.exit_status().map(|code| (code & 0xff) << 8);
    code.or_else(|| status.terminating_signal()).map(ExitStatus::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_says_once_how_it_ended_and_ends_with_its_owner() {
        let start = |script: &str| {
            let child = Command::new("/bin/sh").args(["-c", script]).spawn().unwrap();
            Process::adopt(child).unwrap()
        };
        let process = start("exit 7");
        assert!(process.ends_within(Duration::from_secs(60)));
        assert_eq!(process.ended().unwrap().status.unwrap().code(), Some(7));
        assert_eq!(process.ended(), Some(Ended { status: None }));
        let process = start("exec sleep 1000");
        assert_eq!(process.ended(), None);
        assert!(!process.ends_within(Duration::ZERO));
        process.strike();
        assert!(process.ends_within(Duration::from_secs(60)));
        assert_eq!(process.ended().unwrap().status.unwrap().signal(), Some(9));
        let process = start("exec sleep 1000");
        let folder = format!("/proc/{}", process.id());
        assert!(std::fs::exists(&folder).unwrap());
        drop(process);
        assert!(!std::fs::exists(&folder).unwrap(), "neither it nor its remains are there");
    }
}
