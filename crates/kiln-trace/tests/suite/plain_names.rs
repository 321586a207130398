//! Names with line ends and control characters: nothing that is made of a recording has them.

use std::io::Cursor;

use kiln_trace::{
    AwaitedBlock, CollectiveRecord, DeviceRecord, Explainer, Explanation, FaultRecord, FindingRecord,
    HeapChange, HeapRecord, HostWaitRecord, RecordingReader, StartRecord, StreamRecord, StreamWaitRecord,
    SubmissionKind, SubmissionRecord, TraceEvent, TraceLine, export_perfetto,
};

use crate::samples::{allocated, kernel, recorded, span, stamp, wait};

/// A line of ours that is none, an order to a terminal, a mark that turns the text behind it, and the order of one byte.
const NASTY: &str = "x\nDevice 7: idle\r\t\u{1b}[2J\0\u{9b}1m\u{202e}y\u{2028}z";
const SHOWN: &str = r"x\nDevice 7: idle\r\t\x1b[2J\x00\x9b1m\u{202e}y\u{2028}z";

/// A recording in which everything has this name.
fn named(name: &'static str) -> Vec<TraceEvent<'static>> {
    let line = Some(TraceLine { file: name, line: 3 });
    let of = |event| match event {
        TraceEvent::Submission(work) => TraceEvent::Submission(SubmissionRecord { name, line, ..work }),
        TraceEvent::StreamWait(wait) => {
            let block = Some(AwaitedBlock { block: 4, tag: name });
            TraceEvent::StreamWait(StreamWaitRecord { block, ..wait })
        }
        other => other,
    };
    let collective = SubmissionRecord {
        stamp: stamp(1, 2),
        kind: SubmissionKind::Collective,
        ..SubmissionRecord::default()
    };
    vec![
        TraceEvent::Start(StartRecord { program: name, ..StartRecord::default() }),
        TraceEvent::Device(DeviceRecord { name, ..DeviceRecord::default() }),
        TraceEvent::Stream(StreamRecord { stream: stamp(0, 0).stream, name }),
        allocated(4, 1 << 20, name, 1, 3),
        of(kernel("a", stamp(0, 1), 1, 10, span(10, 400))),
        of(wait(stamp(1, 1), stamp(0, 1), 1, "")),
        of(kernel("b", stamp(1, 1), 1, 20, span(420, 500))),
        TraceEvent::HostWait(HostWaitRecord { line, span: span(500, 900), ..HostWaitRecord::default() }),
        of(TraceEvent::Submission(SubmissionRecord {
            device: Some(span(950, 990)),
            host: span(940, 941),
            ..collective
        })),
        TraceEvent::Collective(CollectiveRecord {
            stamp: stamp(1, 2),
            name,
            ranks: 2,
            ..CollectiveRecord::default()
        }),
        TraceEvent::Heap(HeapRecord {
            change: HeapChange::OutOfMemory,
            bytes: 9,
            line,
            ..HeapRecord::default()
        }),
        TraceEvent::Fault(FaultRecord { message: name, line, time_ns: 990, ..FaultRecord::default() }),
        TraceEvent::Finding(FindingRecord {
            rule: name,
            kernel: name,
            line,
            message: name,
            stamp: Some(stamp(0, 1)),
            submitted: line,
            time_ns: 995,
            ..FindingRecord::default()
        }),
    ]
}

fn explained(events: &[TraceEvent<'_>]) -> Explanation {
    let mut explainer = Explainer::default();
    events.iter().for_each(|event| explainer.add(event));
    explainer.finish()
}

#[test]
fn an_explanation_has_the_lines_of_one_with_plain_names() {
    let text = explained(&named(NASTY)).to_string();
    let plain = explained(&named("plain")).to_string();
    let is_bad = |letter: char| letter != '\n' && letter.is_control() || "\u{202e}\u{2028}".contains(letter);
    assert!(!text.contains(is_bad), "{text:?}");
    assert_eq!(text.replace(SHOWN, "plain"), plain);
    assert!(plain.matches("plain").count() >= 15, "{plain}");
}

#[test]
fn names_are_whole_in_json() {
    let explained = explained(&named(NASTY));
    assert_eq!((&*explained.program, &*explained.devices[0].name), (NASTY, NASTY));
    assert_eq!(explained.devices[0].memory[0].tag, NASTY);
}

#[test]
fn a_trace_has_no_control_characters() {
    let mut bytes = Vec::new();
    let mut reader = RecordingReader::new(Cursor::new(recorded(&named(NASTY), 5))).unwrap();
    export_perfetto(&mut reader, &mut bytes).unwrap();
    let count = |text: &str| bytes.windows(text.len()).filter(|window| *window == text.as_bytes()).count();
    for part in ["x\nDevice", "\u{1b}[2J", "\u{9b}1m", "\u{202e}y", "y\u{2028}z"] {
        assert_eq!(count(part), 0, "{part:?}");
    }
    // Device, stream, memory; two streams with kernels, their lines, the collective and the wait; the fault and the finding.
    assert!(count(SHOWN) >= 12, "{}", count(SHOWN));
}
