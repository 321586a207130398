//! What a request is told that the device does not take: which device, why, and what to do next.

use kiln_driver::DeviceInfo;

use super::inner::Inner;
use crate::device_state::Phase;
use crate::error::{Error, ErrorKind, Result, Stale};

/// What to do about a device that is lost for good.
const TAKES_NO_MORE_WORK: &str =
    "the device takes no more work; open another runtime and upload the data to it";

impl Inner {
    /// Refuses work for the state that the device is in.
    #[cold]
    pub(super) fn refuse(&self) -> Result<()> {
        let cause = self.state().cause();
        let refusal = match (self.state().phase(), cause) {
            (Phase::Failed, Some(cause)) => return Err(self.told_of_loss(cause.error().clone().into())),
            (phase @ (Phase::Lost | Phase::Rebuilding), Some(cause)) => {
                Error::new(ErrorKind::NotReady { phase, cause })
            }
            (Phase::ShuttingDown | Phase::Stopped, _) => Stale::ShuttingDown.into(),
            // A runtime works while it is being built; a phase that was over while we looked is no reason to refuse.
            _ => return Ok(()),
        };
        Err(refusal.placed(device_text(self.driver().info())))
    }

    /// The fault of a device that is lost for good, with which device it is and what to do next. Where the error says that already, it stays.
    #[cold]
    pub(crate) fn told_of_loss(&self, error: Error) -> Error {
        if error.place().is_some_and(|place| place.contains(TAKES_NO_MORE_WORK)) {
            return error;
        }
        error.within(format!("{}: {TAKES_NO_MORE_WORK}; the fault was", device_text(self.driver().info())))
    }

    /// The same error, with the request if the state of the device is why it was refused.
    #[cold]
    pub(crate) fn told_of_request(&self, request: &str, error: Error) -> Error {
        match error.kind() {
            ErrorKind::NotReady { .. } | ErrorKind::Stale(Stale::ShuttingDown) => error.within(request),
            _ if error.is_sticky() => self.told_of_loss(error).within(request),
            // Another context takes the place of the lost one.
            ErrorKind::Driver(lost) if lost.is_sticky() && lost.call() != request => error.within(request),
            _ => error,
        }
    }
}

/// Which device it is.
fn device_text(info: &DeviceInfo) -> String {
    format!("{} device {}", info.kind, info.ordinal)
}
