//! What comes before work on its stream: nothing, or a gap and why.
//!
//! The same small state runs over a stream while it is indexed and while a part of it is read again, so that both draw the same.

use kiln_trace::{StreamWaitRecord, SubmissionKind, SubmissionRecord};

use crate::name_table::NameId;

/// What is known of a stream between two of its events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct GapState {
    /// When the last work that was measured ended.
    ended_ns: Option<u64>,
    /// A wait whose work has not come yet.
    waiter: Option<u64>,
}

/// Work, or a wait of a thread, as it is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct DrawnWork {
    pub(crate) row: u32,
    pub(crate) name: NameId,
    pub(crate) number: u64,
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
    /// When the work before it ended; its own beginning if there is no gap.
    pub(crate) gap_ns: u64,
    /// From when on only the device or other streams kept it; not before the gap begins.
    pub(crate) ready_ns: u64,
    /// Whether it had to wait for work of another stream.
    pub(crate) waits: bool,
    /// Whether its time on the device was measured.
    pub(crate) is_timed: bool,
    pub(crate) kind: u8,
}

impl GapState {
    pub(crate) fn wait(&mut self, wait: &StreamWaitRecord<'_>) {
        self.waiter = Some(wait.waiter.number);
    }

    /// Work that comes next, drawn in a row.
    pub(crate) fn submission(&mut self, work: &SubmissionRecord<'_>, row: u32, name: NameId) -> DrawnWork {
        let waits = self.waiter.is_some_and(|waiter| waiter <= work.stamp.number);
        if waits {
            self.waiter = None;
        }
        let span = work.span();
        let (begin, end) = (span.begin_ns, span.end_ns);
        let (mut gap_ns, mut ready_ns) = (begin, begin);
        if work.device.is_some() {
            gap_ns = self.ended_ns.map_or(begin, |ended| ended.min(begin));
            // The first work of a stream has no gap before it, but it may have waited.
            if self.ended_ns.is_none() && waits {
                gap_ns = work.host.end_ns.min(begin);
            }
            ready_ns = work.host.end_ns.clamp(gap_ns, begin);
            self.ended_ns = Some(self.ended_ns.map_or(end, |ended| ended.max(end)));
        }
        DrawnWork {
            row,
            name,
            number: work.stamp.number,
            begin_ns: begin,
            end_ns: end,
            gap_ns,
            ready_ns,
            waits,
            is_timed: work.device.is_some(),
            kind: kind_number(work.kind),
        }
    }
}

impl DrawnWork {
    /// How long it waited for work of other streams.
    pub(crate) fn waited(&self) -> Option<(u64, u64)> {
        (self.waits && self.ready_ns < self.begin_ns).then_some((self.ready_ns, self.begin_ns))
    }
}

/// The kind of a wait of a thread.
pub(crate) const THREAD_WAIT: u8 = 8;

fn kind_number(kind: SubmissionKind) -> u8 {
    match kind {
        SubmissionKind::Kernel => 0,
        SubmissionKind::Copy => 1,
        SubmissionKind::Fill => 2,
        SubmissionKind::Graph => 3,
        SubmissionKind::Library => 4,
        SubmissionKind::Collective => 5,
        SubmissionKind::Foreign => 6,
        SubmissionKind::Other => 7,
    }
}
