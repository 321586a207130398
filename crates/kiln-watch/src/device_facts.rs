//! What is known of a device, and the state it was in at the end.

use kiln_trace::{FaultRecord, HeapRecord, NOT_BROUGHT_BACK, TakeoverPhase, TakeoverRecord, UnknownIdle};
use serde::Serialize;

/// What is known of a device.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct DeviceFacts {
    /// Its number in the recording.
    pub device: u32,
    /// What it is called.
    pub name: String,
    /// Which of the recording's clocks its times are of. Those of devices with different ones cannot be compared.
    pub clock: u32,
    /// Whether that is the clock of a simulated machine. Otherwise it is that of the host.
    pub is_virtual: bool,
    /// The state it was in at the end, in words.
    pub state: String,
    /// Its streams.
    pub streams: u64,
    /// Submissions.
    pub submissions: u64,
    /// Submissions whose time on the device was not measured.
    pub untimed: u64,
    /// When its last work ended.
    pub end_ns: u64,
    /// Faults.
    pub faults: u64,
    /// Mistakes that its checks found.
    pub findings: u64,
    /// Bytes in use at the end, as far as allocations are recorded.
    pub used_bytes: i64,
    /// The most bytes in use.
    pub peak_bytes: i64,
    /// Bytes that its heap holds, or the driver's pool, if that is recorded.
    pub heap_bytes: Option<u64>,
    /// Whether that is the driver's pool.
    pub is_pool: bool,
    /// Allocations that were refused.
    pub refused: u64,
    #[serde(skip)]
    last_fault_ns: u64,
    #[serde(skip)]
    last_takeover: Option<TakeoverRecord>,
    #[serde(skip)]
    is_given_up: bool,
}

impl DeviceFacts {
    pub(crate) fn fault(&mut self, fault: &FaultRecord<'_>) {
        self.faults += 1;
        self.last_fault_ns = self.last_fault_ns.max(fault.time_ns);
        self.is_given_up |= fault.message.starts_with(NOT_BROUGHT_BACK);
    }

    pub(crate) fn takeover(&mut self, takeover: TakeoverRecord) {
        self.last_takeover = Some(takeover);
    }

    pub(crate) fn heap(&mut self, heap: &HeapRecord<'_>) {
        self.heap_bytes = Some(heap.held_bytes);
        self.is_pool |= heap.change.is_of_pool();
        self.refused += u64::from(heap.change.is_refusal());
    }

    /// In words: what it did when the recording ended, which was at this time of its clock. Idle time is told only where it is known.
    pub(crate) fn state_at(&self, end_ns: u64, has_end_mark: bool, unknown: Option<UnknownIdle>) -> String {
        let last = self.last_takeover.filter(|last| last.span.end_ns > self.end_ns);
        let is_lost = self.last_takeover.is_some_and(|last| last.phase == TakeoverPhase::Lost);
        if self.is_given_up || is_lost && has_end_mark {
            return "lost, and not brought back".to_owned();
        }
        if let Some(takeover) = last.filter(|_| !has_end_mark) {
            return format!("being brought back ({})", takeover.phase.word());
        }
        if self.faults > 0 && self.last_fault_ns >= self.end_ns && last.is_none() {
            return "faulted".to_owned();
        }
        if self.submissions == 0 {
            return "unused".to_owned();
        }
        if let Some(why) = unknown {
            return format!("not known: {why}");
        }
        let since_ns = last.map_or(self.end_ns, |takeover| takeover.span.end_ns);
        match end_ns.saturating_sub(since_ns) {
            0 => "working at the end".to_owned(),
            idle @ 1..1_000 => format!("idle for the last {idle} ns"),
            idle @ 1_000..1_000_000 => format!("idle for the last {:.1} us", idle as f64 / 1e3),
            idle => format!("idle for the last {:.1} ms", idle as f64 / 1e6),
        }
    }
}
