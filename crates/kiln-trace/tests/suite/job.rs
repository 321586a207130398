//! Recordings of the ranks of one job.

use kiln_trace::{
    ClockAlignment, CollectiveRecord, CommandRecord, DeviceRecord, EndRecord, JobExplanation, RankLog,
    RecordingClock, StartRecord, SubmissionKind, SubmissionRecord, TraceEvent, TraceStamp, TraceStream,
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

/// The same of simulated devices in a process for each rank: their clocks stand still while a rank waits for others.
fn simulated(number: u32, records_itself: bool, calls: &[(u64, u64)]) -> RankLog {
    let mut log = rank(number, 0, calls);
    let clock = RecordingClock::Virtual;
    log.add(&TraceEvent::Start(StartRecord { clock, ..StartRecord::default() }));
    log.add(&TraceEvent::Command(CommandRecord { records_itself, ..CommandRecord::default() }));
    log
}

#[test]
fn of_simulated_processes_the_rank_is_late_that_worked_longest_since_the_last_collective() {
    // Each collective takes 100. Rank 0 works 5,000 before the second, rank 1 3,000 before the third and rank 2 4,000 before the fourth; all others
    // take 1,000. On their clocks as they are, rank 0 is behind in all of them.
    let logs = [
        simulated(0, false, &[(1_000, 1_100), (6_100, 6_200), (7_200, 7_300), (8_300, 8_400)]),
        simulated(1, false, &[(1_000, 1_100), (2_100, 2_200), (5_200, 5_300), (6_300, 6_400)]),
        simulated(2, false, &[(1_500, 1_600), (2_600, 2_700), (3_700, 3_800), (7_800, 7_900)]),
    ];
    let job = JobExplanation::of(&logs.each_ref());
    assert_eq!(job.clocks, ClockAlignment::EachCollective);
    let mut late: Vec<(u64, u32, u64)> = Vec::new();
    for call in &job.collectives {
        late.push((call.number, call.parts.last().unwrap().rank, call.late_ns()));
    }
    late.sort_unstable();
    assert_eq!(late, [(1, 2, 500), (2, 0, 4_000), (3, 1, 2_000), (4, 2, 3_000)], "{job}");
    assert!(job.to_string().contains("Clocks: not comparable"), "{job}");
    // A program that began to record itself did so at any time: the first says nothing.
    let began = [
        simulated(0, true, &[(9_000, 9_100), (10_100, 10_200)]),
        simulated(1, true, &[(10, 110), (3_110, 3_210)]),
    ];
    let job = JobExplanation::of(&began.each_ref());
    let late: Vec<_> =
        job.collectives.iter().map(|call| (call.parts.last().unwrap().rank, call.late_ns())).collect();
    assert_eq!(late, [(1, 0), (1, 2_000)], "{job}");
}

#[test]
fn simulated_processes_that_miss_calls_are_compared_as_far_as_they_go() {
    let mut other = simulated(1, false, &[(10, 20)]);
    other.add(&TraceEvent::Collective(CollectiveRecord {
        stamp: stamp(5, 1),
        name: "broadcast",
        communicator: 43,
        rank: 0,
        ranks: 1,
        bytes: 8,
    }));
    let logs = [simulated(0, false, &[(100, 120), (200, 220), (300, 320)]), other, RankLog::default()];
    let job = JobExplanation::of(&logs.each_ref());
    assert_eq!((job.collectives.len(), job.collectives[0].late_ns()), (1, 90), "{job}");
}

#[test]
fn a_rank_that_was_killed_is_named_and_its_calls_are_not_said_to_be_missing() {
    let mut killed = simulated(2, false, &[]);
    killed.add(&TraceEvent::Collective(CollectiveRecord {
        stamp: stamp(0, 1),
        name: "all_reduce",
        communicator: 42,
        rank: 2,
        ranks: 3,
        bytes: 8,
    }));
    let mut logs = [simulated(0, false, &[(100, 120)]), simulated(1, false, &[(100, 120)]), killed];
    for log in &mut logs[..2] {
        log.add(&TraceEvent::End(EndRecord { time_ns: 900 }));
    }
    let job = JobExplanation::of(&logs.each_ref());
    let said = "all ranks came at once; rank 2 called it, and its time was not recorded";
    assert!(job.collectives[0].to_string().ends_with(said), "{}", job.collectives[0]);
    let text = job.to_string();
    assert!(text.contains("Rank 2 has no end mark: it was killed"), "{text}");
    assert!(!text.contains("Rank 0 has no end") && !text.contains("in no recording"), "{text}");
    // Clocks of the wall of which one is not known, and no call with times in common: nothing is compared.
    let apart = [rank(0, 7, &[(100, 900)]), rank(1, 0, &[(500, 900)]), RankLog::default()];
    let job = JobExplanation::of(&apart.each_ref());
    assert_eq!((job.clocks.clone(), job.late.len()), (ClockAlignment::None, 0), "{job}");
    assert!(job.collectives[0].to_string().contains("who came last is not known"), "{job}");
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

/// Adds a rank with a separate device, which calls `all_reduce` on a communicator from these to those times of a clock.
fn add_rank(
    log: &mut RankLog,
    (rank, communicator): (u32, u64),
    (clock, clock_kind): (u32, RecordingClock),
    calls: &[(u64, u64)],
) {
    log.add(&TraceEvent::Device(DeviceRecord { device: rank, name: "simulated GPU", clock, clock_kind }));
    for (number, (begin, end)) in (1..).zip(calls) {
        let stamp = TraceStamp { stream: TraceStream { device: rank, stream: 0 }, number };
        let (name, ranks, bytes) = ("all_reduce", 3, 64);
        log.add(&TraceEvent::Collective(CollectiveRecord { stamp, name, communicator, rank, ranks, bytes }));
        log.add(&TraceEvent::Submission(SubmissionRecord {
            stamp,
            kind: SubmissionKind::Collective,
            device: Some(span(*begin, *end)),
            ..SubmissionRecord::default()
        }));
    }
}

#[test]
fn ranks_of_one_recording_with_several_virtual_clocks_are_compared_from_collective_to_collective() {
    // As above: rank 0 is late to the second call, rank 1 to the third, rank 2 to the fourth.
    let calls: [&[(u64, u64)]; 3] = [
        &[(1_000, 1_100), (6_100, 6_200), (7_200, 7_300), (8_300, 8_400)],
        &[(1_000, 1_100), (2_100, 2_200), (5_200, 5_300), (6_300, 6_400)],
        &[(1_500, 1_600), (2_600, 2_700), (3_700, 3_800), (7_800, 7_900)],
    ];
    let mut log = RankLog::default();
    for (rank, calls) in (0..).zip(calls) {
        add_rank(&mut log, (rank, 42), (rank, RecordingClock::Virtual), calls);
    }
    let job = JobExplanation::of(&[&log]);
    assert_eq!(job.clocks, ClockAlignment::EachCollective);
    let mut late: Vec<(u64, u32, u64)> = Vec::new();
    for call in &job.collectives {
        late.push((call.number, call.parts.last().unwrap().rank, call.late_ns()));
    }
    late.sort_unstable();
    assert_eq!(late, [(1, 2, 500), (2, 0, 4_000), (3, 1, 2_000), (4, 2, 3_000)], "{job}");
    assert!(job.to_string().contains("Clocks: not comparable"), "{job}");
}

#[test]
fn a_rank_with_the_clock_of_the_host_is_not_compared_with_one_of_a_simulated_machine() {
    use RecordingClock::{Virtual, Wall};
    let mut log = RankLog::default();
    add_rank(&mut log, (0, 42), (0, Wall), &[(1_000_000, 2_000_000)]);
    add_rank(&mut log, (1, 42), (1, Virtual), &[(10, 20)]);
    // On another communicator are two ranks with one clock.
    add_rank(&mut log, (2, 43), (1, Virtual), &[(100, 200)]);
    add_rank(&mut log, (3, 43), (1, Virtual), &[(130, 200)]);
    let job = JobExplanation::of(&[&log]);
    assert!(job.clocks == ClockAlignment::SeveralClocks && !job.clocks.is_one_axis(), "{job}");
    let found = |communicator: &str| {
        let call = job.collectives.iter().find(|call| call.communicator == communicator).unwrap();
        (call.is_compared, call.late_ns(), call.to_string())
    };
    let (is_compared, late_ns, text) = found("0000002a");
    assert!(!is_compared && late_ns == 0 && text.contains("who came last is not known"), "{text}");
    let (is_compared, late_ns, text) = found("0000002b");
    assert!(is_compared && late_ns == 30 && text.contains("rank 3 came 30 ns after the first"), "{text}");
    assert!(job.to_string().contains("only ranks with one clock are compared"), "{job}");
    assert_eq!(job.late.len(), 1, "{job}");
}
