//! Waits until no queued work uses freed memory any more.

use std::time::Duration;

use kiln_driver::Timeout;

use super::DeviceRuntime;
use super::inner::Inner;
use crate::error::Result;

/// What a drain achieved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Drained {
    /// Bytes that became available.
    pub freed_bytes: u64,
    /// Bytes that were freed by their owners and that unfinished work may still use.
    pub pending_bytes: u64,
}

impl Drained {
    /// Whether nothing is pending any more.
    pub fn is_complete(&self) -> bool {
        self.pending_bytes == 0
    }
}

impl DeviceRuntime {
    /// Waits until freed memory is available again, but no longer than this on the device's clock. Memory that is freed while
    /// work can still use it is pending until that work is done; [`reap_pending`](Self::reap_pending) collects what is
    /// done and this also waits for the rest. Modules and graphs that were dropped are unloaded the same way.
    ///
    /// ```
    /// # fn main() -> kiln::Result<()> {
    /// use std::time::Duration;
    ///
    /// let gpu = kiln::DeviceRuntime::simulated(1)?;
    /// let (buffer, stream) = (gpu.zeros::<u8>(1 << 20)?, gpu.stream()?);
    /// buffer.fill_on(&stream, 1)?;
    /// drop(buffer);
    /// assert!(gpu.drain_pending(Duration::from_secs(10))?.is_complete());
    /// assert_eq!(gpu.bytes_outstanding(), 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The fault, if the device is lost. A [`PreparedUse`](crate::PreparedUse) that this thread holds and would wait for.
    pub fn drain_pending(&self, limit: Duration) -> Result<Drained> {
        self.inner().drain(limit)
    }
}

impl Inner {
    pub(super) fn drain(&self, limit: Duration) -> Result<Drained> {
        self.check_not_holding()?;
        let clock = self.driver().clock();
        // A limit that the clock cannot reach is none.
        let end = clock.now().checked_add(limit);
        let mut freed_bytes = self.reap()?;
        for stamp in self.tracker().latest_stamps() {
            if !self.has_retired() && self.memory().accounting().pending_bytes == 0 {
                break;
            }
            let timeout = match end.map(|end| end.saturating_sub(clock.now())) {
                None => Timeout::Never,
                Some(Duration::ZERO) => Timeout::Poll,
                Some(left) => Timeout::After(left),
            };
            let done = self.wait_out(stamp, timeout)?;
            freed_bytes += self.reap()?;
            if !done {
                break;
            }
        }
        Ok(Drained { freed_bytes, pending_bytes: self.memory().accounting().pending_bytes })
    }
}
