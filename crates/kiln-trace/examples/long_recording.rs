//! Records many submissions as a program does, reads the file again, and says what that took.
//!
//! `cargo run --release -p kiln-trace --example long_recording -- FILE EVENTS [EVENTS_PER_SECOND]`
//!
//! Two threads note submissions on two streams each, and never wait for the disk: what it has no room for is dropped and counted. Without a rate they
//! go as fast as they can. FILE needs about 20 bytes for each event, and is removed at the end. Exits with 1 if the file does not have, or count as
//! missing, each of the events.

// A tool that runs by itself has to say what it did.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::panic::Location;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln_trace::{
    Explainer, KnownName, NanosecondTicks, ProgramRecorder, RecordingReader, StartRecord, StreamLane,
    SubmissionNote, TimeSpan, TraceEvent, TraceStream,
};

const THREADS: u32 = 2;
/// Submissions between two looks at the clock.
const BURST: u64 = 256;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (file, events, rate) = match &words[..] {
        [file, events] => (file, events.parse(), Ok(u64::MAX)),
        [file, events, rate] => (file, events.parse(), rate.parse()),
        _ => {
            eprintln!("usage: long_recording FILE EVENTS [EVENTS_PER_SECOND]");
            return ExitCode::from(2);
        }
    };
    let (Ok(events), Ok(rate)) = (events, rate) else {
        eprintln!("EVENTS and EVENTS_PER_SECOND are whole numbers");
        return ExitCode::from(2);
    };
    let done = record(Path::new(file), events, rate).and_then(|()| read(Path::new(file), events));
    // What is not there needs no removing.
    let _ = std::fs::remove_file(file);
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn record(file: &Path, events: u64, rate: u64) -> Result<(), Box<dyn Error>> {
    let first = [TraceEvent::Start(StartRecord { program: "long", ..StartRecord::default() })];
    let recorder = ProgramRecorder::create(file, &first)?;
    let began = Instant::now();
    let share =
        |thread: u32| events / u64::from(THREADS) + u64::from(thread == 0) * (events % u64::from(THREADS));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let lane = |stream| {
                recorder.stream_lane(
                    TraceStream { device: 0, stream: 2 * thread + stream },
                    Arc::new(NanosecondTicks),
                )
            };
            let lanes = [lane(0), lane(1)];
            scope.spawn(move || submit(&lanes, share(thread), rate / u64::from(THREADS), began));
        }
    });
    let submitted = began.elapsed();
    let now = ns(began.elapsed());
    recorder.finish(now, Duration::from_secs(60));
    let totals = recorder.totals();
    println!(
        "submitted in {:.1} s, {:.0} ns each in a thread; {} events written, {} dropped, {} bytes; {}",
        submitted.as_secs_f64(),
        submitted.as_nanos() as f64 * f64::from(THREADS) / events.max(1) as f64,
        totals.written,
        totals.dropped,
        std::fs::metadata(file)?.len(),
        most_memory()
    );
    Ok(())
}

/// Submits from one thread to two streams, at most so many a second.
fn submit(lanes: &[Arc<StreamLane>; 2], events: u64, rate: u64, began: Instant) {
    let names = ["gemm", "relu", "softmax", "adam"].map(KnownName::of);
    let mut now = ns(began.elapsed());
    for event in 0..events {
        if event % BURST == 0 {
            let due = Duration::from_secs_f64(event as f64 / rate as f64);
            std::thread::sleep(due.saturating_sub(began.elapsed()));
            now = ns(began.elapsed());
        }
        let [even, odd] = lanes;
        let lane = if event % 2 == 0 { even } else { odd };
        lane.submitted(&SubmissionNote {
            number: event / 2 + 1,
            name: names[(event / 2 % 4) as usize],
            line: Some(Location::caller()),
            begin: now + event % BURST,
            end: now + event % BURST + 1,
            device: Some(TimeSpan::new(now + event % BURST + 5, now + event % BURST + 9)),
            ..SubmissionNote::default()
        });
    }
}

/// Reads all of it, and explains it.
fn read(file: &Path, events: u64) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let mut reader = RecordingReader::new(BufReader::with_capacity(1 << 20, File::open(file)?))?;
    let (mut explainer, mut submissions, mut missing) = (Explainer::default(), 0, 0);
    while let Some(event) = reader.next_event()? {
        match &event {
            TraceEvent::Submission(_) => submissions += 1,
            TraceEvent::Dropped(dropped) => missing += dropped.events,
            _ => {}
        }
        explainer.add(&event);
    }
    let explained = explainer.finish();
    println!("read and explained in {:.1} s; {}", began.elapsed().as_secs_f64(), most_memory());
    if submissions + missing != events || !explained.is_whole || reader.is_cut() {
        return Err(format!("{submissions} submissions and {missing} missing of {events}").into());
    }
    Ok(())
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The most memory that this process had, as the kernel says it.
fn most_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = status.lines().find(|line| line.starts_with("VmHWM:"));
    most.map_or("memory is not known here".to_owned(), |line| {
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    })
}
