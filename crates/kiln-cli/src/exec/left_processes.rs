//! Processes of a run that outlive the program.
//!
//! A process belongs to a run if its environment names the folder of the run, which it has from the program. Where it was moved to since, by a daemon that forks twice
//! or a separate session, makes no difference.

use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;

use crate::program_signals::ProgramSignals;

/// What is done with processes that outlive the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum LeftBehind {
    /// They run on, and the report names them.
    Leave,
    /// They are waited for, so that what they find is in the report.
    Wait,
    /// They are ended: they are asked to end, and killed two seconds later.
    End,
}

/// A process that outlives the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LeftProcess {
    pub(super) number: u32,
    name: String,
}

/// How often processes are looked for.
const LOOK: Duration = Duration::from_millis(20);
/// Looks before a process counts as left behind: many end when they see that the program has.
const LOOKS_FIRST: u32 = 25;
/// Looks before a process that was asked to end is killed.
const LOOKS_TO_END: u32 = 100;

/// What came of the processes that the program left behind.
#[derive(Default)]
pub(super) struct LeftProcesses {
    /// Those that still run.
    pub(super) running: Vec<LeftProcess>,
    /// Those that were ended.
    ended: Vec<LeftProcess>,
}

impl LeftProcesses {
    /// Does with the processes of a run what was asked for; the program itself is gone. A signal that asks this command to end ends a wait.
    pub(super) fn settle(choice: LeftBehind, folder: &Path, signals: &ProgramSignals) -> Self {
        let waits = signals.wait();
        let running = after(LOOKS_FIRST, || of_run(folder));
        if running.is_empty() || choice == LeftBehind::Leave {
            return Self { running, ended: Vec::new() };
        }
        if choice == LeftBehind::Wait {
            loop {
                let running = of_run(folder);
                if running.is_empty() || waits.is_ended() {
                    return Self { running, ended: Vec::new() };
                }
                std::thread::sleep(LOOK);
            }
        }
        let mut ended = running;
        tell_all(&ended, Ending::Asked);
        let rest = after(LOOKS_TO_END, || of_run(folder));
        tell_all(&rest, Ending::Killed);
        // One that was started meanwhile is told as running.
        let running = after(LOOKS_TO_END, || of_run(folder));
        ended.extend(rest.into_iter().filter(|process| !ended.contains(process)).collect::<Vec<_>>());
        ended.retain(|process| !running.contains(process));
        Self { running, ended }
    }

    /// Sentences about them.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let running = self.running.iter().map(|LeftProcess { number, name }| {
            format!(
                "process {number} ({name}) still runs, and what it finds from here on is not in this report; give --left-behind wait to wait for \
                 such processes, or --left-behind end to end them"
            )
        });
        let ended = self.ended.iter().map(|LeftProcess { number, name }| {
            format!("process {number} ({name}), which the program left behind, was ended")
        });
        running.chain(ended)
    }
}

/// How a process is ended.
#[derive(Clone, Copy)]
enum Ending {
    Asked,
    Killed,
}

/// Looks until there is none, or so many times.
fn after(looks: u32, mut look: impl FnMut() -> Vec<LeftProcess>) -> Vec<LeftProcess> {
    let mut left = look();
    for _ in 0..looks {
        if left.is_empty() {
            break;
        }
        std::thread::sleep(LOOK);
        left = look();
    }
    left
}

#[cfg(unix)]
fn tell_all(processes: &[LeftProcess], ending: Ending) {
    use rustix::process::{Pid, Signal, kill_process};

    let signal = match ending {
        Ending::Asked => Signal::TERM,
        Ending::Killed => Signal::KILL,
    };
    for process in processes {
        if let Some(number) = i32::try_from(process.number).ok().and_then(Pid::from_raw) {
            // One that has ended by itself is what is wanted.
            let _ = kill_process(number, signal);
        }
    }
}

#[cfg(not(unix))]
fn tell_all(_: &[LeftProcess], _: Ending) {}

/// The processes of a run, but for those that have ended and were not waited for; none where the system does not tell.
fn of_run(folder: &Path) -> Vec<LeftProcess> {
    let mut mark = b"KILN_EXEC_FOLDER=".to_vec();
    mark.extend_from_slice(folder.as_os_str().as_encoded_bytes());
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_of_run = |number: &u32| {
        let environment = std::fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark)
    };
    let mut found: Vec<LeftProcess> = numbers.filter(is_of_run).map(LeftProcess::new).collect();
    found.sort_by_key(|process| process.number);
    found
}

impl LeftProcess {
    fn new(number: u32) -> Self {
        let name = std::fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
        Self { number, name: name.trim_end().to_owned() }
    }
}
