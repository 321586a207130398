//! The process of a rank.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, getppid, kill_process_group, set_parent_process_death_signal,
    waitid,
};

use super::rank_end::RankEnd;
use crate::signals::SignalMask;

/// A process that leads a group of processes, and dies with the thread that started it.
#[derive(Debug)]
pub(super) struct RankProcess {
    child: Child,
    group: Pid,
}

impl RankProcess {
    /// Starts a program. The thread that calls this must live as long as the program may.
    ///
    /// # Errors
    /// The program is not there or cannot be executed, or the system starts no more processes.
    pub(super) fn start(
        program: &[OsString],
        variables: Vec<(&'static str, String)>,
        mask: SignalMask,
    ) -> io::Result<Self> {
        let [name, arguments @ ..] = program else { return Err(io::ErrorKind::InvalidInput.into()) };
        let launcher = getpid();
        let mut command = Command::new(name);
        command.args(arguments).envs(variables).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let before_exec = move || {
            mask.restore()?;
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The launcher may have died before that.
            match getppid() == Some(launcher) {
                true => Ok(()),
                false => Err(io::ErrorKind::BrokenPipe.into()),
            }
        };
        // SAFETY: between `fork` and `exec` this makes three system calls, allocates nothing and takes no lock.
        unsafe { command.pre_exec(before_exec) };
        let child = command.spawn()?;
        let group = Pid::from_child(&child);
        Ok(Self { child, group })
    }

    /// Its number in the system.
    pub(super) fn number(&self) -> u32 {
        self.child.id()
    }

    /// Takes the ends of the pipes that the process writes to.
    pub(super) fn take_output(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdout.take(), self.child.stderr.take())
    }

    /// Sends a signal to the process and to those of its group. The number is that of this process until [`finish`](Self::finish) has ended.
    pub(super) fn signal(&self, signal: Signal) {
        // It fails only if all of them have ended.
        let _ = kill_process_group(self.group, signal);
    }

    /// Whether it is stopped by a signal, and not by a debugger that looks at it.
    pub(super) fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        // Behind the name, which may contain anything.
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
    }

    /// Waits on another thread, and leaves the process to be finished.
    pub(super) fn watch(&self, tell: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let process = self.group;
        spawn(move || {
            while let Err(rustix::io::Errno::INTR) =
                waitid(WaitId::Pid(process), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
            {}
            tell();
        })
    }

    /// How the process ended, which is known when the watch tells. Ends what is left of its group.
    pub(super) fn finish(mut self) -> io::Result<RankEnd> {
        self.signal(Signal::KILL);
        self.child.wait().map(RankEnd::from)
    }
}

/// Starts a thread that needs little memory.
pub(super) fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().stack_size(128 << 10).spawn(work).map(drop)
}
