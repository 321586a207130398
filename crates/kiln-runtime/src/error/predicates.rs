//! What a caller decides on: predicates over every kind of error.

use std::sync::Arc;

use kiln_order::Stamp;

use super::{Error, ErrorKind, Stale};
use crate::device_state::{Cause, StateCell};

impl Error {
    /// Whether there simply is no device; nothing is broken.
    pub fn is_absence(&self) -> bool {
        match self.kind() {
            ErrorKind::Probe(error) => error.absence().is_some(),
            #[cfg(all(feature = "isolate", target_os = "linux"))]
            ErrorKind::Worker(error) => error.is_absence(),
            ErrorKind::Reopen { cause, .. } => cause.is_absence(),
            _ => false,
        }
    }

    /// Whether freeing memory may help.
    pub fn is_oom(&self) -> bool {
        match self.kind() {
            ErrorKind::Memory(error) => error.is_oom(),
            ErrorKind::HostMemory(_) => true,
            ErrorKind::Reopen { cause, .. } => cause.is_oom(),
            _ => self.driver().is_some_and(kiln_driver::Error::is_oom),
        }
    }

    /// Whether the device was lost, and with it this request. Whether it comes back is another question: see
    /// [`is_sticky`](Self::is_sticky) and [`is_retryable`](Self::is_retryable).
    pub fn is_lost(&self) -> bool {
        self.driver().is_some_and(kiln_driver::Error::is_sticky)
    }

    /// Whether the device is lost for good: no request to its runtime will succeed any more. A device that comes back, in
    /// another worker process for example, is not.
    pub fn is_sticky(&self) -> bool {
        match self.kind() {
            ErrorKind::NotReady { .. } => false,
            _ => self.is_lost() && !self.has_successor(),
        }
    }

    /// Whether the same request may succeed later although the caller changes nothing. This is the condition of a loop
    /// that tries again, best with a pause and a limit.
    ///
    /// | kind | retryable |
    /// |---|---|
    /// | [`Driver`](ErrorKind::Driver) | out of memory; an object that is in use; a lost context that another one replaces |
    /// | [`Memory`](ErrorKind::Memory) | as `Driver`; not if the request exceeds the whole limit |
    /// | [`NotReady`](ErrorKind::NotReady) | yes: the device is lost and may come back |
    /// | [`Stale`](ErrorKind::Stale) | only [`Rebuilding`](Stale::Rebuilding): the buffer may have been kept |
    /// | [`StreamsExhausted`](ErrorKind::StreamsExhausted) | yes: a lease may be dropped |
    /// | [`HostMemory`](ErrorKind::HostMemory) | yes: another part of the process may free some |
    /// | [`Probe`](ErrorKind::Probe) | a device that could not be opened, unless it is lost or lacks something; a list for which memory was short, other faults stay until the devices are looked up anew; nothing else |
    /// | [`Worker`](ErrorKind::Worker) | if the system was short of something, or the worker ended by itself |
    /// | [`Reopen`](ErrorKind::Reopen), [`Other`](ErrorKind::Other) | as the kiln error inside, if there is one |
    /// | [`Faulted`](ErrorKind::Faulted) | no: this work lost the device and would lose it again |
    /// | [`Finding`](ErrorKind::Finding) | no: the same work makes the same mistake |
    /// | `Code`, `Misuse`, `Mismatch`, `Graph`, `Seal`, `Library`, `ConfigInUse`, `UnknownFindings`, `JobPanicked` | no |
    ///
    /// Work that was lost with its context is retryable, unless it is known to have caused the fault. Where a driver does
    /// not say which work faulted, that work is told the same, so limit how often a request is tried.
    ///
    /// ```
    /// # fn main() -> kiln::Result<()> {
    /// let gpu = kiln::DeviceRuntime::simulated(1)?;
    /// let mut attempts = 0;
    /// let buffer = loop {
    ///     match gpu.upload(&[1.0f32; 256]) {
    ///         Err(error) if error.is_retryable() && attempts < 10 => attempts += 1,
    ///         answer => break answer?,
    ///     }
    /// };
    /// # assert_eq!(buffer.len(), 256);
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_retryable(&self) -> bool {
        match self.kind() {
            ErrorKind::NotReady { .. } | ErrorKind::StreamsExhausted { .. } | ErrorKind::HostMemory(_) => {
                true
            }
            ErrorKind::Stale(stale) => *stale == Stale::Rebuilding,
            ErrorKind::Driver(error) => error.is_retryable() || error.has_successor(),
            ErrorKind::Memory(error) => self.has_successor() || error.is_retryable() && may_fit(error),
            ErrorKind::Probe(error) => error.is_retryable(),
            #[cfg(all(feature = "isolate", target_os = "linux"))]
            ErrorKind::Worker(error) => error.is_retryable(),
            ErrorKind::Reopen { cause, .. } => cause.is_retryable(),
            ErrorKind::Other(error) => error.downcast_ref().is_some_and(Self::is_retryable),
            ErrorKind::Faulted { .. }
            | ErrorKind::Finding(_)
            | ErrorKind::UnknownFindings(_)
            | ErrorKind::Code(_)
            | ErrorKind::Misuse(_)
            | ErrorKind::Mismatch(_)
            | ErrorKind::Graph(_)
            | ErrorKind::Seal(_)
            | ErrorKind::Library(_)
            | ErrorKind::Trace(_)
            | ErrorKind::ConfigInUse { .. }
            | ErrorKind::JobPanicked { .. } => false,
        }
    }

    /// Whether another context takes the place of the lost one.
    fn has_successor(&self) -> bool {
        self.driver().is_some_and(kiln_driver::Error::has_successor)
    }

    /// What work is told that was lost for a cause. The work that lost the device would lose it again.
    pub(crate) fn of_loss(cause: &Arc<Cause>, stamp: Stamp) -> Self {
        if cause.error().has_successor() && cause.ticket() == Some(stamp) {
            return Self::new(ErrorKind::Faulted { cause: cause.clone() });
        }
        Self::of_cause(cause)
    }

    /// What is told of a cause: what a crate above says, or the driver.
    pub(crate) fn of_cause(cause: &Cause) -> Self {
        match cause.told() {
            Some(told) => Self::new(ErrorKind::Other(told.clone())),
            None => cause.error().clone().into(),
        }
    }

    /// The same error as the work of a stamp is told it: the work that lost the device learns so.
    #[must_use]
    pub(crate) fn told_to(self, stamp: Stamp, state: &StateCell) -> Self {
        if !self.has_successor() {
            return self;
        }
        let faulted = state.loss_where(|loss| loss.cause.ticket() == Some(stamp));
        faulted.map_or(self, |loss| Self::of_loss(&loss.cause, stamp))
    }
}

/// Whether a request could ever have what it asks for under the limit that refused it.
fn may_fit(error: &kiln_mem::Error) -> bool {
    let exhausted = error.exhausted();
    let limit = exhausted.and_then(|exhausted| exhausted.limit_bytes);
    exhausted.zip(limit).is_none_or(|(exhausted, limit)| {
        exhausted.rounded_bytes.max(exhausted.page_bytes.unwrap_or(0)) <= limit
    })
}
