//! The trace for Perfetto, read back as its readers would: times, names and defaults of each sequence.

use std::collections::{HashMap, HashSet};
use std::io::Cursor;

use kiln_trace::{
    DeviceRecord, LaunchSize, PerfettoSummary, RecordingClock, RecordingReader, StreamWaitRecord,
    SubmissionKind, SubmissionRecord, TraceEvent, TraceStamp, TraceStream, WaitReason, export_perfetto,
};

use crate::protobuf::Fields;
use crate::samples::{all_kinds, asked, freed, kernel, recorded, span, stamp, wait};

/// An event of a track.
#[derive(Clone, PartialEq, Debug, Default)]
struct Shown {
    track: String,
    parent: String,
    time: u64,
    kind: u64,
    name: String,
    line: String,
    counter: Option<u64>,
    notes: Vec<(String, String)>,
    starts: Vec<u64>,
    ends: Vec<u64>,
}

const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

#[derive(Default)]
struct Sequence {
    time: Option<u64>,
    track: u64,
    names: HashMap<u64, String>,
    lines: HashMap<u64, String>,
    note_names: HashMap<u64, String>,
    texts: HashMap<u64, String>,
}

#[derive(Default)]
struct Trace {
    sequences: HashMap<u64, Sequence>,
    tracks: HashMap<u64, (String, u64)>,
    /// Tracks that stand for a process, with its number.
    processes: HashMap<String, u64>,
    events: Vec<Shown>,
    wall_clock: Option<u64>,
}

impl Trace {
    fn read(bytes: &[u8]) -> Self {
        let mut trace = Self::default();
        for packet in Fields::of(bytes, &[1]).all_bytes(1) {
            trace.packet(&Fields::of(packet, &[6, 8, 10, 11, 12, 13, 59, 60]));
        }
        trace
    }

    fn packet(&mut self, packet: &Fields) {
        let sequence = self.sequences.entry(packet.number(10).expect("a sequence")).or_default();
        if let Some(snapshot) = packet.bytes(6) {
            for clock in Fields::of(snapshot, &[1]).all_bytes(1) {
                let clock = Fields::of(clock, &[1, 2, 3]);
                match clock.number(1) {
                    Some(64) => {
                        assert_eq!((clock.number(2), clock.number(3)), (Some(0), Some(1)));
                        sequence.time = Some(0);
                    }
                    Some(1) => self.wall_clock = clock.number(2),
                    other => assert_eq!((other, clock.number(2)), (Some(6), Some(0))),
                }
            }
        }
        if let Some(defaults) = packet.bytes(59) {
            assert_eq!(packet.number(13), Some(1), "the state is cleared where it begins");
            let defaults = Fields::of(defaults, &[11, 58]);
            assert_eq!(defaults.number(58), Some(64));
            sequence.track = Fields::of(defaults.bytes(11).unwrap(), &[11]).number(11).unwrap();
        }
        if let Some(names) = packet.bytes(12) {
            sequence.intern(&Fields::of(names, &[2, 3, 4, 29]));
        }
        if let Some(track) = packet.bytes(60) {
            let track = Fields::of(track, &[1, 2, 3, 5, 8]);
            if let Some(process) = track.bytes(3) {
                let process = Fields::of(process, &[1, 6]);
                assert_eq!(process.text(6), track.text(2));
                let name = format!("{} {}", process.text(6).unwrap(), process.number(1).unwrap());
                self.processes.insert(name, track.number(1).unwrap());
            }
            let entry = (track.text(2).unwrap(), track.number(5).unwrap_or_default());
            assert!(
                self.tracks.insert(track.number(1).unwrap(), entry).is_none(),
                "a track is described once"
            );
        }
        if let Some(event) = packet.bytes(11) {
            let time = sequence.time.as_mut().expect("a clock");
            *time += packet.number(8).expect("a time");
            let event = sequence.event(&Fields::of(event, &[4, 9, 10, 30, 34, 47, 48]));
            let (track, parent) = self.tracks.get(&sequence.track).expect("a track before its events");
            let is_process = self.processes.values().any(|process| *process == sequence.track);
            let parent = self.tracks.get(parent).map(|(name, _)| name.clone());
            assert_eq!(parent.is_none(), is_process, "a parent, but for processes: {track}");
            let parent = parent.unwrap_or_else(|| {
                self.processes.iter().find(|(_, id)| **id == sequence.track).unwrap().0.clone()
            });
            self.events.push(Shown { track: track.clone(), parent, ..event });
        }
    }

    fn on(&self, track: &str) -> Vec<&Shown> {
        self.events.iter().filter(|event| event.track == track).collect()
    }

    fn beginning(&self, name: &str) -> &Shown {
        self.events.iter().find(|event| event.kind == BEGIN && event.name == name).expect("a slice")
    }
}

impl Sequence {
    fn intern(&mut self, names: &Fields) {
        for name in names.all_bytes(2) {
            let name = Fields::of(name, &[1, 2]);
            assert!(self.names.insert(name.number(1).unwrap(), name.text(2).unwrap()).is_none());
        }
        for name in names.all_bytes(3) {
            let name = Fields::of(name, &[1, 2]);
            assert!(self.note_names.insert(name.number(1).unwrap(), name.text(2).unwrap()).is_none());
        }
        for text in names.all_bytes(29) {
            let text = Fields::of(text, &[1, 2]);
            assert!(self.texts.insert(text.number(1).unwrap(), text.text(2).unwrap()).is_none());
        }
        for line in names.all_bytes(4) {
            let line = Fields::of(line, &[1, 2, 4]);
            let text = format!("{}:{}", line.text(2).unwrap(), line.number(4).unwrap());
            assert!(self.lines.insert(line.number(1).unwrap(), text).is_none());
        }
    }

    fn event(&self, event: &Fields) -> Shown {
        let known = |names: &HashMap<u64, String>, id: Option<u64>| {
            id.map(|id| names.get(&id).expect("a name that was written before").clone()).unwrap_or_default()
        };
        let note = |bytes: &&[u8]| {
            let note = Fields::of(bytes, &[1, 3, 17]);
            let text = known(&self.texts, note.number(17));
            let value = note.number(3).map_or(text, |number| number.to_string());
            assert!(!value.is_empty());
            (known(&self.note_names, note.number(1)), value)
        };
        Shown {
            time: self.time.unwrap(),
            kind: event.number(9).unwrap(),
            name: known(&self.names, event.number(10)),
            line: known(&self.lines, event.number(34)),
            counter: event.number(30),
            notes: event.all_bytes(4).iter().map(note).collect(),
            starts: event.all_fixed(47),
            ends: event.all_fixed(48),
            ..Shown::default()
        }
    }
}

fn exported(events: &[TraceEvent<'_>]) -> (Trace, PerfettoSummary) {
    let mut bytes = Vec::new();
    let mut reader = RecordingReader::new(Cursor::new(recorded(events, 5))).unwrap();
    let summary = export_perfetto(&mut reader, &mut bytes).unwrap();
    assert_eq!(summary.bytes, bytes.len() as u64);
    (Trace::read(&bytes), summary)
}

#[test]
fn kernels_have_name_line_submission_and_an_arrow_for_the_wait() {
    let (trace, summary) = exported(&all_kinds());
    assert_eq!(summary.arrows, 1);
    assert_eq!(trace.wall_clock, Some(1_700_000_000_000_000_000));
    let gemm = trace.beginning("gemm");
    assert_eq!((&*gemm.track, &*gemm.parent), ("stream 0: main", "device 0: simulated GPU"));
    assert_eq!((gemm.time, &*gemm.line), (200, "src/train.rs:10"));
    let notes = [("submission", "1"), ("launch", "grid 64x1x1, block 256x1x1")];
    assert_eq!(gemm.notes, notes.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let relu = trace.beginning("relu");
    assert_eq!((gemm.starts.len(), &gemm.starts), (1, &relu.ends), "both ends of the arrow");
    let notes = [
        ("submission", "1"),
        ("launch", "grid 64x1x1, block 256x1x1"),
        ("waits for", "activations, on stream 0: it is read here"),
        ("waits for block", "12"),
        ("waits for submission", "1"),
    ];
    assert_eq!(relu.notes, notes.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let times: Vec<(u64, u64)> =
        trace.on("stream 0: main").iter().map(|event| (event.kind, event.time)).collect();
    assert_eq!(times, [(BEGIN, 200), (END, 900)]);
}

#[test]
fn work_without_a_device_time_is_shown_when_it_was_submitted() {
    let (trace, _) = exported(&all_kinds());
    let copy = trace.beginning("download");
    assert_eq!((&*copy.track, copy.time), ("stream 1, submitted", 1_100));
    assert!(copy.notes.contains(&("bytes".to_owned(), "4096".to_owned())));
    assert!(trace.beginning("all_reduce").notes.contains(&("ranks".to_owned(), "8".to_owned())));
}

#[test]
fn memory_is_counted_by_tag_and_faults_are_instants() {
    let (trace, summary) = exported(&all_kinds());
    let counters: Vec<_> =
        trace.on("memory: activations").iter().map(|at| (at.time, at.kind, at.counter)).collect();
    assert_eq!(counters, [(50, COUNTER, Some(1 << 20)), (1_950, COUNTER, Some(0))]);
    assert_eq!(trace.on("memory held by the heap")[0].counter, Some(2 << 20));
    let changes: Vec<_> = trace
        .on("changes of the heap")
        .iter()
        .map(|at| (at.time, at.kind, &*at.name, &*at.line, at.notes.clone()))
        .collect();
    let notes = |bytes: u64| {
        vec![("bytes".to_owned(), bytes.to_string()), ("for".to_owned(), "activations".to_owned())]
    };
    let grew = (45, INSTANT, "the heap grew", "src/train.rs:9", notes(2 << 20));
    assert_eq!(changes, [grew, (48, INSTANT, "the heap remapped memory", "", notes(6 << 20))]);
    let faults = trace.on("faults");
    assert_eq!((&*faults[0].name, faults[0].time), ("out of memory", 1_940));
    let faults = &faults[1..];
    assert_eq!(
        (faults[0].kind, &*faults[0].name, faults[0].time),
        (INSTANT, "an illegal address in gemm", 2_000)
    );
    assert_eq!(faults[1].name, "4 events are missing before this: the disk was full");
    assert_eq!(summary.dropped_events, 4);
    assert_eq!([0, 2].map(|at| &*trace.on("takeover")[at].name), ["lost", "rebuilding"]);
    assert_eq!(trace.on("waits of thread 3")[0].name, "download");
}

#[test]
fn worker_processes_have_tracks_by_themselves_and_a_takeover_begins_another() {
    let (trace, _) = exported(&all_kinds());
    let mut processes: Vec<&str> = trace.processes.keys().map(String::as_str).collect();
    processes.sort_unstable();
    assert_eq!(processes, ["train 4711", "train 4712"]);
    let of = |process: &str| {
        let own = trace.events.iter().filter(|event| event.parent == process);
        own.map(|event| (event.kind, event.time, event.name.clone())).collect::<Vec<_>>()
    };
    let (begin, end) =
        (|time| (BEGIN, time, "device 0: simulated GPU".to_owned()), |time| (END, time, String::new()));
    assert_eq!(of("train 4711"), [begin(100), end(2_000)], "until the device was lost");
    assert_eq!(of("train 4712"), [begin(3_000), end(3_200)], "until the end of the recording");
}

#[test]
fn every_arrow_has_both_ends() {
    let events = [
        kernel("a", stamp(0, 1), 1, 10, span(10, 20)),
        kernel("b", stamp(0, 2), 2, 10, span(20, 30)),
        // Two wait for the same work, one of them for two streams.
        wait(stamp(1, 1), stamp(0, 2), 2, "x"),
        kernel("c", stamp(1, 1), 3, 10, span(30, 40)),
        wait(stamp(2, 1), stamp(0, 2), 2, "x"),
        wait(stamp(2, 1), stamp(1, 1), 1, "y"),
        // A number without work: its wait belongs to the work that follows.
        wait(stamp(2, 2), stamp(0, 1), 1, "z"),
        kernel("d", stamp(2, 3), 4, 10, span(40, 50)),
        // Work that is not in the recording, and a wait that no work follows.
        wait(stamp(1, 2), stamp(7, 9), 9, "lost"),
        kernel("e", stamp(1, 2), 5, 10, span(50, 60)),
        wait(stamp(0, 3), stamp(1, 2), 2, "open"),
        freed(1, 1, "z", 0),
    ];
    let (trace, summary) = exported(&events);
    let mut starts: Vec<u64> = trace.events.iter().flat_map(|event| event.starts.clone()).collect();
    let mut ends: Vec<u64> = trace.events.iter().flat_map(|event| event.ends.clone()).collect();
    starts.sort_unstable();
    ends.sort_unstable();
    assert_eq!(starts, ends);
    assert_eq!((starts.len() as u64, summary.arrows, summary.arrows_left_out), (4, 4, 1));
    let b = trace.beginning("b");
    assert_eq!(b.starts.len(), 2);
    assert!(trace.beginning("d").ends.iter().any(|end| b.starts.contains(end)));
    assert!(trace.beginning("e").ends.is_empty());
    starts.dedup();
    assert_eq!(starts.len(), 4, "each arrow has its own number");
    let notes = &trace.events.iter().find(|event| event.ends.len() == 3).expect("three waits").notes;
    let names: HashSet<&str> = notes.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), notes.len(), "a reader shows one line of each name: {notes:?}");
    let value = |name| notes.iter().find(|note| note.0 == name).map(|note| note.1.as_str());
    assert_eq!(value("waits for (2)"), Some("y, on stream 1: it is read here"));
    assert_eq!((value("waits for submission"), value("waits for submission (2)")), (Some("2"), Some("1")));
}

#[test]
fn a_wait_says_what_else_it_covers_and_on_which_device() {
    let elsewhere = TraceStamp { stream: TraceStream { device: 3, stream: 5 }, number: 8 };
    let events = [
        kernel("a", stamp(0, 1), 1, 10, span(10, 20)),
        wait(stamp(1, 1), stamp(0, 1), 4, ""),
        wait(stamp(1, 1), elsewhere, 8, "x"),
        kernel("b", stamp(1, 1), 3, 10, span(30, 40)),
    ];
    let (trace, _) = exported(&events);
    let said = [
        ("submission", "1"),
        ("launch", "grid 64x1x1, block 256x1x1"),
        ("waits for", "memory without a tag, on stream 0: it is read here"),
        ("waits for block", "12"),
        ("waits for submission", "1"),
        ("waits for all up to submission", "4"),
        ("waits for (2)", "x, on stream 5 of device 3: it is read here"),
        ("waits for block (2)", "12"),
        ("waits for submission (2)", "8"),
    ];
    assert_eq!(trace.beginning("b").notes, said.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[test]
fn a_wait_says_why_and_a_launch_how_large_it_is() {
    let of_block = |reason| {
        let TraceEvent::StreamWait(wait) = wait(stamp(1, 1), stamp(0, 1), 1, "x") else { panic!("a wait") };
        TraceEvent::StreamWait(StreamWaitRecord { reason, ..wait })
    };
    let unknown =
        StreamWaitRecord { block: None, reason: WaitReason::Unknown, ..StreamWaitRecord::default() };
    let (waiter, writer) = (stamp(1, 1), stamp(0, 1));
    let waits = [
        (of_block(WaitReason::ReadAfterWrite), "x, on stream 0: it is read here"),
        (of_block(WaitReason::WriteAfterWrite), "x, on stream 0: it is overwritten here"),
        (of_block(WaitReason::WriteAfterRead), "x, on stream 0: it is overwritten here, and was read there"),
        (of_block(WaitReason::Allocation), "x, on stream 0: it was allocated there"),
        (asked(waiter, writer), "work on stream 0: the program asked for that at src/train.rs:40"),
        (TraceEvent::StreamWait(StreamWaitRecord { waiter, writer, ..unknown }), "work on stream 0"),
    ];
    for (wait, said) in waits {
        let size = LaunchSize { grid: [9, 8, 7], block: [32, 2, 1], shared_bytes: 4096 };
        let TraceEvent::Submission(work) = kernel("b", waiter, 3, 10, span(30, 40)) else {
            panic!("a launch")
        };
        let launch = TraceEvent::Submission(SubmissionRecord { size: Some(size), ..work });
        let (trace, _) = exported(&[kernel("a", writer, 1, 10, span(10, 20)), wait, launch]);
        let notes = &trace.beginning("b").notes;
        let value = |name| notes.iter().find(|note| note.0 == name).map(|note| note.1.as_str());
        assert_eq!(value("waits for"), Some(said));
        assert_eq!(value("launch"), Some("grid 9x8x7, block 32x2x1, 4096 bytes of shared memory"));
    }
}

#[test]
fn a_library_call_says_that_it_is_one() {
    let work = |kind, name| {
        let TraceEvent::Submission(work) = kernel(name, stamp(0, 1), 1, 10, span(10, 20)) else {
            panic!("a launch")
        };
        TraceEvent::Submission(SubmissionRecord { kind, ..work })
    };
    let (trace, _) =
        exported(&[work(SubmissionKind::Library, "blas.matmul"), work(SubmissionKind::Kernel, "relu")]);
    let kind = |name| {
        let notes = &trace.beginning(name).notes;
        notes.iter().find(|note| note.0 == "kind").map(|note| note.1.as_str())
    };
    assert_eq!((kind("blas.matmul"), kind("relu")), (Some("library call"), None));
}

#[test]
fn findings_are_instants_with_the_line_of_the_kernel() {
    let (trace, _) = exported(&all_kinds());
    let [race, more] = &trace.on("findings")[..] else { panic!("two instants") };
    assert_eq!((race.kind, &*race.name, race.time), (INSTANT, "race", 1_000));
    assert_eq!((&*race.parent, &*race.line), ("device 0: simulated GPU", "relu.cu:7"));
    let said = [
        ("submission", "1"),
        ("kernel", "relu"),
        ("finding", "thread 3 writes what thread 4 reads. Repeat with seed 7."),
    ];
    assert_eq!(race.notes, said.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!((more.kind, &*more.name), (INSTANT, "2 more findings"));
}

#[test]
fn slices_of_a_track_never_overlap_and_time_never_runs_back() {
    let events = [
        kernel("a", stamp(0, 1), 1, 10, span(100, 200)),
        kernel("b", stamp(0, 2), 1, 10, span(150, 180)),
        kernel("c", stamp(0, 3), 1, 10, span(50, 400)),
    ];
    let (trace, _) = exported(&events);
    let times: Vec<(u64, u64)> = trace.events.iter().map(|event| (event.kind, event.time)).collect();
    let shown = [(BEGIN, 100), (END, 200), (BEGIN, 200), (END, 200), (BEGIN, 200), (END, 400)];
    assert_eq!(times, shown);
}

#[test]
fn devices_with_different_clocks_are_in_groups_of_tracks_that_say_so() {
    let on = |device| TraceStamp { stream: TraceStream { device, stream: 0 }, number: 1 };
    let events = |clocks: [u32; 3]| {
        let devices = (0..).zip(clocks).map(|(device, clock)| {
            let clock_kind = if clock == 0 { RecordingClock::Wall } else { RecordingClock::Virtual };
            TraceEvent::Device(DeviceRecord { device, name: "simulated GPU", clock, clock_kind })
        });
        let works = ["a", "b", "c"].into_iter().zip(0..);
        let works = works.map(|(name, device)| kernel(name, on(device), 1, 10, span(10, 20)));
        devices.chain(works).collect::<Vec<_>>()
    };
    let groups = |clocks| {
        let (trace, _) = exported(&events(clocks));
        let of_device = |device: u32| {
            let name = format!("device {device}: simulated GPU");
            let (_, parent) = trace.tracks.values().find(|(known, _)| *known == name).unwrap();
            trace.tracks.get(parent).map(|(group, _)| group.clone())
        };
        [0, 1, 2].map(of_device)
    };
    let group =
        |clock| Some(format!("clock {clock}: its times cannot be compared with those of other clocks"));
    let (host, machine) = (group("0 (of the host)"), group("1 (of a simulated machine)"));
    assert_eq!(groups([0, 1, 0]), [host.clone(), machine, host]);
    assert_eq!(groups([0, 0, 0]), [None, None, None]);
}
