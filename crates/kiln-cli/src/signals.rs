//! The signals that a command passes on, or does something before.

use std::io;
use std::mem::MaybeUninit;

use rustix::process::Signal;

/// What is passed on to programs.
const PASSED_ON: [Signal; 6] =
    [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];

/// The signals that were blocked before this command blocked those of [`PASSED_ON`].
#[derive(Clone, Copy)]
pub(crate) struct SignalMask(libc::sigset_t);

/// Blocks the signals for this thread and those that it starts from here on, so that [`next`] gets them. Returns what was blocked before.
///
/// # Errors
/// What the system says.
pub(crate) fn block() -> io::Result<SignalMask> {
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the first set was made by `passed_on`; the second is a place to write to.
    let failed = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &passed_on(), before.as_mut_ptr()) };
    match failed {
        // SAFETY: the call succeeded and has written the old mask.
        0 => Ok(SignalMask(unsafe { before.assume_init() })),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

impl SignalMask {
    /// Blocks these signals and no others. It may be called between `fork` and `exec`: `sigprocmask` is async-signal-safe.
    pub(crate) fn restore(&self) -> io::Result<()> {
        // SAFETY: the set was written by the system in `block`; the old mask is not asked for.
        match unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Waits for the next signal. They must be blocked.
pub(crate) fn next() -> io::Result<Signal> {
    let mut number = 0;
    // SAFETY: the set was made by `passed_on`, and the number is a place to write to.
    match unsafe { libc::sigwait(&passed_on(), &mut number) } {
        0 => Signal::from_named_raw(number).ok_or_else(|| io::ErrorKind::InvalidData.into()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Waits for the next signal; whether the kernel sent it, as a terminal does to all programs in its foreground, and not a process.
pub(crate) fn next_and_origin() -> io::Result<(Signal, bool)> {
    let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
    loop {
        // SAFETY: the set was made by `passed_on`, and the second is a place to write to.
        let number = unsafe { libc::sigwaitinfo(&passed_on(), info.as_mut_ptr()) };
        if number < 0 {
            match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => continue,
                error => return Err(error),
            }
        }
        // SAFETY: the call succeeded and has written it.
        let is_from_kernel = unsafe { info.assume_init_ref() }.si_code > 0;
        let signal = Signal::from_named_raw(number).ok_or(io::ErrorKind::InvalidData)?;
        return Ok((signal, is_from_kernel));
    }
}

impl SignalMask {
    /// Ends this process as a signal does that is not blocked. Where the signal is ignored, it returns.
    pub(crate) fn end_by(&self, signal: Signal) {
        if self.restore().is_ok() {
            let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
        }
    }
}

/// Does something at the first signal, and then ends as the signal does.
///
/// # Errors
/// No thread can be started.
pub(crate) fn before_end(mask: SignalMask, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let wait = move || {
        if let Ok(signal) = next() {
            work();
            mask.end_by(signal);
        }
    };
    std::thread::Builder::new().name("kiln-signals".to_owned()).spawn(wait).map(|_| ())
}

fn passed_on() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` writes the whole set, and `sigaddset` is given numbers of signals that exist, so that neither fails.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in PASSED_ON {
            libc::sigaddset(set.as_mut_ptr(), signal.as_raw());
        }
        set.assume_init()
    }
}
