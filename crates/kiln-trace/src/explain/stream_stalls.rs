//! Waits of streams for each other.

use std::collections::HashMap;

use super::name_table::{LineId, NameId};
use super::ranking::Ranking;
use super::timeline::{Timeline, Work};
use crate::record::{TraceStamp, WaitReason};

/// One wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) writer: TraceStamp,
    pub(super) covers: u64,
    pub(super) reason: WaitReason,
    pub(super) block: Option<(u64, NameId)>,
}

/// All waits, by the submission that waits.
#[derive(Default)]
pub(super) struct Waits {
    by_waiter: HashMap<TraceStamp, Vec<Wait>>,
}

/// What tells stalls apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct StallKey {
    waiter: (NameId, Option<LineId>),
    writer: Option<(NameId, Option<LineId>)>,
    tag: Option<NameId>,
    reason: u8,
}

/// What is known of one stall.
#[derive(Clone, Copy, Debug)]
pub(super) struct StallCase {
    pub(super) waiter: Work,
    pub(super) wait: Wait,
    pub(super) writer: Option<Work>,
    /// The last of the work that was waited for as well.
    pub(super) unrelated: Option<Work>,
    pub(super) unrelated_ns: u64,
}

impl Wait {
    /// The submission that is waited for in truth.
    pub(super) fn covered(&self) -> TraceStamp {
        TraceStamp { number: self.covers.max(self.writer.number), ..self.writer }
    }
}

impl Waits {
    pub(super) fn add(&mut self, waiter: TraceStamp, wait: Wait) {
        self.by_waiter.entry(waiter).or_default().push(wait);
    }

    /// The waits of a submission.
    pub(super) fn of(&self, waiter: TraceStamp) -> impl Iterator<Item = &Wait> {
        self.by_waiter.get(&waiter).into_iter().flatten()
    }

    /// How long the streams of each device waited for others.
    pub(super) fn stalls(&self, timeline: &Timeline) -> HashMap<u32, Ranking<StallKey, StallCase>> {
        let mut devices: HashMap<u32, Ranking<StallKey, StallCase>> = HashMap::new();
        for (waiter, waits) in &self.by_waiter {
            let Some((work, before)) = timeline.from(*waiter) else { continue };
            let Some(ran) = work.device else { continue };
            // From here on nothing but the wait kept it.
            let before = before.and_then(|before| before.device).map_or(0, |span| span.end_ns);
            let ready = work.host.end_ns.max(before);
            let ends = waits.iter().filter_map(|wait| {
                let last = timeline.up_to(wait.covered())?;
                Some((last.device?.end_ns.min(ran.begin_ns), wait, last))
            });
            let Some((end, wait, last)) = ends.max_by_key(|(end, ..)| *end).filter(|(end, ..)| *end > ready)
            else {
                continue;
            };
            let writer = timeline.up_to(wait.writer).filter(|writer| writer.stamp == wait.writer).copied();
            let needed = writer.and_then(|writer| writer.device).map_or(ready, |span| span.end_ns.max(ready));
            let is_unrelated = last.stamp != wait.writer;
            let case = StallCase {
                waiter: *work,
                wait: *wait,
                writer,
                unrelated: is_unrelated.then_some(*last),
                unrelated_ns: if is_unrelated { end.saturating_sub(needed) } else { 0 },
            };
            let key = StallKey {
                waiter: (work.name, work.line),
                writer: writer.map(|writer| (writer.name, writer.line)),
                tag: wait.block.map(|(_, tag)| tag),
                reason: wait.reason as u8,
            };
            let device = work.stamp.stream.device;
            devices.entry(device).or_insert_with(Ranking::new).add(key, end - ready, case);
        }
        devices
    }
}
