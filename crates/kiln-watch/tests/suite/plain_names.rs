//! Names with line ends and control characters: nothing that the page asks for has them.

use kiln_trace::{
    AllocationRecord, DeviceRecord, FaultRecord, HeapChange, HeapRecord, StartRecord, StreamRecord,
    SubmissionRecord, TraceEvent, TraceLine,
};

use crate::samples::{Recording, race, span, stamp, wait};

const NASTY: &str = "x\n\t\u{1b}[2J\u{9b}\u{202e}y";
const SHOWN: &str = r"x\n\t\x1b[2J\x9b\u{202e}y";

#[test]
fn names_are_in_one_line_wherever_the_page_shows_them() {
    let line = Some(TraceLine { file: NASTY, line: 3 });
    let work = |stream, begin, end| {
        TraceEvent::Submission(SubmissionRecord {
            stamp: stamp(stream, 1),
            name: NASTY,
            line,
            host: span(1, 2),
            device: Some(span(begin, end)),
            ..SubmissionRecord::default()
        })
    };
    let events = [
        TraceEvent::Start(StartRecord { program: NASTY, ..StartRecord::default() }),
        TraceEvent::Device(DeviceRecord { name: NASTY, ..DeviceRecord::default() }),
        TraceEvent::Stream(StreamRecord { stream: stamp(0, 0).stream, name: NASTY }),
        TraceEvent::Allocation(AllocationRecord {
            tag: NASTY,
            bytes: 9,
            line,
            ..AllocationRecord::default()
        }),
        work(0, 10, 500),
        wait(stamp(1, 1), stamp(0, 1), 1, NASTY),
        work(1, 500, 600),
        TraceEvent::Heap(HeapRecord { change: HeapChange::OutOfMemory, line, ..HeapRecord::default() }),
        TraceEvent::Fault(FaultRecord { message: NASTY, line, ..FaultRecord::default() }),
        race(stamp(0, 1), NASTY),
    ];
    let recording = Recording::of(&events, 3);
    let watched = recording.read();
    let state = watched.state();
    let row = state.rows.iter().position(|row| row.name == SHOWN).expect("the stream");
    let details: Vec<_> = (0..2).map(|row| watched.work(row, 1).unwrap()).collect();
    assert_eq!(
        watched.names(0).iter().filter(|name| *name == SHOWN).count(),
        1,
        "kernel and tag are one name"
    );
    let found = watched.find(SHOWN);
    assert_eq!((row, found.len()), (0, 1));
    let said = [
        serde_json::to_string(&state),
        serde_json::to_string(&details),
        serde_json::to_string(&watched.names(0)),
    ];
    for said in said.map(Result::unwrap) {
        // As JSON has line ends, tabs and other control characters.
        for bad in ["\\n", "\\t", "\\u001b", "\u{9b}", "\u{202e}"] {
            let said = said.replace("\\\\", "");
            assert!(!said.contains(bad), "{bad}: {said}");
        }
    }
    assert_eq!(details[1].gap.as_ref().unwrap().waits[0].tag, SHOWN);
}
