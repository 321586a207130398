//! The trait `Order`: whether a submission is done, whether a stream already runs after it, and how to wait for it.
//!
//! The part that submits work knows what runs after what; memory only asks. The questions are asked on the way to slower answers: a block
//! freed on a stream is reused on that stream without a question.

use kiln_driver::{Result, Timeout, Waited};

use crate::stamp::Stamp;
use crate::stream_key::StreamKey;

/// What memory asks about the order of work.
///
/// The first three calls are comparisons of numbers: they call no driver and take no lock that is held over a driver call.
/// [`DependencyTracker`](crate::DependencyTracker) is the order of a runtime, [`DriverOrder`](crate::DriverOrder) a small one over a driver.
pub trait Order: Send + Sync + 'static {
    /// The number of the newest submission to a stream; 0 if there was none or the stream is not known.
    fn latest(&self, stream: StreamKey) -> u64;

    /// Whether everything submitted to `stream` from now on runs after `stamp`.
    fn is_ordered(&self, stream: StreamKey, stamp: Stamp) -> bool;

    /// Whether `stamp` is known to be done. A stream that is gone and has finished answers yes.
    fn is_complete(&self, stamp: Stamp) -> bool;

    /// Asks the driver how far a stream is, so that [`is_complete`](Self::is_complete) knows more.
    ///
    /// # Errors
    /// As for [`Driver::progress`](kiln_driver::Driver::progress).
    fn refresh(&self, stream: StreamKey) -> Result<()>;

    /// Makes what is submitted to `stream` from now on wait, on the device, for `stamp`.
    ///
    /// # Errors
    /// As for [`Driver::submit`](kiln_driver::Driver::submit).
    fn wait_on(&self, stream: StreamKey, stamp: Stamp) -> Result<()>;

    /// Waits on the host until `stamp` is done.
    ///
    /// # Errors
    /// As for [`Driver::wait`](kiln_driver::Driver::wait).
    fn wait(&self, stamp: Stamp, timeout: Timeout) -> Result<Waited>;
}

impl dyn Order {
    /// Whether everything submitted to a stream so far is done, asking the driver if need be.
    pub fn is_idle(&self, stream: StreamKey) -> bool {
        let latest = Stamp { stream, number: self.latest(stream) };
        let is_done = || latest.number == 0 || self.is_complete(latest);
        is_done() || (self.refresh(stream).is_ok() && is_done())
    }
}
