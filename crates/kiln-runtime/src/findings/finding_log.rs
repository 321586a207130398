//! The findings of one device, and who was told.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use kiln_driver::call::{Answer, Call};
use kiln_driver::layer::Layer;
use kiln_driver::{
    Command, DeviceFinding, Error as DriverError, FindingLine, FindingRule, Object, Refusal, Site, StreamId,
    Submission, Timeout, WaitTarget,
};
use kiln_order::{DependencyTracker, Stamp, StreamClock};

use super::finding_file::note_finding;
use super::finding_policy::Findings;
use super::named_call::{self, NamedCall};
use super::submission_stamps::SubmissionStamps;
use crate::error::{Error, ErrorKind, Result};

/// Findings that are kept; of more, those that a caller was told go first, and the rest is counted.
const MAX_FINDINGS: usize = 1024;
/// Findings of one device that a recording has by themselves; their texts are kept for ever.
const MAX_RECORDED: u64 = 256;
/// How many more it has if each is the first one of its kind, so that repeats of one hide no other.
const MAX_FIRST: u64 = 64;
/// Kinds whose repeats are counted apart.
const MAX_KINDS: usize = 1024;

/// The findings of one device.
pub(crate) struct FindingLog {
    setting: Findings,
    tracker: OnceLock<Weak<DependencyTracker>>,
    stamps: Mutex<SubmissionStamps>,
    kept: Mutex<KeptFindings>,
}

#[derive(Default)]
struct KeptFindings {
    list: VecDeque<KeptFinding>,
    /// Those that are not in the list, and how many of them no caller was told.
    dropped: u64,
    dropped_unread: u64,
    /// Those that are to be recorded, once there is a recording.
    unrecorded: Option<UnrecordedFindings>,
}

/// Findings for a recording.
#[derive(Default)]
struct UnrecordedFindings {
    list: Vec<(DeviceFinding, Option<Stamp>)>,
    /// How many had room.
    recorded: u64,
    /// The kinds that were found, and how many of each had no room.
    left_out: HashMap<FindingKind, u64>,
    /// How many of other kinds had none.
    others: u64,
}

/// What findings have in common that are repeats of one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct FindingKind {
    pub(crate) rule: FindingRule,
    pub(crate) kernel: Option<String>,
    /// The line of its source.
    pub(crate) line: Option<FindingLine>,
}

/// Findings that had no room in a recording: how many, and of what kind where that is known.
pub(crate) type LeftOut = (u64, Option<FindingKind>);

/// One finding, and which work it fails.
pub(crate) struct KeptFinding {
    error: DriverError,
    /// The submission it belongs to, if that is known.
    at: Option<Stamp>,
    /// The first submission of each other stream that is ordered after it.
    followers: Vec<Stamp>,
    /// Once a caller was told: how far the streams had come that were ordered after it.
    told: Option<Vec<Stamp>>,
    /// A call was refused with it, so that its caller knows of it. It still fails the next wait for all work.
    is_answered: bool,
}

/// The layer that sees submissions on their way to the driver.
pub(crate) struct FindingLayer(pub(crate) Arc<FindingLog>);

impl FindingLog {
    pub(crate) fn new(setting: Findings) -> Self {
        Self { setting, tracker: OnceLock::new(), stamps: Mutex::default(), kept: Mutex::default() }
    }

    /// Tells it whose submissions they are.
    pub(crate) fn knows(&self, tracker: &Arc<DependencyTracker>) {
        // There is one tracker for each runtime, so this is the first call.
        let _ = self.tracker.set(Arc::downgrade(tracker));
    }

    /// The finding that fails work that is done, if one does.
    pub(crate) fn settle(&self, stamp: Stamp) -> Result<()> {
        let Some(tracker) = self.tracker() else { return Ok(()) };
        let mut kept = self.read(&tracker);
        if self.setting != Findings::Fail {
            return Ok(());
        }
        let concerns = |finding: &&mut KeptFinding| finding.concerns(stamp);
        kept.list.iter_mut().find(concerns).map_or(Ok(()), |finding| finding.tell(&tracker))
    }

    /// The first finding that no caller was told.
    pub(crate) fn settle_all(&self) -> Result<()> {
        let Some(tracker) = self.tracker() else { return Ok(()) };
        let mut kept = self.read(&tracker);
        if self.setting != Findings::Fail {
            return Ok(());
        }
        let untold = kept.list.iter_mut().find(|finding| finding.told.is_none());
        untold.map_or(Ok(()), |finding| finding.tell(&tracker))
    }

    /// All findings that are kept, and how many more there were. The caller is told of them by that.
    pub(crate) fn all(&self) -> (Vec<DeviceFinding>, u64) {
        let Some(tracker) = self.tracker() else { return (Vec::new(), 0) };
        let mut kept = self.read(&tracker);
        kept.dropped_unread = 0;
        for finding in kept.list.iter_mut().filter(|finding| finding.told.is_none()) {
            let _ = finding.tell(&tracker);
        }
        (kept.list.iter().filter_map(KeptFinding::finding).collect(), kept.dropped)
    }

    /// The findings that no caller was told, and how many more there were.
    pub(crate) fn unread(&self) -> (Vec<DeviceFinding>, u64) {
        let Some(tracker) = self.tracker() else { return (Vec::new(), 0) };
        let kept = self.read(&tracker);
        let untold = kept.list.iter().filter(|finding| finding.told.is_none() && !finding.is_answered);
        (untold.filter_map(KeptFinding::finding).collect(), kept.dropped_unread)
    }

    /// From here on, findings are kept for a recording, too, until it takes them.
    pub(crate) fn begin_recording(&self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).unrecorded.get_or_insert_default();
    }

    /// The findings that were read since the last time, for the recording, with the submissions they belong to. What lost the device is not among them.
    pub(crate) fn take_unrecorded(&self) -> Vec<(DeviceFinding, Option<Stamp>)> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.unrecorded.as_mut().map(|unrecorded| std::mem::take(&mut unrecorded.list)).unwrap_or_default()
    }

    /// The findings that had no room in the recording, by kind.
    pub(crate) fn left_out(&self) -> Vec<LeftOut> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(unrecorded) = &kept.unrecorded else { return Vec::new() };
        let kinds = unrecorded.left_out.iter().map(|(kind, count)| (*count, Some(kind.clone())));
        let mut left_out: Vec<LeftOut> =
            kinds.chain([(unrecorded.others, None)]).filter(|(count, _)| *count > 0).collect();
        left_out.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        left_out
    }

    /// What fails work of a runtime that ends, for its tickets.
    pub(crate) fn take_failures(&self) -> Vec<KeptFinding> {
        if self.setting != Findings::Fail {
            return Vec::new();
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut kept.list).into()
    }

    /// A call was refused with what was found: a rank that differs from another one.
    #[cold]
    fn answer(&self, refusal: &Refusal) {
        let Some(tracker) = self.tracker() else { return };
        let said = refusal.to_string();
        let mut kept = self.read(&tracker);
        let is_it = |finding: &&mut KeptFinding| {
            !finding.is_answered && finding.error.finding().is_some_and(|found| found.text.contains(&said))
        };
        if let Some(finding) = kept.list.iter_mut().find(is_it) {
            finding.is_answered = true;
        }
    }

    fn tracker(&self) -> Option<Arc<DependencyTracker>> {
        self.tracker.get().and_then(Weak::upgrade)
    }

    /// Asks the device for what is new. Others wait meanwhile, so that none misses a finding that is on its way.
    fn read(&self, tracker: &DependencyTracker) -> MutexGuard<'_, KeptFindings> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let before = tracker.host().snapshot();
        while let Err(error) = tracker.driver().wait(WaitTarget::Findings, Timeout::Poll) {
            if error.finding().is_none() {
                // A lost device finds nothing more.
                return kept;
            }
            let stamps = self.stamps.lock().unwrap_or_else(PoisonError::into_inner);
            let at = error.site().and_then(|site| stamps.find(site.stream, site.submission));
            let followers = at.map(|at| stamps.followers(at)).unwrap_or_default();
            let call = error.site().and_then(|site| stamps.call_of(site.stream, site.submission));
            drop(stamps);
            let error = match call {
                Some(call) => call.named(error),
                None => error,
            };
            // The loss of the device tells its callers, and recovery decides which later work it concerns.
            let told = error.finding().is_some_and(|finding| finding.fatal).then(Vec::new);
            if let Some(finding) = error.finding() {
                note_finding(&finding.to_string());
            }
            kept.record(&error, at);
            kept.add(KeptFinding { error, at, followers, told, is_answered: false });
        }
        let mut stamps = self.stamps.lock().unwrap_or_else(PoisonError::into_inner);
        stamps.forget(|stamp| before.covers(stamp));
        drop(stamps);
        kept
    }
}

impl UnrecordedFindings {
    fn add(&mut self, finding: &DeviceFinding, at: Option<Stamp>) {
        let DeviceFinding { rule, kernel, line, .. } = finding.clone();
        let kind = FindingKind { rule, kernel, line };
        let has_kinds = self.left_out.len() < MAX_KINDS;
        let known = self.left_out.get_mut(&kind);
        let room = if known.is_some() { MAX_RECORDED } else { MAX_RECORDED + MAX_FIRST };
        let has_room = self.recorded < room;
        if has_room {
            self.recorded += 1;
            self.list.push((finding.clone(), at));
        }
        match known {
            Some(left_out) => *left_out += u64::from(!has_room),
            None if has_kinds => {
                self.left_out.insert(kind, u64::from(!has_room));
            }
            None => self.others += u64::from(!has_room),
        }
    }
}

impl KeptFindings {
    /// Keeps a finding for the recording, if there is one and room in it. The loss of a device is recorded as a fault.
    fn record(&mut self, error: &DriverError, at: Option<Stamp>) {
        let Some(unrecorded) = &mut self.unrecorded else { return };
        let Some(finding) = error.finding().filter(|finding| !finding.fatal) else { return };
        unrecorded.add(finding, at);
    }

    fn add(&mut self, finding: KeptFinding) {
        if self.list.len() >= MAX_FINDINGS {
            self.dropped += 1;
            match self.list.iter().position(|known| known.told.is_some()) {
                Some(told) => drop(self.list.remove(told)),
                None => {
                    self.dropped_unread += 1;
                    return;
                }
            }
        }
        self.list.push_back(finding);
    }
}

impl KeptFinding {
    /// Attributes a finding to its submission if it was read before the submitting thread noted that.
    fn attribute(
        &mut self,
        (stream, submission): (StreamId, Submission),
        stamp: Stamp,
        call: Option<&Arc<NamedCall>>,
    ) {
        let is_it = |site: &Site| (site.stream, site.submission) == (stream, submission);
        if self.at.is_none() && self.error.site().is_some_and(is_it) {
            self.at = Some(stamp);
            if let Some(call) = call {
                self.error = call.named(self.error.clone());
            }
        }
    }

    fn finding(&self) -> Option<DeviceFinding> {
        self.error.finding().cloned()
    }

    /// The finding as an error, if it fails that work.
    pub(crate) fn failure_of(&self, stamp: Stamp) -> Option<Error> {
        self.concerns(stamp).then(|| Error::new(ErrorKind::Finding(self.error.clone())))
    }

    /// Whether work that is done was submitted after it in the order, and before the first caller was told.
    fn concerns(&self, stamp: Stamp) -> bool {
        let Some(at) = self.at else { return false };
        if at == stamp {
            return true;
        }
        let is_first = |first: &Stamp| first.stream == stamp.stream && first.number <= stamp.number;
        let follows = is_first(&at) || self.followers.iter().any(is_first);
        let is_early = |told: &Vec<Stamp>| {
            told.iter().any(|latest| latest.stream == stamp.stream && stamp.number <= latest.number)
        };
        follows && self.told.as_ref().is_none_or(is_early)
    }

    /// Notes work that is ordered after it, if it is the first of its stream.
    fn note(&mut self, stamp: Stamp, clock: &StreamClock) {
        let is_known = self.followers.iter().any(|first| first.stream == stamp.stream);
        if let Some(at) = self.at
            && self.told.is_none()
            && at.stream != stamp.stream
            && !is_known
            && clock.covers(at)
        {
            self.followers.push(stamp);
        }
    }

    fn tell(&mut self, tracker: &DependencyTracker) -> Result<()> {
        self.told.get_or_insert_with(|| tracker.latest_stamps());
        Err(Error::new(ErrorKind::Finding(self.error.clone())))
    }
}

impl Layer for FindingLayer {
    fn after(&self, call: &Call<'_>, answer: std::result::Result<Answer<'_>, &DriverError>) {
        match (call, answer) {
            (Call::Submit { command: Command::Signal(_) | Command::Wait(_), .. }, _) => {}
            (Call::Submit { stream, .. }, Ok(Answer::Submission(submission))) => {
                // The stream is entered by the thread that queues this, so what was planned last is what it belongs to.
                let lane = self.0.tracker().and_then(|tracker| tracker.state_of(*stream));
                if let Some(lane) = lane {
                    let stamp = Stamp { stream: lane.key, number: lane.planned() };
                    let mut clock = StreamClock::default();
                    lane.read_published_clock(&mut clock);
                    let call = named_call::current();
                    let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
                    for finding in &mut kept.list {
                        finding.attribute((*stream, submission), stamp, call.as_ref());
                        finding.note(stamp, &clock);
                    }
                    self.stamps().note(*stream, submission, stamp, clock, call);
                }
            }
            (Call::Wait { target: WaitTarget::Findings, .. }, _) => {}
            // Its callers are told of the loss, and may not come back for what it found.
            (_, Err(error)) if error.is_sticky() => drop(self.0.unread()),
            (Call::Submit { .. }, Err(error)) => {
                if let Some(refusal @ Refusal::Disagreement { .. }) = error.refusal() {
                    self.0.answer(refusal);
                }
            }
            (Call::Destroy { object: Object::Stream(stream) }, Ok(_)) => self.stamps().forget_stream(*stream),
            _ => {}
        }
    }
}

impl FindingLayer {
    fn stamps(&self) -> MutexGuard<'_, SubmissionStamps> {
        self.0.stamps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
