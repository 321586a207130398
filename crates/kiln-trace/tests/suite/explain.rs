//! What is said about hand-made recordings.

use kiln_trace::{
    DroppedRecord, EndRecord, Explainer, Explanation, FaultRecord, FindingRecord, HeapChange, HeapRecord,
    HostWaitCause, IdleWhy, PostMortemRecord, StreamWaitRecord, SubmissionRecord, TakeoverPhase,
    TakeoverRecord, TraceEvent, TraceLine, TraceStamp, TraceStream, WaitReason,
};

use crate::samples::{all_kinds, allocated, finding, freed, kernel, line, span, stamp, synchronized, wait};

pub(crate) fn explained(events: &[TraceEvent<'_>]) -> Explanation {
    let mut explainer = Explainer::default();
    events.iter().for_each(|event| explainer.add(event));
    explainer.finish()
}

#[test]
fn a_consumer_that_waits_for_unrelated_work_is_named_with_block_and_line() {
    // The consumer needs what submission 1 wrote; the event it waits for was recorded behind submission 2.
    let planted = explained(&[
        kernel("produce", stamp(0, 1), 10, 100, span(1_000, 2_000)),
        kernel("unrelated", stamp(0, 2), 11, 110, span(2_000, 9_000)),
        wait(stamp(1, 1), stamp(0, 1), 2, "activations"),
        kernel("consume", stamp(1, 1), 20, 120, span(9_000, 9_500)),
    ]);
    let [stall] = &*planted.devices[0].stalls else { panic!("{planted}") };
    assert_eq!((&*stall.waiter.name, stall.waiter.line.as_deref()), ("consume", Some("src/train.rs:20")));
    assert_eq!((&*stall.writer.name, stall.writer.line.as_deref()), ("produce", Some("src/train.rs:10")));
    assert_eq!(
        (stall.block, &*stall.tag, stall.reason),
        (Some(12), "activations", WaitReason::ReadAfterWrite)
    );
    assert_eq!(stall.unrelated.as_ref().map(|work| &*work.name), Some("unrelated"));
    assert_eq!((stall.ns, stall.unrelated_ns), (9_000 - 120, 7_000));
    let text = planted.to_string();
    let said = "`consume` (src/train.rs:20, stream 1, submission 1) reads `activations` (block 12), written by `produce`";
    assert!(text.contains(said), "{text}");
    assert!(text.contains("7.0 us of the longest went to unrelated work, up to `unrelated`"), "{text}");
}

#[test]
fn a_wait_that_was_needed_is_not_called_unrelated_and_one_that_cost_nothing_is_left_out() {
    let needed = explained(&[
        kernel("produce", stamp(0, 1), 10, 100, span(1_000, 2_000)),
        wait(stamp(1, 1), stamp(0, 1), 1, "activations"),
        kernel("consume", stamp(1, 1), 20, 120, span(2_000, 2_500)),
        // Its own stream is busy for longer than what it waits for.
        wait(stamp(1, 2), stamp(0, 1), 1, "weights"),
        kernel("late", stamp(1, 2), 21, 130, span(2_500, 2_600)),
    ]);
    let [stall] = &*needed.devices[0].stalls else { panic!("{needed}") };
    assert_eq!((stall.ns, stall.unrelated_ns, &stall.unrelated), (1_880, 0, &None));
}

#[test]
fn work_before_what_is_not_in_the_recording_is_not_called_unrelated() {
    // Submission 2, which the consumer needs, was left out; only the one before it on the stream is known.
    let cut = explained(&[
        kernel("before", stamp(0, 1), 10, 100, span(1_000, 9_000)),
        wait(stamp(1, 1), stamp(0, 2), 2, "activations"),
        kernel("consume", stamp(1, 1), 20, 120, span(9_500, 9_900)),
    ]);
    let stalls = &cut.devices[0].stalls;
    assert!(stalls.iter().all(|stall| (stall.unrelated_ns, &stall.unrelated) == (0, &None)), "{cut}");
    assert!(!cut.to_string().contains("unrelated"), "{cut}");
}

#[test]
fn the_largest_reasons_for_an_idle_device_come_first() {
    let device = explained(&[
        kernel("step", stamp(0, 1), 10, 1_000, span(1_000, 2_000)),
        // The program waited for it, and did something else before it submitted the next.
        synchronized(30, span(1_100, 3_500)),
        kernel("step", stamp(0, 2), 10, 7_000, span(7_000, 8_000)),
        // The program computed something, without a wait.
        kernel("reduce", stamp(0, 3), 12, 11_000, span(11_000, 12_000)),
        // Queued long before, and started late.
        kernel("last", stamp(0, 4), 13, 11_500, span(12_500, 13_000)),
    ]);
    let [device] = &*device.devices else { panic!("{device}") };
    assert_eq!((device.span_ns, device.busy_ns), (12_001, Some(3_500)));
    let said: Vec<_> =
        device.idle.iter().map(|reason| (reason.why.clone(), reason.ns, &*reason.before.name)).collect();
    let line = Some("src/train.rs:30".to_owned());
    let wait = IdleWhy::HostWait { cause: HostWaitCause::Synchronize, line };
    // With the time in which the first was submitted.
    assert_eq!(said[0], (IdleWhy::HostBusy, 3_501, "step"));
    assert_eq!(said[1], (IdleWhy::HostBusy, 3_000, "reduce"));
    assert_eq!(said[2], (wait, 1_500, "step"));
}

#[test]
fn a_lost_device_is_told_as_often_as_it_was_lost_and_not_brought_back_if_it_was_not() {
    let step = |phase, begin_ns| {
        TraceEvent::Takeover(TakeoverRecord { device: 0, phase, span: span(begin_ns, begin_ns + 1_000) })
    };
    let (lost, rebuilding) = (TakeoverPhase::Lost, TakeoverPhase::Rebuilding);
    let takeover = [lost, rebuilding, TakeoverPhase::Resubmitting, rebuilding];
    let mut events: Vec<TraceEvent<'_>> =
        takeover.iter().zip(0..).map(|(phase, at)| step(*phase, at * 1_000)).collect();
    let said = |events: &[TraceEvent<'_>]| explained(events).to_string();
    let text = said(&events);
    let once = "  The device was lost and brought back once, 4.0 us: lost 1.0 us, rebuilding 2.0 us, resubmitting 1.0 us\n";
    assert!(text.contains(once), "{text}");
    events.extend(takeover.iter().zip(10..).map(|(phase, at)| step(*phase, at * 1_000)));
    assert!(said(&events).contains("  The device was lost and brought back 2 times, 8.0 us: "));
    // It was begun, and came to nothing.
    events.extend([step(lost, 20_000), step(rebuilding, 21_000)]);
    let message = "the device was not brought back: no worker could be started";
    events.push(TraceEvent::Fault(FaultRecord { message, ..FaultRecord::default() }));
    let text = said(&events);
    assert!(text.contains("  The device was lost 3 times and brought back 2 times, 10.0 us: "), "{text}");
    assert!(said(&[step(lost, 0)]).contains("  The device was lost, and was not brought back.\n"));
}

#[test]
fn a_post_mortem_is_told_whole_with_the_command_that_repeats_it() {
    let found = explained(&all_kinds());
    let [told] = &*found.post_mortems else { panic!("{found}") };
    assert_eq!((told.device, told.generation, told.lines.len()), (0, 0, 2));
    let text = found.to_string();
    let said = "\nPost-mortem of device 0:\n  worker lost: killed\n    under way s0#1 launch gemm\n";
    let (before, after) = text.split_once(said).unwrap_or_else(|| panic!("{text}"));
    assert!(before.contains("\nFaults:\n") && after.contains("\nTo repeat it"), "{text}");
    // Another loss has another one.
    let again = PostMortemRecord { generation: 1, line: "again", ..PostMortemRecord::default() };
    let events = [all_kinds(), vec![TraceEvent::PostMortem(again)]].concat();
    let generations: Vec<u32> =
        explained(&events).post_mortems.iter().map(|found| found.generation).collect();
    assert_eq!(generations, [0, 1]);
}

#[test]
fn time_in_which_work_may_have_run_that_was_not_measured_is_not_idle() {
    let untimed = |number, host_ns| {
        let TraceEvent::Submission(work) = kernel("step", stamp(0, number), 10, host_ns, span(0, 0)) else {
            unreachable!("it is a submission")
        };
        TraceEvent::Submission(SubmissionRecord { device: None, ..work })
    };
    // Every fourth is measured; the program is idle before the last, when all others have long begun.
    let found = explained(&[
        kernel("step", stamp(0, 1), 10, 1_000, span(1_000, 2_000)),
        untimed(2, 1_200),
        untimed(3, 1_300),
        untimed(4, 1_400),
        kernel("step", stamp(0, 5), 10, 1_500, span(5_000, 6_000)),
        kernel("late", stamp(0, 6), 12, 8_000, span(8_000, 9_000)),
    ]);
    let [device] = &*found.devices else { panic!("{found}") };
    let said: Vec<_> = device.idle.iter().map(|reason| (reason.why.clone(), reason.ns)).collect();
    // The first took a moment to be submitted.
    let idle = vec![(IdleWhy::HostBusy, 2_000), (IdleWhy::HostBusy, 1)];
    assert_eq!((device.unknown_ns, said), (3_000, idle), "{found}");
    let text = found.to_string();
    assert!(text.contains("idle 2.0 us (25 %)"), "{text}");
    let said = "3 submissions were not measured, so that of 3.0 us it is not known whether it was idle";
    assert!(text.contains(said), "{text}");
}

#[test]
fn work_behind_the_last_that_was_measured_is_in_the_span_and_not_known() {
    let TraceEvent::Submission(work) = kernel("step", stamp(0, 2), 10, 90_000, span(0, 0)) else {
        unreachable!("it is a submission")
    };
    let found = explained(&[
        kernel("step", stamp(0, 1), 10, 1_000, span(1_000, 2_000)),
        TraceEvent::Submission(SubmissionRecord { device: None, ..work }),
    ]);
    let [device] = &*found.devices else { panic!("{found}") };
    assert_eq!((device.span_ns, device.busy_ns, device.unknown_ns), (89_001, Some(1_000), 88_000), "{found}");
    let text = found.to_string();
    assert!(text.contains("1 submission was not measured, so that of 88.0 us it is not known"), "{text}");
    let one = explained(&[kernel("step", stamp(0, 1), 10, 1_000, span(1_000, 2_000))]).to_string();
    assert!(one.contains("Device 0: 1 submission in "), "{one}");
}

#[test]
fn memory_that_was_allocated_behind_other_work_is_not_said_to_be_written_by_it() {
    let allocated = WaitReason::Allocation;
    let TraceEvent::StreamWait(wait) = wait(stamp(1, 1), stamp(0, 1), 1, "fresh") else {
        unreachable!("it is a wait")
    };
    let found = explained(&[
        kernel("fill", stamp(0, 1), 10, 100, span(200, 9_000)),
        TraceEvent::StreamWait(StreamWaitRecord { reason: allocated, ..wait }),
        kernel("spin", stamp(1, 1), 11, 150, span(9_100, 9_500)),
    ]);
    let said = "uses `fresh` (block 12), which was allocated on stream 0 behind `fill` (src/train.rs:10, stream 0, submission 1); allocate it on the stream that uses it first";
    assert!(found.to_string().contains(said), "{found}");
}

#[test]
fn a_takeover_is_named_as_the_reason_also_where_it_took_work_along() {
    let TraceEvent::Submission(lost) = kernel("lost", stamp(0, 2), 11, 2_500, span(0, 0)) else {
        unreachable!("it is a submission")
    };
    let step = |phase, span| TraceEvent::Takeover(TakeoverRecord { device: 0, phase, span });
    let found = explained(&[
        kernel("step", stamp(0, 1), 10, 1_000, span(1_000, 2_000)),
        TraceEvent::Submission(SubmissionRecord { device: None, ..lost }),
        step(TakeoverPhase::Lost, span(3_000, 4_000)),
        step(TakeoverPhase::Rebuilding, span(4_000, 9_000)),
        kernel("step", stamp(0, 3), 10, 9_000, span(9_000, 10_000)),
    ]);
    let [device] = &*found.devices else { panic!("{found}") };
    let said: Vec<_> = device.idle.iter().map(|reason| (reason.why.clone(), reason.ns)).collect();
    let [rebuilding, lost] =
        [TakeoverPhase::Rebuilding, TakeoverPhase::Lost].map(|phase| IdleWhy::Takeover { phase });
    assert_eq!(said[..2], [(rebuilding, 5_000), (lost, 1_000)], "{found}");
    // The work that was lost may have run before that.
    assert_eq!((device.unknown_ns, device.busy_ns), (501, Some(2_000)), "{found}");
    let text = found.to_string();
    assert!(text.contains("5.0 us: the device was lost and brought back (rebuilding)"), "{text}");
}

#[test]
fn work_that_was_lost_in_a_takeover_does_not_run_after_it() {
    let untimed = |stream, number, host_ns| {
        let TraceEvent::Submission(work) = kernel("lost", stamp(stream, number), 11, host_ns, span(0, 0))
        else {
            unreachable!("it is a submission")
        };
        TraceEvent::Submission(SubmissionRecord { device: None, ..work })
    };
    let step = |phase, span| TraceEvent::Takeover(TakeoverRecord { device: 0, phase, span });
    let events = |phases: &[TakeoverPhase]| {
        let mut events = vec![
            kernel("step", stamp(0, 1), 10, 1_000, span(1_000, 2_000)),
            // Its stream is not used any more.
            untimed(1, 1, 2_500),
        ];
        events.extend(
            phases.iter().zip(3..).map(|(phase, at)| step(*phase, span(at * 1_000, at * 1_000 + 1_000))),
        );
        events.push(kernel("step", stamp(0, 2), 10, 12_000, span(12_000, 13_000)));
        events
    };
    let (lost, rebuilding) = (TakeoverPhase::Lost, TakeoverPhase::Rebuilding);
    let found = explained(&events(&[lost, rebuilding, rebuilding]));
    let [device] = &*found.devices else { panic!("{found}") };
    let said: Vec<_> = device.idle.iter().map(|reason| (reason.why.clone(), reason.ns)).collect();
    let takeover = |phase| IdleWhy::Takeover { phase };
    // The program submitted nothing from the end of the takeover on, nor before the work that was lost, nor at the beginning.
    let idle = [(IdleWhy::HostBusy, 6_500), (takeover(rebuilding), 2_000), (takeover(lost), 1_000)];
    assert_eq!((device.unknown_ns, &said[..]), (501, &idle[..]), "{found}");
    // Work that was submitted again, or later, may run after it.
    let again = explained(&events(&[lost, rebuilding, TakeoverPhase::Resubmitting]));
    assert_eq!(again.devices[0].unknown_ns, 501 + 6_000, "{again}");
    let mut later = events(&[lost, rebuilding, rebuilding]);
    later.push(untimed(1, 2, 8_000));
    let later = explained(&later);
    assert_eq!(later.devices[0].unknown_ns, 501 + 4_001, "{later}");
}

#[test]
fn with_missing_events_neither_idle_time_nor_leaks_are_stated() {
    let mut events = vec![
        allocated(1, 1 << 20, "weights", 5, 10),
        kernel("step", stamp(0, 1), 10, 1_000, span(1_000, 2_000)),
        kernel("step", stamp(0, 900), 10, 8_000, span(8_000, 9_000)),
        TraceEvent::End(EndRecord { time_ns: 9_000 }),
    ];
    let whole = explained(&events).to_string();
    assert!(whole.contains("idle 6.0 us") && whole.contains("Not given back by the end"), "{whole}");
    events.insert(2, TraceEvent::Dropped(DroppedRecord { events: 898, ..DroppedRecord::default() }));
    let found = explained(&events);
    let text = found.to_string();
    assert!(text.contains("events are missing, so that idle time is not known"), "{text}");
    assert!(!text.contains("idle 6") && !text.contains("had not submitted"), "{text}");
    assert!(text.contains("Held when the recording stops") && !text.contains("Not given back"), "{text}");
    assert_eq!((found.devices[0].busy_ns, found.devices[0].idle.len()), (None, 0));
    // What is left out of a damaged file is missing, too.
    events.remove(2);
    let mut explainer = Explainer::default();
    events.iter().for_each(|event| explainer.add(event));
    explainer.leave_out(1, 4096);
    let text = explainer.finish().to_string();
    assert!(text.contains("1 damaged block is left out (4096 bytes)"), "{text}");
    assert!(text.contains("events are missing, so that idle time is not known"), "{text}");
    assert!(!text.contains("Not given back"), "{text}");
}

#[test]
fn work_that_waits_for_another_device_names_it() {
    let other = TraceStamp { stream: TraceStream { device: 1, stream: 0 }, number: 1 };
    let found = explained(&[
        kernel("send", other, 40, 90, span(100, 5_000)),
        kernel("first", stamp(0, 1), 10, 100, span(100, 1_000)),
        wait(stamp(0, 2), other, 1, "halo"),
        kernel("stencil", stamp(0, 2), 11, 110, span(5_000, 6_000)),
    ]);
    let reason = &found.devices[0].idle[0];
    let IdleWhy::OtherDevice { writer } = &reason.why else { panic!("{found}") };
    assert_eq!(
        (&*writer.name, writer.device, reason.ns, &*reason.before.name),
        ("send", 1, 4_000, "stencil")
    );
    assert!(found.to_string().contains("waited for `send`"), "{found}");
}

#[test]
fn a_takeover_is_a_reason() {
    let found = explained(&[
        kernel("a", stamp(0, 1), 10, 100, span(100, 1_000)),
        TraceEvent::Takeover(TakeoverRecord {
            device: 0,
            phase: TakeoverPhase::Rebuilding,
            span: span(1_000, 4_000),
        }),
        kernel("b", stamp(0, 2), 11, 4_100, span(4_100, 5_000)),
    ]);
    let [first, ..] = &*found.devices[0].idle else { panic!("{found}") };
    assert_eq!(
        (first.why.clone(), first.ns),
        (IdleWhy::Takeover { phase: TakeoverPhase::Rebuilding }, 3_000)
    );
}

#[test]
fn a_leak_is_named_with_its_tag_and_line() {
    let mut events = vec![allocated(1, 1 << 20, "weights", 5, 10)];
    for step in 0..10 {
        events.push(allocated(100 + step, 4 << 20, "activations", 9, 100 + step));
        events.push(freed(100 + step, 4 << 20, "activations", 150 + step));
        // This one is never given back.
        events.push(allocated(200 + step, 1 << 19, "loss history", 31, 1_000 + step));
    }
    events.push(freed(1, 1 << 20, "weights", 5_000));
    events.push(freed(999, 1 << 30, "from before", 5_000));
    let found = explained(&events);
    let memory = &found.devices[0].memory;
    let leak = memory.iter().find(|tag| tag.left_bytes > 0).expect("a leak");
    assert_eq!((&*leak.tag, leak.left_bytes, leak.left_blocks), ("loss history", 5 << 20, 10));
    assert_eq!((leak.left_line.as_deref(), leak.left_since_ns), (Some("src/train.rs:31"), Some(1_000)));
    assert_eq!(memory.iter().filter(|tag| tag.left_bytes > 0).count(), 1);
    assert_eq!((found.devices[0].peak_bytes, &*memory[0].tag), ((1 << 20) + (40 << 20), "activations"));
    let text = found.to_string();
    assert!(text.contains("5.0 MiB in 10 blocks of `loss history`, most by src/train.rs:31"), "{text}");
}

#[test]
fn the_waits_of_the_program_are_listed_by_line() {
    let found = explained(&[
        synchronized(30, span(0, 1_000)),
        synchronized(30, span(2_000, 5_000)),
        synchronized(44, span(6_000, 6_500)),
    ]);
    let [first, second] = &*found.host_waits else { panic!("{found}") };
    assert_eq!(
        (first.line.as_deref(), first.ns, first.times, first.longest_ns),
        (Some("src/train.rs:30"), 4_000, 2, 3_000)
    );
    assert_eq!(second.ns, 500);
    assert!(found.to_string().contains("`synchronize` at src/train.rs:30"), "{found}");
}

#[test]
fn what_was_not_measured_is_said_and_not_made_up() {
    let work =
        SubmissionRecord { stamp: stamp(0, 1), name: "a", host: span(5, 9), ..SubmissionRecord::default() };
    let found = explained(&[
        TraceEvent::Submission(work),
        TraceEvent::Dropped(DroppedRecord { events: 3, time_ns: 10, ..DroppedRecord::default() }),
    ]);
    assert_eq!((found.devices[0].busy_ns, found.devices[0].idle.len()), (None, 0));
    let text = found.to_string();
    assert!(
        text.contains("when they ran was not measured") && text.contains("3 events are missing"),
        "{text}"
    );
    let end = TraceEvent::End(EndRecord { time_ns: 1 });
    assert!(explained(&[end]).to_string().contains("No device did anything"));
    let cut = explained(&[]).to_string();
    assert!(cut.contains("Nothing that a device did was written before the end."), "{cut}");
}

#[test]
fn every_kind_of_event_can_be_explained() {
    let text = explained(&all_kinds()).to_string();
    for said in ["Recording of train", "simulated GPU", "`relu`", "an illegal address in gemm", "activations"]
    {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn a_refused_allocation_is_told_with_the_largest_tags_and_holes() {
    let text = explained(&all_kinds()).to_string();
    let said = "Out of memory: 8.0 MiB were asked for at src/train.rs:33, 1.9 us after the beginning, with a limit of 4.0 MiB; \
                the heap held 2.0 MiB, 1.0 MiB free with a largest piece of 512.0 KiB; most was held by `activations` (1.0 MiB)";
    assert!(text.contains(said), "{text}");
    assert!(text.contains("the heap took up to 2.0 MiB from the device"), "{text}");
    let did = "  Memory: the heap grew once, 2.0 MiB, most for `activations` (2.0 MiB)\n  Memory: the heap remapped memory once, 6.0 MiB, most for `activations` (6.0 MiB)\n";
    assert!(text.contains(did), "{text}");
    assert!(
        text.contains("The device was lost and brought back once, 1.0 us: lost 100 ns, rebuilding 900 ns\n"),
        "{text}"
    );
    let said = "`all_reduce` once, 1.0 MiB altogether, 400 ns on the device with the wait for others, at most 400 ns \
                (rank 1 of 8, communicator 00000abc)";
    assert!(text.contains(said), "{text}");
    assert!(!text.contains("end mark"), "{text}");
    let said = "\nTo repeat it (which records it again): KILN_SIM_SEED=7 $'./tr\\303n'\n  (the words behind the first 256 are not in the recording)\n";
    assert!(text.ends_with(said), "{text}");
}

#[test]
fn every_refused_allocation_is_counted_and_the_first_are_described() {
    let refused = |at: u64| {
        TraceEvent::Heap(HeapRecord {
            change: HeapChange::OutOfMemory,
            bytes: at << 20,
            time_ns: at,
            ..HeapRecord::default()
        })
    };
    for (count, said) in
        [(3, ""), (4, "  1 more allocation was refused.\n"), (5, "  2 more allocations were refused.\n")]
    {
        let found = explained(&(1..=count).map(refused).collect::<Vec<_>>());
        let [device] = &*found.devices else { panic!("{found}") };
        assert_eq!(device.refusals, count, "{found}");
        let described: Vec<u64> = device.refused.iter().map(|refused| refused.bytes >> 20).collect();
        assert_eq!(described, [1, 2, 3], "{found}");
        let text = found.to_string();
        assert!(text.contains(said) && text.contains(" more allocation") == (count > 3), "{text}");
    }
}

#[test]
fn a_recording_without_an_end_mark_says_so() {
    let all = all_kinds();
    let cut = explained(&all[..all.len() - 1]);
    assert!(!cut.is_whole && cut.to_string().contains("It ended without an end mark"), "{cut}");
    let device = all.iter().find(|event| matches!(event, TraceEvent::Device(_))).unwrap();
    let again = [&all[..], &[*device]].concat();
    assert!(!explained(&again).is_whole, "another device began after the mark");
}

#[test]
fn findings_are_told_with_the_line_of_the_kernel_and_the_work() {
    let found = explained(&all_kinds());
    assert_eq!((found.findings.len(), found.finding_count), (1, 3));
    let said = "\nFindings of the checks:\n  race at relu.cu:7, in `relu` (src/train.rs:11, stream 1, submission 1): thread 3 writes what thread 4 \
                reads. Repeat with seed 7.\n  and 2 more\n";
    assert!(found.to_string().contains(said), "{found}");
}

#[test]
fn repeats_of_a_finding_are_counted_with_it_and_hide_no_other() {
    let TraceEvent::Finding(first) = finding() else { panic!("a finding") };
    let other = TraceEvent::Finding(FindingRecord { rule: "read of bytes that were never written", ..first });
    let counted = TraceEvent::Finding(FindingRecord { more: 7, ..first });
    let mut all = vec![finding(); 25];
    all.extend([other, counted]);
    let found = explained(&all);
    let times: Vec<u64> = found.findings.iter().map(|finding| finding.times).collect();
    assert_eq!((times, found.finding_count), (vec![32, 1], 33));
    let said = found.to_string();
    assert!(said.contains("\n  race at relu.cu:7, 32 times, first in `relu` ("), "{said}");
    assert!(said.contains("\n  read of bytes that were never written at relu.cu:7, in `relu` ("), "{said}");
    assert!(!said.contains(" more\n"), "{said}");
}

#[test]
fn of_many_different_findings_the_first_are_told_and_all_are_counted() {
    let TraceEvent::Finding(first) = finding() else { panic!("a finding") };
    let at = |line| {
        TraceEvent::Finding(FindingRecord { line: Some(TraceLine { file: "relu.cu", line }), ..first })
    };
    let found = explained(&(1..=25).map(at).collect::<Vec<_>>());
    assert_eq!((found.findings.len(), found.finding_count), (10, 25));
    assert!(found.to_string().contains("\n  and 15 more\n"), "{found}");
    assert!(!explained(&[]).to_string().contains("Findings"));
}

#[test]
fn a_request_that_is_larger_than_any_block_is_not_told_as_lack_of_memory() {
    let refused = |change| {
        let refused =
            HeapRecord { change, bytes: 1 << 40, line: line(7), time_ns: 5, ..HeapRecord::default() };
        explained(&[TraceEvent::Heap(refused)]).to_string()
    };
    let text = refused(HeapChange::TooLarge);
    assert!(text.contains("  Refused: ") && !text.contains("Out of memory"), "{text}");
    assert!(text.contains(" were asked for at src/train.rs:7"), "{text}");
    assert!(text.contains(", which is more than any block can have\n"), "{text}");
    let text = refused(HeapChange::OutOfMemory);
    assert!(text.contains("  Out of memory: ") && !text.contains("more than any block"), "{text}");
}
