//! What is known of the loss of a device.

use kiln_trace::{PostMortems, plain_text};
use serde::Serialize;

/// What is known of the loss of a device: the cause, what was under way, and what was kept or lost.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PostMortemNote {
    /// The device.
    pub device: u32,
    /// When it was written.
    pub time_ns: u64,
    /// Its lines.
    pub lines: Vec<String>,
}

impl PostMortemNote {
    /// Those of a recording.
    pub(crate) fn all(found: &PostMortems) -> Vec<Self> {
        let lines = |lines: &[String]| lines.iter().map(|line| plain_text(line).into_owned()).collect();
        found
            .list()
            .iter()
            .map(|found| Self { device: found.device, time_ns: found.time_ns, lines: lines(&found.lines) })
            .collect()
    }
}
