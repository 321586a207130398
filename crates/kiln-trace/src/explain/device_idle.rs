//! When a device ran nothing, and why.

use super::host_waiting::HostWaiting;
use super::name_table::{LineId, NameId};
use super::ranking::Ranking;
use super::stream_stalls::Waits;
use super::timeline::{Timeline, Work};
use crate::record::{HostWaitCause, TakeoverPhase, TakeoverRecord, TraceStamp};

/// Why, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum Why {
    HostWait { cause: u8, line: Option<LineId> },
    HostBusy { before: NameId, line: Option<LineId> },
    OtherDevice { before: NameId, line: Option<LineId> },
    Takeover(u8),
    Start,
}

/// What is known of one case.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdleCase {
    pub(super) before: Work,
    pub(super) cause: HostWaitCause,
    pub(super) phase: TakeoverPhase,
    /// The work of another device that was waited for.
    pub(super) writer: Option<TraceStamp>,
}

/// What was found.
pub(super) struct DeviceIdle {
    pub(super) span_ns: u64,
    pub(super) busy_ns: u64,
    pub(super) reasons: Ranking<Why, IdleCase>,
}

/// What the reasons are looked up in.
pub(super) struct Surroundings<'a> {
    pub(super) timeline: &'a Timeline,
    pub(super) waits: &'a Waits,
    pub(super) host: &'a HostWaiting,
    pub(super) takeovers: &'a [TakeoverRecord],
}

impl DeviceIdle {
    /// Looks at one device; none if nothing on it was measured.
    pub(super) fn of(device: u32, surroundings: &Surroundings<'_>) -> Option<Self> {
        let streams = || surroundings.timeline.of_device(device).flatten();
        let begin = streams().map(|work| work.host.begin_ns).min()?;
        let mut ran: Vec<(u64, u64, &Work)> =
            streams().filter_map(|work| work.device.map(|span| (span.begin_ns, span.end_ns, work))).collect();
        ran.sort_by_key(|(begin, end, _)| (*begin, *end));
        let begin = ran.first().map(|(first, ..)| begin.min(*first))?;
        let (mut until, mut idle_ns) = (begin, 0_u64);
        let mut found = Self { span_ns: 0, busy_ns: 0, reasons: Ranking::new() };
        for (start, end, work) in ran {
            if start > until {
                idle_ns += start - until;
                found.explain(until, start, work, surroundings);
            }
            until = until.max(end);
        }
        found.span_ns = until - begin;
        found.busy_ns = found.span_ns - idle_ns;
        Some(found)
    }

    /// Says why nothing ran from one time to another, after which some work ran.
    fn explain(&mut self, from: u64, to: u64, work: &Work, surroundings: &Surroundings<'_>) {
        let device = work.stamp.stream.device;
        let case =
            IdleCase { before: *work, cause: HostWaitCause::Other, phase: TakeoverPhase::Lost, writer: None };
        let mut left = to - from;
        for takeover in surroundings.takeovers.iter().filter(|takeover| takeover.device == device) {
            let part = takeover.span.within(from, to).min(left);
            self.reasons.add(
                Why::Takeover(takeover.phase as u8),
                part,
                IdleCase { phase: takeover.phase, ..case },
            );
            left -= part;
        }
        // Until the host had submitted it, the device had nothing to do.
        let queued = work.host.end_ns.clamp(from, to);
        let late = (queued - from).min(left);
        let waited = surroundings.host.during(from, from + late);
        if let Some(waited) = waited {
            let why = Why::HostWait { cause: waited.cause as u8, line: waited.line };
            self.reasons.add(why, waited.ns, IdleCase { cause: waited.cause, ..case });
        }
        let busy = late - waited.map_or(0, |waited| waited.ns).min(late);
        self.reasons.add(Why::HostBusy { before: work.name, line: work.line }, busy, case);
        let start = left - late;
        let is_late = |writer: &TraceStamp| {
            let ended = surroundings.timeline.up_to(*writer).and_then(|work| work.device);
            ended.is_some_and(|span| span.end_ns > queued)
        };
        let elsewhere = surroundings.waits.of(work.stamp).map(|wait| wait.covered());
        match elsewhere.filter(|writer| writer.stream.device != device).find(is_late) {
            Some(writer) => {
                let why = Why::OtherDevice { before: work.name, line: work.line };
                self.reasons.add(why, start, IdleCase { writer: Some(writer), ..case });
            }
            None => self.reasons.add(Why::Start, start, case),
        }
    }
}
