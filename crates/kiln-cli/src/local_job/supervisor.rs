//! Supervises the ranks of a job: passes their output and signals on, and decides what happens when one fails.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::Arguments;
use super::failure_order::FailureOrder;
use super::output_lines::{LineSink, pass_on};
use super::rank_end::RankEnd;
use super::rank_process::{RankProcess, spawn};
use super::rank_variables::JobVariables;
use super::seen_ends::SeenEnds;
use crate::console::complain;
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::signals::{self, SignalMask};

/// How long output of processes that have left the group of their rank is waited for.
const LAST_OUTPUT: Duration = Duration::from_secs(2);

/// How long a failed rank is not told while another one has begun to end before it, or has left the job.
const SLOW_END: Duration = Duration::from_secs(3);
/// The same while another one was lost before it, and has not ended.
const LOST_END: Duration = Duration::from_secs(15);

/// What the supervisor is told.
enum Event {
    Ended(u32),
    Signal(Signal),
}

/// What is done about ranks that still run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// They run.
    Running,
    /// A signal was passed on; they end when they are done.
    Asked,
    /// A rank has failed, and the others may still say so until then.
    Failing { until: Instant },
    /// They were sent SIGTERM, and are killed then.
    Terminated { until: Instant },
    /// They were sent SIGKILL.
    Killed,
}

struct Supervisor<'a> {
    arguments: &'a Arguments,
    job: &'a JobVariables,
    mask: SignalMask,
    events: Sender<Event>,
    /// Dropped by every thread that passes output on.
    output: Option<Sender<()>>,
    stdout: Arc<LineSink<io::Stdout>>,
    stderr: Arc<LineSink<io::Stderr>>,
    running: BTreeMap<u32, RankProcess>,
    restarts: BTreeMap<u32, u32>,
    stage: Stage,
    first_failure: Option<(u32, RankEnd)>,
    order: FailureOrder,
    /// Ranks that have failed while others were about to end; then it is told which one failed first, or at this time.
    held: Vec<(u32, RankEnd)>,
    held_since: Option<Instant>,
    held_until: Option<Instant>,
    /// What ranks that have failed had seen of others.
    seen: BTreeMap<u32, SeenEnds>,
    /// How many processes of each rank have ended.
    ends: BTreeMap<u32, u32>,
    /// Ranks that ran when the time was over.
    overdue: Option<Vec<u32>>,
}

/// Starts all ranks and waits for their end.
pub(super) fn run(arguments: &Arguments, job: &JobVariables) -> Result<Exit, Failure> {
    let mask = signals::block().map_err(|error| system("the signals cannot be blocked", &error))?;
    let order = FailureOrder::watch(job.ranks).map_err(|error| system("no thread can be started", &error))?;
    let (events, received) = mpsc::channel();
    let (output, output_ends) = mpsc::channel();
    let mut supervisor = Supervisor {
        arguments,
        job,
        mask,
        events,
        output: Some(output),
        stdout: Arc::new(LineSink::new(io::stdout())),
        stderr: Arc::new(LineSink::new(io::stderr())),
        running: BTreeMap::new(),
        restarts: BTreeMap::new(),
        stage: Stage::Running,
        first_failure: None,
        order,
        held: Vec::new(),
        held_since: None,
        held_until: None,
        seen: BTreeMap::new(),
        ends: BTreeMap::new(),
        overdue: None,
    };
    let started = Instant::now();
    let time_limit = arguments.time_limit.and_then(|limit| started.checked_add(limit));
    let ended = supervisor
        .receive_signals()
        .and_then(|()| (0..job.ranks).try_for_each(|rank| supervisor.start(rank)))
        .and_then(|()| supervisor.supervise(&received, time_limit));
    if let Err(failure) = ended {
        supervisor.running.into_values().for_each(|process| drop(process.finish()));
        return Err(failure);
    }
    supervisor.output = None;
    let _ = output_ends.recv_timeout(LAST_OUTPUT);
    supervisor.result()
}

impl Supervisor<'_> {
    fn receive_signals(&self) -> Result<(), Failure> {
        let events = self.events.clone();
        let forward = move || {
            while let Ok(signal) = signals::next() {
                if events.send(Event::Signal(signal)).is_err() {
                    break;
                }
            }
        };
        spawn(forward).map_err(|error| system("no thread can be started", &error))
    }

    /// Starts a rank, or starts it again.
    fn start(&mut self, rank: u32) -> Result<(), Failure> {
        let restarts = self.restarts.get(&rank).copied().unwrap_or(0);
        let program = &self.arguments.program;
        let started = RankProcess::start(program, self.job.of_rank(rank, restarts), self.mask);
        let mut process = started.map_err(|error| not_started(program, rank, &error))?;
        let (out, err) = process.take_output();
        let (stdout, stderr) = (Arc::clone(&self.stdout), Arc::clone(&self.stderr));
        let (out_end, err_end) = (self.output.clone(), self.output.clone());
        let events = self.events.clone();
        let watched = spawn(move || {
            out.into_iter().for_each(|from| pass_on(from, rank, &stdout));
            drop(out_end);
        })
        .and_then(|()| {
            spawn(move || {
                err.into_iter().for_each(|from| pass_on(from, rank, &stderr));
                drop(err_end);
            })
        })
        .and_then(|()| process.watch(move || drop(events.send(Event::Ended(rank)))));
        self.order.started(rank, process.number());
        self.running.insert(rank, process);
        watched.map_err(|error| system("no thread can be started", &error))
    }

    /// Waits until all ranks have ended.
    fn supervise(&mut self, received: &Receiver<Event>, time_limit: Option<Instant>) -> Result<(), Failure> {
        while !self.running.is_empty() {
            let stage_limit = match self.stage {
                Stage::Failing { until } | Stage::Terminated { until } => Some(until),
                Stage::Running | Stage::Asked | Stage::Killed => None,
            };
            let time_limit = time_limit.filter(|_| self.overdue.is_none());
            let next = [stage_limit, time_limit, self.held_until].into_iter().flatten().min();
            let event = match next {
                Some(limit) => received.recv_timeout(limit.saturating_duration_since(Instant::now())),
                None => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match event {
                Ok(Event::Ended(rank)) => self.ended(rank)?,
                Ok(Event::Signal(signal)) => self.pass_on_signal(signal),
                Err(RecvTimeoutError::Timeout) => {
                    let now = Instant::now();
                    if self.held_until.is_some_and(|limit| limit <= now) {
                        self.tell_held();
                    }
                    if stage_limit.is_some_and(|limit| limit <= now) {
                        self.end_others(now);
                    }
                    if time_limit.is_some_and(|limit| limit <= now) {
                        self.overdue = Some(self.running.keys().copied().collect());
                        self.end_others(now);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.tell_held();
        Ok(())
    }

    fn ended(&mut self, rank: u32) -> Result<(), Failure> {
        let Some(process) = self.running.remove(&rank) else { return Ok(()) };
        self.order.ended(rank);
        let end = process.finish().map_err(|error| system("a rank cannot be waited for", &error))?;
        *self.ends.entry(rank).or_default() += 1;
        let restarts = self.restarts.get(&rank).copied().unwrap_or(0);
        let notes = self.job.ends_file(rank, restarts).map(|file| SeenEnds::read(&file));
        self.seen.insert(rank, notes.unwrap_or_default());
        if end.is_success() {
            self.settle();
            return Ok(());
        }
        if self.stage == Stage::Running && rank != 0 {
            let restarts = self.restarts.entry(rank).or_default();
            if *restarts < self.arguments.restart {
                *restarts += 1;
                let (restarts, most) = (*restarts, self.arguments.restart);
                complain(format_args!(
                    "kiln launch: rank {rank} failed with {end}; it is started again ({restarts} of {most})"
                ));
                return self.start(rank);
            }
        }
        if self.first_failure.is_none() && self.stage == Stage::Running {
            self.held.push((rank, end));
            self.settle();
        } else {
            self.failed(rank, end);
        }
        Ok(())
    }

    /// Tells which rank failed first, unless one that may have is still about to end.
    fn settle(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let since = *self.held_since.get_or_insert_with(Instant::now);
        match self.patience() {
            Some(patience) => self.held_until = since.checked_add(patience),
            None => self.tell_held(),
        }
    }

    /// How long another rank may still end that failed before those that are held; none if there is no such rank.
    fn patience(&self) -> Option<Duration> {
        let ended = |rank: u32| self.ends.get(&rank).copied().unwrap_or(0);
        let seen = self.held.iter().filter_map(|(rank, _)| self.seen.get(rank));
        let awaited = seen.flat_map(|seen| seen.awaited(ended));
        let awaited = awaited.filter(|(rank, _)| self.running.contains_key(rank));
        let by_notes = awaited.map(|(_, is_lost)| if is_lost { LOST_END } else { SLOW_END });
        by_notes.chain(self.order.are_ending().then_some(SLOW_END)).max()
    }

    /// How many of the failures that are held a rank had seen.
    fn failures_seen(&self, rank: u32, held: &[u32]) -> usize {
        let Some(seen) = self.seen.get(&rank) else { return 0 };
        let ended = |rank: u32| self.ends.get(&rank).copied().unwrap_or(0);
        held.iter().filter(|other| **other != rank && seen.has(**other, ended(**other))).count()
    }

    fn tell_held(&mut self) {
        (self.held_since, self.held_until) = (None, None);
        let mut held = std::mem::take(&mut self.held);
        let ranks: Vec<u32> = held.iter().map(|(rank, _)| *rank).collect();
        self.order.sort(&mut held, |rank| self.failures_seen(rank, &ranks));
        held.into_iter().for_each(|(rank, end)| self.failed(rank, end));
    }

    /// A rank has failed, and is not started again.
    fn failed(&mut self, rank: u32, end: RankEnd) {
        let is_first = self.first_failure.is_none();
        self.first_failure.get_or_insert((rank, end));
        if self.stage == Stage::Running && (is_first || self.arguments.keep_going) {
            let order = if is_first { " first" } else { "" };
            let why = match rank == 0 && self.arguments.restart > 0 {
                true => "; rank 0 is not started again, because where the ranks meet is lost with it",
                false => "",
            };
            complain(format_args!("kiln launch: rank {rank} failed{order} with {end}{why}"));
        }
        if self.stage == Stage::Running && !self.arguments.keep_going {
            self.stage = Stage::Failing { until: self.after_grace(Instant::now()) };
        }
    }

    fn pass_on_signal(&mut self, signal: Signal) {
        let ends = signal != Signal::USR1 && signal != Signal::USR2;
        match self.stage {
            Stage::Running | Stage::Failing { .. } if ends => {
                self.signal(signal);
                self.stage = Stage::Asked;
            }
            _ if ends => {
                self.signal(Signal::KILL);
                self.stage = Stage::Killed;
            }
            _ => self.signal(signal),
        }
    }

    /// The next step of ending the ranks that still run.
    fn end_others(&mut self, now: Instant) {
        let (signal, stage) = match self.stage {
            Stage::Running | Stage::Asked | Stage::Failing { .. } => {
                (Signal::TERM, Stage::Terminated { until: self.after_grace(now) })
            }
            Stage::Terminated { .. } | Stage::Killed => (Signal::KILL, Stage::Killed),
        };
        let ranks = listed(self.running.keys());
        let name = if signal == Signal::TERM { "SIGTERM" } else { "SIGKILL" };
        complain(format_args!("kiln launch: {name} to {ranks}"));
        self.signal(signal);
        self.stage = stage;
    }

    fn after_grace(&self, now: Instant) -> Instant {
        now.checked_add(self.arguments.grace).unwrap_or(now)
    }

    fn signal(&self, signal: Signal) {
        self.running.values().for_each(|process| process.signal(signal));
    }

    fn result(&self) -> Result<Exit, Failure> {
        if let Some(error) = self.stdout.take_failure().or_else(|| self.stderr.take_failure()) {
            return Err(Failure::output(format!("the output of the ranks could not be written: {error}")));
        }
        if let (Some(ranks), Some(limit)) = (&self.overdue, self.arguments.time_limit) {
            let message = format!("{} still ran after {} s", listed(ranks.iter()), limit.as_secs_f64());
            return Err(Failure::fault(message).next("raise --time-limit, or look where they wait"));
        }
        let code = self.first_failure.map_or(0, |(_, end)| end.code());
        Ok(if code == 0 { Exit::Done } else { Exit::Program(code) })
    }
}

/// `rank 1`, `ranks 1, 2 and 5`.
fn listed<'a>(ranks: impl Iterator<Item = &'a u32>) -> String {
    let ranks: Vec<String> = ranks.map(u32::to_string).collect();
    match ranks.as_slice() {
        [before @ .., last] if !before.is_empty() => format!("ranks {} and {last}", before.join(", ")),
        _ => format!("rank {}", ranks.concat()),
    }
}

fn not_started(program: &[std::ffi::OsString], rank: u32, error: &io::Error) -> Failure {
    let name = program.first().map(Path::new).unwrap_or(Path::new(""));
    match error.kind() {
        io::ErrorKind::NotFound => Failure::file(name, "there is no such program")
            .next("give its path, or add its folder to PATH; a script needs its interpreter, too"),
        _ if name.is_dir() => Failure::file(name, "it is a folder").next("name a program in it"),
        io::ErrorKind::PermissionDenied => {
            Failure::file(name, "it cannot be executed").next("chmod +x it, or name the program that runs it")
        }
        _ if error.raw_os_error() == Some(libc::ENOEXEC) => {
            let next = "name the program that runs it; a script begins with #! and its interpreter";
            Failure::file(name, "it is no program").next(next)
        }
        _ => Failure::file(name, format!("rank {rank} cannot be started: {error}"))
            .next("raise the limits of processes and descriptors (ulimit -u, ulimit -n)"),
    }
}

fn system(what: &str, error: &io::Error) -> Failure {
    Failure::fault(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_listed_as_in_a_sentence() {
        assert_eq!(listed([3].iter()), "rank 3");
        assert_eq!(listed([0, 2, 5].iter()), "ranks 0, 2 and 5");
    }
}
