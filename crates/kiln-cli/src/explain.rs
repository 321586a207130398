//! `kiln explain`: a recording in words.

use std::path::{Path, PathBuf};

use clap::Args;
use kiln_trace::{Explainer, Explanation, JobExplanation, RankLog};
use serde::Serialize;

use crate::console::Console;
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::recording_file;

/// The flags of `kiln explain`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The recording; several, a folder, or a name with %p are the ranks of one job.
    #[arg(required = true)]
    file: Vec<PathBuf>,
    /// Leave damaged blocks out instead of stopping at the first.
    #[arg(long)]
    skip_damaged: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "Examples:
  kiln explain train.kiln
  kiln explain train.kiln --json
  kiln explain rank-0.kiln rank-1.kiln
  kiln explain runs/rank-%p.kiln

For each device: the three largest reasons why it was idle, the three longest waits of its \
     streams for each other with the block they were about, and who held its memory when it was \
     fullest and at the end. Then the program's own waits, by line.

A device is idle while none of its streams runs anything. If the next work was submitted only \
     after that, the reason is the program, and the wait it was in is named. A wait is called \
     unrelated where the event between two streams was recorded behind later work than the waiter \
     needs.

An allocation that was refused is told with its line, the tags that held most and the free \
     pieces; a lost device with the steps that brought it back; collectives with bytes, rank and \
     communicator.

Several recordings are put on one time axis, by the wall clock at which each began or else by \
     the first collective that all have, which is said; the ranks that came late to a collective are \
     named, and then each recording is explained.

A recording of a program that was killed is read up to where it is cut, and has no end mark, \
     which is said.

Exit codes: 0 done, 2 wrong usage, or a file that cannot be read.";

/// What `--json` prints of a recording.
#[derive(Serialize)]
struct Explained {
    #[serde(flatten)]
    explanation: Explanation,
    is_cut: bool,
}

/// What `--json` prints of several.
#[derive(Serialize)]
struct ExplainedJob {
    job: JobExplanation,
    recordings: Vec<ExplainedFile>,
}

#[derive(Serialize)]
struct ExplainedFile {
    file: String,
    #[serde(flatten)]
    explained: Explained,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    let files = recording_file::meant(&arguments.file)?;
    let (mut logs, mut recordings) = (Vec::new(), Vec::new());
    for file in &files {
        let (explained, log) = explain(arguments, file)?;
        logs.push(log);
        recordings.push(ExplainedFile { file: file.display().to_string(), explained });
    }
    let job = JobExplanation::of(&logs.iter().collect::<Vec<_>>());
    match (&recordings[..], arguments.json) {
        ([one], true) => console.json(&one.explained)?,
        (_, true) => console.json(&ExplainedJob { job, recordings })?,
        ([one], false) => {
            print(&one.explained.explanation, console);
            if !job.collectives.is_empty() {
                // Several devices of one program are ranks, too.
                console.line(format_args!("\n{}", job.to_string().trim_end()));
            }
        }
        (all, false) => {
            console.line(job.to_string().trim_end());
            for ExplainedFile { file, explained } in all {
                console.line(format_args!("\n{file}"));
                print(&explained.explanation, console);
            }
        }
    }
    Ok(Exit::Done)
}

/// Prints an explanation. The command that repeats the run is on one line, however narrow the terminal is.
fn print(explanation: &Explanation, console: &mut Console) {
    console.line(explanation.story().to_string().trim_end());
    if let Some(repeat) = explanation.repeat_line() {
        console.line("");
        console.unbroken(repeat);
        explanation.repeat_lacks.iter().for_each(|lacks| console.line(format_args!("  ({lacks})")));
    }
}

/// Reads a recording.
fn explain(arguments: &Arguments, file: &Path) -> Result<(Explained, RankLog), Failure> {
    let mut reader = recording_file::open(file, arguments.skip_damaged)?;
    let (mut explainer, mut log) = (Explainer::default(), RankLog::default());
    while let Some(event) = reader.next_event().map_err(|error| recording_file::failure(file, &error))? {
        explainer.add(&event);
        log.add(&event);
    }
    if !arguments.json {
        recording_file::note_gaps(file, &reader);
    }
    explainer.leave_out(reader.damaged_blocks(), reader.skipped_bytes());
    Ok((Explained { explanation: explainer.finish(), is_cut: reader.is_cut() }, log))
}
