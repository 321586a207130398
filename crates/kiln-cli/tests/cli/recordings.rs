//! `kiln trace` and `kiln explain`: recordings that are whole, cut, damaged, or something else.

use kiln_trace::{
    AllocationRecord, AwaitedBlock, DeviceRecord, DropCause, DroppedRecord, EndRecord, RecordingWriter,
    RepeatCommand, StartRecord, StreamWaitRecord, SubmissionRecord, TimeSpan, TraceEvent, TraceLine,
    TraceStamp, TraceStream,
};

use crate::folder::Folder;
use crate::outcome::{Outcome, command, run};

fn stamp(stream: u32, number: u64) -> TraceStamp {
    TraceStamp { stream: TraceStream { device: 0, stream }, number }
}

fn kernel(name: &'static str, at: TraceStamp, line: u32, begin_ns: u64, end_ns: u64) -> TraceEvent<'static> {
    TraceEvent::Submission(SubmissionRecord {
        stamp: at,
        name,
        line: Some(TraceLine { file: "src/train.rs", line }),
        host: TimeSpan::new(10, 20),
        device: Some(TimeSpan::new(begin_ns, end_ns)),
        ..SubmissionRecord::default()
    })
}

/// A consumer that waits for unrelated work, and a block that is not given back; a block of the file for each event.
pub(crate) fn planted() -> Vec<u8> {
    let events = [
        TraceEvent::Start(StartRecord { program: "train", ..StartRecord::default() }),
        TraceEvent::Device(DeviceRecord { device: 0, name: "simulated GPU", ..DeviceRecord::default() }),
        TraceEvent::Allocation(AllocationRecord {
            device: 0,
            block: 12,
            address: 0x10_0000,
            bytes: 3 << 20,
            tag: "activations",
            line: Some(TraceLine { file: "src/train.rs", line: 8 }),
            time_ns: 5,
        }),
        kernel("produce", stamp(0, 1), 10, 1_000, 2_000),
        kernel("unrelated", stamp(0, 2), 11, 2_000, 9_000),
        TraceEvent::StreamWait(StreamWaitRecord {
            waiter: stamp(1, 1),
            writer: stamp(0, 1),
            covers: 2,
            block: Some(AwaitedBlock { block: 12, tag: "activations" }),
            ..StreamWaitRecord::default()
        }),
        kernel("consume", stamp(1, 1), 20, 9_000, 9_500),
        TraceEvent::End(EndRecord { time_ns: 9_600 }),
    ];
    written(&events)
}

fn written(events: &[TraceEvent<'_>]) -> Vec<u8> {
    let mut writer = RecordingWriter::new(Vec::new()).unwrap();
    for event in events {
        writer.push(event).unwrap();
        writer.write_block().unwrap();
    }
    writer.finish().unwrap()
}

/// A file in a folder with these bytes.
fn file(folder: &Folder, name: &str, bytes: &[u8]) -> String {
    let path = folder.path(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn done(words: &[&str]) -> Outcome {
    let outcome = run(command(words));
    assert_eq!(outcome.code, Some(0), "{words:?}: {}", outcome.stderr);
    outcome
}

#[test]
fn a_recording_is_explained_in_words_and_as_json() {
    let folder = Folder::new();
    let file = file(&folder, "train.kiln", &planted());
    let text = done(&["explain", &file]).stdout;
    for said in [
        "Recording of train",
        "Device 0 (simulated GPU): 3 submissions",
        "`consume` (src/train.rs:20, stream 1, submission 1) reads `activations` (block 12), written by `produce`",
        "7.0 us of the longest went to unrelated work, up to `unrelated` (src/train.rs:11",
        "3.0 MiB in 1 block of `activations`, most by src/train.rs:8",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let json = done(&["explain", &file, "--json"]).json();
    let stall = &json["devices"][0]["stalls"][0];
    assert_eq!((&stall["tag"], &stall["reason"]), (&"activations".into(), &"read_after_write".into()));
    assert_eq!((&stall["block"], &stall["unrelated_ns"]), (&12.into(), &7_000.into()));
    assert_eq!((&json["is_cut"], &json["damaged_blocks"]), (&false.into(), &0.into()));
    assert_eq!(json["is_whole"], true);
    assert_eq!(json["devices"][0]["memory"][0]["left_bytes"], 3 << 20);
}

#[test]
fn a_recording_becomes_a_trace() {
    let folder = Folder::new();
    let (file, out) = (file(&folder, "train.kiln", &planted()), folder.path("train.pftrace"));
    let outcome = done(&["trace", &file, "--perfetto", &out]);
    assert!(outcome.stdout.contains("3 submissions, 1 arrow"), "{}", outcome.stdout);
    let trace = std::fs::read(&out).unwrap();
    assert!(trace.windows(7).any(|bytes| bytes == b"produce") && trace[0] == 0x0a);
    let json = done(&["trace", &file, "--perfetto", &out, "--json"]).json();
    assert_eq!((&json["bytes"], &json["arrows"]), (&trace.len().into(), &1.into()));
    assert_eq!(json["perfetto"], out);
}

#[test]
fn a_cut_recording_is_used_up_to_where_it_is_cut() {
    let folder = Folder::new();
    let whole = planted();
    // The last block is the mark of the end.
    let last = written(&[TraceEvent::End(EndRecord { time_ns: 9_600 })]).len() - 16;
    let end = whole.len() - last;
    let unmarked = file(&folder, "unmarked.kiln", &whole[..end]);
    let explained = done(&["explain", &unmarked]);
    assert!(explained.stdout.contains("3 submissions"), "{}", explained.stdout);
    assert!(explained.stdout.contains("ended without an end mark"), "{}", explained.stdout);
    let json = done(&["explain", &unmarked, "--json"]).json();
    assert_eq!((&json["is_cut"], &json["is_whole"]), (&false.into(), &false.into()));
    let (file, out) = (file(&folder, "cut.kiln", &whole[..end - 3]), folder.path("out"));
    let explained = done(&["explain", &file]);
    assert!(explained.stdout.contains("2 submissions"), "{}", explained.stdout);
    assert!(explained.stderr.contains("it ends within a block"), "{}", explained.stderr);
    let json = done(&["trace", &file, "--perfetto", &out, "--json"]).json();
    assert_eq!((&json["is_cut"], &json["submissions"]), (&true.into(), &2.into()));
}

#[test]
fn a_damaged_block_is_told_with_its_offset_and_can_be_left_out() {
    let folder = Folder::new();
    let mut bytes = planted();
    let last = written(&[TraceEvent::End(EndRecord { time_ns: 9_600 })]).len() - 16;
    let last = bytes.len() - last - 3;
    bytes[last] ^= 1;
    let (file, out) = (file(&folder, "damaged.kiln", &bytes), folder.path("out"));
    for words in [&["explain", &*file][..], &["trace", &*file, "--perfetto", &*out]] {
        let outcome = run(command(words));
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{words:?}");
        let said = &outcome.stderr;
        assert!(said.contains("the block at byte ") && said.contains("--skip-damaged"), "{said}");
        let skipped = done(&[words, &["--skip-damaged"]].concat());
        assert!(skipped.stderr.contains("1 damaged block left out"), "{}", skipped.stderr);
        assert!(skipped.stdout.contains("2 submissions"), "{}", skipped.stdout);
        std::fs::remove_file(&out).ok();
    }
}

#[test]
fn behind_a_damaged_head_the_rest_of_a_recording_is_read() {
    let folder = Folder::new();
    let (whole, out) = (planted(), folder.path("out"));
    let start = written(&[TraceEvent::Start(StartRecord { program: "train", ..StartRecord::default() })]);
    // Every byte of the first head: the length of the block, its checksum, and that of both.
    for at in 16..28 {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        let file = file(&folder, "damaged.kiln", &bytes);
        let explained = done(&["explain", &file, "--skip-damaged"]);
        let left_out = format!("1 damaged block left out ({} bytes)", start.len() - 16);
        assert!(explained.stderr.contains(&left_out), "byte {at}: {}", explained.stderr);
        assert!(explained.stdout.contains("3 submissions"), "byte {at}: {}", explained.stdout);
        assert!(!explained.stdout.contains("end mark"), "byte {at}: {}", explained.stdout);
        let json = done(&["trace", &file, "--perfetto", &out, "--skip-damaged", "--json"]).json();
        assert_eq!((&json["submissions"], &json["skipped_bytes"]), (&3.into(), &(start.len() - 16).into()));
    }
    // Where the last block is damaged, the end mark may be in it.
    let mut bytes = whole.clone();
    let last = whole.len() - (written(&[TraceEvent::End(EndRecord { time_ns: 9_600 })]).len() - 16);
    bytes[last] ^= 1;
    let file = file(&folder, "end.kiln", &bytes);
    let explained = done(&["explain", &file, "--skip-damaged"]);
    for said in [&explained.stdout, &explained.stderr] {
        assert!(said.contains("no end mark; it may be in what is damaged"), "{said}");
        assert!(!said.contains("killed"), "{said}");
    }
}

#[test]
fn the_command_that_repeats_a_run_is_never_broken() {
    let folder = Folder::new();
    let words = ["./train", "--data", "a folder with a long name", "--steps", "1000", "--token", "abc"];
    let repeat = RepeatCommand::of(words.iter().chain(&["w"; 40]).map(Into::into), |_| None);
    let mut events = vec![TraceEvent::Start(StartRecord { program: "train", ..StartRecord::default() })];
    events.extend(repeat.events());
    let (file, other) = (file(&folder, "a.kiln", &written(&events)), file(&folder, "b.kiln", &planted()));
    for words in [&["explain", &*file][..], &["explain", &*file, &*other]] {
        let mut narrow = command(words);
        narrow.env("COLUMNS", "60");
        let text = run(narrow).stdout;
        let expected = format!("To repeat it: {}", repeat.under(&["kiln", "trace"]));
        assert!(expected.len() > 120 && text.lines().any(|line| line == expected), "{text}");
        let is_narrow = |line: &&str| line.chars().count() <= 60 || *line == expected;
        assert!(text.lines().all(|line| is_narrow(&line)), "{text}");
        assert!(text.contains("(values that look like secrets"), "{text}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_trace_beyond_the_largest_file_is_refused_and_no_signal_ends_the_command() {
    let folder = Folder::new();
    let (file, out) = (file(&folder, "a.kiln", &planted()), folder.path("out"));
    let mut shell = std::process::Command::new("bash");
    let kiln = env!("CARGO_BIN_EXE_kiln");
    shell.args(["-c", "ulimit -f 0; exec \"$0\" trace \"$1\" --perfetto \"$2\"", kiln, &file, &out]);
    let outcome = run(shell);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("File too large") && outcome.stderr.contains(&out), "{}", outcome.stderr);
    assert!(!std::path::Path::new(&out).exists());
}

#[test]
fn a_full_disk_is_told_with_the_byte_and_the_time() {
    let folder = Folder::new();
    let dropped = DroppedRecord { events: 4, cause: DropCause::DiskFull, at_byte: 8192, time_ns: 3_100_000 };
    let file = file(&folder, "full.kiln", &written(&[TraceEvent::Dropped(dropped)]));
    let said = "4 events are missing: the disk was full when the file had 8.0 KiB (8192 bytes), 3.1 ms after the beginning.";
    let explained = done(&["explain", &file]);
    assert!(explained.stdout.contains(said), "{}", explained.stdout);
    let json = done(&["explain", &file, "--json"]).json();
    assert_eq!((&json["missing_events"], &json["missing_why"]), (&4.into(), &said.into()));
    let traced = done(&["trace", &file, "--perfetto", &folder.path("out")]);
    assert!(traced.stdout.contains("the recording misses 4 events: the disk was full"), "{}", traced.stdout);
}

#[test]
fn other_files_and_places_are_told_with_the_next_step() {
    let folder = Folder::new();
    let good = file(&folder, "good.kiln", &planted());
    let (text, empty) = (file(&folder, "text", b"{\"traceEvents\": []}"), file(&folder, "empty", b""));
    let short = file(&folder, "short", &planted()[..9]);
    let mut other = planted();
    other[8..12].copy_from_slice(&(kiln_trace::FORMAT_VERSION + 1).to_le_bytes());
    let sum = crc(&other[..12]).to_le_bytes();
    other[12..16].copy_from_slice(&sum);
    let other = file(&folder, "other", &other);
    let (here, nowhere) = (folder.path(""), "/nonexistent/out.pftrace");
    let bare = Folder::new().path("");
    std::fs::create_dir_all(&bare).unwrap();
    for (words, said) in [
        (
            &["explain", "/nonexistent/a.kiln"][..],
            "(os error 2); give the name of a recording; `kiln trace -- PROGRAM`",
        ),
        (&["explain", &text], "it is no recording of kiln; give a file that kiln recorded"),
        (&["explain", &empty], "it is empty: no recording was begun in it"),
        (&["explain", &short], "nothing was recorded; record the program again"),
        (
            &["explain", &other],
            &*format!(
                "it has version {} of the format, and this kiln reads version {}; use the kiln",
                kiln_trace::FORMAT_VERSION + 1,
                kiln_trace::FORMAT_VERSION
            ),
        ),
        (&["explain", &bare], "there is no recording in this folder"),
        (&["trace", &text, "--perfetto", nowhere], "it is no recording of kiln"),
        (&["trace", &good, "--perfetto", nowhere], "make the folder, or give another place with --perfetto"),
        (&["trace", &good], "--perfetto"),
    ] {
        let outcome = run(command(words));
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{words:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(said), "{words:?}: {}", outcome.stderr);
    }
    let left: Vec<_> = std::fs::read_dir(&here).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 5, "no temporary file stays: {left:?}");
}

#[test]
fn the_demo_is_recorded_in_virtual_time() {
    let folder = Folder::new();
    let (file, out) = (folder.path("demo.kiln"), folder.path("demo.pftrace"));
    done(&["demo", "--device", "sim", "--trace", &file]);
    let json = done(&["explain", &file, "--json"]).json();
    let device = &json["devices"][0];
    assert_eq!((&json["is_virtual"], &json["missing_events"]), (&true.into(), &0.into()));
    assert!(
        device["submissions"].as_u64().unwrap() > 10 && device["busy_ns"].as_u64().unwrap() > 0,
        "{json}"
    );
    assert_eq!(device["untimed_submissions"], 0);
    let kernels = done(&["explain", &file]).stdout;
    assert!(kernels.contains("Most memory in use"), "{kernels}");
    let trace = done(&["trace", &file, "--perfetto", &out, "--json"]).json();
    assert!(trace["arrows"].as_u64().unwrap() > 0 && trace["dropped_events"] == 0, "{trace}");
    let nowhere = run(command(&["demo", "--device", "sim", "--trace", "/nonexistent/a.kiln"]));
    assert_eq!(nowhere.code, Some(2), "{}", nowhere.stderr);
    assert!(nowhere.stderr.contains("/nonexistent/a.kiln"), "{}", nowhere.stderr);
}

#[test]
fn a_program_is_run_and_recorded() {
    let folder = Folder::new();
    let kiln = env!("CARGO_BIN_EXE_kiln");
    let (file, out) = (folder.path("a.kiln"), folder.path("a.pftrace"));
    let words = ["trace", &file, "--perfetto", &out, "--", kiln, "demo", "--device", "sim"];
    let outcome = done(&words);
    assert!(
        outcome.stdout.contains("a.pftrace: ") && outcome.stdout.contains("submissions"),
        "{}",
        outcome.stdout
    );
    let json = done(&["explain", &file, "--json"]).json();
    assert_eq!(json["devices"][0]["untimed_submissions"], 0, "{json}");
    assert!(json["devices"][0]["stalls"][0]["block"].is_u64(), "{json}");
    let mut here = command(&["trace", "--", kiln, "demo", "--device", "sim"]);
    here.current_dir(folder.path(""));
    let outcome = run(here);
    assert!(
        outcome.code == Some(0) && outcome.stderr.contains("recorded to trace.kiln"),
        "{}",
        outcome.stderr
    );
    assert!(std::path::Path::new(&folder.path("trace.kiln")).is_file());
}

#[test]
fn a_program_that_fails_or_records_nothing_is_told() {
    let folder = Folder::new();
    let file = folder.path("a.kiln");
    std::fs::write(&file, planted()).unwrap();
    for (words, code, said) in [
        (&["/nonexistent/program"][..], 3, "cannot be started"),
        (&["true"], 0, "`true` recorded nothing: no kiln runtime began to write"),
        (&["sh", "-c", "exit 7"], 7, "recorded nothing"),
    ] {
        let outcome = run(command(&[&["trace", &file, "--"], words].concat()));
        assert_eq!(outcome.code, Some(code), "{words:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(said), "{words:?}: {}", outcome.stderr);
        assert!(!outcome.stderr.contains("room"), "nothing is wrong with the disk: {}", outcome.stderr);
    }
    assert!(
        std::fs::read(&file).unwrap() == planted(),
        "an earlier recording is kept until there is a new one"
    );
    let outcome = run(command(&["trace", &file, "--perfetto", &folder.path("./a.kiln")]));
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("is the recording and cannot be the trace, too"), "{}", outcome.stderr);
    assert!(std::fs::read(&file).unwrap() == planted(), "a trace does not replace its recording");
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_reader_that_leaves_ends_no_command_with_a_panic() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    let folder = Folder::new();
    let (file, out) = (file(&folder, "a.kiln", &planted()), folder.path("a.pftrace"));
    for words in [
        &["explain", &*file][..],
        &["explain", "--json", &file],
        &["trace", &file, "--perfetto", &out],
        &["trace", "--json", &file, "--perfetto", &out],
        &["top", "--once"],
        &["top", "--json"],
    ] {
        for lines in [0, 1] {
            let mut child = command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let mut output = BufReader::new(child.stdout.take().unwrap());
            for _ in 0..lines {
                output.read_line(&mut String::new()).unwrap();
            }
            drop(output);
            let ended = child.wait_with_output().unwrap();
            let said = String::from_utf8(ended.stderr).unwrap();
            assert_eq!(ended.status.code(), Some(0), "{words:?} after {lines} lines: {said}");
            assert!(!said.contains("panicked"), "{words:?}: {said}");
        }
    }
}

/// CRC-32, as the file format has it.
fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    };
    !bytes.iter().fold(u32::MAX, step)
}
