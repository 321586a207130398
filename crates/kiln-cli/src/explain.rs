//! `kiln explain`: a recording in words.

use std::path::{Path, PathBuf};

use clap::Args;
use kiln_trace::{Explainer, Explanation, JobExplanation, RankLog, RecordedRun};
use serde::Serialize;

use crate::console::{Console, complain};
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
     fullest and at the end. Then the program's own waits, by line, and collectives. What is not \
     among the first three of these is counted in a line behind them, with its time.

A device is idle while none of its streams runs anything. If the next work was submitted only \
     after that, the reason is the program, and the wait it was in is named. A wait is called \
     unrelated where the event between two streams was recorded behind later work than the waiter \
     needs.

An allocation that was refused is told with its line, the tags that held most and the free \
     pieces; a lost device with the steps that brought it back; collectives with bytes, rank and \
     communicator.

Several recordings are put on one time axis, by the wall clock at which each began or else by \
     the first collective that all have, which is said; the ranks that came late to a collective are \
     named, and then each recording is explained. Times of simulated devices cannot be compared \
     between processes; there, the rank is late whose devices worked longest since the collective \
     before. Recordings of different runs (KILN_TRACE_RUN, which `kiln launch` and `kiln trace` set) are \
     not compared; each run is told by itself. Of several recordings, one that cannot be read is told \
     and left out, and the exit code is 2.

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
    #[serde(skip_serializing_if = "String::is_empty")]
    run: String,
    job: JobExplanation,
    recordings: Vec<ExplainedFile>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<Unreadable>,
}

/// What `--json` prints of the recordings of several runs.
#[derive(Serialize)]
struct ExplainedRuns {
    runs: Vec<ExplainedJob>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<Unreadable>,
}

/// A recording that cannot be read.
#[derive(Serialize)]
struct Unreadable {
    file: String,
    error: Failure,
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
    let (mut logs, mut recordings, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
    for file in &files {
        match explain(arguments, file) {
            Ok((explained, log)) => {
                logs.push(log);
                recordings.push(ExplainedFile { file: file.display().to_string(), explained });
            }
            // Where there are others, they are told.
            Err(error) if files.len() > 1 => {
                if !arguments.json {
                    complain(format_args!("{error}"));
                }
                unreadable.push(Unreadable { file: file.display().to_string(), error });
            }
            Err(error) => return Err(error),
        }
    }
    if recordings.is_empty()
        && let Some(Unreadable { error, .. }) = unreadable.pop()
    {
        return Err(error);
    }
    let exit = if unreadable.is_empty() { Exit::Done } else { Exit::Usage };
    let mut jobs = jobs(&logs, recordings);
    match (&mut jobs[..], arguments.json) {
        ([job], true) if files.len() > 1 => {
            job.unreadable = unreadable;
            console.json(job)?;
        }
        ([ExplainedJob { recordings, .. }], true) => {
            recordings.iter().try_for_each(|one| console.json(&one.explained))?
        }
        (_, true) => console.json(&ExplainedRuns { runs: jobs, unreadable })?,
        ([job], false) => tell(job, files.len() > 1, console),
        (several, false) => {
            console.line(format_args!("{} runs, told one after the other", several.len()));
            for (number, job) in (1..).zip(several.iter()) {
                let name = if job.run.is_empty() {
                    "not named".to_owned()
                } else {
                    job.run.escape_debug().to_string()
                };
                console.line(format_args!("\nRun {number} ({name})"));
                tell(job, true, console);
            }
        }
    }
    Ok(exit)
}

/// The recordings of each run, compared.
fn jobs(logs: &[RankLog], recordings: Vec<ExplainedFile>) -> Vec<ExplainedJob> {
    let all: Vec<&RankLog> = logs.iter().collect();
    let mut recordings: Vec<Option<ExplainedFile>> = recordings.into_iter().map(Some).collect();
    let job = |RecordedRun { run, recordings: own }: RecordedRun| {
        let logs: Vec<&RankLog> = own.iter().filter_map(|at| all.get(*at).copied()).collect();
        let recordings = own.iter().filter_map(|at| recordings.get_mut(*at)?.take()).collect();
        ExplainedJob { run, job: JobExplanation::of(&logs), recordings, unreadable: Vec::new() }
    };
    RecordedRun::all_of(&all).into_iter().map(job).collect()
}

/// Prints the recordings of one run; with their names where there are others.
fn tell(ExplainedJob { job, recordings, .. }: &ExplainedJob, is_named: bool, console: &mut Console) {
    match &recordings[..] {
        [ExplainedFile { file, explained }] => {
            if is_named {
                console.line(file);
            }
            print(&explained.explanation, console);
            if !job.collectives.is_empty() {
                // Several devices of one program are ranks, too.
                console.line(format_args!("\n{}", job.to_string().trim_end()));
            }
        }
        all => {
            console.line(job.to_string().trim_end());
            for ExplainedFile { file, explained } in all {
                console.line(format_args!("\n{file}"));
                print(&explained.explanation, console);
            }
        }
    }
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
