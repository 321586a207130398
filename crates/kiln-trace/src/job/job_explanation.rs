//! Recordings of one job on one time axis.

use std::collections::{BTreeMap, BTreeSet};

use super::collective_order::CollectiveOrder;
use super::rank_log::{CollectiveKey, RankLog};
use super::time_axis::{TimeAxes, TimeAxis, axis_of};

/// How the times of several recordings are put on one axis.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum ClockAlignment {
    /// There is one recording, and all its ranks have one clock.
    #[default]
    OneRecording,
    /// Each says at what time of the wall clock it began.
    WallClock,
    /// The first collective that all of them have ends at the same time.
    FirstCollective {
        /// The operation.
        name: String,
        /// Which call of it.
        number: u64,
    },
    /// Times are those of several simulated machines, in one process or in several, which cannot be compared. Each collective ends at the same
    /// time for all its ranks, and what a rank did since the one before says when it came.
    EachCollective,
    /// Some ranks have the clock of a host and others that of a simulated machine. Only ranks with one clock are compared.
    SeveralClocks,
    /// Each begins at zero.
    None,
}

impl ClockAlignment {
    /// Whether times of the recordings can be compared.
    pub fn is_one_axis(&self) -> bool {
        !matches!(self, Self::EachCollective | Self::SeveralClocks | Self::None)
    }
}

/// One rank's part of a collective, on the common axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct JobPart {
    /// The recording it is in.
    pub recording: usize,
    /// The rank.
    pub rank: u32,
    /// When it came, compared with the other ranks of the collective.
    pub came_ns: u64,
    /// When it began.
    pub begin_ns: u64,
    /// When it was done.
    pub end_ns: u64,
}

/// A collective of several ranks. Its `Display` names the rank that came last.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct JobCollective {
    /// The operation.
    pub name: String,
    /// The communicator, in hexadecimal digits.
    pub communicator: String,
    /// Which call of the operation on the communicator it is, from 1.
    pub number: u64,
    /// Bytes of the larger buffer.
    pub bytes: u64,
    /// How many ranks take part.
    pub ranks: u32,
    /// What the recordings have of it, who came first is the first.
    pub parts: Vec<JobPart>,
    /// Ranks that called it, and of which no time is known: their programs were ended before.
    pub without_time: Vec<u32>,
    /// Whether it is known who came first.
    pub is_compared: bool,
}

/// How often a rank came last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RankLateness {
    /// The rank.
    pub rank: u32,
    /// How many collectives it came last to.
    pub times: u64,
    /// How much later than the first, altogether.
    pub ns: u64,
    /// How much later at the most.
    pub longest_ns: u64,
}

/// The recordings of one job. Its `Display` says in words what they show together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct JobExplanation {
    /// The ranks of each recording.
    pub ranks: Vec<Vec<u32>>,
    /// How the times are put on one axis.
    pub clocks: ClockAlignment,
    /// What is added to the times of each recording.
    pub offsets_ns: Vec<u64>,
    /// Collectives that at least two ranks are known of, by time.
    pub collectives: Vec<JobCollective>,
    /// How often ranks came last, the largest loss first.
    pub late: Vec<RankLateness>,
    /// Calls that there was no room for.
    pub left_out: u64,
    /// Ranks whose recordings have no end mark: they were killed or crashed, or still run.
    pub unfinished: Vec<u32>,
}

/// What is known of a collective.
#[derive(Default)]
struct KnownCall {
    bytes: u64,
    ranks: u32,
    parts: Vec<JobPart>,
    without_time: Vec<u32>,
    axes: BTreeSet<TimeAxis>,
}

impl JobExplanation {
    /// Compares recordings.
    ///
    /// ```
    /// use kiln_trace::{ClockAlignment, JobExplanation, RankLog};
    ///
    /// let job = JobExplanation::of(&[&RankLog::default(), &RankLog::default()]);
    /// assert_eq!((job.clocks, job.offsets_ns), (ClockAlignment::None, vec![0, 0]));
    /// ```
    pub fn of(logs: &[&RankLog]) -> Self {
        let axes = TimeAxes::of(logs);
        let (clocks, offsets_ns) = aligned(logs, &axes);
        // Only what started a program begins with its runtime.
        let begin_together = !logs.iter().any(|log| log.records_itself());
        let order = (clocks == ClockAlignment::EachCollective)
            .then(|| CollectiveOrder::of(logs, &axes, begin_together));
        let mut calls: BTreeMap<CollectiveKey, KnownCall> = BTreeMap::new();
        for ((recording, log), offset) in logs.iter().enumerate().zip(&offsets_ns) {
            for call in log.calls() {
                let known = calls.entry(call.key()).or_default();
                (known.bytes, known.ranks) = (known.bytes.max(call.bytes), call.ranks);
                let Some(span) = call.span else {
                    known.without_time.push(call.rank);
                    continue;
                };
                let axis = axis_of(recording, log, call);
                known.axes.insert(axis);
                let begin_ns = span.begin_ns.saturating_add(*offset);
                let came_ns = order.as_ref().map_or(begin_ns, |order| {
                    let shifted = i128::from(span.begin_ns) + order.shift(axis, &call.key());
                    u64::try_from(shifted.max(0)).unwrap_or(u64::MAX)
                });
                known.parts.push(JobPart {
                    recording,
                    rank: call.rank,
                    came_ns,
                    begin_ns,
                    end_ns: span.end_ns.saturating_add(*offset),
                });
            }
        }
        // Clocks that have nothing in common say nothing about who came first.
        let are_apart = matches!(clocks, ClockAlignment::None | ClockAlignment::SeveralClocks);
        let collective = |((communicator, name, number), known): (CollectiveKey, KnownCall)| {
            let KnownCall { bytes, ranks, mut parts, without_time, axes } = known;
            let is_compared = !are_apart || axes.len() < 2;
            parts.sort_by_key(|part| (part.came_ns, part.rank));
            let own = parts.first().map(|part| part.rank);
            let mut others = parts.iter().map(|part| part.rank).chain(without_time.iter().copied());
            let is_shared = own.is_some_and(|own| others.any(|rank| rank != own));
            let (name, communicator) = (name.to_string(), format!("{communicator:08x}"));
            is_shared.then_some(JobCollective {
                name,
                communicator,
                number,
                bytes,
                ranks,
                parts,
                without_time,
                is_compared,
            })
        };
        let mut collectives: Vec<JobCollective> = calls.into_iter().filter_map(collective).collect();
        collectives.sort_by_key(|call| call.parts.iter().map(|part| part.begin_ns).min());
        let late = lateness(&collectives);
        let left_out = logs.iter().map(|log| log.left_out()).sum();
        let ranks = logs.iter().map(|log| log.ranks().into_iter().collect()).collect();
        let unfinished = logs.iter().filter(|log| !log.has_end()).flat_map(|log| log.ranks()).collect();
        Self { ranks, clocks, offsets_ns, collectives, late, left_out, unfinished }
    }

    /// The collectives with the latest ranks, the latest first.
    pub fn latest(&self, count: usize) -> Vec<&JobCollective> {
        let mut latest: Vec<&JobCollective> =
            self.collectives.iter().filter(|call| call.late_ns() > 0).collect();
        latest.sort_by_key(|call| std::cmp::Reverse(call.late_ns()));
        latest.truncate(count);
        latest
    }
}

impl JobCollective {
    /// How much later the last rank came than the first; 0 if that is not known.
    pub fn late_ns(&self) -> u64 {
        match (self.parts.first(), self.parts.last()) {
            (Some(first), Some(last)) if self.is_compared => last.came_ns.saturating_sub(first.came_ns),
            _ => 0,
        }
    }
}

/// What is added to the times of each recording, and why.
fn aligned(logs: &[&RankLog], axes: &TimeAxes) -> (ClockAlignment, Vec<u64>) {
    if logs.len() < 2 && axes.count() < 2 {
        return (ClockAlignment::OneRecording, vec![0; logs.len()]);
    }
    let first = || first_common(logs).unwrap_or_else(|| (ClockAlignment::None, vec![0; logs.len()]));
    if axes.are_virtual() {
        return (ClockAlignment::EachCollective, first().1);
    }
    if !axes.are_of_hosts() {
        return (ClockAlignment::SeveralClocks, vec![0; logs.len()]);
    }
    let began: Vec<u64> = logs.iter().filter_map(|log| log.unix_ns()).collect();
    if began.len() == logs.len() {
        let first = began.iter().min().copied().unwrap_or_default();
        return (ClockAlignment::WallClock, began.iter().map(|at| at - first).collect());
    }
    first()
}

/// The first collective that all recordings have, and what is added to the times of each so that it ends at one time.
fn first_common(logs: &[&RankLog]) -> Option<(ClockAlignment, Vec<u64>)> {
    let ends: Vec<BTreeMap<CollectiveKey, u64>> = logs
        .iter()
        .map(|log| log.calls().iter().filter_map(|call| Some((call.key(), call.span?.end_ns))).collect())
        .collect();
    let own = logs.first().map(|log| log.calls()).unwrap_or_default();
    for call in own {
        let all: Vec<u64> = ends.iter().filter_map(|of_log| of_log.get(&call.key()).copied()).collect();
        if all.len() == logs.len() {
            let last = all.iter().max().copied().unwrap_or_default();
            let clocks = ClockAlignment::FirstCollective { name: call.name.to_string(), number: call.number };
            return Some((clocks, all.iter().map(|end| last - end).collect()));
        }
    }
    None
}

fn lateness(collectives: &[JobCollective]) -> Vec<RankLateness> {
    let mut late: BTreeMap<u32, RankLateness> = BTreeMap::new();
    for call in collectives {
        let (ns, Some(last)) = (call.late_ns(), call.parts.last()) else { continue };
        if ns > 0 {
            let rank = late.entry(last.rank).or_default();
            rank.rank = last.rank;
            rank.times += 1;
            rank.ns = rank.ns.saturating_add(ns);
            rank.longest_ns = rank.longest_ns.max(ns);
        }
    }
    let mut late: Vec<RankLateness> = late.into_values().collect();
    late.sort_by_key(|rank| std::cmp::Reverse(rank.ns));
    late
}
