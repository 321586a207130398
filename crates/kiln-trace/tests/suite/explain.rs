//! What is said about hand-made recordings.

use kiln_trace::{
    DroppedRecord, Explainer, Explanation, HostWaitCause, IdleWhy, SubmissionRecord, TakeoverPhase,
    TakeoverRecord, TraceEvent, TraceStamp, TraceStream, WaitReason,
};

use crate::samples::{all_kinds, allocated, freed, kernel, span, stamp, synchronized, wait};

fn explained(events: &[TraceEvent<'_>]) -> Explanation {
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
fn the_largest_reasons_for_an_idle_device_come_first() {
    let device = explained(&[
        kernel("step", stamp(0, 1), 10, 1_000, span(1_000, 2_000)),
        // The program waited for it, and took 5 us more to submit the next.
        synchronized(30, span(1_100, 2_100)),
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
    assert_eq!(said[0], (wait, 5_000, "step"));
    assert_eq!(said[1], (IdleWhy::HostBusy, 3_000, "reduce"));
    assert_eq!(said[2], (IdleWhy::Start, 500, "last"));
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
    assert!(explained(&[]).to_string().contains("No device did anything"));
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
    assert!(text.contains("The device was lost and brought back: rebuilding 1.0 us, once"), "{text}");
    let said = "`all_reduce` once, 1.0 MiB altogether, 400 ns on the device with the wait for others, at most 400 ns \
                (rank 1 of 8, communicator 00000abc)";
    assert!(text.contains(said), "{text}");
    assert!(!text.contains("end mark"), "{text}");
    let said = "\nTo repeat it (the program records itself): KILN_SIM_SEED=7 $'./tr\\303n'\n  (the words behind the first 256 are not in the recording)\n";
    assert!(text.ends_with(said), "{text}");
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
