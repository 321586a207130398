//! The collectives of a recording, with what the device computed between them.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use kiln::group::{CollectiveKind, CollectiveTrace, TracedCollective};
use kiln_trace::{SubmissionKind, TimeSpan, TraceEvent, TraceStamp};

use crate::console::complain;
use crate::failure::Failure;
use crate::plural::counted;
use crate::recording_file;

/// The most collectives that are read.
const MAX_COLLECTIVES: usize = 10_000_000;

/// One collective of the recording.
struct Recorded {
    stamp: TraceStamp,
    rank: u32,
    /// None for a group of different ones.
    kind: Option<CollectiveKind>,
    bytes: u64,
}

/// Reads a recording: the collectives of its lowest rank in their order, and how long its device ran other work between the beginnings of two of them. What it computed while one ran is said to overlap
/// with it.
///
/// # Errors
/// A file that cannot be read; a recording without collectives.
pub(super) fn read(path: &Path) -> Result<CollectiveTrace, Failure> {
    let mut reader = recording_file::open(path, false)?;
    let (mut collectives, mut work) = (Vec::new(), Vec::new());
    while let Some(event) = reader.next_event().map_err(|error| recording_file::failure(path, &error))? {
        match event {
            TraceEvent::Collective(call) if collectives.len() < MAX_COLLECTIVES => {
                collectives.push(Recorded {
                    stamp: call.stamp,
                    rank: call.rank,
                    kind: TracedCollective::kind_named(call.name),
                    bytes: call.bytes,
                })
            }
            TraceEvent::Submission(submission) => {
                work.extend(submission.device.map(|span| (submission.stamp, submission.kind, span)));
            }
            _ => {}
        }
    }
    recording_file::note_gaps(path, &reader);
    let Some(rank) = collectives.iter().map(|call| call.rank).min() else {
        let next = "record a program with collectives: `kiln trace -- PROGRAM`";
        return Err(Failure::file(path, "the recording has no collective").next(next));
    };
    collectives.retain(|call| call.rank == rank);
    Ok(trace(path, &collectives, &work))
}

fn trace(
    path: &Path,
    collectives: &[Recorded],
    work: &[(TraceStamp, SubmissionKind, TimeSpan)],
) -> CollectiveTrace {
    let device = collectives.first().map(|call| call.stamp.stream.device);
    let here = || work.iter().filter(|(stamp, ..)| Some(stamp.stream.device) == device);
    let mut calls: Vec<(TimeSpan, &Recorded)> = Vec::new();
    let spans: HashMap<TraceStamp, TimeSpan> = here().map(|(stamp, _, span)| (*stamp, *span)).collect();
    let mut without_time = 0;
    for call in collectives {
        match spans.get(&call.stamp) {
            Some(span) => calls.push((*span, call)),
            None => {
                without_time += 1;
                let last = calls.last().map_or(0, |(span, _)| span.end_ns);
                calls.push((TimeSpan::new(last, last), call));
            }
        }
    }
    calls.sort_by_key(|(span, _)| span.begin_ns);
    let computing = here().filter(|(_, kind, _)| *kind != SubmissionKind::Collective);
    let computing = joined(computing.map(|(.., span)| *span).collect());
    let within = |begin_ns: u64, end_ns: u64| {
        let first = computing.partition_point(|span| span.end_ns <= begin_ns);
        let meant = computing.iter().skip(first).take_while(|span| span.begin_ns < end_ns);
        meant.map(|span| span.within(begin_ns, end_ns)).sum::<u64>()
    };
    let (mut steps, mut groups, mut since_ns) = (Vec::new(), 0_u64, 0);
    for (span, call) in &calls {
        let Some(kind) = call.kind else {
            groups += 1;
            continue;
        };
        let compute = Duration::from_nanos(within(since_ns, span.begin_ns));
        let overlaps = within(span.begin_ns, span.end_ns) > 0;
        steps.push(TracedCollective { kind, bytes: call.bytes, count: 1, compute, overlaps });
        since_ns = span.begin_ns;
    }
    note(path, without_time, groups);
    let mut trace = CollectiveTrace::new(steps);
    trace.compute(Duration::from_nanos(within(since_ns, u64::MAX)));
    trace
}

/// Spans of time in their order, those that overlap as one.
fn joined(mut spans: Vec<TimeSpan>) -> Vec<TimeSpan> {
    spans.sort_by_key(|span| span.begin_ns);
    let mut joined: Vec<TimeSpan> = Vec::with_capacity(spans.len());
    for span in spans {
        match joined.last_mut().filter(|last| last.end_ns >= span.begin_ns) {
            Some(last) => last.end_ns = last.end_ns.max(span.end_ns),
            None => joined.push(span),
        }
    }
    joined
}

/// Says what the estimates do not know.
fn note(path: &Path, without_time: u64, groups: u64) {
    let path = path.display();
    if without_time > 0 {
        let calls = counted(without_time, "collective");
        complain(format_args!(
            "{path}: note: {calls} without a time on the device; computing before them is not known"
        ));
    }
    if groups > 0 {
        let calls = counted(groups, "group");
        complain(format_args!("{path}: note: {calls} of different collectives left out"));
    }
}
