//! `kiln trace`: records a program, and makes a trace for Perfetto of a recording.

mod new_file;
pub(crate) mod recorded_program;

use std::ffi::OsString;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use clap::Args;
use kiln_trace::{ExportError, PerfettoSummary, export_perfetto};
use serde::Serialize;

use crate::console::{Console, complain};
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::plural::counted;
use crate::recording_file;
use new_file::NewFile;

/// Where a program is recorded if no file is given.
pub(crate) const DEFAULT_FILE: &str = "trace.kiln";

/// The flags of `kiln trace`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The recording: what is read, or where a program is recorded (`trace.kiln` if it is left out).
    #[arg(required_unless_present = "program")]
    file: Option<PathBuf>,
    /// Write a trace that Perfetto opens.
    #[arg(long, value_name = "OUT", required_unless_present = "program")]
    perfetto: Option<PathBuf>,
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

const EXAMPLES: &str = "Examples:
  kiln trace -- ./train --steps 10
  kiln trace train.kiln --perfetto train.pftrace -- ./train --steps 10
  kiln trace train.kiln --perfetto train.pftrace
  kiln trace train.kiln --perfetto train.pftrace --skip-damaged --json

Open the trace at ui.perfetto.dev, which keeps it in the browser. Below each
device are its streams with their kernels (line and submission are in the
details), an arrow for each wait from the work that was waited for, the waits of
the program's threads, memory by tag, faults and takeovers. Work whose time on
the device was not measured is on a track of its stream that says \"submitted\".

A program is run with KILN_TRACE=FILE, which every kiln runtime understands. A
recording of a program that was killed is read up to where it is cut.

Exit codes: that of the program, where one is run and ends with another than 0;
otherwise 0 done, 2 wrong usage, or a file that cannot be read or written, 3 the
program cannot be started, or recorded nothing.";

/// What `--json` prints.
#[derive(Serialize)]
struct Written<'a> {
    perfetto: String,
    #[serde(flatten)]
    summary: &'a PerfettoSummary,
    is_cut: bool,
    is_whole: bool,
    damaged_blocks: u64,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    let file = arguments.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
    if let Some(out) = arguments.perfetto.as_deref().filter(|out| is_same(file, out)) {
        let what = format!("{} is the recording and cannot be the trace, too", out.display());
        return Err(Failure::usage(what).next("give another file with --perfetto"));
    }
    let (ended, is_recorded) = match arguments.program.split_first() {
        Some((program, words)) => recorded_program::run(program, words, file)?,
        None => (Exit::Done, true),
    };
    if !is_recorded {
        complain("the program recorded nothing");
        return Ok(ended);
    }
    match &arguments.perfetto {
        Some(out) => convert(arguments, file, out, console)?,
        None => {
            complain(format_args!("recorded to {0}; `kiln explain {0}` says what it shows", file.display()))
        }
    }
    Ok(ended)
}

/// Whether two paths name one file, or would.
fn is_same(file: &Path, other: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok();
    whole(file).is_some_and(|file| Some(file) == whole(other))
}

/// Writes the trace of a recording.
fn convert(arguments: &Arguments, file: &Path, out: &Path, console: &mut Console) -> Result<(), Failure> {
    let mut reader = recording_file::open(file, arguments.skip_damaged)?;
    let not_written =
        |error| Failure::file(out, error).next("give another place with --perfetto, or make room");
    let mut target = NewFile::create(out).map_err(not_written)?;
    let summary = export_perfetto(&mut reader, BufWriter::new(&mut target)).map_err(|error| match error {
        ExportError::Read(error) => recording_file::failure(file, &error),
        ExportError::Write(error) => not_written(error),
    })?;
    target.publish().map_err(not_written)?;
    let (is_cut, damaged_blocks) = (reader.is_cut(), reader.damaged_blocks());
    if arguments.json {
        let perfetto = out.display().to_string();
        return console.json(&Written {
            perfetto,
            summary: &summary,
            is_cut,
            is_whole: reader.has_end_mark(),
            damaged_blocks,
        });
    }
    recording_file::note_gaps(file, &reader);
    console.line(format_args!("{}: {}", out.display(), in_words(&summary)));
    Ok(())
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
    }
    text
}
