//! `kiln trace`: a recording as a trace for Perfetto.

mod new_file;

use std::io::BufWriter;
use std::path::PathBuf;

use clap::Args;
use kiln_trace::{ExportError, PerfettoSummary, export_perfetto};
use serde::Serialize;

use crate::console::Console;
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::plural::counted;
use crate::recording_file;
use new_file::NewFile;

/// The flags of `kiln trace`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The recording.
    file: PathBuf,
    /// Write a trace that Perfetto opens.
    #[arg(long, value_name = "OUT", required = true)]
    perfetto: PathBuf,
    /// Leave damaged blocks out instead of stopping at the first.
    #[arg(long)]
    skip_damaged: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "Examples:
  kiln trace train.kiln --perfetto train.pftrace
  kiln trace train.kiln --perfetto train.pftrace --skip-damaged --json

Open the trace at ui.perfetto.dev, which keeps it in the browser. Below each
device are its streams with their kernels (line and submission are in the
details), an arrow for each wait from the work that was waited for, the waits of
the program's threads, memory by tag, faults and takeovers. Work whose time on
the device was not measured is on a track of its stream that says \"submitted\".

A recording of a program that was killed is read up to where it is cut.

Exit codes: 0 done, 2 wrong usage, or a file that cannot be read or written.";

/// What `--json` prints.
#[derive(Serialize)]
struct Written<'a> {
    perfetto: String,
    #[serde(flatten)]
    summary: &'a PerfettoSummary,
    is_cut: bool,
    damaged_blocks: u64,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    let (file, out) = (&arguments.file, &arguments.perfetto);
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
        console.json(&Written { perfetto, summary: &summary, is_cut, damaged_blocks })?;
        return Ok(Exit::Done);
    }
    recording_file::note_gaps(file, &reader);
    console.line(format_args!("{}: {}", out.display(), in_words(&summary)));
    Ok(Exit::Done)
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
