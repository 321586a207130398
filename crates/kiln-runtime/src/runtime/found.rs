//! What the checks of the device found, as a program asks for it.

use kiln_driver::DeviceFinding;

use super::DeviceRuntime;
use super::inner::Inner;

/// The mistakes that a device found so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct FindingList {
    /// The mistakes, the oldest first; at most 1,024 are kept.
    pub findings: Vec<DeviceFinding>,
    /// How many more there were.
    pub dropped: u64,
}

impl FindingList {
    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty() && self.dropped == 0
    }
}

impl DeviceRuntime {
    /// The mistakes that the checks of a simulated device found so far, in work that ran. Work that is queued was not looked at
    /// yet; [`synchronize`](Self::synchronize) first to have it all. A list that was read is not printed when the runtime is
    /// dropped, and fails no later [`synchronize`](Self::synchronize) or [`shutdown`](Self::shutdown); tickets of the work still fail.
    /// Empty on hardware, which checks nothing.
    pub fn findings(&self) -> FindingList {
        let (findings, dropped) = self.inner().findings().map(|log| log.all()).unwrap_or_default();
        FindingList { findings, dropped }
    }
}

impl Inner {
    /// Prints what was found and no caller was told, so that it is not lost with the runtime.
    #[allow(clippy::print_stderr, reason = "a program without a subscriber must see it, too")]
    pub(super) fn print_unread(&self) {
        let Some((unread, dropped)) = self.findings().map(|log| log.unread()) else { return };
        if unread.is_empty() && dropped == 0 {
            return;
        }
        for finding in &unread {
            tracing::error!(target: "kiln", "{finding}");
            eprintln!("kiln: found and not read: {finding}");
        }
        if dropped > 0 {
            tracing::error!(target: "kiln", "and {dropped} more findings");
            eprintln!("kiln: and {dropped} more findings");
        }
    }
}
