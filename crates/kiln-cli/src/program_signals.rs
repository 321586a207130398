//! A program that gets the signals of this command.
//!
//! What a process sends to this command is passed on; what a terminal sends, the program has got itself. The command waits for the program in
//! either case, and says how it ended.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::program_end::ProgramEnd;
use crate::signals::{self, SignalMask};

/// The signals of this command, held back until there is a program.
pub(crate) struct ProgramSignals {
    mask: SignalMask,
    told: Arc<Told>,
    /// Whether the thread that passes them on was started.
    is_started: bool,
}

/// The program while it can be told something.
struct Told {
    program: Mutex<Option<Pid>>,
    /// Whether one of the signals asks for the end.
    is_ended: AtomicBool,
    /// Whether this command waits for something else than a program, and ends by itself soon after it is asked to.
    is_waiting: AtomicBool,
}

/// A wait of this command for something else than a program: signals that ask for its end are noted and end it by what waits.
pub(crate) struct NotedSignals<'a>(&'a Told);

impl NotedSignals<'_> {
    /// Whether this command was asked to end.
    pub(crate) fn is_ended(&self) -> bool {
        self.0.is_ended.load(Ordering::Acquire)
    }
}

impl Drop for NotedSignals<'_> {
    fn drop(&mut self) {
        self.0.is_waiting.store(false, Ordering::Release);
    }
}

impl ProgramSignals {
    /// Holds the signals back, for this thread and those that it starts from here on.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn hold() -> io::Result<Self> {
        let told = Told {
            program: Mutex::new(None),
            is_ended: AtomicBool::new(false),
            is_waiting: AtomicBool::new(false),
        };
        Ok(Self { mask: signals::block()?, told: Arc::new(told), is_started: false })
    }

    /// Notes signals that ask for the end, for as long as the answer is kept.
    pub(crate) fn wait(&self) -> NotedSignals<'_> {
        self.told.is_waiting.store(true, Ordering::Release);
        NotedSignals(&self.told)
    }

    /// Runs a program to its end. Signals that come when none runs end this command as if they had never been held back.
    ///
    /// # Errors
    /// A program that cannot be started; no thread that can be.
    pub(crate) fn run(&mut self, command: &mut Command) -> io::Result<ProgramEnd> {
        let mask = self.mask;
        // SAFETY: between `fork` and `exec` this makes one system call, allocates nothing and takes no lock.
        unsafe { command.pre_exec(move || mask.restore()) };
        let mut child = command.spawn()?;
        *self.told.program() = Some(Pid::from_child(&child));
        if !self.is_started {
            let shared = self.told.clone();
            let pass_on = move || shared.pass_on(&mask);
            let thread = std::thread::Builder::new().name("kiln-signals".to_owned()).spawn(pass_on);
            if let Err(error) = thread {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error);
            }
            self.is_started = true;
        }
        let status = self.told.await_end(&mut child)?;
        Ok(ProgramEnd { status, is_signalled: self.told.is_ended.load(Ordering::Acquire) })
    }
}

impl Told {
    /// Passes signals on for as long as there is a program, and then ends by the next.
    fn pass_on(&self, mask: &SignalMask) {
        while let Ok((signal, is_from_kernel)) = signals::next_and_origin() {
            let ends = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT].contains(&signal);
            match *self.program() {
                Some(program) => {
                    self.is_ended.fetch_or(ends, Ordering::AcqRel);
                    if !is_from_kernel {
                        let _ = kill_process(program, signal);
                    }
                }
                None if ends && self.is_waiting.load(Ordering::Acquire) => {
                    self.is_ended.store(true, Ordering::Release);
                }
                None => mask.end_by(signal),
            }
        }
    }

    /// The program's number is not given to another before it is forgotten here.
    fn await_end(&self, child: &mut Child) -> io::Result<std::process::ExitStatus> {
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(Pid::from_child(child)), ended) {}
        let mut program = self.program();
        let status = child.wait();
        *program = None;
        status
    }

    fn program(&self) -> MutexGuard<'_, Option<Pid>> {
        self.program.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
