//! The thread of a runtime that polls whether work is done and wakes the waiters.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kiln_driver::{DeviceKind, Error, Timeout};
use kiln_order::{DependencyTracker, Stamp};

use super::waiters::{Front, Outcome, Pending, Place, Waiter};
use crate::device_state::StateCell;
use crate::error::Result;
use crate::wake::{WakeSignal, wake};

/// A shorter pause ends no sooner.
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
/// A longer one would be noticed; a fault that no other call meets is noticed after this.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
/// A pause lasts this part of the time in which nothing happened.
const PAUSE_PART: u32 = 32;
/// How often a device is looked at for those who only watch its state.
const HEARTBEAT: Duration = Duration::from_millis(20);
/// On a simulated device, virtual time after which the first in line is waited for until its watchdog decides: looking makes time pass
/// there, but finds out nothing about work that hangs.
const PATIENCE: Duration = Duration::from_secs(1);

/// The reactor of a runtime. The thread is there from the first waiter on and until [`stop`](Reactor::stop).
pub(crate) struct Reactor {
    shared: Arc<Shared>,
}

/// The way to the reactor for those who may outlive the runtime.
#[derive(Clone)]
pub(crate) struct ReactorHandle {
    shared: Arc<Shared>,
}

struct Shared {
    signal: Arc<WakeSignal>,
    tracker: Arc<DependencyTracker>,
    state: Arc<StateCell>,
    pending: Mutex<Pending>,
    /// How many wait, read to learn whether there are any.
    waiting: AtomicUsize,
    stop: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Reactor {
    pub(crate) fn new(
        signal: Arc<WakeSignal>,
        tracker: Arc<DependencyTracker>,
        state: Arc<StateCell>,
    ) -> Self {
        let shared = Shared {
            signal,
            tracker,
            state,
            pending: Mutex::new(Pending::new()),
            waiting: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            thread: Mutex::new(None),
        };
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn handle(&self) -> ReactorHandle {
        ReactorHandle { shared: self.shared.clone() }
    }

    /// Whether there are waiters.
    pub(crate) fn is_busy(&self) -> bool {
        self.shared.waiting.load(Ordering::Relaxed) > 0
    }

    /// Adds a waiter.
    ///
    /// # Errors
    /// If the thread is not there and cannot be started; the fault, if the device is lost. The waiter comes back.
    pub(crate) fn wait(
        &self,
        stamp: Stamp,
        waiter: Waiter,
    ) -> std::result::Result<Place, (crate::error::Error, Waiter)> {
        if let Err(error) = self.handle().start() {
            return Err((error, waiter));
        }
        // Recorded now, so that the answer does not have to wait for work that is queued later.
        let point = match self.shared.tracker.event_after(stamp) {
            Ok(point) => Some(point),
            Err(error) if error.is_sticky() && !self.shared.defers() => return Err((error.into(), waiter)),
            // What becomes of the work is not known yet, and needs no event once it is; or there is no event available, and the stream is
            // looked at instead.
            Err(_) => None,
        };
        let place = {
            let mut pending = self.shared.pending();
            let place = pending.insert(stamp, point, waiter);
            self.shared.waiting.store(pending.len(), Ordering::Relaxed);
            place
        };
        self.shared.signal.notify();
        Ok(place)
    }

    /// Removes a waiter. What it waited for goes on.
    pub(crate) fn leave(&self, place: Place) {
        let left = {
            let mut pending = self.shared.pending();
            let left = pending.remove(place);
            self.shared.waiting.store(pending.len(), Ordering::Relaxed);
            left
        };
        drop(left);
    }

    /// Ends the thread, after all waiters were told what is known.
    pub(crate) fn stop(&self) {
        let thread = {
            let mut thread = self.shared.thread();
            self.shared.stop.store(true, Ordering::Release);
            thread.take()
        };
        self.shared.signal.notify();
        // The runtime may end on this very thread, in a callback that owned its last clone.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }
}

impl ReactorHandle {
    /// Starts the thread if it is not there. A runtime that has ended needs none.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn start(&self) -> Result<()> {
        let mut thread = self.shared.thread();
        if thread.is_some() || self.shared.stop.load(Ordering::Acquire) {
            return Ok(());
        }
        let shared = self.shared.clone();
        let started =
            std::thread::Builder::new().name("kiln reactor".into()).spawn(move || Look::new(&shared).run());
        *thread = Some(started.map_err(crate::error::Error::other)?);
        Ok(())
    }

    /// Makes it look.
    pub(crate) fn ring(&self) {
        self.shared.signal.notify();
    }
}

impl fmt::Debug for ReactorHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reactor with {} waiters", self.shared.waiting.load(Ordering::Relaxed))
    }
}

impl Shared {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a fault is not the last word about unfinished work.
    fn defers(&self) -> bool {
        self.state.defers() && !self.state.phase().is_over()
    }

    fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread's own part.
struct Look<'a> {
    shared: &'a Shared,
    /// When something last happened: a waiter came, or was answered.
    quiet_since: Instant,
    waiting: usize,
    simulated: bool,
}

impl<'a> Look<'a> {
    fn new(shared: &'a Shared) -> Self {
        let simulated = shared.tracker.driver().info().kind == DeviceKind::Simulated;
        Self { shared, quiet_since: Instant::now(), waiting: 0, simulated }
    }

    fn run(mut self) {
        loop {
            self.shared.state.deliver();
            let answered = self.look();
            let waiting = self.shared.pending().len();
            if answered || waiting > self.waiting {
                self.quiet_since = Instant::now();
            }
            self.waiting = waiting;
            if self.shared.stop.load(Ordering::Acquire) {
                return self.end();
            }
            let pause = if waiting > 0 {
                let quiet = self.quiet_since.elapsed();
                Some((quiet / PAUSE_PART).clamp(SHORTEST_PAUSE, LONGEST_PAUSE))
            } else if self.shared.state.is_watched() {
                self.heartbeat();
                Some(HEARTBEAT)
            } else {
                None
            };
            self.shared.signal.wait(pause);
        }
    }

    /// One look at every stream with waiters. Says whether one was answered.
    fn look(&self) -> bool {
        let now = if self.simulated { self.shared.tracker.driver().clock().now() } else { Duration::ZERO };
        let fronts = self.shared.pending().fronts(now);
        if fronts.is_empty() {
            return false;
        }
        if self.shared.state.is_undecided() {
            return false;
        }
        if !self.shared.state.is_ready()
            && let Some(cause) = self.shared.state.fault()
        {
            // What was known to be done before the loss is done, and other calls that ask for it are told so.
            return self.answer_done() | self.answer_all(cause.error());
        }
        let mut answered = false;
        for front in fronts {
            if self.shared.tracker.host().covers(front.stamp) {
                continue;
            }
            if self.shared.state.failure_of(front.stamp).is_some() {
                // It was ended, and the device may be busy with it for long; who waits looks at that before the answer is taken for success.
                answered |= tell(self.take(|pending| pending.take_up_to(front.stamp)), &Ok(()));
                continue;
            }
            if let Err(error) = self.ask(front, now) {
                if error.is_sticky() {
                    // Where work may be done again, those who wait for it are told when that is known.
                    return if self.shared.defers() {
                        answered
                    } else {
                        self.answer_done() | self.answer_all(&error)
                    };
                }
                answered |= self.answer_up_to(front.stamp, &error);
            }
        }
        self.answer_done() || answered
    }

    fn answer_done(&self) -> bool {
        tell(self.take(|pending| pending.take_done(self.shared.tracker.host())), &Ok(()))
    }

    /// Asks about the first in line of a stream; what is done then is known to the order.
    fn ask(&self, front: Front, now: Duration) -> std::result::Result<(), Error> {
        let tracker = &self.shared.tracker;
        let known = front.event.and_then(|event| self.shared.pending().point(front.stamp.stream, event));
        let hangs = self.simulated && now.saturating_sub(front.since) > PATIENCE;
        let timeout = if hangs { Timeout::Never } else { Timeout::Poll };
        if let Some(point) = known {
            return tracker.wait_point(&point, timeout).map(|_| ());
        }
        match tracker.event_after(front.stamp) {
            Ok(point) => {
                self.shared.pending().keep(point.clone());
                tracker.wait_point(&point, timeout).map(|_| ())
            }
            Err(error) if error.is_sticky() => Err(error),
            // None is available, and the order does without.
            Err(_) => tracker.wait(front.stamp, timeout).map(|_| ()),
        }
    }

    /// Looks at the device for those who watch its state: a fault is seen only by asking, so the reactor asks.
    fn heartbeat(&self) {
        if self.shared.state.is_ready() {
            for stamp in self.shared.tracker.latest_stamps() {
                // A fault changes the state, which is all that is wanted.
                let _ = self.shared.tracker.is_done(stamp);
            }
        }
    }

    fn answer_all(&self, error: &Error) -> bool {
        tell(self.take(Pending::take_all), &Err(error.clone()))
    }

    fn answer_up_to(&self, stamp: Stamp, error: &Error) -> bool {
        tell(self.take(|pending| pending.take_up_to(stamp)), &Err(error.clone()))
    }

    fn take(&self, take: impl FnOnce(&mut Pending) -> Vec<Waiter>) -> Vec<Waiter> {
        let mut pending = self.shared.pending();
        let taken = take(&mut pending);
        self.shared.waiting.store(pending.len(), Ordering::Relaxed);
        taken
    }

    /// The runtime is gone, and with it every handle that could still wait; callbacks are told what there is to tell.
    fn end(&self) {
        self.shared.state.deliver();
        let left = self.take(Pending::take_all);
        if !left.is_empty() {
            let error = match self.shared.state.fault() {
                Some(cause) => cause.error().clone(),
                None => {
                    Error::invalid("wait", "the runtime was dropped", "keep it while its work is waited for")
                }
            };
            tell(left, &Err(error));
        }
    }
}

/// Answers, with no lock held. Says whether there were waiters.
fn tell(waiters: Vec<Waiter>, outcome: &Outcome) -> bool {
    let any = !waiters.is_empty();
    for waiter in waiters {
        match waiter {
            Waiter::Task(answer) => {
                if let Some(waker) = answer.give(outcome.clone()) {
                    wake(waker);
                }
            }
            Waiter::Callback(callback) => {
                let outcome = outcome.clone().map_err(crate::error::Error::new);
                if catch_unwind(AssertUnwindSafe(|| callback(outcome))).is_err() {
                    tracing::error!("a callback for the end of some work panicked");
                }
            }
        }
    }
    any
}
