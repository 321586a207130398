//! `kiln watch`: a page that shows a recording, also while the program runs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use kiln_watch::{ExpectedFile, WatchError, WatchOptions, WatchServer};
use serde::Serialize;

use crate::console::{Console, complain};
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::recording_file;
use crate::trace::{DEFAULT_FILE, recorded_program};

/// The flags of `kiln watch`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The recording: what is shown, or where a program is recorded (`trace.kiln` if it is left out).
    #[arg(required_unless_present = "program")]
    file: Option<PathBuf>,
    /// The port of the page; a free one if it is left out.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Wait for the file if it is not there yet.
    #[arg(long)]
    live: bool,
    /// Print the address as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// A program that is run, recorded and shown, with its arguments.
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

const EXAMPLES: &str = "Examples:
  kiln watch train.kiln
  kiln watch -- ./train --steps 10
  kiln watch train.kiln --live --port 7007

Open the address that is printed in a browser on this machine. The page has a
timeline in which a gap says why the stream waited, memory by tag, devices and
their states, faults, collectives by rank, and the words of `kiln explain`. The
key ? lists the keys. The page follows the file while it grows; a program that
was killed is shown up to its last whole block.

The page is served on the loopback interface only, and its address has a random
token: who does not know it sees nothing. From another machine, forward the port
(ssh -L 7007:127.0.0.1:7007 HOST) and give --port 7007 here. Ctrl-C ends it.

A program is run with KILN_TRACE=FILE. The page stays when the program has
ended.

Exit codes: 2 wrong usage, or a file that cannot be read, 3 a port in use, or a
program that cannot be started or records nothing; otherwise it runs until
Ctrl-C.";

/// What `--json` prints.
#[derive(Serialize)]
struct Served<'a> {
    url: &'a str,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    let file = arguments.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
    let expected = match (arguments.program.is_empty(), arguments.live) {
        (false, _) => ExpectedFile::New,
        (true, true) => ExpectedFile::Awaited,
        (true, false) => ExpectedFile::There,
    };
    let options = WatchOptions { port: arguments.port, file: expected };
    let server = WatchServer::start(file, &options).map_err(|error| failure(file, &error))?;
    if arguments.json {
        console.json(&Served { url: server.url() })?;
    } else if arguments.program.is_empty() {
        console.line(format_args!("{} (Ctrl-C ends it)", server.url()));
    } else {
        // The standard output is the program's.
        complain(format_args!("{} (Ctrl-C ends it)", server.url()));
    }
    if let Some((program, words)) = arguments.program.split_first() {
        let (ended, is_recorded) = recorded_program::run(program, words, file)?;
        if !is_recorded {
            complain("the program recorded nothing");
            return Ok(ended);
        }
        let code = ended.code();
        complain(format_args!("the program ended with {code}; the page stays until Ctrl-C"));
    }
    server.wait();
    Ok(Exit::Done)
}

fn failure(file: &Path, error: &WatchError) -> Failure {
    if let WatchError::File { error, .. } = error {
        return recording_file::failure(file, error);
    }
    let failure = Failure::refused(error.to_string());
    match error.next_step() {
        Some(step) => failure.next(step),
        None => failure,
    }
}
