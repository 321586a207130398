//! Recordings of the ranks of one job.

use kiln_trace::{
    ClockAlignment, CollectiveRecord, JobExplanation, RankLog, StartRecord, SubmissionKind, SubmissionRecord,
    TraceEvent,
};

use crate::samples::{span, stamp};

/// A rank that calls `all_reduce` from these to those times.
fn rank(rank: u32, unix_ns: u64, calls: &[(u64, u64)]) -> RankLog {
    let mut log = RankLog::default();
    log.add(&TraceEvent::Start(StartRecord { unix_ns, ..StartRecord::default() }));
    for (number, (begin, end)) in (1..).zip(calls) {
        let call = CollectiveRecord {
            stamp: stamp(0, number),
            name: "all_reduce",
            communicator: 42,
            rank,
            ranks: 3,
            bytes: 1 << 16,
        };
        let work = SubmissionRecord {
            stamp: call.stamp,
            kind: SubmissionKind::Collective,
            name: call.name,
            device: Some(span(*begin, *end)),
            ..SubmissionRecord::default()
        };
        // In either order.
        let mut events = [TraceEvent::Collective(call), TraceEvent::Submission(work)];
        if number % 2 == 0 {
            events.reverse();
        }
        events.iter().for_each(|event| log.add(event));
    }
    log
}

#[test]
fn a_late_rank_is_named_on_the_axis_of_the_wall_clock() {
    let logs = [
        rank(0, 1_000_000_000, &[(1_000, 16_000_000), (20_000_000, 21_000_000)]),
        rank(1, 1_000_500_000, &[(2_000, 15_500_000), (19_500_000, 20_500_000)]),
        rank(2, 1_001_000_000, &[(13_001_000, 15_000_000), (19_000_000, 20_000_000)]),
    ];
    let job = JobExplanation::of(&logs.each_ref());
    assert_eq!(job.clocks, ClockAlignment::WallClock);
    assert_eq!(job.offsets_ns, [0, 500_000, 1_000_000]);
    let [first, second] = &*job.collectives else { panic!("{:?}", job.collectives) };
    let said = "`all_reduce` number 1 (64.0 KiB, communicator 0000002a): rank 2 came 14.0 ms after the first, rank 0";
    assert_eq!(first.to_string(), said);
    assert_eq!(second.late_ns(), 0);
    assert!(second.to_string().ends_with("all ranks came at once"), "{second}");
    let text = job.to_string();
    for said in
        [said, "3 recordings of one job", "aligned by the wall clock", "rank 2 came last once, 14.0 ms"]
    {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn without_a_wall_clock_the_end_of_the_first_common_collective_is_the_same_moment() {
    let logs = [rank(0, 0, &[(100, 900), (2_000, 2_500)]), rank(1, 5, &[(700, 1_000), (1_100, 2_600)])];
    let job = JobExplanation::of(&logs.each_ref());
    let named = ClockAlignment::FirstCollective { name: "all_reduce".to_owned(), number: 1 };
    assert_eq!((&job.clocks, &*job.offsets_ns), (&named, &[100, 0][..]));
    assert!(job.to_string().contains("the first collective that all recordings have"), "{job}");
    let first = &job.collectives[0];
    assert_eq!((first.parts[0].rank, first.parts[0].begin_ns, first.late_ns()), (0, 200, 500));
    assert!(first.to_string().ends_with("; 1 of 3 ranks is in no recording"), "{first}");
    assert_eq!(job.collectives[1].parts[0].rank, 1);
    let apart = JobExplanation::of(&[&logs[0], &RankLog::default()]);
    assert_eq!(apart.clocks, ClockAlignment::None);
    assert!(apart.to_string().contains("not aligned") && apart.collectives.is_empty(), "{apart}");
}

#[test]
fn one_recording_of_several_ranks_is_compared_with_itself() {
    let mut log = rank(0, 0, &[(0, 100)]);
    let other = CollectiveRecord {
        stamp: stamp(1, 1),
        name: "all_reduce",
        communicator: 42,
        rank: 1,
        ranks: 2,
        bytes: 8,
    };
    log.add(&TraceEvent::Collective(other));
    log.add(&TraceEvent::Submission(SubmissionRecord {
        stamp: stamp(1, 1),
        kind: SubmissionKind::Collective,
        host: span(70, 90),
        ..SubmissionRecord::default()
    }));
    let job = JobExplanation::of(&[&log]);
    assert_eq!((job.clocks, job.offsets_ns), (ClockAlignment::OneRecording, vec![0]));
    assert_eq!((job.collectives.len(), job.collectives[0].late_ns()), (1, 70));
}
