//! What the checks of the device found, as a program asks for it.

use kiln_driver::DeviceFinding;

use kiln_mem::layer::Annotated;

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

/// Tags that are named when blocks were not given back.
const MAX_TAGS: usize = 8;

impl Inner {
    /// Prints which blocks are left when the runtime ends: their handles are stale from here on, and nothing frees them.
    #[allow(clippy::print_stderr, reason = "a program without a subscriber must see it, too")]
    pub(super) fn print_leaks(&self) {
        // After a loss memory stays behind, which says nothing about the program.
        if self.findings().is_none() || !self.state().losses().is_empty() || self.state().fault().is_some() {
            return;
        }
        let tags = Annotated::live(&**self.memory());
        let (blocks, bytes) = tags.iter().fold((0, 0), |sum, tag| (sum.0 + tag.blocks, sum.1 + tag.bytes));
        if blocks == 0 {
            return;
        }
        let list: Vec<String> = tags.iter().take(MAX_TAGS).map(ToString::to_string).collect();
        let more = if tags.len() > MAX_TAGS { ", …" } else { "" };
        let text = format!(
            "{bytes} bytes of buffers are left when their runtime ends: {}{more}; drop buffers before it",
            list.join(", ")
        );
        tracing::warn!(target: "kiln", "{text}");
        eprintln!("kiln: {text}");
    }

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
