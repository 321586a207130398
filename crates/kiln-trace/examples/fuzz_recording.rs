//! Feeds damaged recordings to the reader, the exporter and the explanation until time is up: nothing may panic or hang.
//!
//! `cargo run --release -p kiln-trace --example fuzz_recording -- [SECONDS [SEED]]`
//!
//! The same seed gives the same files. Half of them have checksums that fit the damage, so that it reaches the decoder. A failure prints
//! the seed and the number of the file, saves the file, and exits with 1.

// A tool that runs by itself has to say what it did.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use kiln_trace::{
    AllocationRecord, AwaitedBlock, CollectiveRecord, CommandPart, CommandRecord, DeviceRecord,
    DroppedRecord, EarlierRecord, Explainer, FaultRecord, FindingRecord, FreeRecord, HeapRecord,
    HostWaitRecord, LaunchSize, PostMortemRecord, RecordingReader, RecordingWriter, StartRecord,
    StreamRecord, StreamWaitRecord, SubmissionRecord, TakeoverRecord, TimeSpan, TraceEvent, TraceLine,
    TraceStamp, TraceStream, WorkerRecord, export_perfetto,
};

/// Longer than this for one file of a few kilobytes is a hang.
const MAX_TIME_PER_FILE: Duration = Duration::from_secs(20);
/// What stands before the first block, and before the contents of each.
const START_BYTES: usize = 16;
const HEAD_BYTES: usize = 12;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let (Ok(seconds), Ok(seed)) = (arguments.next().unwrap_or(Ok(10)), arguments.next().unwrap_or(Ok(1)))
    else {
        eprintln!("usage: fuzz_recording [SECONDS [SEED]], both whole numbers");
        return ExitCode::from(2);
    };
    let started = Instant::now();
    let (mut files, mut events) = (0_u64, 0_u64);
    while started.elapsed() < Duration::from_secs(seconds) {
        let file = damaged(&mut Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(files)));
        let run = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| examine(&file)));
        let what = match outcome {
            Ok(_) if run.elapsed() > MAX_TIME_PER_FILE => format!("took {:.1?}", run.elapsed()),
            Ok(read) => {
                (files, events) = (files + 1, events + read);
                continue;
            }
            Err(_) => "panicked".to_owned(),
        };
        let path = std::env::temp_dir().join(format!("fuzz_recording-{seed}-{files}.kiln"));
        eprintln!(
            "seed {seed}, file {files}: {what}; saved: {:?}",
            std::fs::write(&path, &file).map(|()| path)
        );
        return ExitCode::FAILURE;
    }
    println!("{files} files, {events} events read");
    ExitCode::SUCCESS
}

/// Reads a file, explains it and exports it; how many events there were.
fn examine(file: &[u8]) -> u64 {
    let Ok(reader) = RecordingReader::new(Cursor::new(file)) else { return 0 };
    let mut reader = reader.skipping_damage();
    let (mut explainer, mut events) = (Explainer::default(), 0);
    while let Ok(Some(event)) = reader.next_event() {
        explainer.add(&event);
        events += 1;
    }
    let _ = explainer.finish().to_string();
    if reader.rewind().is_ok() {
        let _ = export_perfetto(&mut reader, std::io::sink());
    }
    events
}

/// A recording with some bytes changed, inserted or removed.
fn damaged(random: &mut Random) -> Vec<u8> {
    let mut file = sample(random);
    for _ in 0..random.below(4) {
        let at = START_BYTES + HEAD_BYTES + random.below(file.len() - START_BYTES - HEAD_BYTES);
        match random.below(4) {
            0 => file[at] = random.next() as u8,
            1 => file[at] ^= 1 << random.below(8),
            2 => file.insert(at, random.next() as u8),
            _ => drop(file.remove(at)),
        }
    }
    match random.below(4) {
        0 => file.truncate(random.below(file.len() + 1)),
        1 => {
            let at = random.below(file.len());
            file[at] = random.next() as u8;
        }
        _ => seal(&mut file),
    }
    file
}

/// Makes one block with the right checksums of everything behind the first head.
fn seal(file: &mut [u8]) {
    let sum = |bytes: &[u8]| {
        let step = |crc: u32, byte: &u8| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
                (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 }
            })
        };
        (!bytes.iter().fold(u32::MAX, step)).to_le_bytes()
    };
    let (head, contents) = file[START_BYTES..].split_at_mut(HEAD_BYTES);
    head[..4].copy_from_slice(&(contents.len() as u32).to_le_bytes());
    head[4..8].copy_from_slice(&sum(contents));
    let own = sum(&head[..8]);
    head[8..].copy_from_slice(&own);
}

/// A recording with some events of each kind, in one block.
fn sample(random: &mut Random) -> Vec<u8> {
    let Ok(mut writer) = RecordingWriter::new(Vec::new()) else { return Vec::new() };
    for _ in 0..1 + random.below(30) {
        let stamp = |random: &mut Random| TraceStamp {
            stream: TraceStream { device: random.below(2) as u32, stream: random.below(3) as u32 },
            number: random.below(9) as u64,
        };
        let time = |random: &mut Random| random.below(1000) as u64;
        let (at, other, time_ns) = (stamp(random), stamp(random), time(random));
        let span = TimeSpan::new(time_ns, time_ns + time(random));
        let line = Some(TraceLine { file: "a.rs", line: random.below(5) as u32 });
        let (device, bytes, block) = (at.stream.device, time(random), other.number);
        let tag = ["", "weights", "activations"][random.below(3)];
        let event = match random.below(18) {
            0 => TraceEvent::Start(StartRecord { program: "p", ..StartRecord::default() }),
            1 => TraceEvent::Device(DeviceRecord { device, name: "gpu", ..DeviceRecord::default() }),
            2 => TraceEvent::Stream(StreamRecord { stream: at.stream, name: "s" }),
            3 | 4 => TraceEvent::Submission(SubmissionRecord {
                stamp: at,
                name: ["gemm", "relu", "copy"][random.below(3)],
                line,
                size: Some(LaunchSize::default()),
                host: span,
                device: (random.below(3) > 0).then_some(span),
                ..SubmissionRecord::default()
            }),
            5 => TraceEvent::StreamWait(StreamWaitRecord {
                waiter: at,
                writer: other,
                covers: other.number + random.below(2) as u64,
                block: Some(AwaitedBlock { block, tag }),
                line: line.filter(|_| random.below(4) == 0),
                ..StreamWaitRecord::default()
            }),
            6 => TraceEvent::HostWait(HostWaitRecord { device, span, line, ..HostWaitRecord::default() }),
            7 => TraceEvent::Allocation(AllocationRecord {
                device,
                block,
                address: block,
                bytes,
                tag,
                line,
                time_ns,
            }),
            8 => TraceEvent::Free(FreeRecord { device, block, bytes, tag, time_ns }),
            9 => TraceEvent::Heap(HeapRecord { device, bytes, tag, line, time_ns, ..HeapRecord::default() }),
            10 => TraceEvent::Fault(FaultRecord { device, message: "m", stamp: Some(at), line, time_ns }),
            11 => TraceEvent::Takeover(TakeoverRecord { device, span, ..TakeoverRecord::default() }),
            12 => word(random),
            13 => TraceEvent::Earlier(EarlierRecord { stamp: at, until_ns: Some(time_ns) }),
            14 => finding(random, at, time_ns),
            15 => TraceEvent::Worker(WorkerRecord { device, process: 7, name: "w", time_ns }),
            16 => TraceEvent::PostMortem(PostMortemRecord { device, generation: 0, line: "lost", time_ns }),
            _ if random.below(2) == 0 => {
                TraceEvent::Dropped(DroppedRecord { events: bytes, time_ns, ..DroppedRecord::default() })
            }
            _ => TraceEvent::Collective(CollectiveRecord {
                stamp: at,
                name: "c",
                communicator: 1,
                rank: 0,
                ranks: 2,
                bytes,
            }),
        };
        let _ = writer.push(&event);
    }
    writer.finish().unwrap_or_default()
}

/// A finding, or a number of them.
fn finding(random: &mut Random, at: TraceStamp, time_ns: u64) -> TraceEvent<'static> {
    let line = Some(TraceLine { file: "a.cu", line: random.below(5) as u32 });
    TraceEvent::Finding(FindingRecord {
        device: at.stream.device,
        rule: "race",
        kernel: ["", "gemm"][random.below(2)],
        line: line.filter(|_| random.below(2) > 0),
        message: "m",
        stamp: (random.below(2) > 0).then_some(at),
        submitted: line,
        time_ns,
        more: random.below(3) as u64,
    })
}

/// A word of a command.
fn word(random: &mut Random) -> TraceEvent<'static> {
    TraceEvent::Command(CommandRecord {
        part: if random.below(3) == 0 { CommandPart::Variable } else { CommandPart::Argument },
        name: "KILN_SIM_SEED",
        text: ["", "weights", "activations"][random.below(3)],
        ..CommandRecord::default()
    })
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}
