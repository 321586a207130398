//! A mistake that the checks of a device found.

use kiln_trace::{FindingRecord, plain_text};
use serde::Serialize;

/// A mistake that the checks of a device found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FindingNote {
    /// The device.
    pub device: u32,
    /// Which rule was broken, in a few words.
    pub rule: String,
    /// The kernel that broke it; empty if none did, or it is not known.
    pub kernel: String,
    /// The line of the kernel's source.
    pub line: Option<String>,
    /// All that is known.
    pub message: String,
    /// Which line of the program submitted the work.
    pub submitted: Option<String>,
    /// The row of the work and its number, if that is known.
    pub work: Option<(u32, u64)>,
    /// When the work ended, or else when it was noticed.
    pub time_ns: u64,
}

impl FindingNote {
    /// A finding of the recording in work of this row.
    pub(crate) fn of(finding: &FindingRecord<'_>, row: Option<u32>) -> Self {
        let plain = |text| plain_text(text).into_owned();
        Self {
            device: finding.device,
            rule: plain(finding.rule),
            kernel: plain(finding.kernel),
            line: finding.line.map(|line| line.to_string()),
            message: plain(finding.message),
            submitted: finding.submitted.map(|line| line.to_string()),
            work: row.zip(finding.stamp.map(|stamp| stamp.number)),
            time_ns: finding.time_ns,
        }
    }
}
