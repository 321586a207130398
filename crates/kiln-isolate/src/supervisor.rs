//! The thread that starts workers, notices when they end, and ends them.
//!
//! It is one thread for each isolated device and lives as long as the device does. It starts every worker itself, because
//! the system ties a worker's life to the thread that started it. It sleeps until a worker ends, the standby is
//! ready, somebody gives it something to do, or the watchdog is due.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kiln_driver::DeviceInfo;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use crate::bell::timespec;
use crate::cause::Cause;
use crate::config::Config;
use crate::launcher::{Running, Starting};
use crate::link::Link;
use crate::news::News;
use crate::patience::Patience;
use crate::preparation::{Outfitted, Preparation};
use crate::start_error::StartError;
use crate::streams::StreamTable;
use crate::watchdog::Watchdog;
use crate::wire::Request;

/// How long a worker has to end when it is told to.
const FAREWELL_LIMIT: Duration = Duration::from_secs(5);
/// How long after a takeover the old worker is ended and the next standby started. Both keep the driver's locks and the
/// processors busy, and the program has waited long enough.
const SETTLE_DELAY: Duration = Duration::from_millis(5);
/// How long a standby has to answer what it was last told, where no watchdog says how long.
const WITHDRAW_LIMIT: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce(&mut Keeper) + Send>;

/// The way to the thread.
pub(crate) struct Supervisor {
    jobs: Mutex<mpsc::Sender<Job>>,
    wake: Arc<OwnedFd>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// A worker that replaced another, and what that took.
pub(crate) struct Replacement {
    pub(crate) worker: Outfitted,
    pub(crate) info: DeviceInfo,
    /// Taking the standby, or starting a worker; not the end of the one before, which comes first.
    pub(crate) start: Duration,
    pub(crate) standby: bool,
}

impl Supervisor {
    /// Starts the thread, and on it the first worker.
    pub(crate) fn start(
        config: Arc<Config>,
        streams: Arc<StreamTable>,
        preparation: Arc<Preparation>,
        patience: Arc<Patience>,
    ) -> Result<(Self, Replacement), StartError> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| StartError::System { what: "an event", error: error.into() })?;
        let wake = Arc::new(wake);
        let (jobs, queue) = mpsc::channel();
        let keeper = Keeper::new(config, streams, preparation, patience);
        let seen = wake.clone();
        let thread = std::thread::Builder::new().name("kiln supervisor".into());
        let thread = thread.spawn(move || keeper.run(&queue, &seen)).map_err(StartError::Thread)?;
        let supervisor = Self { jobs: Mutex::new(jobs), wake, thread: Mutex::new(Some(thread)) };
        let first = supervisor.replace()?;
        Ok((supervisor, first))
    }

    /// Ends the worker in use, if there is one, and takes the standby or starts another.
    pub(crate) fn replace(&self) -> Result<Replacement, StartError> {
        let gone = || StartError::Thread(io::ErrorKind::BrokenPipe.into());
        self.call(Keeper::replace).ok_or_else(gone)?
    }

    /// A replacement is at work, or came to nothing: what would have been in its way is done soon.
    pub(crate) fn settle(&self) {
        let job: Job = Box::new(|keeper| keeper.replaced = Some(Instant::now()));
        if self.jobs.lock().unwrap_or_else(PoisonError::into_inner).send(job).is_ok() {
            self.wake();
        }
    }

    /// Ends the worker in use at once.
    pub(crate) fn kill(&self, cause: Cause) {
        self.call(|keeper| keeper.kill(cause));
    }

    /// Ends the standby; there will be no other.
    pub(crate) fn dismiss(&self) {
        self.call(Keeper::dismiss);
    }

    /// Tells the worker in use to end, ends the standby, and ends the thread.
    pub(crate) fn close(&self) {
        self.call(Keeper::close);
        let (closed, _) = mpsc::channel();
        *self.jobs.lock().unwrap_or_else(PoisonError::into_inner) = closed;
        self.wake();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    fn call<R: Send + 'static>(&self, job: impl FnOnce(&mut Keeper) -> R + Send + 'static) -> Option<R> {
        let (answer, answered) = mpsc::channel();
        let job: Job = Box::new(move |keeper| drop(answer.send(job(keeper))));
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).send(job).ok()?;
        self.wake();
        answered.recv().ok()
    }

    fn wake(&self) {
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.close();
    }
}

/// What the thread keeps.
struct Keeper {
    config: Arc<Config>,
    streams: Arc<StreamTable>,
    current: Option<Running>,
    standby: Option<Standby>,
    preparation: Arc<Preparation>,
    patience: Arc<Patience>,
    /// Workers that faulted and run nothing any more. They are struck when the takeover is over: the system takes a device's context
    /// apart slowly, and keeps others waiting meanwhile.
    dying: Vec<Running>,
    /// The worker that was struck and may still be writing. The next one does not work before it has ended, which takes the system
    /// tens of milliseconds where a kernel runs. Nobody waits for that but who replaces it.
    struck: Option<Running>,
    /// A worker is being replaced; no standby is started meanwhile, which would be in the way as well.
    is_replacing: bool,
    /// Since when it is not, as far as the others know.
    replaced: Option<Instant>,
    is_dismissed: bool,
    dog: Watchdog,
    /// Standbys that came to nothing since the last one that was ready.
    failed_standbys: u32,
    retry_standby: Option<Instant>,
}

enum Standby {
    Starting(Starting),
    Ready(Running),
}

/// What woke the thread.
#[derive(Default)]
struct Woken {
    current: bool,
    standby: bool,
}

impl Keeper {
    fn new(
        config: Arc<Config>,
        streams: Arc<StreamTable>,
        preparation: Arc<Preparation>,
        patience: Arc<Patience>,
    ) -> Self {
        Self {
            config,
            streams,
            current: None,
            standby: None,
            preparation,
            patience,
            dying: Vec::new(),
            struck: None,
            is_replacing: false,
            replaced: None,
            is_dismissed: false,
            dog: Watchdog::default(),
            failed_standbys: 0,
            retry_standby: None,
        }
    }

    fn run(mut self, queue: &Receiver<Job>, wake: &OwnedFd) {
        loop {
            loop {
                match queue.try_recv() {
                    Ok(job) => job(&mut self),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return self.close(),
                }
            }
            self.settle();
            self.tend_standby();
            let woken = self.sleep(wake);
            let _ = rustix::io::read(wake, &mut [0; 8]);
            self.dying.retain(|running| running.ended().is_none());
            self.struck.take_if(|running| running.ended().is_some());
            if woken.current {
                self.note_end();
            }
            if woken.standby || self.standby_limit() == Some(Duration::ZERO) {
                self.note_standby();
            }
            self.watch();
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
        let dying = self.dying.iter().chain(&self.struck).map(Running::handle);
        let all = watched.into_iter().flatten().chain(dying);
        waiting.extend(all.map(|handle| PollFd::from_borrowed_fd(handle, PollFlags::IN)));
        let dog = self.config.watchdog.filter(|_| self.current.is_some()).map(Watchdog::tick);
        let retry = self.retry_standby.map(|at| at.saturating_duration_since(Instant::now()));
        let settling = self.replaced.map(|at| SETTLE_DELAY.saturating_sub(at.elapsed()));
        let limit = [dog, retry, settling, self.standby_limit()].into_iter().flatten().min().map(timespec);
        if poll(&mut waiting, limit.as_ref()).is_err() {
            return Woken::default();
        }
        let mut ready = waiting.iter().skip(1).map(|fd| !fd.revents().is_empty());
        let mut next = |there: bool| there && ready.next() == Some(true);
        Woken { current: next(current.is_some()), standby: next(standby.is_some()) }
    }

    /// How much longer a standby may take to start, if one does.
    fn standby_limit(&self) -> Option<Duration> {
        match &self.standby {
            Some(Standby::Starting(starting)) => Some(starting.left(&self.config)),
            Some(Standby::Ready(_)) | None => None,
        }
    }

    /// The worker in use ended by itself.
    fn note_end(&mut self) {
        let Some(ended) = self.current.as_ref().and_then(Running::ended) else { return };
        if let Some(running) = self.current.take() {
            running.link().condemn(Cause::Ended(ended.status));
            self.tell_lost(running.link());
        }
    }

    fn tell_lost(&self, link: &Link) {
        if let Some(lost) = link.lost() {
            self.config.tell(&News::Lost { cause: lost.cause.clone() });
        }
    }

    /// The standby is ready, or ended.
    fn note_standby(&mut self) {
        self.standby = match self.standby.take() {
            Some(Standby::Starting(starting)) => match self.finish(starting) {
                Ok(running) => {
                    self.failed_standbys = 0;
                    self.config.tell(&News::Started { process: running.process(), standby: true });
                    self.preparation.offer(running.outfitted.clone());
                    Some(Standby::Ready(running))
                }
                Err(_) => self.standby_failed(),
            },
            Some(Standby::Ready(running)) => match running.ended() {
                Some(ended) => {
                    running.link().condemn(Cause::Ended(ended.status));
                    self.preparation.withdraw(Duration::ZERO);
                    self.standby_failed()
                }
                None => Some(Standby::Ready(running)),
            },
            None => None,
        };
    }

    /// The next one is not started at once, or a device that cannot be opened would be tried for ever.
    fn standby_failed(&mut self) -> Option<Standby> {
        self.failed_standbys = self.failed_standbys.saturating_add(1);
        let policy = &self.config.restarts;
        let pause = policy.pause.saturating_mul(1 << self.failed_standbys.min(16)).min(policy.longest_pause);
        self.retry_standby = Some(Instant::now() + pause);
        None
    }

    /// Starts a standby where one is wanted and there is none.
    fn tend_standby(&mut self) {
        let due = self.retry_standby.is_none_or(|at| at <= Instant::now());
        let is_hindered = self.is_replacing || self.is_dismissed;
        let is_wanted = self.config.standby && self.current.is_some() && !is_hindered;
        if !is_wanted || self.standby.is_some() || !due {
            return;
        }
        self.retry_standby = None;
        self.standby = match Starting::spawn(&self.config) {
            Ok(starting) => Some(Standby::Starting(starting)),
            Err(_) => self.standby_failed(),
        };
    }

    fn watch(&mut self) {
        let (Some(limit), Some(running)) = (self.config.watchdog, &self.current) else { return };
        // A worker that takes over gets its streams last; until then they stand where they were left.
        let is_rebuilding = self.is_replacing && self.replaced.is_none();
        let none = StreamTable::default();
        let streams = if is_rebuilding { &none } else { &*self.streams };
        if let Some(cause) = self.dog.look(limit, running.link(), streams) {
            self.kill(cause);
        }
    }

    fn kill(&mut self, cause: Cause) {
        if let Some(running) = self.current.take() {
            // What the worker says of itself counts more than that we ended it.
            running.link().condemn(cause);
            let link = running.outfitted.link.clone();
            match link.lost().map(|lost| &lost.cause) {
                // A context that faulted runs nothing any more, so the next worker need not wait until the system has
                // taken this one apart. In every other case a kernel may still be writing.
                Some(Cause::Fault(_)) => self.dying.push(running),
                _ => {
                    running.strike();
                    self.await_struck();
                    self.struck = Some(running);
                }
            }
            // Whoever is told asks for a replacement, and finds this thread at leisure.
            self.tell_lost(&link);
        }
        if !matches!(self.standby, Some(Standby::Ready(_))) {
            self.strike_dying();
        }
    }

    /// Waits until nothing of a worker that was struck can be writing any more.
    fn await_struck(&mut self) {
        if let Some(running) = self.struck.take() {
            running.kill();
        }
    }

    fn strike_dying(&self) {
        self.dying.iter().for_each(Running::strike);
    }

    /// Ends what the takeover left and makes way for a standby, once the program had a moment for itself.
    fn settle(&mut self) {
        if self.replaced.is_some_and(|at| at.elapsed() >= SETTLE_DELAY) {
            (self.is_replacing, self.replaced) = (false, None);
            self.strike_dying();
        }
    }

    fn replace(&mut self) -> Result<Replacement, StartError> {
        (self.is_replacing, self.replaced) = (true, None);
        self.kill(Cause::Killed);
        self.await_struck();
        self.dog = Watchdog::default();
        let begun = Instant::now();
        let ready = self.take_ready();
        let standby = ready.is_some();
        let running = match (ready, self.standby.take()) {
            (Some(running), _) => running,
            (None, Some(Standby::Starting(starting))) => self.finish(starting)?,
            _ => self.finish(Starting::spawn(&self.config)?)?,
        };
        self.config.tell(&News::Started { process: running.process(), standby: false });
        let (worker, info) = (running.outfitted.clone(), running.info.clone());
        self.current = Some(running);
        Ok(Replacement { worker, info, start: begun.elapsed(), standby })
    }

    fn finish(&self, starting: Starting) -> Result<Running, StartError> {
        starting.finish(&self.config, self.streams.clone(), &self.patience)
    }

    /// The standby, if it is ready and what prepares it lets go of it.
    fn take_ready(&mut self) -> Option<Running> {
        let running = match self.standby.take()? {
            Standby::Ready(running) => running,
            starting => {
                self.standby = Some(starting);
                return None;
            }
        };
        if self.preparation.withdraw(self.config.watchdog.unwrap_or(WITHDRAW_LIMIT)) {
            return Some(running);
        }
        // It did not answer for so long that it would not serve either.
        running.link().condemn(Cause::Killed);
        running.kill();
        None
    }

    fn dismiss(&mut self) {
        self.is_dismissed = true;
        match self.standby.take() {
            Some(Standby::Ready(running)) => {
                running.link().condemn(Cause::Closed);
                self.preparation.withdraw(Duration::ZERO);
                running.kill();
            }
            Some(Standby::Starting(starting)) => drop(starting),
            None => {}
        }
    }

    fn close(&mut self) {
        self.dismiss();
        self.await_struck();
        for running in self.dying.drain(..) {
            running.kill();
        }
        let Some(running) = self.current.take() else { return };
        let findings = if running.link().send("drop", &Request::Bye).is_ok() {
            let link = running.outfitted.link.clone();
            let farewell = running.finish(FAREWELL_LIMIT);
            link.condemn(Cause::Closed);
            farewell.map(|farewell| farewell.findings)
        } else {
            running.kill();
            None
        };
        self.config.tell(&News::Closed { findings });
    }
}
