//! `kiln trace`: records a program, and makes a trace for Perfetto of a recording.

pub(crate) mod recorded_program;
pub(crate) mod recording_place;

use std::ffi::OsString;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use kiln::telemetry::DeviceTimes;
use kiln_trace::{ExportError, PerfettoSummary, export_perfetto, shell_word, with_process_number};
use kiln_watch::FilePattern;
use serde::Serialize;

use crate::console::{Console, complain};
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::new_file::{self, NewFile};
use crate::plural::counted;
use crate::program_signals::ProgramSignals;
use crate::recording_file;
use recorded_program::RunSettings;
use recording_place::RecordingPlace;

/// Where a program is recorded if no file is given.
pub(crate) const DEFAULT_FILE: &str = "trace.kiln";

/// The flags of `kiln trace`.
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub(crate) struct Arguments {
    /// The recording: what is read, or where a program is recorded (`trace.kiln` if it is left out).
    #[arg(value_parser = file_name())]
    file: Option<PathBuf>,
    /// Write a trace that Perfetto opens.
    #[arg(long, value_name = "OUT", value_parser = file_name())]
    perfetto: Option<PathBuf>,
    /// How the device's times are taken while PROGRAM runs: host (not at all), events, events/16 (around every 16th submission), cupti.
    #[arg(long, value_name = "HOW", requires = "program")]
    times: Option<DeviceTimes>,
    /// Leave damaged blocks out instead of stopping at the first.
    #[arg(long)]
    skip_damaged: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// A program that is run and recorded, with its arguments.
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// The name of a file as it is given; what is wrong with an empty one is told where the file is needed.
pub(crate) fn file_name() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// Both uses, the first of which records.
const USAGE: &str = "kiln trace [OPTIONS] [FILE] [--perfetto <OUT>] -- <PROGRAM>...
       kiln trace [OPTIONS] <FILE> --perfetto <OUT>";

const EXAMPLES: &str = "Examples:
  kiln trace -- ./train --steps 10
  kiln trace train.kiln --perfetto train.pftrace -- ./train --steps 10
  kiln trace --times cupti -- ./train --steps 10
  kiln trace rank-%p.kiln -- ./train --ranks 4
  kiln trace train.kiln --perfetto train.pftrace
  kiln trace rank-%p.kiln --perfetto rank-%p.pftrace
  kiln trace train.kiln --perfetto train.pftrace --skip-damaged --json

Open the trace at ui.perfetto.dev, which keeps it in the browser. Below each device are its \
     streams with their kernels (line and submission are in the details), an arrow for each wait from \
     the work that was waited for, the waits of the program's threads, memory by tag, faults and \
     takeovers. Work whose time on the device was not measured is on a track of its stream that says \
     \"submitted\".

A program is run with KILN_TRACE=FILE, which every kiln runtime understands. %p in the name of \
     FILE stands for the number of the process, so that each process has its file; then it stands in \
     that of OUT, too. A recording of a program that was killed is read up to where it is cut. With \
     --json the program's standard output goes to the standard error.

On a GPU, only --times (or KILN_TRACE_TIMES, which it sets) makes the recording say when work \
     ran: events around each submission cost the host some microseconds for each, events/16 a \
     sixteenth of that, and cupti one or two for each launch. Where CUPTI cannot be used, events are, \
     and the program says why on its standard error. Times of simulated devices are always there.

SIGTERM, SIGINT and SIGHUP are passed on to the program, and what it recorded is used when it \
     has ended. A program that such a signal ends at once writes no end mark, which is said.

Exit codes: that of the program, where one is run, also if it recorded nothing, or 128 and the \
     number of the signal that ended it; otherwise 0 done, 2 wrong usage, or a file that cannot be \
     read or written, 3 the program cannot be started.";

/// What `--json` prints of a trace.
#[derive(Serialize)]
struct Written {
    perfetto: String,
    #[serde(flatten)]
    summary: PerfettoSummary,
    is_cut: bool,
    is_whole: bool,
    damaged_blocks: u64,
    skipped_bytes: u64,
}

/// What `--json` prints where several processes were recorded, or no trace was asked for.
#[derive(Serialize)]
struct Recorded {
    recordings: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    traces: Vec<Written>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    let file = arguments.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
    if let Some(out) = arguments.perfetto.as_deref() {
        if out == Path::new("-") {
            let what = "--perfetto - names no file, and a trace is not written to the standard output";
            return Err(Failure::usage(what).next("give the name of a file; ./- is one of that name"));
        }
        if is_same(file, out) {
            let what = format!("{} is the recording and cannot be the trace, too", out.display());
            return Err(Failure::usage(what).next("give another file with --perfetto"));
        }
        recording_place::writable(out)?;
    }
    match arguments.program.split_first() {
        Some((program, words)) => record(arguments, file, (program, words), console),
        None => match (&arguments.file, &arguments.perfetto) {
            (Some(file), Some(out)) => convert_all(arguments, file, out, console),
            (file, _) => {
                let what = if file.is_some() { "no trace is asked for" } else { "no recording is named" };
                let next = "`kiln trace -- PROGRAM` records a program, `kiln trace FILE --perfetto OUT` makes a trace of a recording";
                Err(Failure::usage(format!("{what}, and no program is to be run")).next(next))
            }
        },
    }
}

/// Makes the trace of a recording, or those of the processes whose numbers stand in the place of `%p`.
fn convert_all(
    arguments: &Arguments,
    file: &Path,
    out: &Path,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let mut traces = Vec::new();
    match FilePattern::of(file).filter(|_| !file.exists()) {
        None => traces.push(convert(arguments, file, out)?),
        Some(pattern) => {
            recording_place::check_numbered(out)?;
            for recording in recording_file::meant(&[file.to_owned()])? {
                let number = pattern.number(&recording);
                let own = number.map_or_else(|| out.to_owned(), |number| with_process_number(out, number));
                traces.push(convert(arguments, &recording, &own)?);
            }
        }
    }
    tell(arguments, traces, &[], console)?;
    Ok(Exit::Done)
}

/// Runs a program and records it.
fn record(
    arguments: &Arguments,
    file: &Path,
    program: (&OsString, &[OsString]),
    console: &mut Console,
) -> Result<Exit, Failure> {
    let place = RecordingPlace::new(file)?;
    arguments.perfetto.as_deref().map_or(Ok(()), recording_place::check_folder)?;
    if let Some(out) = arguments.perfetto.as_deref().filter(|_| place.pattern().is_some()) {
        recording_place::check_numbered(out)?;
    }
    let signals = ProgramSignals::hold().map_err(|error| Failure::fault(format!("signals: {error}")))?;
    let settings = RunSettings { is_json: arguments.json, times: arguments.times };
    let run = recorded_program::run((program.0, program.1), &place, settings, signals)?;
    if let Some(why) = &run.why_nothing {
        complain(format_args!("kiln trace: {why}"));
        if let Some(out) = &arguments.perfetto {
            complain(format_args!("kiln trace: {} is not written", out.display()));
        }
        if arguments.json {
            tell(arguments, Vec::new(), &[], console)?;
        }
        return Ok(run.ended);
    }
    let by_number = place.pattern().is_some();
    let mut traces = Vec::new();
    if let Some(out) = &arguments.perfetto {
        for recording in run.recordings.iter().take(if by_number { usize::MAX } else { 1 }) {
            traces.push(convert(arguments, recording, &place.with_number_of(recording, out))?);
        }
    }
    run.recordings.iter().for_each(|recording| recording_file::note_missing(recording));
    let told = if traces.is_empty() || by_number { &run.recordings[..] } else { &[] };
    tell(arguments, traces, told, console)?;
    for other in run.recordings.iter().skip(1).filter(|_| !by_number) {
        complain(format_args!("a further process is recorded to {}", other.display()));
    }
    Ok(run.ended)
}

/// Says what was made.
fn tell(
    arguments: &Arguments,
    mut traces: Vec<Written>,
    recordings: &[PathBuf],
    console: &mut Console,
) -> Result<(), Failure> {
    if arguments.json {
        let is_alone = recordings.is_empty() && traces.len() < 2;
        return match traces.pop_if(|_| is_alone) {
            Some(written) => console.json(&written),
            None => {
                let recordings = recordings.iter().map(|file| file.display().to_string()).collect();
                console.json(&Recorded { recordings, traces })
            }
        };
    }
    for Written { perfetto, summary, .. } in &traces {
        console.line(format_args!("{perfetto}: {}", in_words(summary)));
    }
    match recordings {
        [] => {}
        [file] => {
            let (shown, word) = (file.display(), path_word(file));
            complain(format_args!("recorded to {shown}; `kiln explain {word}` says what it shows"));
        }
        files => {
            for file in files {
                complain(format_args!("recorded to {}", file.display()));
            }
            complain("`kiln explain` with all of them says what they show together");
        }
    }
    Ok(())
}

/// A path as a word of a command, which a shell takes and which is no flag.
fn path_word(path: &Path) -> String {
    match path.as_os_str().as_encoded_bytes().first() {
        Some(b'-') => shell_word(Path::new(".").join(path).as_os_str()),
        _ => shell_word(path.as_os_str()),
    }
}

/// Whether two paths name one file, or would.
fn is_same(file: &Path, other: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok();
    whole(file).is_some_and(|file| Some(file) == whole(other))
}

/// Writes the trace of a recording.
fn convert(arguments: &Arguments, file: &Path, out: &Path) -> Result<Written, Failure> {
    let mut reader = recording_file::open(file, arguments.skip_damaged)?;
    let not_written = |error: std::io::Error| {
        let step = new_file::next_step(&error);
        Failure::file(out, error).next(format!("{step} with --perfetto"))
    };
    let mut target = NewFile::create(out).map_err(not_written)?;
    let summary = export_perfetto(&mut reader, BufWriter::new(&mut target)).map_err(|error| match error {
        ExportError::Read(error) => recording_file::failure(file, &error),
        ExportError::Write(error) => not_written(error),
    })?;
    target.publish().map_err(not_written)?;
    if !arguments.json {
        recording_file::note_gaps(file, &reader);
    }
    Ok(Written {
        perfetto: out.display().to_string(),
        summary,
        is_cut: reader.is_cut(),
        is_whole: reader.has_end_mark(),
        damaged_blocks: reader.damaged_blocks(),
        skipped_bytes: reader.skipped_bytes(),
    })
}

fn in_words(summary: &PerfettoSummary) -> String {
    let mut text = format!(
        "{}, {}, {} bytes",
        counted(summary.submissions, "submission"),
        counted(summary.arrows, "arrow"),
        summary.bytes
    );
    if summary.arrows_left_out > 0 {
        let waits = counted(summary.arrows_left_out, "wait");
        text += &format!("; {waits} for work that is not in the recording");
    }
    if summary.dropped_events > 0 {
        text += &format!("; the recording misses {}", counted(summary.dropped_events, "event"));
        text += &summary.dropped_because.map(|why| format!(": {why}")).unwrap_or_default();
    }
    text
}
