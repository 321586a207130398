//! Shuts a runtime down: ends its work and frees its objects.

use std::time::{Duration, Instant};

use super::DeviceRuntime;
use super::inner::Inner;
use crate::device_state::Phase;
use crate::error::{Error, Result};

impl DeviceRuntime {
    /// Takes no more work, waits until what is queued is done, but no longer than this on the device's clock, and then says that
    /// the device has stopped; false if time ran out and work is still running, or another thread is still about to queue some. Handles are
    /// stale from here on, tickets still answer.
    ///
    /// It stops for all clones. A second call waits for the first, and then for what that left running.
    ///
    /// # Errors
    /// The fault, if the device is lost; it has stopped then, too. The first mistake that the checks of a simulated device found and no caller
    /// was told; the device has stopped then. A [`PreparedUse`](crate::PreparedUse) that this thread holds: nothing has
    /// changed then.
    ///
    /// ```
    /// # fn main() -> kiln::Result<()> {
    /// use std::time::Duration;
    ///
    /// let gpu = kiln::DeviceRuntime::simulated(1)?;
    /// let ticket = gpu.zeros::<f32>(1024)?.fill(1.0)?;
    /// assert!(gpu.shutdown(Duration::from_secs(10))?);
    /// assert!(ticket.is_done()?);
    /// assert!(gpu.zeros::<f32>(1).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn shutdown(&self, limit: Duration) -> Result<bool> {
        self.inner().check_not_holding()?;
        let drained = self.inner().shut_down(limit)?;
        self.inner().findings().map_or(Ok(()), |findings| findings.settle_all())?;
        Ok(drained)
    }
}

/// How long a look at submissions that are being made is put off.
const NAP: Duration = Duration::from_micros(50);

impl Inner {
    pub(crate) fn shut_down(&self, limit: Duration) -> Result<bool> {
        let state = self.state();
        let first = state.change(Phase::ShuttingDown).is_ok();
        let began = Instant::now();
        let mut passed = true;
        if first {
            if let Some(recovery) = self.recovery() {
                recovery.abandon();
            }
            // A thread that found the device ready just before is in one of these and sees the change at the driver. They may be there for as
            // long as the device takes: in a transfer behind work that does not end, or with a use they have prepared.
            passed = self.tracker().pass_every_stream(|| {
                std::thread::sleep(NAP);
                began.elapsed() >= limit
            });
        } else {
            state.wait_until(|status| status.phase() == Phase::Stopped, None);
        }
        let drained =
            self.synchronize(Some(limit.saturating_sub(began.elapsed()))).map(|done| done && passed);
        if first {
            // Only this thread leaves this phase.
            let _ = state.change(Phase::Stopped);
        }
        match (drained, state.fault()) {
            (Ok(drained), None) => Ok(drained),
            (Ok(_), Some(cause)) => Err(Error::new(cause.error().clone())),
            (Err(error), _) => Err(error),
        }
    }
}
