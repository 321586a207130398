//! When a device ran nothing, and why.

use super::device_clocks::DeviceClocks;
use super::host_waiting::HostWaiting;
use super::name_table::{LineId, NameId};
use super::ranking::Ranking;
use super::stream_stalls::Waits;
use super::timeline::{Timeline, Work};
use crate::record::{HostWaitCause, TakeoverPhase, TakeoverRecord, TimeSpan, TraceStamp};

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
    /// The work of another device that was waited for, and what is known of it.
    pub(super) writer: Option<(TraceStamp, Option<Work>)>,
}

impl IdleCase {
    /// Nothing is known but the work that was next.
    fn before(work: &Work) -> Self {
        Self { before: *work, cause: HostWaitCause::Other, phase: TakeoverPhase::Lost, writer: None }
    }
}

/// What was found so far.
pub(super) struct DeviceIdle {
    begin_ns: u64,
    /// Up to when it is known what ran.
    until_ns: u64,
    idle_ns: u64,
    /// Time in which nothing that was measured ran, and something else may have.
    unknown_ns: u64,
    /// The part of it in which a stream had work from before the recording.
    earlier_ns: u64,
    pub(super) reasons: Ranking<Why, IdleCase>,
}

/// What the reasons are looked up in.
pub(super) struct Surroundings<'a> {
    pub(super) timeline: &'a Timeline,
    pub(super) waits: &'a Waits,
    pub(super) host: &'a HostWaiting,
    pub(super) takeovers: &'a [TakeoverRecord],
    pub(super) clocks: &'a DeviceClocks,
}

impl DeviceIdle {
    /// Begins with the time at which the first work of a device was submitted, or ran.
    pub(super) fn new(begin_ns: u64) -> Self {
        let reasons = Ranking::default();
        Self { begin_ns, until_ns: begin_ns, idle_ns: 0, unknown_ns: 0, earlier_ns: 0, reasons }
    }

    /// From the beginning to the end of the last work.
    pub(super) fn span_ns(&self) -> u64 {
        self.until_ns - self.begin_ns
    }

    /// How long something ran.
    pub(super) fn busy_ns(&self) -> u64 {
        self.span_ns() - self.idle_ns - self.unknown_ns
    }

    /// How long it is not known whether anything ran.
    pub(super) fn unknown_ns(&self) -> u64 {
        self.unknown_ns
    }

    /// How much of that a stream had work from before the recording.
    pub(super) fn earlier_ns(&self) -> u64 {
        self.earlier_ns
    }

    /// Up to when it is known what ran.
    pub(super) fn until_ns(&self) -> u64 {
        self.until_ns
    }

    /// Looks at work of the device, sorted by its beginning. In hidden times, which are sorted, work may have run that was not measured;
    /// until a time, work from before the recording.
    pub(super) fn settle(
        &mut self,
        ran: &[(TimeSpan, &Work)],
        (hidden, earlier_until_ns): (&[TimeSpan], u64),
        surroundings: &Surroundings<'_>,
    ) {
        for (span, work) in ran {
            let mut from = self.until_ns;
            let first = hidden.partition_point(|hidden| hidden.end_ns <= from);
            let within = hidden.iter().skip(first).take_while(|hidden| hidden.begin_ns < span.begin_ns);
            for hidden in within {
                let (begin, end) = (hidden.begin_ns.max(from), hidden.end_ns.min(span.begin_ns));
                self.idle(from, begin, work, surroundings);
                // A device that is being brought back runs nothing that was submitted before.
                let lost = self.takeovers(begin, end, work, surroundings);
                self.idle_ns += lost;
                let unknown = end.saturating_sub(begin) - lost;
                self.unknown_ns += unknown;
                self.earlier_ns += earlier_until_ns.min(end).saturating_sub(begin).min(unknown);
                from = from.max(end);
            }
            self.idle(from, span.begin_ns, work, surroundings);
            self.until_ns = self.until_ns.max(span.end_ns);
        }
    }

    /// Nothing ran from one time to another.
    fn idle(&mut self, from: u64, to: u64, work: &Work, surroundings: &Surroundings<'_>) {
        if to > from {
            self.idle_ns += to - from;
            self.explain(from, to, work, surroundings);
        }
    }

    /// Counts how long a device was being brought back from one time to another, after which some work ran.
    fn takeovers(&mut self, from: u64, to: u64, work: &Work, surroundings: &Surroundings<'_>) -> u64 {
        let (case, device) = (IdleCase::before(work), work.stamp.stream.device);
        let mut left = to.saturating_sub(from);
        let all = left;
        for takeover in surroundings.takeovers.iter().filter(|takeover| takeover.device == device) {
            let part = takeover.span.within(from, to).min(left);
            let why = Why::Takeover(takeover.phase as u8);
            self.reasons.add(why, part, IdleCase { phase: takeover.phase, ..case });
            left -= part;
        }
        all - left
    }

    /// Says why nothing ran from one time to another, after which some work ran.
    fn explain(&mut self, from: u64, to: u64, work: &Work, surroundings: &Surroundings<'_>) {
        let device = work.stamp.stream.device;
        let case = IdleCase::before(work);
        let left = to - from - self.takeovers(from, to, work, surroundings);
        // Until the host had submitted it, the device had nothing to do.
        let queued = work.host.end_ns.clamp(from, to);
        let late = (queued - from).min(left);
        let mut busy = late;
        for waited in surroundings.host.during(surroundings.clocks.of(device), from, from + late) {
            let why = Why::HostWait { cause: waited.cause as u8, line: waited.line };
            let ns = waited.ns.min(busy);
            self.reasons.add(why, ns, IdleCase { cause: waited.cause, ..case });
            busy -= ns;
        }
        self.reasons.add(Why::HostBusy { before: work.name, line: work.line }, busy, case);
        let start = left - late;
        let is_late = |writer: &TraceStamp| {
            let ended = surroundings.timeline.up_to(*writer).and_then(|work| work.device);
            ended.is_some_and(|span| span.end_ns > queued)
        };
        let elsewhere = surroundings.waits.of(work.stamp).map(|wait| wait.covered());
        let is_other = |writer: &TraceStamp| {
            let other = writer.stream.device;
            other != device && surroundings.clocks.are_one(device, other)
        };
        match elsewhere.filter(is_other).find(is_late) {
            Some(writer) => {
                let why = Why::OtherDevice { before: work.name, line: work.line };
                let known = surroundings.timeline.exactly(writer).copied();
                self.reasons.add(why, start, IdleCase { writer: Some((writer, known)), ..case });
            }
            None => self.reasons.add(Why::Start, start, case),
        }
    }
}
