//! Whether it is known when a device ran nothing: one rule for all that speak of idle time, `kiln explain` and the page of `kiln watch`.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Display, Formatter};

use super::device_clocks::DeviceClocks;
use crate::record::{EarlierRecord, RecordingClock, SubmissionRecord, TraceEvent, TraceStream};

/// Streams whose last work is kept.
const MAX_STREAMS: usize = 1 << 16;
/// Devices of which something is kept.
const MAX_DEVICES: usize = 1 << 16;

/// Why it is not known when a device was idle. Its `Display` says it in words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum UnknownIdle {
    /// No time of its work was measured.
    NotMeasured,
    /// Events are missing, or damaged blocks were left out: what is missing may have run at any time.
    EventsMissing,
    /// The clock of a simulated machine stands still while the program works with devices of other clocks.
    ClockStandsStill,
    /// Devices have several clocks, and when the recording ended is not known on each of them.
    SeveralClocks,
    /// Of the last work of a stream the time was not measured.
    LastNotMeasured,
    /// A stream still had work from before the recording.
    EarlierWork,
    /// The recording has no end mark, so that more may have run than it has.
    NoEndMark,
}

/// What a recording says about whether it is known when its devices were idle.
///
/// ```
/// use kiln_trace::{IdleKnowledge, SubmissionRecord, TraceEvent, UnknownIdle};
///
/// let mut known = IdleKnowledge::default();
/// known.add(&TraceEvent::Submission(SubmissionRecord::default())); // without a time of the device
/// assert_eq!(known.unknown(0), Some(UnknownIdle::NotMeasured));
/// ```
#[derive(Clone, Default, Debug)]
pub struct IdleKnowledge {
    devices: BTreeMap<u32, KnownWork>,
    streams: HashMap<TraceStream, LastWork>,
    clocks: DeviceClocks,
    misses_events: bool,
    has_end_mark: bool,
}

/// What is known of the work of a device.
#[derive(Clone, Copy, Default, Debug)]
struct KnownWork {
    submissions: u64,
    untimed: u64,
}

/// What is known of the last work of a stream.
#[derive(Clone, Copy, Default, Debug)]
struct LastWork {
    /// The number of the last work whose time was measured.
    timed: u64,
    /// The number of the last work whose time was not measured.
    untimed: u64,
    /// Until when work from before the recording ran; the largest time if that is not known.
    earlier_ns: u64,
}

impl IdleKnowledge {
    /// Takes an event.
    pub fn add(&mut self, event: &TraceEvent<'_>) {
        match event {
            TraceEvent::Start(start) => self.clocks.begin(start.clock),
            TraceEvent::Device(device) => {
                self.clocks.add(device);
                // Another runtime of the program, after the last had ended.
                self.has_end_mark = false;
            }
            TraceEvent::Submission(work) => self.submission(work),
            TraceEvent::Earlier(work) => self.earlier(work),
            TraceEvent::Dropped(dropped) => self.misses_events |= dropped.events > 0,
            TraceEvent::End(_) => self.has_end_mark = true,
            _ => {}
        }
    }

    /// Damaged blocks were left out.
    pub fn leave_out(&mut self) {
        self.misses_events = true;
    }

    /// Why it is not known how long a device was idle. None if it is known, but for times which are told apart.
    pub fn unknown(&self, device: u32) -> Option<UnknownIdle> {
        let work = self.devices.get(&device).filter(|work| work.submissions > 0)?;
        if work.untimed == work.submissions {
            Some(UnknownIdle::NotMeasured)
        } else if self.misses_events {
            Some(UnknownIdle::EventsMissing)
        } else if self.stands_still(device) {
            Some(UnknownIdle::ClockStandsStill)
        } else {
            None
        }
    }

    /// Why it is not known whether a device was idle when the recording ended. The last of its work that was measured ended at a time.
    pub fn unknown_at_end(&self, device: u32, last_end_ns: u64) -> Option<UnknownIdle> {
        let streams =
            || self.streams.iter().filter(|(stream, _)| stream.device == device).map(|(_, last)| last);
        self.unknown(device).or_else(|| {
            if !self.has_end_mark {
                Some(UnknownIdle::NoEndMark)
            } else if self.clocks.are_several() {
                Some(UnknownIdle::SeveralClocks)
            } else if streams().any(|last| last.untimed > last.timed) || self.streams.len() >= MAX_STREAMS {
                Some(UnknownIdle::LastNotMeasured)
            } else if streams().any(|last| last.timed == 0 && last.earlier_ns > last_end_ns) {
                Some(UnknownIdle::EarlierWork)
            } else {
                None
            }
        })
    }

    /// What the clock of a device is.
    pub fn clock_kind(&self, device: u32) -> RecordingClock {
        self.clocks.kind(device)
    }

    pub(super) fn clocks(&self) -> &DeviceClocks {
        &self.clocks
    }

    /// Whether the clock of a device stood still while others worked.
    fn stands_still(&self, device: u32) -> bool {
        let clock = self.clocks.of(device);
        let is_other =
            |(other, work): (&u32, &KnownWork)| work.submissions > 0 && self.clocks.of(*other) != clock;
        self.clock_kind(device) == RecordingClock::Virtual && self.devices.iter().any(is_other)
    }

    fn submission(&mut self, work: &SubmissionRecord<'_>) {
        let is_timed = work.device.is_some();
        let device = work.stamp.stream.device;
        if self.devices.len() >= MAX_DEVICES && !self.devices.contains_key(&device) {
            return;
        }
        let known = self.devices.entry(device).or_default();
        known.submissions += 1;
        known.untimed += u64::from(!is_timed);
        let Some(last) = self.stream(work.stamp.stream) else { return };
        let number = if is_timed { &mut last.timed } else { &mut last.untimed };
        *number = (*number).max(work.stamp.number);
    }

    fn earlier(&mut self, work: &EarlierRecord) {
        let Some(last) = self.stream(work.stamp.stream) else { return };
        last.earlier_ns = work.until_ns.unwrap_or(u64::MAX);
    }

    fn stream(&mut self, stream: TraceStream) -> Option<&mut LastWork> {
        let has_room = self.streams.len() < MAX_STREAMS || self.streams.contains_key(&stream);
        has_room.then(|| self.streams.entry(stream).or_default())
    }
}

impl Display for UnknownIdle {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotMeasured => "when its work ran was not measured",
            Self::EventsMissing => "events are missing",
            Self::ClockStandsStill => {
                "its clock stands still while the program works with devices of other clocks"
            }
            Self::SeveralClocks => "the recording has several clocks, and its end is not known on this one",
            Self::LastNotMeasured => "when its last work ran was not measured",
            Self::EarlierWork => "it still had work that was submitted before the recording began",
            Self::NoEndMark => "the recording has no end mark, and may lack its last work",
        })
    }
}
