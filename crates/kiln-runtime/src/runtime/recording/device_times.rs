//! How it is known when the device ran work.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use kiln_cuda::cupti::CuptiSession;
use kiln_driver::DeviceKind;

use super::activity_times::ActivitySource;
use super::device_origin::{Origin, PASS_LIMIT};
use super::process_recording;
use crate::runtime::inner::Inner;

/// The variable that says how the times of a recording which the environment asks for are taken.
pub(super) const TIMES_VARIABLE: &str = "KILN_TRACE_TIMES";

/// How it is known when the device ran work that is recorded. Text: `host`, `events`, `events/16`, `cupti`.
///
/// ```
/// use kiln::telemetry::DeviceTimes;
///
/// assert_eq!("events/16".parse(), Ok(DeviceTimes::Events { every: 16 }));
/// assert_eq!(DeviceTimes::Cupti.to_string(), "cupti");
/// assert!("events/0".parse::<DeviceTimes>().unwrap_err().to_string().contains("events/16"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum DeviceTimes {
    /// Not at all: only when the host submitted it. The times of a simulated device cost nothing and are taken nevertheless.
    #[default]
    HostOnly,
    /// From two events around every so-manieth submission, which cost the host about a microsecond.
    Events {
        /// Each first one of so many has a time.
        every: u32,
    },
    /// From CUPTI, for every kernel, copy, fill and graph, without events in the streams. A launch costs the host one or two microseconds more,
    /// and some of that for as long as the process lives. CUPTI serves one tool of a process: where it has another one, is not there, or graphs were built
    /// before, events are used, and [`trace_times`](crate::DeviceRuntime::trace_times) says why. It is loaded in the process that has the device, be it a worker.
    Cupti,
}

/// How the device's times are taken in a recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TakenTimes {
    /// How.
    pub how: DeviceTimes,
    /// Why not as it was asked for, where that is so.
    pub why_not_as_asked: Option<String>,
}

impl TakenTimes {
    /// Says why times are not taken as they were asked for: in the log, and where the environment asked for them, and has less, to who started the program.
    pub(super) fn tell_of(&self, asked: DeviceTimes, is_of_environment: bool) {
        let Self { how, why_not_as_asked: Some(why) } = self else { return };
        let said = match how {
            DeviceTimes::HostOnly => {
                format!("the device's times are not taken by {asked}, nor otherwise: {why}")
            }
            how => format!("the device's times are not taken by {asked} but by {how}: {why}"),
        };
        match is_of_environment {
            true => process_recording::tell(&said),
            false => tracing::warn!(target: "kiln", "{said}"),
        }
    }

    /// None, because the device did not pass an event for so long.
    pub(super) fn without_answer(limit: Duration) -> Self {
        let why = format!(
            "the device did not pass an event within {} s, as if it does not answer",
            limit.as_secs()
        );
        Self { how: DeviceTimes::HostOnly, why_not_as_asked: Some(why) }
    }
}

/// A text that says no way to take times.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}` does not say how to take the device's times; use host, events, events/16 or cupti")]
pub struct UnknownTimes {
    text: String,
}

impl FromStr for DeviceTimes {
    type Err = UnknownTimes;

    fn from_str(text: &str) -> Result<Self, UnknownTimes> {
        let every = |number: &str| number.parse().ok().filter(|every| *every > 0);
        match text.trim() {
            "host" => Some(Self::HostOnly),
            "events" => Some(Self::Events { every: 1 }),
            "cupti" => Some(Self::Cupti),
            other => other.strip_prefix("events/").and_then(every).map(|every| Self::Events { every }),
        }
        .ok_or_else(|| UnknownTimes { text: text.to_owned() })
    }
}

impl fmt::Display for DeviceTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostOnly => f.write_str("host"),
            Self::Events { every: 0 | 1 } => f.write_str("events"),
            Self::Events { every } => write!(f, "events/{every}"),
            Self::Cupti => f.write_str("cupti"),
        }
    }
}

/// How times are taken, and with what.
pub(super) struct Measuring {
    pub(super) taken: TakenTimes,
    pub(super) source: Option<Box<dyn ActivitySource>>,
    /// The moment from which times are counted, where they are taken by events.
    pub(super) origin: Option<Origin>,
}

impl Measuring {
    /// What a device can do of what was asked for.
    pub(super) fn choose(runtime: &Inner, asked: DeviceTimes) -> Self {
        let is_simulated = runtime.driver().info().kind == DeviceKind::Simulated;
        let each = DeviceTimes::Events { every: 1 };
        match asked {
            _ if is_simulated && runtime.recovery().is_some() => {
                let why = "the virtual clock of a simulated device is in its worker process";
                Self::plain(DeviceTimes::HostOnly, (asked != DeviceTimes::HostOnly).then(|| why.to_owned()))
            }
            DeviceTimes::HostOnly if is_simulated => Self::plain(each, None),
            DeviceTimes::Cupti if is_simulated => {
                Self::plain(each, Some("a simulated device has its times without CUPTI".to_owned()))
            }
            // They cost nothing, so that none is left out.
            DeviceTimes::Events { .. } if is_simulated && asked != each => {
                Self::plain(each, Some("a simulated device has all its times, which cost nothing".to_owned()))
            }
            DeviceTimes::Cupti => match cupti(runtime) {
                Ok(source) => Self::with(TakenTimes { how: asked, why_not_as_asked: None }, Some(source)),
                Err(why) => Self::plain(each, Some(why)),
            },
            other => Self::plain(other, None),
        }
    }

    fn with(taken: TakenTimes, source: Option<Box<dyn ActivitySource>>) -> Self {
        Self { taken, source, origin: None }
    }

    /// Begins to count times. Where the device does not pass an event, they are not taken.
    pub(super) fn begin(mut self, runtime: &Inner) -> crate::error::Result<Self> {
        if let DeviceTimes::Events { .. } = self.taken.how {
            self.origin = Origin::take(runtime)?;
            if self.origin.is_none() {
                self.taken = TakenTimes::without_answer(PASS_LIMIT);
            }
        }
        Ok(self)
    }

    fn plain(how: DeviceTimes, why_not_as_asked: Option<String>) -> Self {
        Self::with(TakenTimes { how, why_not_as_asked }, None)
    }
}

/// CUPTI in the process that has the device.
fn cupti(runtime: &Inner) -> Result<Box<dyn ActivitySource>, String> {
    match runtime.recovery() {
        Some(worker) => worker.activity().map_err(|why| format!("in the worker process: {why}")),
        None => match CuptiSession::start() {
            Ok(session) => Ok(Box::new(session)),
            Err(absence) => Err(absence.to_string()),
        },
    }
}
