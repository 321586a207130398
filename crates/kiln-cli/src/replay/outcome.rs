//! The result of a replay, as text and as JSON.

use std::fmt;

use kiln_mem::Stack;
use kiln_mem::replay::{AllocationLog, ReplayReport};
use serde::Serialize;

use crate::plural::counted;

/// The result of a replay.
#[derive(Serialize)]
pub(super) struct Outcome {
    device: String,
    stack: String,
    events: usize,
    threads: u32,
    streams: u32,
    allocations: u64,
    frees: u64,
    live_at_end: u64,
    orphan_frees: u64,
    failed_in_log: u64,
    refusals: u64,
    time_ns: u128,
    call_p50_ns: u64,
    call_p99_ns: u64,
    peak_live_bytes: u64,
    peak_reserved_bytes: u64,
    reserved_over_live: f64,
    false_dependencies: u64,
    /// None if the stack refuses requests with any amount of memory.
    smallest_memory_bytes: Option<u64>,
}

impl Outcome {
    pub(super) fn new(
        device: String,
        stack: &Stack,
        log: &AllocationLog,
        report: &ReplayReport,
        smallest: Option<u64>,
    ) -> Self {
        Self {
            device,
            stack: stack.to_string(),
            events: log.events().len(),
            threads: log.threads(),
            streams: log.streams(),
            allocations: report.allocations,
            frees: report.frees,
            live_at_end: report.live_at_end,
            orphan_frees: log.orphans(),
            failed_in_log: report.failed_in_log,
            refusals: report.refusals,
            time_ns: report.time.as_nanos(),
            call_p50_ns: report.call_p50,
            call_p99_ns: report.call_p99,
            peak_live_bytes: report.peak_live_bytes,
            peak_reserved_bytes: report.peak_reserved_bytes,
            reserved_over_live: rounded(report.reserved_over_live()),
            false_dependencies: report.false_dependencies,
            smallest_memory_bytes: smallest,
        }
    }
}

/// A ratio to three places: more are noise.
fn rounded(ratio: f64) -> f64 {
    (ratio * 1000.0).round() / 1000.0
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        writeln!(f, "{} on {}", self.stack, self.device)?;
        writeln!(
            f,
            "  log        {}, {}, {}",
            counted(self.events as u64, "call"),
            counted(self.threads.into(), "thread"),
            counted(self.streams.into(), "stream")
        )?;
        writeln!(
            f,
            "  replayed   {}, {}, {} live at the end",
            counted(self.allocations, "allocation"),
            counted(self.frees, "free"),
            counted(self.live_at_end, "block")
        )?;
        if self.orphan_frees + self.failed_in_log > 0 {
            let orphans = counted(self.orphan_frees, "free");
            let failed = counted(self.failed_in_log, "request");
            writeln!(f, "  skipped    {orphans} of unknown blocks, {failed} that failed in the log")?;
        }
        writeln!(f, "  refused    {}", counted(self.refusals, "request"))?;
        let (p50, p99) = (self.call_p50_ns, self.call_p99_ns);
        let time = self.time_ns as f64 / 1e6;
        writeln!(f, "  time       {time:.3} ms; a call: median {p50} ns, 99 % below {p99} ns")?;
        let (live, reserved) = (mib(self.peak_live_bytes), mib(self.peak_reserved_bytes));
        let ratio = self.reserved_over_live;
        writeln!(f, "  peak       {live:.1} MiB live, {reserved:.1} MiB reserved ({ratio:.2} x live)")?;
        writeln!(f, "  waits      {} for memory of other streams", self.false_dependencies)?;
        match self.smallest_memory_bytes {
            Some(bytes) => write!(f, "  smallest   {:.0} MiB serve every request", mib(bytes)),
            None => write!(f, "  smallest   none: some requests are refused with any amount of memory"),
        }
    }
}
