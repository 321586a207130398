//! `kiln explain`: a recording in words.

use std::path::PathBuf;

use clap::Args;
use kiln_trace::{Explainer, Explanation};
use serde::Serialize;

use crate::console::Console;
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::recording_file;

/// The flags of `kiln explain`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The recording.
    file: PathBuf,
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

For each device: the three largest reasons why it was idle, the three longest
waits of its streams for each other with the block they were about, and who held
its memory when it was fullest and at the end. Then the program's own waits, by
line.

A device is idle while none of its streams runs anything. If the next work was
submitted only after that, the reason is the program, and the wait it was in is
named. A wait is called unrelated where the event between two streams was
recorded behind later work than the waiter needs.

An allocation that was refused is told with its line, the tags that held most and
the free pieces; a lost device with the steps that brought it back; collectives
with bytes, rank and communicator.

A recording of a program that was killed is read up to where it is cut, and has no
end mark, which is said.

Exit codes: 0 done, 2 wrong usage, or a file that cannot be read.";

/// What `--json` prints.
#[derive(Serialize)]
struct Explained {
    #[serde(flatten)]
    explanation: Explanation,
    is_cut: bool,
    damaged_blocks: u64,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    let file = &arguments.file;
    let mut reader = recording_file::open(file, arguments.skip_damaged)?;
    let mut explainer = Explainer::default();
    while let Some(event) = reader.next_event().map_err(|error| recording_file::failure(file, &error))? {
        explainer.add(&event);
    }
    let explanation = explainer.finish();
    if arguments.json {
        let (is_cut, damaged_blocks) = (reader.is_cut(), reader.damaged_blocks());
        console.json(&Explained { explanation, is_cut, damaged_blocks })?;
    } else {
        recording_file::note_gaps(file, &reader);
        console.line(explanation.to_string().trim_end());
    }
    Ok(Exit::Done)
}
