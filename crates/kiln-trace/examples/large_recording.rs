//! Makes a large recording, explains it and makes a trace of it, each in a separate process, and prints the time and the most memory that each had (`VmHWM`).
//!
//! `cargo run --release -p kiln-trace --example large_recording -- FOLDER EVENTS`
//!
//! FOLDER needs about 70 bytes for each event. Its two files are removed at the end.

// A tool that runs by itself has to say what it did.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use kiln_trace::{
    AllocationRecord, AwaitedBlock, EndRecord, Explainer, FreeRecord, HostWaitRecord, RankLog,
    RecordingReader, RecordingWriter, StartRecord, StreamWaitRecord, SubmissionRecord, TimeSpan, TraceEvent,
    TraceLine, TraceStamp, TraceStream, export_perfetto,
};

type Outcome = Result<String, Box<dyn Error>>;

/// Bytes that are read or written at once.
const BUFFER_BYTES: usize = 1 << 20;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match &words[..] {
        ["make", file, events] => make(Path::new(file), events),
        ["explain", file] => explain(Path::new(file)),
        ["perfetto", file, out] => perfetto(Path::new(file), Path::new(out)),
        [folder, events] if events.parse::<u64>().is_ok() => return all(Path::new(folder), events),
        _ => Err("usage: large_recording FOLDER EVENTS".into()),
    };
    match done {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Each step in a separate process.
fn all(folder: &Path, events: &str) -> ExitCode {
    let (file, out) = (folder.join("large.kiln"), folder.join("large.pftrace"));
    let (file, out) = (file.display().to_string(), out.display().to_string());
    let steps = [&["make", &*file, events][..], &["explain", &*file], &["perfetto", &*file, &*out]];
    let mut code = ExitCode::SUCCESS;
    for step in steps {
        let began = Instant::now();
        let own = std::env::current_exe();
        let ended = own.and_then(|own| Command::new(own).args(step).status());
        println!("  {:.0} s", began.elapsed().as_secs_f64());
        if !ended.is_ok_and(|ended| ended.success()) {
            code = ExitCode::FAILURE;
            break;
        }
    }
    // What is not there needs no removing.
    let _ = std::fs::remove_file(&file);
    let _ = std::fs::remove_file(&out);
    code
}

/// Four streams of which the second half waits for the first, as a training step has it: of 16 events, ten are kernels, four are waits, and one each an allocation and what is given back; of
/// 160, one more is a wait of the host.
fn make(file: &Path, events: &str) -> Outcome {
    let wanted: u64 = events.parse()?;
    let names: Vec<String> =
        (0..40).map(|number| format!("void cutlass::gemm_{number}<float>(Params)")).collect();
    let mut writer = RecordingWriter::new(BufWriter::with_capacity(BUFFER_BYTES, File::create(file)?))?;
    writer.push(&TraceEvent::Start(StartRecord { program: "large", ..StartRecord::default() }))?;
    let (mut numbers, mut time, mut count) = ([0_u64; 4], 1_000_u64, 1_u64);
    let stamp = |stream: usize, number| TraceStamp {
        stream: TraceStream { device: 0, stream: stream as u32 },
        number,
    };
    for step in 0.. {
        if count >= wanted {
            break;
        }
        for at in 0..10_usize {
            let stream = at % 4;
            if stream >= 2 && at < 8 {
                let writer_stamp = stamp(stream - 2, numbers[stream - 2]);
                writer.push(&TraceEvent::StreamWait(StreamWaitRecord {
                    waiter: stamp(stream, numbers[stream] + 1),
                    writer: writer_stamp,
                    covers: writer_stamp.number,
                    block: Some(AwaitedBlock { block: step, tag: "activations" }),
                    time_ns: time,
                    ..StreamWaitRecord::default()
                }))?;
                count += 1;
            }
            numbers[stream] += 1;
            let name = (step as usize * 7 + at) % names.len();
            writer.push(&TraceEvent::Submission(SubmissionRecord {
                stamp: stamp(stream, numbers[stream]),
                name: &names[name],
                line: Some(TraceLine { file: "src/model/layers.rs", line: 100 + name as u32 }),
                host: TimeSpan::new(time, time + 3_100),
                device: Some(TimeSpan::new(time + 9_000, time + 12_000 + step * 977 % 1_900)),
                ..SubmissionRecord::default()
            }))?;
            time += 4_000;
            count += 1;
        }
        let (device, bytes, tag) = (0, 1 << 20, "activations");
        let line = Some(TraceLine { file: "src/model/layers.rs", line: 7 });
        writer.push(&TraceEvent::Allocation(AllocationRecord {
            device,
            block: step,
            address: step << 20,
            bytes,
            tag,
            line,
            time_ns: time,
        }))?;
        writer.push(&TraceEvent::Free(FreeRecord { device, block: step, bytes, tag, time_ns: time + 9 }))?;
        count += 2;
        if step % 10 == 0 {
            let span = TimeSpan::new(time, time + 20_000);
            writer.push(&TraceEvent::HostWait(HostWaitRecord { span, line, ..HostWaitRecord::default() }))?;
            time += 20_000;
            count += 1;
        }
    }
    writer.push(&TraceEvent::End(EndRecord { time_ns: time }))?;
    writer.finish()?;
    Ok(format!("{count} events in {} bytes", std::fs::metadata(file)?.len()))
}

fn open(file: &Path) -> Result<RecordingReader<BufReader<File>>, Box<dyn Error>> {
    Ok(RecordingReader::new(BufReader::with_capacity(BUFFER_BYTES, File::open(file)?))?)
}

/// As `kiln explain` does it.
fn explain(file: &Path) -> Outcome {
    let (mut reader, mut explainer, mut log) = (open(file)?, Explainer::default(), RankLog::default());
    while let Some(event) = reader.next_event()? {
        explainer.add(&event);
        log.add(&event);
    }
    let explained = explainer.finish();
    let stalls = explained.devices.iter().map(|device| device.stalls.len()).sum::<usize>();
    let submissions = explained.devices.iter().map(|device| device.submissions).sum::<u64>();
    Ok(format!("explained {submissions} submissions, {stalls} stalls: {}", most_memory()))
}

/// As `kiln trace --perfetto` does it.
fn perfetto(file: &Path, out: &Path) -> Outcome {
    let to = BufWriter::with_capacity(BUFFER_BYTES, File::create(out)?);
    let summary = export_perfetto(&mut open(file)?, to)?;
    Ok(format!("{} bytes of a trace with {} arrows: {}", summary.bytes, summary.arrows, most_memory()))
}

/// The most memory that this process had, as the kernel says it.
fn most_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = status.lines().find(|line| line.starts_with("VmHWM:"));
    most.map_or("memory is not known here".to_owned(), |line| {
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    })
}
