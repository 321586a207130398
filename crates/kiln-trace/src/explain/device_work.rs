//! What one device did, as far as it was looked at.

use std::collections::{BTreeMap, BTreeSet};

use super::device_idle::{DeviceIdle, Surroundings};
use super::timeline::Work;
use crate::record::{EarlierRecord, TakeoverPhase, TakeoverRecord, TimeSpan, TraceStream};

/// What one device did.
#[derive(Default)]
pub(super) struct DeviceWork {
    pub(super) submissions: u64,
    pub(super) untimed: u64,
    /// When the last was submitted that was not measured.
    untimed_until_ns: u64,
    /// When the first was submitted, and the last one was.
    host: Option<TimeSpan>,
    /// None if nothing on it was measured.
    pub(super) idle: Option<DeviceIdle>,
    /// Since when a stream may run work that was not measured. It ends when the next of its work begins that was.
    unmeasured: BTreeMap<TraceStream, u64>,
    /// Until when a stream had work from before the recording.
    earlier_until_ns: u64,
    /// Streams of which that is not known yet. It ends at the latest when the first of their work begins that was measured.
    earlier: BTreeSet<TraceStream>,
}

impl DeviceWork {
    pub(super) fn add(&mut self, work: &Work) {
        self.submissions += 1;
        if work.device.is_none() {
            self.untimed += 1;
            self.untimed_until_ns = self.untimed_until_ns.max(work.host.end_ns);
        }
        let host = self.host.get_or_insert(work.host);
        host.begin_ns = host.begin_ns.min(work.host.begin_ns);
        host.end_ns = host.end_ns.max(work.host.end_ns);
    }

    /// A stream had work from before the recording.
    pub(super) fn earlier(&mut self, work: &EarlierRecord) {
        match work.until_ns {
            Some(until) => {
                self.earlier.remove(&work.stamp.stream);
                self.earlier_until_ns = self.earlier_until_ns.max(until);
            }
            None => drop(self.earlier.insert(work.stamp.stream)),
        }
    }

    /// How long it did something, as far as the host knows.
    pub(super) fn host_ns(&self) -> u64 {
        self.host.map_or(0, TimeSpan::ns)
    }

    /// How long work was submitted that was not measured, behind all that was.
    pub(super) fn untimed_tail_ns(&self) -> u64 {
        self.idle.as_ref().map_or(0, |idle| self.untimed_until_ns.saturating_sub(idle.until_ns()))
    }

    /// Looks at work whose time is known.
    pub(super) fn settle<'w>(
        &mut self,
        works: impl Iterator<Item = &'w Work>,
        surroundings: &Surroundings<'_>,
    ) {
        let mut works: Vec<&Work> = works.collect();
        works.sort_by_key(|work| work.stamp);
        let device = works.first().map_or(0, |work| work.stamp.stream.device);
        let mut hidden = self.hidden(&works, &FinalLosses::of(device, surroundings.takeovers));
        let earlier_until_ns = if self.earlier.is_empty() { self.earlier_until_ns } else { u64::MAX };
        hidden.push(TimeSpan::new(0, earlier_until_ns));
        let hidden = joined(hidden);
        let ran = works.into_iter().filter_map(|work| Some((work.device?, work)));
        let mut ran: Vec<(TimeSpan, &Work)> = ran.collect();
        ran.sort_by_key(|(span, _)| (span.begin_ns, span.end_ns));
        let Some((first, _)) = ran.first() else { return };
        let begin = self.host.map_or(first.begin_ns, |host| host.begin_ns.min(first.begin_ns));
        self.idle.get_or_insert_with(|| DeviceIdle::new(begin)).settle(
            &ran,
            (&hidden, earlier_until_ns),
            surroundings,
        );
    }

    /// Times in which work may have run that was submitted and not measured. The works are sorted by stream and number. A device that is lost runs nothing of that any more, unless it is submitted
    /// again.
    fn hidden(&mut self, works: &[&Work], losses: &FinalLosses) -> Vec<TimeSpan> {
        let mut hidden = Vec::new();
        for work in works {
            let (stream, begin) = (work.stamp.stream, work.host.begin_ns);
            match work.device {
                None => {
                    let since = *self.unmeasured.entry(stream).or_insert(begin);
                    if let Some(lost) = losses.after(since).filter(|lost| *lost <= begin) {
                        hidden.push(TimeSpan::new(since, lost));
                        self.unmeasured.insert(stream, begin);
                    }
                }
                Some(ran) => {
                    if self.earlier.remove(&stream) {
                        self.earlier_until_ns = self.earlier_until_ns.max(ran.begin_ns);
                    }
                    let since = self.unmeasured.remove(&stream);
                    hidden.extend(since.map(|since| losses.cut(since, ran.begin_ns)));
                }
            }
        }
        // What is not known to have ended by now may still run.
        hidden.extend(self.unmeasured.values().map(|since| losses.cut(*since, u64::MAX)));
        hidden
    }
}

/// The losses of a device after which nothing that it had queued was submitted again, in their order: from when on it was lost, and until it was being brought back.
struct FinalLosses(Vec<TimeSpan>);

impl FinalLosses {
    fn of(device: u32, takeovers: &[TakeoverRecord]) -> Self {
        let mut losses: Vec<TimeSpan> = Vec::new();
        let mut is_final = true;
        // From the last step to the first: whether work was submitted again is known after the loss.
        for step in takeovers.iter().rev().filter(|step| step.device == device) {
            match step.phase {
                TakeoverPhase::Resubmitting => is_final = false,
                TakeoverPhase::Rebuilding => {}
                TakeoverPhase::Lost => {
                    losses.extend(is_final.then_some(step.span));
                    is_final = true;
                }
            }
        }
        losses.reverse();
        Self(losses)
    }

    /// When work that was queued at a time was lost, if it was not done before.
    fn after(&self, since: u64) -> Option<u64> {
        let at = self.0.partition_point(|lost| lost.end_ns < since);
        self.0.get(at).map(|lost| lost.begin_ns.max(since))
    }

    /// The time from one moment to another, or to the loss of what was queued at the first.
    fn cut(&self, since: u64, end: u64) -> TimeSpan {
        let end = end.max(since);
        TimeSpan::new(since, self.after(since).map_or(end, |lost| lost.min(end)))
    }
}

/// The same times, sorted and apart from each other.
fn joined(mut spans: Vec<TimeSpan>) -> Vec<TimeSpan> {
    spans.sort_by_key(|span| span.begin_ns);
    spans.dedup_by(|next, last| {
        let is_joined = next.begin_ns <= last.end_ns;
        if is_joined {
            last.end_ns = last.end_ns.max(next.end_ns);
        }
        is_joined
    });
    spans
}
