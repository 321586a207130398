//! The trace for Perfetto, read by protobuf's own library with the schema that Perfetto publishes.

use std::io::{Cursor, Write};
use std::process::{Command, Stdio};

use kiln_trace::{RecordingReader, TraceEvent, export_perfetto};

use crate::samples::{all_kinds, asked, kernel, recorded, span, stamp, wait};

/// The variable that names a folder with the Python packages `perfetto` and `protobuf`; `cargo xtask test` fetches them and sets this.
const VARIABLE: &str = "KILN_PERFETTO_PACKAGES";
const SCRIPT: &str = include_str!("read_trace.py");

/// What the reader prints of a trace of these events; none if it is not on this machine, which counts as skipped.
fn lines(test: &str, events: &[TraceEvent<'_>]) -> Option<(Vec<String>, u64)> {
    let Some(packages) = std::env::var_os(VARIABLE) else {
        println!("skipped: {test}: no reader; run `cargo xtask test`, or name its packages with {VARIABLE}");
        if let Some(log) = std::env::var_os("KILN_SKIP_LOG").filter(|path| !path.is_empty()) {
            let file = std::fs::OpenOptions::new().append(true).create(true).open(log);
            file.and_then(|mut file| file.write_all(format!("{test}: no reader\n").as_bytes())).unwrap();
        }
        return None;
    };
    let mut trace = Vec::new();
    let mut reader = RecordingReader::new(Cursor::new(recorded(events, 5))).unwrap();
    let summary = export_perfetto(&mut reader, &mut trace).unwrap();
    let mut python = Command::new("python3");
    python.args(["-c", SCRIPT]).env("PYTHONPATH", packages);
    let mut python =
        python.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A reader that has failed takes no more, and says why.
    let _ = python.stdin.take().unwrap().write_all(&trace);
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    Some((text.lines().map(str::to_owned).collect(), summary.arrows))
}

#[test]
fn what_is_recorded_is_what_another_reader_finds() {
    let Some((lines, arrows)) = lines("what_is_recorded_is_what_another_reader_finds", &all_kinds()) else {
        return;
    };
    assert_eq!(arrows, 1);
    for expected in [
        "stream 0: main|200|slice_begin|gemm|submission=1, launch=grid 64x1x1, block 256x1x1|from 1",
        "stream 0: main|900|slice_end|||",
        "stream 1|900|slice_begin|relu|submission=1, launch=grid 64x1x1, block 256x1x1, waits for=activations, on stream 0: it is read here, waits for block=12, waits for submission=1|to 1",
        "stream 1, submitted|1100|slice_begin|download|submission=2, bytes=4096|",
        "memory: activations|50|counter|1048576||",
        "memory: activations|1950|counter|0||",
        "faults|1940|instant|out of memory|bytes=8388608, for=history|",
        "changes of the heap|48|instant|the heap remapped memory|bytes=6291456, for=activations|",
        "findings|1000|instant|race|submission=1, kernel=relu, finding=thread 3 writes what thread 4 reads. Repeat with seed 7.|",
        "takeover|2100|slice_begin|rebuilding||",
        "process 4711 train|100|slice_begin|device 0: simulated GPU||",
        "process 4711 train|2000|slice_end|||",
    ] {
        assert_eq!(
            lines.iter().filter(|line| *line == expected).count(),
            1,
            "{expected}:\n{}",
            lines.join("\n")
        );
    }
}

#[test]
fn there_are_as_many_arrows_as_waits_and_each_has_both_ends() {
    // Streams that take turns: each work but the first waits for that of the stream before, and each third for one more.
    let (rounds, streams) = (50_u64, 4_u32);
    let mut events = Vec::new();
    let mut waits = 0;
    for at in 0..rounds * u64::from(streams) {
        let (stream, number) = ((at % u64::from(streams)) as u32, at / u64::from(streams) + 1);
        let before = |back: u64| {
            at.checked_sub(back)
                .map(|at| stamp((at % u64::from(streams)) as u32, at / u64::from(streams) + 1))
        };
        if let Some(before) = before(1) {
            events.push(wait(stamp(stream, number), before, before.number, "turns"));
            waits += 1;
        }
        if let Some(before) = before(2).filter(|_| at % 3 == 0) {
            events.push(asked(stamp(stream, number), before));
            waits += 1;
        }
        events.push(kernel("turn", stamp(stream, number), 1, at * 10 + 1, span(at * 10 + 2, at * 10 + 8)));
    }
    let mut reader = RecordingReader::new(Cursor::new(recorded(&events, 7))).unwrap();
    let summary = export_perfetto(&mut reader, std::io::sink()).unwrap();
    assert_eq!((summary.arrows, summary.arrows_left_out), (waits, 0));
    let Some((lines, arrows)) = lines("there_are_as_many_arrows_as_waits_and_each_has_both_ends", &events)
    else {
        return;
    };
    assert_eq!(arrows, waits);
    let ends = |word: &str| {
        let flows = lines.iter().filter_map(|line| line.rsplit_once('|')).map(|(_, flows)| flows);
        let mut ends: Vec<u64> = flows
            .flat_map(|flows| {
                flows.split(' ').collect::<Vec<_>>().chunks(2).map(<[&str]>::to_vec).collect::<Vec<_>>()
            })
            .filter(|end| end.first() == Some(&word))
            .map(|end| end[1].parse().unwrap())
            .collect();
        ends.sort_unstable();
        ends
    };
    assert_eq!(
        (ends("from"), ends("to")),
        ((1..=waits).collect(), (1..=waits).collect()),
        "each once at both ends"
    );
}
