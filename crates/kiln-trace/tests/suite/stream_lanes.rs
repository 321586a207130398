//! Notes of streams: what comes out of the lanes, from many threads, and from one that is faster than the disk.

use std::sync::Arc;
use std::time::Duration;

use kiln_trace::{
    KnownName, NanosecondTicks, ProgramRecorder, RecordingReader, SubmissionKind, SubmissionNote, TickScale,
    TraceEvent, TraceStamp, TraceStream, WaitNote, WaitReason,
};

fn path(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("kiln-lanes-{}-{name}.kiln", std::process::id()))
}

fn note(number: u64) -> SubmissionNote {
    SubmissionNote { number, name: KnownName::of("k"), begin: number, end: number + 1, ..Default::default() }
}

/// Streams and numbers of the submissions in a file, in their order, and how many are missing.
fn submissions(path: &std::path::Path) -> (Vec<TraceStamp>, u64) {
    let bytes = std::fs::read(path).unwrap();
    let mut reader = RecordingReader::new(&bytes[..]).unwrap();
    let (mut stamps, mut dropped) = (Vec::new(), 0);
    while let Some(event) = reader.next_event().unwrap() {
        match event {
            TraceEvent::Submission(work) => stamps.push(work.stamp),
            TraceEvent::Dropped(record) => dropped += record.events,
            _ => {}
        }
    }
    (stamps, dropped)
}

#[test]
fn notes_of_each_stream_are_in_order_and_written_or_counted() {
    const EACH: u64 = 50_000;
    let path = path("order");
    let recorder = ProgramRecorder::create(&path, &[]).unwrap();
    std::thread::scope(|scope| {
        for stream in 0..4 {
            let lane = recorder.stream_lane(TraceStream { device: 1, stream }, Arc::new(NanosecondTicks));
            scope.spawn(move || (1..=EACH).for_each(|number| lane.submitted(&note(number))));
        }
    });
    drop(recorder);
    let (stamps, dropped) = submissions(&path);
    assert_eq!(stamps.len() as u64 + dropped, 4 * EACH);
    for stream in 0..4 {
        let of: Vec<u64> =
            stamps.iter().filter(|stamp| stamp.stream.stream == stream).map(|stamp| stamp.number).collect();
        assert!(of.len() >= 8192 && of.is_sorted(), "{} of stream {stream}", of.len());
    }
    std::fs::remove_file(path).unwrap();
}

/// Submissions and waits in a file by the number of what runs or waits, in their order.
fn works_and_waits(path: &std::path::Path) -> Vec<(char, u64)> {
    let bytes = std::fs::read(path).unwrap();
    let mut reader = RecordingReader::new(&bytes[..]).unwrap();
    let mut found = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        match event {
            TraceEvent::Submission(work) => found.push(('w', work.stamp.number)),
            TraceEvent::StreamWait(wait) => found.push(('?', wait.waiter.number)),
            _ => {}
        }
    }
    found
}

#[test]
fn waits_that_are_noted_long_before_work_stand_directly_before_theirs() {
    let path = path("waits");
    let recorder = ProgramRecorder::create(&path, &[]).unwrap();
    let lane = recorder.stream_lane(TraceStream::default(), Arc::new(NanosecondTicks));
    // Work is noted when its time is known, which is long after it was queued. Where threads submit together, neighbours may be swapped.
    for waiter in [2, 5, 4, 9] {
        lane.waits(&WaitNote { waiter, reason: WaitReason::Asked, ..WaitNote::default() });
    }
    lane.submitted(&note(1));
    assert!(recorder.flush(Duration::from_secs(60)));
    assert_eq!(works_and_waits(&path), [('w', 1)]);
    // The work that the program asked a wait for may have been refused: the next one waits.
    [2, 3, 4, 6].into_iter().for_each(|number| lane.submitted(&note(number)));
    drop(recorder);
    let order = [('w', 1), ('?', 2), ('w', 2), ('w', 3), ('?', 4), ('w', 4), ('?', 5), ('w', 6), ('?', 9)];
    assert_eq!(works_and_waits(&path), order);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn threads_of_one_stream_lose_nothing() {
    let path = path("shared");
    let recorder = ProgramRecorder::create(&path, &[]).unwrap();
    let lane = recorder.stream_lane(TraceStream::default(), Arc::new(NanosecondTicks));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let lane = &lane;
            scope.spawn(move || (1..=1000).for_each(|at| lane.submitted(&note(1000 * thread + at))));
        }
    });
    drop(recorder);
    let (mut stamps, dropped) = submissions(&path);
    stamps.sort_unstable();
    assert!(dropped == 0 && stamps.iter().map(|stamp| stamp.number).eq(1..=4000), "{}", stamps.len());
    std::fs::remove_file(path).unwrap();
}

/// A clock that is set each time something is written.
struct Halves;

impl TickScale for Halves {
    fn time_ns(&self, ticks: u64) -> u64 {
        ticks / 2
    }
}

#[test]
fn a_note_becomes_an_event_with_its_name_its_line_and_its_time() {
    let path = path("event");
    let recorder = ProgramRecorder::create(&path, &[]).unwrap();
    let stream = TraceStream { device: 0, stream: 5 };
    let lane = recorder.stream_lane(stream, Arc::new(Halves));
    let line = std::panic::Location::caller();
    let writer = TraceStamp { stream: TraceStream::default(), number: 9 };
    let tag = KnownName::of("weights");
    lane.waits(&WaitNote {
        waiter: 3,
        writer,
        covers: 12,
        reason: WaitReason::ReadAfterWrite,
        block: Some((4, tag)),
        line: None,
        time: 10,
    });
    lane.submitted(&SubmissionNote { line: Some(line), kind: SubmissionKind::Fill, bytes: 77, ..note(40) });
    assert!(recorder.flush(Duration::from_secs(20)));
    let bytes = std::fs::read(&path).unwrap();
    let mut reader = RecordingReader::new(&bytes[..]).unwrap();
    let mut seen = 0;
    while let Some(event) = reader.next_event().unwrap() {
        seen += 1;
        match event {
            TraceEvent::StreamWait(wait) => {
                assert_eq!((wait.waiter, wait.writer), (TraceStamp { stream, number: 3 }, writer));
                assert_eq!((wait.covers, wait.time_ns, wait.block.unwrap().tag), (12, 5, "weights"));
            }
            TraceEvent::Submission(work) => {
                assert_eq!((work.name, work.kind, work.bytes), ("k", SubmissionKind::Fill, 77));
                assert_eq!((work.host.begin_ns, work.host.end_ns), (20, 20));
                assert_eq!(work.line.map(|at| (at.file, at.line)), Some((line.file(), line.line())));
            }
            other => unreachable!("{other:?}"),
        }
    }
    assert_eq!(seen, 2);
    drop(recorder);
    std::fs::remove_file(path).unwrap();
}
