//! Why a stream waited, in the words of `kiln explain`.

use kiln_trace::{
    RecordingReader, StreamWaitRecord, SubmissionKind, SubmissionRecord, TraceEvent, TraceLine, WaitReason,
};
use kiln_watch::{WatchError, WatchedRecording, WorkDetails};

use crate::samples::{Recording, kernel, planted, random_events, span, stamp, synchronized, wait};

fn work(watched: &WatchedRecording, name: &str) -> WorkDetails {
    let found = watched.find(name);
    let place = found[0].totals.longest;
    watched.work(place.row, place.number).unwrap()
}

#[test]
fn a_consumer_that_waited_for_unrelated_work_says_so() {
    let recording = Recording::of(&planted(), 3);
    let watched = recording.read();
    let consume = work(&watched, "consume");
    assert_eq!((consume.kind, consume.line.as_deref()), ("kernel", Some("src/train.rs:20")));
    let gap = consume.gap.unwrap();
    assert_eq!((gap.begin_ns, gap.end_ns), (1_000, 90_000));
    let said = "89.0 us: `consume` (src/train.rs:20, stream 1, submission 1) reads `activations` (block 12), written by \
                `produce` (src/train.rs:10, stream 0, submission 1); 60.0 us of the longest went to unrelated work, up to \
                `unrelated` (src/train.rs:11, stream 0, submission 2)";
    assert_eq!(gap.sentences, [said]);
    let [wait] = &*gap.waits else { panic!("{:?}", gap.waits) };
    assert_eq!((wait.block, &*wait.tag, &*wait.writer), (Some(12), "activations", "produce"));
    assert_eq!((wait.device, wait.stream, wait.number, wait.end_ns), (0, 0, 1, Some(30_000)));
    assert_eq!(wait.line.as_deref(), Some("src/train.rs:10"));
    // The same sentence is in the explanation.
    let text = watched.explain().unwrap();
    assert!(text.contains(said), "{text}");
}

#[test]
fn a_library_call_is_not_called_a_kernel() {
    let TraceEvent::Submission(product) = kernel("blas.matmul", stamp(0, 1), 10, 100, span(1_000, 9_000))
    else {
        panic!("a submission")
    };
    let product = TraceEvent::Submission(SubmissionRecord { kind: SubmissionKind::Library, ..product });
    let events = [product, kernel("relu", stamp(0, 2), 11, 200, span(9_000, 9_500))];
    let recording = Recording::of(&events, 100);
    let watched = recording.read();
    let kinds = ["blas.matmul", "relu"].map(|name| work(&watched, name).kind);
    assert_eq!(kinds, ["library call", "kernel"]);
}

#[test]
fn a_wait_that_the_program_asked_for_has_the_line_that_asked() {
    let waiter = stamp(1, 1);
    let asked = StreamWaitRecord {
        waiter,
        writer: stamp(0, 1),
        covers: 1,
        reason: WaitReason::Asked,
        line: Some(TraceLine { file: "src/train.rs", line: 40 }),
        ..StreamWaitRecord::default()
    };
    let events = [
        kernel("produce", stamp(0, 1), 10, 100, span(1_000, 9_000)),
        TraceEvent::StreamWait(asked),
        kernel("consume", stamp(1, 2), 20, 120, span(9_000, 9_500)),
    ];
    let consume = work(&Recording::of(&events, 100).read(), "consume");
    let gap = consume.gap.unwrap();
    let [wait] = &*gap.waits else { panic!("{:?}", gap.waits) };
    assert_eq!(wait.reason, "waits because the program asked for that");
    assert_eq!((wait.asked_at.as_deref(), wait.block), (Some("src/train.rs:40"), None));
    let said = "waited for `produce` (src/train.rs:10, stream 0, submission 1), because the program asked for that at src/train.rs:40";
    assert!(gap.sentences[0].ends_with(said), "{:?}", gap.sentences);
}

#[test]
fn a_late_host_is_named_with_the_wait_it_was_in() {
    let recording = Recording::of(&planted(), 100);
    let step = work(&recording.read(), "step");
    let gap = step.gap.unwrap();
    assert_eq!((gap.begin_ns, gap.end_ns), (90_000, 120_500));
    let busy = "24.0 us: the program had not submitted `step` (src/train.rs:40, stream 0, submission 3) yet";
    let waited = "6.0 us: the program was in `synchronize` at src/train.rs:30 and had queued nothing more; next came `step` \
                  (src/train.rs:40, stream 0, submission 3)";
    let queued = "500 ns: queued work had not started; the longest was `step` (src/train.rs:40, stream 0, submission 3)";
    assert_eq!(gap.sentences, [busy, waited, queued]);
    assert!(gap.waits.is_empty());
}

#[test]
fn all_waits_of_a_gap_are_named_and_none_of_its_time_is_counted_twice() {
    let mut events = planted();
    // Another thread, which waits for less of the gap; and more waits of the first, by one line.
    events.push(synchronized(1, 50, span(95_000, 100_000)));
    events.extend([100_000, 110_000].map(|begin| synchronized(0, 60, span(begin, begin + 1_500))));
    let gap = work(&Recording::of(&events, 100).read(), "step").gap.unwrap();
    let said: Vec<&str> = gap.sentences.iter().map(|said| said.split('`').next().unwrap()).collect();
    let expected = [
        "21.0 us: the program had not submitted ",
        "6.0 us: the program was in ",
        "3.0 us in 2 times, at most 1.5 us: the program was in ",
        "500 ns: queued work had not started; the longest was ",
    ];
    assert_eq!(said, expected, "{:?}", gap.sentences);
}

#[test]
fn the_first_work_of_a_stream_and_work_without_a_time_have_no_gap() {
    let recording = Recording::of(&planted(), 100);
    let watched = recording.read();
    let gap = work(&watched, "produce").gap.unwrap();
    assert_eq!((gap.begin_ns, gap.end_ns), (900, 10_000));
    assert!(gap.sentences[0].contains("queued work had not started"), "{gap:?}");
    assert!(matches!(watched.work(0, 99), Err(WatchError::Unknown(_))));
    assert!(matches!(watched.work(99, 1), Err(WatchError::Unknown(_))));
}

#[test]
fn a_wait_of_the_program_says_what_it_waited_for() {
    let mut events = planted();
    let TraceEvent::HostWait(mut waited) = synchronized(0, 31, span(200_000, 210_000)) else { panic!() };
    waited.awaited = Some(stamp(0, 3));
    events.push(TraceEvent::HostWait(waited));
    let recording = Recording::of(&events, 2);
    let watched = recording.read();
    let row =
        watched.state().rows.iter().position(|row| row.count == 2 && row.untimed == 0 && row.name.is_empty());
    let details = watched.work(row.unwrap() as u32, 2).unwrap();
    assert_eq!((details.kind, details.line.as_deref()), ("wait of the program", Some("src/train.rs:31")));
    assert!(details.gap.unwrap().sentences[0].contains("`step`"));
}

#[test]
fn waits_are_found_across_pages() {
    // The wait is in one page, and its work in the next.
    let mut events: Vec<TraceEvent<'static>> = Vec::new();
    let many = 30_000;
    for number in 1..=many {
        events.push(kernel("k", stamp(0, number), 1, number * 10, span(number * 10, number * 10 + 5)));
    }
    events.push(wait(stamp(1, 1), stamp(0, many), many, "x"));
    for number in many + 1..=2 * many {
        events.push(kernel("k", stamp(0, number), 1, number * 10, span(number * 10, number * 10 + 5)));
    }
    events.push(kernel("late", stamp(1, 1), 2, 50, span(many * 10 + 5, many * 10 + 9)));
    let recording = Recording::of(&events, 200);
    let watched = recording.read();
    let gap = work(&watched, "late").gap.unwrap();
    assert_eq!(gap.waits.len(), 1);
    assert!(gap.sentences[0].contains("reads `x` (block 12), written by `k`"), "{gap:?}");
}

#[test]
fn the_explanation_is_that_of_the_library() {
    let events = random_events(4, 3, 2_000);
    let recording = Recording::of(&events, 50);
    let mut explainer = kiln_trace::Explainer::default();
    let file = std::fs::read(&recording.0).unwrap();
    let mut reader = RecordingReader::new(&*file).unwrap();
    while let Some(event) = reader.next_event().unwrap() {
        explainer.add(&event);
    }
    let watched = recording.read();
    assert_eq!(watched.explain().unwrap(), explainer.finish().to_string());
    assert_eq!(watched.explain().unwrap(), watched.explain().unwrap());
}
