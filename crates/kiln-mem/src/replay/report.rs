//! `ReplayReport`: the results of a replay.

use std::time::Duration;

/// What came of a replay.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ReplayReport {
    /// Blocks that were allocated.
    pub allocations: u64,
    /// Blocks that were freed.
    pub frees: u64,
    /// Requests that were refused for want of memory; what the log does with them later is left out.
    pub refusals: u64,
    /// Requests that had been refused when the log was written, and were not repeated.
    pub failed_in_log: u64,
    /// Time inside of the calls.
    pub time: Duration,
    /// Time of a call, in nanoseconds: the median.
    pub call_p50: u64,
    /// ... and the 99th percentile.
    pub call_p99: u64,
    /// The most bytes that were live at once.
    pub peak_live_bytes: u64,
    /// The most bytes that were taken from the device at once.
    pub peak_reserved_bytes: u64,
    /// How often a stream was made to wait for another one's memory.
    pub false_dependencies: u64,
    /// Blocks that the log leaves live.
    pub live_at_end: u64,
}

impl ReplayReport {
    /// Bytes taken from the device for each live one, at their peaks; 1 where nothing was live.
    pub fn reserved_over_live(&self) -> f64 {
        match self.peak_live_bytes {
            0 => 1.0,
            live => self.peak_reserved_bytes as f64 / live as f64,
        }
    }
}
