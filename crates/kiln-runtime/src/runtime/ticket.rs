//! A submission that can be waited for.

use std::time::{Duration, Instant};

use kiln_driver::Timeout;
use kiln_order::Stamp;
use kiln_trace::HostWaitCause;

use super::inner::Inner;
use super::runtime_table::{RuntimeKey, RuntimeLookup};
use crate::error::{Error, Misuse, Result};

/// A submission. It can be polled, waited for, or ignored; after a fault every call returns it.
///
/// A wait may also be one for work that was queued behind it on the same stream before the wait began, because events are recorded when they are
/// needed (`RuntimeConfig::recording`). It is never one for a collective that was submitted behind it, since that waits for other ranks.
///
/// What a host waited for needs no event any more: later work of any stream is ordered after it for free. A ticket does not hold the
/// runtime. A runtime waits for its work when it ends, and its tickets are done then; where it could not, they say why.
///
/// ```
/// use std::time::Duration;
///
/// use kiln::DeviceRuntime;
///
/// let gpu = DeviceRuntime::simulated(1)?;
/// let data = gpu.zeros::<u32>(1000)?;
/// let mut host = gpu.pinned::<u32>(1000)?;
/// let ticket = host.copy_from(&data)?; // returns at once
/// assert!(ticket.wait_within(Duration::from_secs(10))?);
/// assert!(ticket.is_done()?);
/// assert_eq!(host.read()?, [0; 1000]);
/// # Ok::<(), kiln::Error>(())
/// ```
#[derive(Clone)]
pub struct Ticket {
    runtime: RuntimeKey,
    stamp: Stamp,
}

impl Ticket {
    #[inline]
    pub(crate) fn new(runtime: &Inner, stamp: Stamp) -> Self {
        Self { runtime: runtime.key(), stamp }
    }

    /// What became of its runtime, and of it where that is gone.
    pub(crate) fn lookup(&self) -> RuntimeLookup {
        self.runtime.find(self.stamp)
    }

    pub(crate) fn check_runtime(&self, runtime: &Inner) -> Result<()> {
        if self.runtime == runtime.key() { Ok(()) } else { Err(Error::new(Misuse::ForeignTicket)) }
    }

    /// Its stream and number.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Whether it is done.
    ///
    /// # Errors
    /// The fault, if the device is lost. What the checks of a simulated device found in this work, or in work it comes after.
    pub fn is_done(&self) -> Result<bool> {
        self.wait_for(Timeout::Poll)
    }

    /// Waits for it.
    ///
    /// # Errors
    /// As for [`is_done`](Self::is_done).
    #[track_caller]
    pub fn wait(&self) -> Result<()> {
        self.wait_for(Timeout::Never).map(|_| ())
    }

    /// Waits for it, but no longer than this; false if time ran out.
    ///
    /// # Errors
    /// As for [`is_done`](Self::is_done).
    #[track_caller]
    pub fn wait_within(&self, limit: Duration) -> Result<bool> {
        self.wait_for(Timeout::After(limit))
    }

    /// Waits for many, but no longer than this in all; false if time ran out.
    ///
    /// # Errors
    /// The fault, if a device is lost.
    #[track_caller]
    pub fn wait_all(tickets: &[Self], limit: Option<Duration>) -> Result<bool> {
        let mut left = limit;
        for ticket in tickets {
            let timeout = left.map_or(Timeout::Never, Timeout::After);
            let RuntimeLookup::Live(runtime) = ticket.lookup() else {
                if !ticket.wait_for(timeout)? {
                    return Ok(false);
                }
                continue;
            };
            let began = runtime.driver().clock().now();
            if !ticket.ask(&runtime, timeout)? {
                return Ok(false);
            }
            let waited = runtime.driver().clock().now().saturating_sub(began);
            left = left.map(|left| left.saturating_sub(waited));
        }
        Ok(true)
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, timeout: Timeout) -> Result<bool> {
        match self.lookup() {
            RuntimeLookup::Live(runtime) => self.ask(&runtime, timeout),
            RuntimeLookup::Ending => self.await_end(timeout),
            RuntimeLookup::Done => Ok(true),
            RuntimeLookup::Failed(reason) => Err(reason),
        }
    }

    #[track_caller]
    fn ask(&self, runtime: &Inner, timeout: Timeout) -> Result<bool> {
        self.check_not_lost(runtime)?;
        let is_wanted = || runtime.state().failure_of(self.stamp).is_none();
        let wait = || runtime.wait_out_while(self.stamp, timeout, &is_wanted);
        let waited = match timeout {
            Timeout::Poll => wait(),
            Timeout::After(_) | Timeout::Never => {
                runtime.waiting(HostWaitCause::Ticket, Some(self.stamp), wait)
            }
        };
        let done = waited.map_err(|error| error.told_to(self.stamp, runtime.state()))?;
        // The device may have been rebuilt meanwhile; the new context does not know what the last one left unfinished.
        self.check_not_lost(runtime)?;
        if !done {
            return Ok(false);
        }
        runtime.settle(self.stamp).map(|()| true)
    }

    /// Waits for a runtime that is being taken down, which waits for its work and not for long.
    #[cold]
    fn await_end(&self, timeout: Timeout) -> Result<bool> {
        const NAP: Duration = Duration::from_micros(100);
        let began = Instant::now();
        loop {
            match self.lookup() {
                RuntimeLookup::Done => return Ok(true),
                RuntimeLookup::Failed(reason) => return Err(reason),
                RuntimeLookup::Live(_) | RuntimeLookup::Ending => {}
            }
            match timeout {
                Timeout::Poll => return Ok(false),
                Timeout::After(limit) if began.elapsed() >= limit => return Ok(false),
                Timeout::After(_) | Timeout::Never => std::thread::sleep(NAP),
            }
        }
    }

    /// The fault, for work that was unfinished when a device was lost that has been rebuilt since. Until then the driver answers.
    #[inline]
    pub(crate) fn check_not_lost(&self, runtime: &Inner) -> Result<()> {
        match runtime.state().failure_of(self.stamp) {
            Some(cause) => Err(Error::of_loss(&cause, self.stamp)),
            None => Ok(()),
        }
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ticket {}", self.stamp)
    }
}
