//! The thread that starts workers, notices when they end, and kills them.
//!
//! Each isolated device has one such thread, which lives as long as the device. It starts every worker itself, because the system
//! kills a worker when the thread that started it ends (`PR_SET_PDEATHSIG`). It sleeps until a worker ends, the standby is ready, a job
//! arrives, or the watchdog is due.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use super::cancellation::Cancellation;
use super::config::IsolationConfig;
use super::standby::StandbySync;
use super::start_error::WorkerStartError;
use super::supervisor_handle::{Job, Replacement};
use super::watchdog::Watchdog;
use super::worker_event::WorkerEvent;
use super::worker_start::{RunningWorker, StartingWorker};
use crate::client::connection::Link;
use crate::client::loss_cause::LossCause;
use crate::client::stream_table::StreamTable;
use crate::protocol::futex_wait::timespec;
use crate::protocol::wire::Request;

/// How long a worker may take to exit after it was asked to.
const EXIT_LIMIT: Duration = Duration::from_secs(5);
/// How long after a takeover the faulted worker is killed and the next standby started. Both hold the driver's locks and use the
/// processors, which the program needs for its first work after a takeover.
const CLEANUP_DELAY: Duration = Duration::from_millis(5);
/// How long a standby may take to answer its last request before it is needed, where no watchdog sets a limit.
const WITHDRAW_LIMIT: Duration = Duration::from_secs(10);

/// The state of the thread: the worker in use, the standby, and workers that are ending.
pub(crate) struct WorkerSupervisor {
    config: Arc<IsolationConfig>,
    streams: Arc<StreamTable>,
    current: Option<RunningWorker>,
    standby: Option<Standby>,
    standby_sync: Arc<StandbySync>,
    cancellation: Arc<Cancellation>,
    /// Workers whose device faulted. Their contexts run nothing any more, so a takeover does not wait for them. They are killed after it,
    /// because tearing a context down is slow and holds locks of the driver.
    faulted: Vec<RunningWorker>,
    /// The worker that was killed while its kernels may have been running. The next worker does not start work before this one has ended,
    /// which takes the system tens of milliseconds.
    killed: Option<RunningWorker>,
    /// A takeover is under way. No standby is started meanwhile.
    is_replacing: bool,
    /// When the last takeover finished, until its clean-up.
    replaced_at: Option<Instant>,
    is_standby_dismissed: bool,
    watchdog: Watchdog,
    /// Standbys in a row that could not be started or ended before they were needed.
    failed_standbys: u32,
    retry_standby: Option<Instant>,
}

enum Standby {
    Starting(StartingWorker),
    Ready(RunningWorker),
}

/// What woke the thread.
#[derive(Default)]
struct Woken {
    current: bool,
    standby: bool,
}

impl WorkerSupervisor {
    pub(super) fn new(
        config: Arc<IsolationConfig>,
        streams: Arc<StreamTable>,
        standby_sync: Arc<StandbySync>,
        cancellation: Arc<Cancellation>,
    ) -> Self {
        Self {
            config,
            streams,
            current: None,
            standby: None,
            standby_sync,
            cancellation,
            faulted: Vec::new(),
            killed: None,
            is_replacing: false,
            replaced_at: None,
            is_standby_dismissed: false,
            watchdog: Watchdog::default(),
            failed_standbys: 0,
            retry_standby: None,
        }
    }

    pub(super) fn run(mut self, queue: &Receiver<Job>, wake: &OwnedFd) {
        loop {
            loop {
                match queue.try_recv() {
                    Ok(job) => job(&mut self),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return self.close(),
                }
            }
            self.clean_up_after_takeover();
            self.start_standby_if_wanted();
            let woken = self.sleep(wake);
            let _ = rustix::io::read(wake, &mut [0; 8]);
            self.faulted.retain(|running| running.ended().is_none());
            self.killed.take_if(|running| running.ended().is_some());
            if woken.current {
                self.current_may_have_ended();
            }
            if woken.standby || self.standby_start_limit() == Some(Duration::ZERO) {
                self.standby_changed();
            }
            self.run_watchdog();
        }
    }

    /// Sleeps until something happens.
    fn sleep(&self, wake: &OwnedFd) -> Woken {
        let mut waiting = vec![PollFd::from_borrowed_fd(wake.as_fd(), PollFlags::IN)];
        let current = self.current.as_ref().map(|running| running.handle());
        let standby = match &self.standby {
            Some(Standby::Starting(starting)) => Some(starting.answer()),
            Some(Standby::Ready(running)) => Some(running.handle()),
            None => None,
        };
        let watched = [current, standby];
        let ending = self.faulted.iter().chain(&self.killed).map(RunningWorker::handle);
        let all = watched.into_iter().flatten().chain(ending);
        waiting.extend(all.map(|handle| PollFd::from_borrowed_fd(handle, PollFlags::IN)));
        let watchdog = self.config.watchdog.filter(|_| self.current.is_some()).map(Watchdog::tick);
        let retry = self.retry_standby.map(|at| at.saturating_duration_since(Instant::now()));
        let cleanup = self.replaced_at.map(|at| CLEANUP_DELAY.saturating_sub(at.elapsed()));
        let limits = [watchdog, retry, cleanup, self.standby_start_limit()];
        let limit = limits.into_iter().flatten().min().map(timespec);
        if poll(&mut waiting, limit.as_ref()).is_err() {
            return Woken::default();
        }
        let mut ready = waiting.iter().skip(1).map(|fd| !fd.revents().is_empty());
        let mut next = |is_watched: bool| is_watched && ready.next() == Some(true);
        Woken { current: next(current.is_some()), standby: next(standby.is_some()) }
    }

    /// How much longer a standby that is starting may take.
    fn standby_start_limit(&self) -> Option<Duration> {
        match &self.standby {
            Some(Standby::Starting(starting)) => Some(starting.left(&self.config)),
            Some(Standby::Ready(_)) | None => None,
        }
    }

    /// Notes the end of the worker in use, if it ended by itself.
    fn current_may_have_ended(&mut self) {
        let Some(ended) = self.current.as_ref().and_then(RunningWorker::ended) else { return };
        if let Some(running) = self.current.take() {
            running.link().mark_lost(LossCause::Ended(ended.status));
            self.report_loss(running.link());
        }
    }

    fn report_loss(&self, link: &Link) {
        if let Some(lost) = link.lost() {
            self.config.report(&WorkerEvent::Lost { cause: lost.cause.clone() });
        }
    }

    /// The standby became ready, ended, or did not start in time.
    fn standby_changed(&mut self) {
        self.standby = match self.standby.take() {
            Some(Standby::Starting(starting)) => match self.finish_start(starting) {
                Ok(running) => {
                    self.failed_standbys = 0;
                    let process = running.process();
                    self.config.report(&WorkerEvent::Started { process, standby: true });
                    self.standby_sync.offer(running.worker.clone());
                    Some(Standby::Ready(running))
                }
                Err(_) => self.standby_failed(),
            },
            Some(Standby::Ready(running)) => match running.ended() {
                Some(ended) => {
                    running.link().mark_lost(LossCause::Ended(ended.status));
                    self.standby_sync.withdraw(Duration::ZERO);
                    self.standby_failed()
                }
                None => Some(Standby::Ready(running)),
            },
            None => None,
        };
    }

    /// Delays the next standby, so that a device that cannot be opened is not tried in a loop.
    fn standby_failed(&mut self) -> Option<Standby> {
        self.failed_standbys = self.failed_standbys.saturating_add(1);
        let policy = &self.config.restarts;
        let pause = policy.pause.saturating_mul(1 << self.failed_standbys.min(16)).min(policy.longest_pause);
        self.retry_standby = Some(Instant::now() + pause);
        None
    }

    fn start_standby_if_wanted(&mut self) {
        let is_due = self.retry_standby.is_none_or(|at| at <= Instant::now());
        let is_hindered = self.is_replacing || self.is_standby_dismissed;
        let is_wanted = self.config.standby && self.current.is_some() && !is_hindered;
        if !is_wanted || self.standby.is_some() || !is_due {
            return;
        }
        self.retry_standby = None;
        self.standby = match StartingWorker::spawn(&self.config) {
            Ok(starting) => Some(Standby::Starting(starting)),
            Err(_) => self.standby_failed(),
        };
    }

    fn run_watchdog(&mut self) {
        let (Some(limit), Some(running)) = (self.config.watchdog, &self.current) else { return };
        // During a takeover the new worker gets its streams last; until then their progress stands still.
        let is_rebuilding = self.is_replacing && self.replaced_at.is_none();
        let no_streams = StreamTable::default();
        let streams = if is_rebuilding { &no_streams } else { &*self.streams };
        if let Some(cause) = self.watchdog.look(limit, running.link(), streams) {
            self.kill(cause);
        }
    }

    pub(super) fn kill(&mut self, cause: LossCause) {
        if let Some(running) = self.current.take() {
            // A fault that the worker reported counts more than that it was killed.
            running.link().mark_lost(cause);
            let link = running.worker.link.clone();
            match link.lost().map(|lost| &lost.cause) {
                // A context that faulted runs nothing any more, so the next worker need not wait until the system has torn
                // this one down. In every other case a kernel may still be writing.
                Some(LossCause::Fault(_)) => self.faulted.push(running),
                _ => {
                    running.kill();
                    self.wait_for_killed();
                    self.killed = Some(running);
                }
            }
            // Reported last: who receives it asks this thread for a replacement.
            self.report_loss(&link);
        }
        if !matches!(self.standby, Some(Standby::Ready(_))) {
            self.kill_faulted();
        }
    }

    /// Waits until the worker that was killed has ended and can write no more.
    fn wait_for_killed(&mut self) {
        if let Some(running) = self.killed.take() {
            running.kill_and_wait();
        }
    }

    fn kill_faulted(&self) {
        self.faulted.iter().for_each(RunningWorker::kill);
    }

    pub(super) fn takeover_finished(&mut self) {
        self.replaced_at = Some(Instant::now());
    }

    /// Kills faulted workers and allows a standby, some time after a takeover.
    fn clean_up_after_takeover(&mut self) {
        if self.replaced_at.is_some_and(|at| at.elapsed() >= CLEANUP_DELAY) {
            (self.is_replacing, self.replaced_at) = (false, None);
            self.kill_faulted();
        }
    }

    pub(super) fn replace(&mut self) -> Result<Replacement, WorkerStartError> {
        (self.is_replacing, self.replaced_at) = (true, None);
        self.kill(LossCause::Killed);
        self.wait_for_killed();
        self.watchdog = Watchdog::default();
        let begun = Instant::now();
        let ready = self.take_ready_standby();
        let standby = ready.is_some();
        let running = match (ready, self.standby.take()) {
            (Some(running), _) => running,
            (None, Some(Standby::Starting(starting))) => self.finish_start(starting)?,
            _ => self.finish_start(StartingWorker::spawn(&self.config)?)?,
        };
        self.config.report(&WorkerEvent::Started { process: running.process(), standby: false });
        let (worker, info) = (running.worker.clone(), running.info.clone());
        self.current = Some(running);
        Ok(Replacement { worker, info, start: begun.elapsed(), standby })
    }

    fn finish_start(&self, starting: StartingWorker) -> Result<RunningWorker, WorkerStartError> {
        starting.finish(&self.config, self.streams.clone(), &self.cancellation)
    }

    /// The standby, if it is ready and the thread that prepares it gives it up in time.
    fn take_ready_standby(&mut self) -> Option<RunningWorker> {
        let running = match self.standby.take()? {
            Standby::Ready(running) => running,
            starting => {
                self.standby = Some(starting);
                return None;
            }
        };
        if self.standby_sync.withdraw(self.config.watchdog.unwrap_or(WITHDRAW_LIMIT)) {
            return Some(running);
        }
        // It has not answered its last request; it would not answer the takeover's either.
        running.link().mark_lost(LossCause::Killed);
        running.kill_and_wait();
        None
    }

    pub(super) fn dismiss_standby(&mut self) {
        self.is_standby_dismissed = true;
        match self.standby.take() {
            Some(Standby::Ready(running)) => {
                running.link().mark_lost(LossCause::Closed);
                self.standby_sync.withdraw(Duration::ZERO);
                running.kill_and_wait();
            }
            Some(Standby::Starting(starting)) => drop(starting),
            None => {}
        }
    }

    pub(super) fn close(&mut self) {
        self.dismiss_standby();
        self.wait_for_killed();
        for running in self.faulted.drain(..) {
            running.kill_and_wait();
        }
        let Some(running) = self.current.take() else { return };
        let findings = if running.link().send("drop", &Request::Bye).is_ok() {
            let link = running.worker.link.clone();
            let farewell = running.wait_for_exit(EXIT_LIMIT);
            link.mark_lost(LossCause::Closed);
            farewell.map(|farewell| farewell.findings)
        } else {
            running.kill_and_wait();
            None
        };
        self.config.report(&WorkerEvent::Closed { findings });
    }
}
