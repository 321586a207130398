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

/// How long a trace takes, without overlap of computing and communication.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceTime {
    /// Of computing.
    pub compute: Duration,
    /// Of collectives.
    pub communication: Duration,
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
    /// The share of the time that is computing: 1 if communication takes no time.
    pub fn efficiency(&self) -> f64 {
        let (compute, whole) =
            (self.compute.as_secs_f64(), (self.compute + self.communication).as_secs_f64());
        if whole > 0.0 { compute / whole } else { 1.0 }
    }
}

impl CollectiveTrace {
    /// A trace of these steps.
    pub fn new(steps: impl IntoIterator<Item = TracedCollective>) -> Self {
        Self { steps: steps.into_iter().collect(), computed: Duration::ZERO }
    }

    /// The steps.
    pub fn steps(&self) -> &[TracedCollective] {
        &self.steps
    }

    /// Adds time that this rank computes before its next collective, such as that of a kernel's ticket.
    pub fn compute(&mut self, time: Duration) {
        self.computed = self.computed.saturating_add(time);
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
            let step = TracedCollective { kind, bytes, count: 1, compute };
            let same = |last: &&mut TracedCollective| {
                (last.kind, last.bytes, last.compute) == (kind, bytes, compute)
            };
            match self.steps.last_mut().filter(same) {
                Some(last) => last.count += 1,
                None => self.steps.push(step),
            }
        }
        Ok(ticket)
    }

    /// How long the trace takes on a topology. Buffers keep their size and ranks their computing, as in data-parallel training.
    pub fn time_on(&self, topology: &Topology) -> TraceTime {
        let times = |time: Duration, count: u64| {
            let ns = time.as_nanos().saturating_mul(u128::from(count));
            Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
        };
        let mut total = TraceTime { compute: self.computed, communication: Duration::ZERO };
        for step in &self.steps {
            let one = topology.estimate(step.kind, step.bytes).time;
            total.compute = total.compute.saturating_add(times(step.compute, step.count));
            total.communication = total.communication.saturating_add(times(one, step.count));
        }
        total
    }
}

impl fmt::Display for CollectiveTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}")?;
        for TracedCollective { kind, bytes, count, compute } in &self.steps {
            writeln!(f, "{kind} bytes={bytes} count={count} compute={}ns", compute.as_nanos())?;
        }
        Ok(())
    }
}

impl FromStr for CollectiveTrace {
    type Err = CollectiveTraceError;

    fn from_str(text: &str) -> std::result::Result<Self, CollectiveTraceError> {
        let mut steps = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let failed = |what: String| CollectiveTraceError { line, what };
            let text = text.split('#').next().unwrap_or_default().trim();
            if text.is_empty() {
                continue;
            }
            if steps.len() == MAX_STEPS {
                return Err(failed(format!("more than {MAX_STEPS} steps")));
            }
            steps.push(step(text).map_err(failed)?);
        }
        Ok(Self::new(steps))
    }
}

fn step(text: &str) -> std::result::Result<TracedCollective, String> {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let kind = TracedCollective::kind_named(name).ok_or_else(|| format!("`{name}` is no collective"))?;
    let mut step = TracedCollective { kind, bytes: 0, count: 1, compute: Duration::ZERO };
    let mut has_bytes = kind == CollectiveKind::Barrier;
    for word in words {
        let wrong = || format!("`{word}` is no bytes=, count= or compute= with a value that fits");
        let (name, value) = word.split_once('=').ok_or_else(wrong)?;
        match name {
            "bytes" => {
                let units = [("", 1.0), ("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("KiB", 1024.0)];
                let larger = [("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0)];
                step.bytes = scaled(value, units.iter().chain(&larger)).ok_or_else(wrong)?;
                has_bytes = true;
            }
            "count" => step.count = value.parse().ok().filter(|count| *count > 0).ok_or_else(wrong)?,
            "compute" => {
                let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
                step.compute = Duration::from_nanos(scaled(value, units.iter()).ok_or_else(wrong)?);
            }
            _ => return Err(wrong()),
        }
    }
    match has_bytes {
        true => Ok(step),
        false => Err(format!("`{name}` has no bytes=")),
    }
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
