//! `CollectiveTrace`: the collectives of a program, with the time that it computes between them.
//!
//! A program records it while it runs on few ranks, or it is written by hand. Its time on a [`Topology`] is an estimate for many.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use kiln_operation::CollectiveKind;
use kiln_runtime::Ticket;

use crate::collective_call::CollectiveCall;
use crate::error::Result;
use crate::topology::Topology;

/// The first line of a trace.
const HEADER: &str = "# kiln collectives 1";
/// The word for a collective that the computing after it does not wait for.
const OVERLAP: &str = "overlap";
/// The most steps of a trace.
const MAX_STEPS: usize = 10_000_000;

/// Collectives of one kind and size, each after some time of computing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TracedCollective {
    /// What it does.
    pub kind: CollectiveKind,
    /// Bytes of the larger buffer: for collectives with a block for each rank, all blocks.
    pub bytes: u64,
    /// How often it comes.
    pub count: u64,
    /// How long a rank computes before each of them.
    pub compute: Duration,
    /// Whether the computing after each of them does not wait for it. Collectives always come one after the other.
    pub overlaps: bool,
}

impl TracedCollective {
    /// The collective with a name such as `all_reduce`; none if there is none.
    pub fn kind_named(name: &str) -> Option<CollectiveKind> {
        CollectiveKind::ALL.iter().copied().find(|kind| kind.to_string() == name)
    }
}

/// The collectives of a program, in their order.
///
/// ```
/// use kiln::group::{CollectiveTrace, Topology};
///
/// let trace: CollectiveTrace = "
///     all_reduce bytes=450MB count=48 compute=2ms # the gradients of a layer
///     barrier
/// ".parse()?;
/// let topology: Topology = "8x nvlink(450GB/s, 1us)".parse()?;
/// let time = trace.time_on(&topology);
/// assert_eq!(time.compute.as_millis(), 48 * 2);
/// // 48 times 14 steps of 126 us, and 14 steps of the barrier.
/// assert_eq!(time.communication.as_micros(), 48 * 14 * 126 + 14);
/// assert!((time.efficiency() - 0.531).abs() < 0.001);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CollectiveTrace {
    steps: Vec<TracedCollective>,
    /// What was computed since the last collective.
    computed: Duration,
}

/// How long a trace takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceTime {
    /// Of computing.
    pub compute: Duration,
    /// Of collectives.
    pub communication: Duration,
    /// Of all of it: computing, and what there is of communication while nothing is computed.
    pub total: Duration,
}

/// Why a text is no trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {what}; write lines such as `all_reduce bytes=4MB count=12 compute=1.5ms`")]
pub struct CollectiveTraceError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

impl TraceTime {
    /// The share of the time that is computing: 1 if computing never waits for communication.
    pub fn efficiency(&self) -> f64 {
        let (compute, whole) = (self.compute.as_secs_f64(), self.total.as_secs_f64());
        if whole > 0.0 { compute / whole } else { 1.0 }
    }

    /// What communication adds: the time of it while nothing is computed.
    pub fn exposed(&self) -> Duration {
        self.total.saturating_sub(self.compute)
    }
}

impl CollectiveTrace {
    /// A trace of these steps. A time is at most 2^64 nanoseconds, about 584 years, which is the longest that a text of a trace can have.
    pub fn new(steps: impl IntoIterator<Item = TracedCollective>) -> Self {
        let fitting = |step: TracedCollective| TracedCollective { compute: fitting(step.compute), ..step };
        Self { steps: steps.into_iter().map(fitting).collect(), computed: Duration::ZERO }
    }

    /// The steps.
    pub fn steps(&self) -> &[TracedCollective] {
        &self.steps
    }

    /// Adds time that this rank computes before its next collective, such as that of a kernel's ticket.
    pub fn compute(&mut self, time: Duration) {
        self.computed = fitting(self.computed.saturating_add(time));
    }

    /// Records a call and submits it. Only calls that were accepted are recorded.
    ///
    /// # Errors
    /// As for [`CollectiveCall::submit`].
    #[track_caller]
    pub fn submit(&mut self, call: CollectiveCall<'_>) -> Result<Ticket> {
        let described = call.described();
        let ticket = call.submit()?;
        for (kind, bytes) in described {
            let compute = std::mem::take(&mut self.computed);
            let step = TracedCollective { kind, bytes, count: 1, compute, overlaps: false };
            let same =
                |last: &&mut TracedCollective| **last == TracedCollective { count: last.count, ..step };
            match self.steps.last_mut().filter(same) {
                Some(last) => last.count += 1,
                None => self.steps.push(step),
            }
        }
        Ok(ticket)
    }

    /// As [`submit`](Self::submit), for a call whose result the computing after it does not need, such as the sum of gradients of a layer while those of the next
    /// one are computed.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit).
    #[track_caller]
    pub fn submit_overlapping(&mut self, call: CollectiveCall<'_>) -> Result<Ticket> {
        let mut alone = Self { steps: Vec::new(), computed: std::mem::take(&mut self.computed) };
        let submitted = alone.submit(call);
        self.computed = alone.computed;
        for step in alone.steps {
            let step = TracedCollective { overlaps: true, ..step };
            let same =
                |last: &&mut TracedCollective| **last == TracedCollective { count: last.count, ..step };
            match self.steps.last_mut().filter(same) {
                Some(last) => last.count += step.count,
                None => self.steps.push(step),
            }
        }
        submitted
    }

    /// The same trace as if no computing waited for a collective before it.
    #[must_use]
    pub fn overlapped(&self) -> Self {
        let steps = self.steps.iter().map(|step| TracedCollective { overlaps: true, ..*step });
        Self { steps: steps.collect(), computed: self.computed }
    }

    /// How long the trace takes on a topology. Buffers keep their size and ranks their computing, as in data-parallel training.
    pub fn time_on(&self, topology: &Topology) -> TraceTime {
        let mut run = TraceRun::default();
        for step in &self.steps {
            run.step(step, topology.estimate(step.kind, step.bytes).time);
        }
        let compute = run.compute.saturating_add(self.computed.as_nanos());
        let total = run.now.saturating_add(self.computed.as_nanos()).max(run.free);
        let duration = |ns: u128| Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
        TraceTime {
            compute: duration(compute),
            communication: duration(run.communication),
            total: duration(total),
        }
    }
}

/// A run of a trace on one rank. Times are nanoseconds since its start.
#[derive(Default)]
struct TraceRun {
    compute: u128,
    communication: u128,
    /// When computing goes on.
    now: u128,
    /// When the last collective ends.
    free: u128,
}

impl TraceRun {
    /// So many times: computing, then a collective of this time.
    fn step(&mut self, step: &TracedCollective, time: Duration) {
        let count = u128::from(step.count);
        let (compute, time) = (step.compute.as_nanos(), time.as_nanos());
        let times = |time: u128, count: u128| time.saturating_mul(count);
        self.compute = self.compute.saturating_add(times(compute, count));
        self.communication = self.communication.saturating_add(times(time, count));
        let (now, first) = (self.now, self.now.saturating_add(compute).max(self.free));
        if step.overlaps {
            // Either all collectives follow each other without a gap, or the last one begins when its computing is done.
            let computed = now.saturating_add(times(compute, count));
            self.free = first.saturating_add(times(time, count)).max(computed.saturating_add(time));
            self.now = computed;
        } else {
            let others = times(compute.saturating_add(time), count.saturating_sub(1));
            self.now = first.saturating_add(time).saturating_add(others);
            self.free = self.now;
        }
    }
}

impl fmt::Display for CollectiveTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}")?;
        for TracedCollective { kind, bytes, count, compute, overlaps } in &self.steps {
            let overlap = if *overlaps { " overlap" } else { "" };
            writeln!(f, "{kind} bytes={bytes} count={count} compute={}ns{overlap}", compute.as_nanos())?;
        }
        match self.computed.as_nanos() {
            0 => Ok(()),
            last => writeln!(f, "compute={last}ns"),
        }
    }
}

impl FromStr for CollectiveTrace {
    type Err = CollectiveTraceError;

    fn from_str(text: &str) -> std::result::Result<Self, CollectiveTraceError> {
        let mut trace = Self::default();
        let mut has_end = false;
        for (line, text) in (1..).zip(text.lines()) {
            let failed = |what: String| CollectiveTraceError { line, what };
            let text = text.split('#').next().unwrap_or_default().trim();
            if text.is_empty() {
                continue;
            }
            if has_end {
                return Err(failed("`compute=` without a collective is the last line".to_owned()));
            }
            if let Some(value) = text.strip_prefix("compute=") {
                let wrong = || failed(format!("`{text}` is no time such as `compute=1.5ms`"));
                trace.computed = duration(value).ok_or_else(wrong)?;
                has_end = true;
                continue;
            }
            if trace.steps.len() == MAX_STEPS {
                return Err(failed(format!("more than {MAX_STEPS} steps")));
            }
            trace.steps.push(step(text).map_err(failed)?);
        }
        Ok(trace)
    }
}

fn step(text: &str) -> std::result::Result<TracedCollective, String> {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let kind = TracedCollective::kind_named(name).ok_or_else(|| format!("`{name}` is no collective"))?;
    let mut step = TracedCollective { kind, bytes: 0, count: 1, compute: Duration::ZERO, overlaps: false };
    let mut has_bytes = kind == CollectiveKind::Barrier;
    let mut seen: Vec<&str> = Vec::new();
    for word in words {
        let wrong =
            || format!("`{word}` is no `overlap` and no bytes=, count= or compute= with a value that fits");
        let (name, value) = match word {
            OVERLAP => (OVERLAP, ""),
            word => word.split_once('=').ok_or_else(wrong)?,
        };
        if seen.contains(&name) {
            return Err(format!("`{name}` comes twice"));
        }
        if step.overlaps {
            return Err(format!("`{OVERLAP}` comes before `{word}`, and belongs at the end of the line"));
        }
        seen.push(name);
        match name {
            OVERLAP if value.is_empty() && word == OVERLAP => step.overlaps = true,
            "bytes" => {
                let units = [("", 1.0), ("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("KiB", 1024.0)];
                let larger = [("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0)];
                step.bytes = scaled(value, units.iter().chain(&larger)).ok_or_else(wrong)?;
                has_bytes = true;
            }
            "count" => step.count = value.parse().ok().filter(|count| *count > 0).ok_or_else(wrong)?,
            "compute" => step.compute = duration(value).ok_or_else(wrong)?,
            _ => return Err(wrong()),
        }
    }
    match has_bytes {
        true => Ok(step),
        false => Err(format!("`{name}` has no bytes=")),
    }
}

fn duration(text: &str) -> Option<Duration> {
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    scaled(text, units.iter()).map(Duration::from_nanos)
}

/// A time that can be written and read, or the longest.
fn fitting(time: Duration) -> Duration {
    time.min(Duration::from_nanos(u64::MAX))
}

/// A number with one of these units, as a whole number.
fn scaled<'u>(text: &str, units: impl Iterator<Item = &'u (&'u str, f64)>) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at_checked(end)?;
    let (_, factor) = units.into_iter().find(|(name, _)| *name == unit)?;
    if *factor == 1.0 {
        return digits.parse().ok();
    }
    let number = (digits.parse::<f64>().ok()? * factor).round();
    (0.0..=u64::MAX as f64 / 2.0).contains(&number).then_some(number as u64)
}
