//! Supervises the ranks of a job: passes their output and signals on, and decides what happens when one fails.

mod stopped_ranks;

use std::collections::{BTreeMap, BTreeSet};
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
use super::rank_list::{listed, were_late};
use super::rank_process::{RankProcess, spawn};
use super::rank_variables::JobVariables;
use super::seen_ends::SeenEnds;
use crate::console::complain;
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::outputs_at_start::StandardError;
use crate::signals::{self, SignalMask};
use stopped_ranks::StoppedRanks;

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
    /// What ranks print cannot be written any more.
    OutputFailed,
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
    stderr: Arc<LineSink<StandardError>>,
    running: BTreeMap<u32, RankProcess>,
    restarts: BTreeMap<u32, u32>,
    stage: Stage,
    first_failure: Option<(u32, RankEnd)>,
    order: FailureOrder,
    /// Ranks that have failed while others were about to end; then it is told which one failed first, or at this time.
    held: Vec<(u32, RankEnd)>,
    held_since: Option<Instant>,
    held_until: Option<Instant>,
    /// Ranks that were lost, have not ended, and keep the job from its end: they are killed at this time.
    lost_until: Option<Instant>,
    /// When such ranks were killed, or stopped ones.
    given_up: BTreeMap<u32, Instant>,
    stopped: StoppedRanks,
    /// What ranks that have failed had seen of others.
    seen: BTreeMap<u32, SeenEnds>,
    /// How many processes of each rank have ended.
    ends: BTreeMap<u32, u32>,
    /// Ranks that have ended with success.
    succeeded: BTreeSet<u32>,
    /// Whether rank 0, where the ranks meet, has not failed.
    has_meeting_point: bool,
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
        output: Some(output),
        stdout: Arc::new(LineSink::new(io::stdout(), tell_failure(&events))),
        stderr: Arc::new(LineSink::new(StandardError, tell_failure(&events))),
        events,
        running: BTreeMap::new(),
        restarts: BTreeMap::new(),
        stage: Stage::Running,
        first_failure: None,
        order,
        held: Vec::new(),
        held_since: None,
        held_until: None,
        lost_until: None,
        given_up: BTreeMap::new(),
        stopped: StoppedRanks::default(),
        seen: BTreeMap::new(),
        ends: BTreeMap::new(),
        succeeded: BTreeSet::new(),
        has_meeting_point: true,
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
            let limits = [stage_limit, time_limit, self.held_until, self.lost_until].into_iter().flatten();
            let look = self.stopped.next_look(Instant::now());
            let next = limits.fold(look, Instant::min);
            match received.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(Event::Ended(rank)) => self.ended(rank)?,
                Ok(Event::Signal(signal)) => self.pass_on_signal(signal),
                Ok(Event::OutputFailed) => self.output_failed(),
                Err(RecvTimeoutError::Timeout) => {
                    let now = Instant::now();
                    if look <= now {
                        self.look_at_stopped(now);
                    }
                    if self.lost_until.is_some_and(|limit| limit <= now) {
                        self.give_up_lost(now);
                    }
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
        self.seen.insert(rank, self.notes(rank));
        if end.is_success() {
            self.succeeded.insert(rank);
            self.watch_lost();
            self.settle();
            return Ok(());
        }
        if rank == 0 {
            self.has_meeting_point = false;
        }
        if self.stage == Stage::Running && self.can_join_again(rank) {
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
            self.watch_lost();
            self.settle();
        } else {
            self.failed(rank, end);
            self.watch_lost();
        }
        Ok(())
    }

    /// Whether a new process of a rank can join: not if rank 0 has failed, or the last one saw it go.
    fn can_join_again(&self, rank: u32) -> bool {
        // Rank 0 is right about who of the two is gone.
        let is_given_up = self.running.contains_key(&0) && self.notes(0).has_lost(rank);
        let saw_it_go = self.seen.get(&rank).is_some_and(|seen| seen.has(0, 0)) && !is_given_up;
        let is_alone = self.given_up.contains_key(&rank) && !self.running.contains_key(&0);
        rank != 0 && self.has_meeting_point && !saw_it_go && !is_alone
    }

    /// Ranks that still run and of which a rank that has ended saw the end; and whether they were lost. What a rank says that was itself given up does not count.
    fn awaited(&self, is_witness: impl Fn(u32) -> bool) -> BTreeMap<u32, bool> {
        let ended = |rank: u32| self.ends.get(&rank).copied().unwrap_or(0);
        let mut awaited = BTreeMap::new();
        let has_ended = |witness: u32| !self.running.contains_key(&witness);
        for (witness, seen) in self.seen.iter().filter(|(rank, _)| has_ended(**rank) && is_witness(**rank)) {
            let running = seen.awaited(ended).filter(|(rank, _)| self.running.contains_key(rank));
            for (rank, is_lost) in running {
                if !self.notes(rank).has_lost(*witness) {
                    *awaited.entry(rank).or_default() |= is_lost;
                }
            }
        }
        awaited
    }

    /// What a rank has noted.
    fn notes(&self, rank: u32) -> SeenEnds {
        let restarts = self.restarts.get(&rank).copied().unwrap_or(0);
        self.job.ends_file(rank, restarts).map(|file| SeenEnds::read(&file)).unwrap_or_default()
    }

    /// Lost ranks that keep the job from its end: no others run, or it is not told yet which rank failed first.
    fn lost_in_the_way(&self) -> Vec<u32> {
        let mut lost = self.awaited(|_| true);
        lost.retain(|rank, is_lost| *is_lost && !self.given_up.contains_key(rank));
        let alone = self.running.keys().all(|rank| lost.contains_key(rank));
        let hides_the_first = !self.held.is_empty() && !self.arguments.keep_going;
        let in_the_way = alone || hides_the_first;
        lost.into_keys().filter(|_| in_the_way).collect()
    }

    /// Begins to wait for lost ranks, or ends that.
    fn watch_lost(&mut self) {
        match self.lost_in_the_way().is_empty() {
            true => self.lost_until = None,
            false => self.lost_until = self.lost_until.or_else(|| Instant::now().checked_add(LOST_END)),
        }
    }

    /// Kills lost ranks that have not ended in time.
    fn give_up_lost(&mut self, now: Instant) {
        self.lost_until = None;
        let lost = self.lost_in_the_way();
        if lost.is_empty() {
            return;
        }
        let (ranks, waited) = (listed(lost.iter()), LOST_END.as_secs());
        let were = if lost.len() == 1 { "was lost and has" } else { "were lost and have" };
        complain(format_args!("kiln launch: {ranks} {were} not ended within {waited} s; SIGKILL to {ranks}"));
        for rank in lost {
            self.given_up.insert(rank, now);
            self.running.get(&rank).into_iter().for_each(|process| process.signal(Signal::KILL));
        }
        self.settle();
    }

    /// Ends the ranks, because no one hears what they say.
    fn output_failed(&mut self) {
        if matches!(self.stage, Stage::Running | Stage::Asked | Stage::Failing { .. }) {
            self.end_others(Instant::now());
        }
    }

    /// Tells which rank failed first, unless one that may have is still about to end.
    fn settle(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let since = *self.held_since.get_or_insert_with(Instant::now);
        match self.patience(since) {
            Some(until) => self.held_until = Some(until),
            None => self.tell_held(),
        }
    }

    /// Until when another rank may still end that failed before those that are held; none if there is no such rank.
    fn patience(&self, since: Instant) -> Option<Instant> {
        let is_held = |witness: u32| self.held.iter().any(|(rank, _)| *rank == witness);
        let by_notes =
            self.awaited(is_held).into_iter().filter_map(|(rank, is_lost)| match self.given_up.get(&rank) {
                Some(killed) => killed.checked_add(SLOW_END),
                None => since.checked_add(if is_lost { LOST_END } else { SLOW_END }),
            });
        let by_marks = self.order.are_ending().then(|| since.checked_add(SLOW_END)).flatten();
        by_notes.chain(by_marks).max()
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
            let before = if is_first { self.left_before(rank) } else { String::new() };
            let late = if is_first { self.late_before(rank) } else { Vec::new() };
            let (late, vain) = were_late(&late);
            complain(format_args!(
                "kiln launch: {late}rank {rank} failed{order} with {end}{vain}{before}{why}"
            ));
        }
        if self.stage == Stage::Running && !self.arguments.keep_going {
            self.stage = Stage::Failing { until: self.after_grace(Instant::now()) };
        }
    }

    /// Ranks that one which has failed had waited for in vain.
    fn late_before(&self, rank: u32) -> Vec<u32> {
        self.seen.get(&rank).into_iter().flat_map(SeenEnds::late).collect()
    }

    /// What is said of ranks that had left the job before one failed, which may have failed because of that.
    fn left_before(&self, rank: u32) -> String {
        let left = self.seen.get(&rank).into_iter().flat_map(SeenEnds::left);
        let left: Vec<u32> = left.filter(|rank| self.succeeded.contains(rank)).collect();
        match left.is_empty() {
            true => String::new(),
            false => {
                format!("; {} had left the job before and ended with exit status 0", listed(left.iter()))
            }
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
        for process in self.running.values() {
            process.signal(signal);
            // One that is stopped sees it only then.
            if matches!(signal, Signal::TERM | Signal::INT | Signal::HUP | Signal::QUIT) {
                process.signal(Signal::CONT);
            }
        }
    }

    fn result(&self) -> Result<Exit, Failure> {
        if let Some(error) = self.stdout.take_failure().or_else(|| self.stderr.take_failure()) {
            let message = format!("the output of the ranks could not be written: {error}");
            return Err(
                Failure::output(message).next("let its reader read to the end, or write it to a file")
            );
        }
        if let (Some(ranks), Some(limit)) = (&self.overdue, self.arguments.time_limit) {
            let message = format!("{} still ran after {} s", listed(ranks.iter()), limit.as_secs_f64());
            return Err(Failure::fault(message).next("raise --time-limit, or look where they wait"));
        }
        let code = self.first_failure.map_or(0, |(_, end)| end.code());
        Ok(if code == 0 { Exit::Done } else { Exit::Program(code) })
    }
}

/// Tells the supervisor that output cannot be written.
fn tell_failure(events: &Sender<Event>) -> impl FnOnce() + Send + 'static {
    let events = events.clone();
    move || drop(events.send(Event::OutputFailed))
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
