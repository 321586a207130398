//! `kiln watch`: a page that shows a recording, also while the program runs.

#[cfg(unix)]
mod output_reader;
#[cfg(not(unix))]
#[path = "watch/output_reader_unsupported.rs"]
mod output_reader;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::Args;
use kiln::telemetry::DeviceTimes;
use kiln_trace::RepeatCommand;
use kiln_watch::{
    ExpectedFile, FilePattern, RepeatCommandText, WatchError, WatchOptions, WatchServer, WatchedFiles,
};
use serde::Serialize;

use crate::console::{Console, complain, complain_unbroken};
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::program_signals::ProgramSignals;
use crate::recording_file;
use crate::trace::recorded_program::RunSettings;
use crate::trace::recording_place::{self, RecordingPlace};
use crate::trace::{DEFAULT_FILE, file_name, recorded_program};

/// The flags of `kiln watch`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The recording: what is shown, or where a program is recorded (`trace.kiln` if it is left out). Several, a folder, or a name with %p
    /// are the ranks of one job.
    #[arg(required_unless_present = "program", value_parser = file_name())]
    file: Vec<PathBuf>,
    /// The port of the page; a free one if it is left out.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// How the device's times are taken while PROGRAM runs: host (not at all), events, events/16 (around every 16th submission), cupti.
    #[arg(long, value_name = "HOW", requires = "program")]
    times: Option<DeviceTimes>,
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
  kiln watch --times events -- ./train --steps 10
  kiln watch train.kiln --live --port 7007
  kiln watch rank-0.kiln rank-1.kiln
  kiln watch runs/rank-%p.kiln

Open the address that is printed in a browser on this machine. The page has a timeline in which \
     a gap says why the stream waited, memory by tag and by address, devices and their states, \
     faults, collectives by rank, and the words of `kiln explain`. Several recordings are on one time \
     axis, and the ranks that came late to a collective are named. The key ? lists the keys. The page \
     follows the file while it grows; a program that was killed is shown up to its last whole block.

The page is served on the loopback interface only, and its address has a random token: who does \
     not know it sees nothing. From another machine, forward the port (ssh -L 7007:127.0.0.1:7007 \
     HOST) and give --port 7007 here. Ctrl-C ends it.

A program is run with KILN_TRACE=FILE; %p in its name stands for the number of the process. The \
     page stays when the program has ended. While it runs, SIGTERM, SIGINT and SIGHUP are passed on \
     to it, and end the page, too. Where the standard output is a pipe, the page ends when its reader \
     leaves. With --json the program's standard output goes to the standard \
     error.

Exit codes: 2 wrong usage, or a file that cannot be read, 3 a port in use, or a program that \
     cannot be started, that of the program where it recorded nothing or a signal ended both; \
     otherwise it runs until Ctrl-C, SIGTERM or SIGHUP ends it, by that signal (a shell has 130, \
     143 or 129), and ends with 0 where the reader of its output leaves.";

/// What `--json` prints.
#[derive(Serialize)]
struct Served<'a> {
    url: &'a str,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    match arguments.program.split_first() {
        Some((program, words)) => run_and_show(arguments, (program, words), console),
        None => {
            let server = serve(arguments, files(arguments)?)?;
            match arguments.json {
                true => console.json(&Served { url: server.url() })?,
                false => console.unbroken(format_args!("{} (Ctrl-C ends it)", server.url())),
            }
            // A page whose address could not be said is of no use; why is told at the end.
            if console.is_open() {
                stay(&server);
            }
            Ok(Exit::Done)
        }
    }
}

/// Serves the page until the command is ended, or what read its standard output leaves, as `head` does.
fn stay(server: &WatchServer) {
    if output_reader::left() {
        complain("nothing reads the standard output any more, so the page has ended");
    } else {
        server.wait();
    }
}

/// Records a program, and shows it meanwhile and after.
fn run_and_show(
    arguments: &Arguments,
    program: (&OsString, &[OsString]),
    console: &mut Console,
) -> Result<Exit, Failure> {
    let file = match &arguments.file[..] {
        [] => Path::new(DEFAULT_FILE),
        [file] => file,
        _ => {
            let what = "a program is recorded to one file, or with %p in its name to one for each process";
            return Err(Failure::usage(what).next("give one name"));
        }
    };
    let place = RecordingPlace::new(file)?;
    // Before an address is printed that would be gone at once.
    recorded_program::check_program(program.0)?;
    // Before the page has threads, which a signal could end the command by.
    let signals = ProgramSignals::hold().map_err(|error| Failure::fault(format!("signals: {error}")))?;
    let files = match place.pattern() {
        Some(pattern) => {
            let since = Some(recording_place::beginning());
            WatchedFiles::Pattern { pattern: pattern.clone(), since }
        }
        None => WatchedFiles::Files(vec![file.to_owned()]),
    };
    let server = serve(arguments, files)?;
    match arguments.json {
        true => console.json(&Served { url: server.url() })?,
        // The standard output is the program's.
        false => complain_unbroken(format_args!("{} (Ctrl-C ends it)", server.url())),
    }
    if arguments.json && !console.is_open() {
        // As above, and the program has not begun.
        return Ok(Exit::Done);
    }
    let settings = RunSettings { is_json: arguments.json, times: arguments.times };
    let run = recorded_program::run((program.0, program.1), &place, settings, signals)?;
    if run.is_signalled {
        return Ok(run.ended);
    }
    if let Some(why) = run.why_nothing {
        complain(format_args!("kiln watch: {why}"));
        complain("nothing was recorded, so the page has ended");
        return Ok(run.ended);
    }
    let code = run.ended.code();
    complain(format_args!("the program ended with {code}; the page stays until Ctrl-C"));
    stay(&server);
    Ok(Exit::Done)
}

/// What is shown where no program is run.
fn files(arguments: &Arguments) -> Result<WatchedFiles, Failure> {
    if let ([path], true) = (&arguments.file[..], arguments.live)
        && let Some(pattern) = FilePattern::of(path)
    {
        return Ok(WatchedFiles::Pattern { pattern, since: None });
    }
    // A file that is awaited is the next recording.
    if !arguments.live {
        recording_file::put_missing_back(&arguments.file);
    }
    let files = recording_file::meant(&arguments.file)?;
    // Files that are named are shown as they are.
    let are_named = files == arguments.file;
    if are_named {
        return Ok(WatchedFiles::Files(files));
    }
    Ok(WatchedFiles::Files(recording_file::of_latest_run(recording_file::readable(files)?)))
}

fn serve(arguments: &Arguments, files: WatchedFiles) -> Result<WatchServer, Failure> {
    let file = match (arguments.program.is_empty(), arguments.live) {
        (false, _) => ExpectedFile::New,
        (true, true) => ExpectedFile::Awaited,
        (true, false) => ExpectedFile::There,
    };
    let options = WatchOptions { port: arguments.port, file, repeat: repeated(arguments) };
    WatchServer::start_job(files, &options).map_err(|error| failure(&error))
}

/// The command that records the program again, as a shell takes it.
fn repeated(arguments: &Arguments) -> Option<RepeatCommandText> {
    let file = arguments.file.first().map_or(Path::new(DEFAULT_FILE), PathBuf::as_path);
    let command = RepeatCommand::of(arguments.program.iter().cloned(), |name| std::env::var_os(name));
    let times = arguments.times.map(|times| times.to_string());
    let times = times.iter().flat_map(|times| ["--times", times].map(OsStr::new));
    let under = ["kiln".as_ref(), "watch".as_ref(), file.as_os_str()].into_iter().chain(times);
    let under: Vec<&OsStr> = under.collect();
    command.is_known().then(|| RepeatCommandText {
        command: command.under(&under),
        lacks: (!command.is_whole()).then(|| command.lacks().to_string()),
    })
}

fn failure(error: &WatchError) -> Failure {
    if let WatchError::File { path, error } = error {
        return recording_file::failure(path, error);
    }
    let failure = Failure::refused(error.to_string());
    match error.next_step() {
        Some(step) => failure.next(step),
        None => failure,
    }
}
