//! Gives a standby ahead of time what it will need.
//!
//! One thread follows what the client makes and ends, and has the standby make and end the same: pages are imported and
//! mapped, host blocks registered, code loaded, streams and events created. A takeover finds the most of it done. The
//! caller that makes something only counts a change; the thread looks at the tables a moment after the last
//! change, so that what lives shorter than that is never told to the standby.
//!
//! Pages that ended stay allocated while the standby has them. Whoever asks how much memory is free, or was told that
//! there is none left, waits for the thread first.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use crate::config::Config;
use crate::inventory::Inventory;
use crate::link::Link;
use crate::news::News;
use crate::outfit::{Fitted, Fitting, Outfit, Pace, Unfit};

/// How long after a change the standby is told, so that changes that belong together go together.
const DELAY: Duration = Duration::from_millis(5);
/// How long a caller waits for the standby to let go of memory.
const SETTLE_LIMIT: Duration = Duration::from_secs(2);

/// A worker with what it was given.
#[derive(Clone)]
pub(crate) struct Outfitted {
    pub(crate) process: u32,
    pub(crate) link: Arc<Link>,
    pub(crate) outfit: Arc<Mutex<Outfit>>,
}

/// Where those who change something, those who look after workers, and the thread meet.
#[derive(Default)]
pub(crate) struct Preparation {
    /// Changes so far.
    made: AtomicU64,
    /// Changes the standby was told of; all of them if there is none.
    followed: AtomicU64,
    is_asleep: AtomicBool,
    thread: OnceLock<Thread>,
    state: Mutex<State>,
    turned: Condvar,
}

#[derive(Default)]
struct State {
    standby: Option<Outfitted>,
    /// The thread is telling a standby something.
    is_busy: bool,
    /// Somebody waits for it.
    is_urgent: bool,
    is_closed: bool,
}

impl Preparation {
    /// Starts the thread.
    pub(crate) fn start(
        self: &Arc<Self>,
        objects: Arc<Inventory>,
        config: Arc<Config>,
    ) -> std::io::Result<JoinHandle<()>> {
        let preparation = self.clone();
        let thread = std::thread::Builder::new().name("kiln preparation".into());
        let thread = thread.spawn(move || preparation.run(&objects, &config))?;
        let _ = self.thread.set(thread.thread().clone());
        Ok(thread)
    }

    /// Notes that the client made or ended something.
    pub(crate) fn changed(&self) {
        self.made.fetch_add(1, Ordering::SeqCst);
        if self.is_asleep.load(Ordering::SeqCst) && self.is_asleep.swap(false, Ordering::SeqCst) {
            self.wake();
        }
    }

    /// A standby is ready and has nothing yet.
    pub(crate) fn offer(&self, standby: Outfitted) {
        self.state().standby = Some(standby);
        self.changed();
    }

    /// The standby is needed, or gone: it is told nothing more. Waits so long for the thread to let go of it, and says
    /// whether it did.
    pub(crate) fn withdraw(&self, limit: Duration) -> bool {
        let mut state = self.state();
        state.standby = None;
        let waited = self.turned.wait_timeout_while(state, limit, |state| state.is_busy);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.is_busy
    }

    /// Waits until the standby was told of everything that ended by now.
    pub(crate) fn settle(&self) {
        let target = self.made.load(Ordering::SeqCst);
        let is_behind = || self.followed.load(Ordering::SeqCst) < target;
        if !is_behind() {
            return;
        }
        let mut state = self.state();
        if state.standby.is_none() {
            return;
        }
        state.is_urgent = true;
        self.wake();
        let waiting = |state: &mut State| state.standby.is_some() && is_behind();
        let _ = self.turned.wait_timeout_while(state, SETTLE_LIMIT, waiting);
    }

    /// Ends the thread.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.standby = None;
        drop(state);
        self.turned.notify_all();
        self.wake();
    }

    fn run(&self, objects: &Inventory, config: &Config) {
        loop {
            let seen = self.made.load(Ordering::SeqCst);
            let standby = {
                let mut state = self.state();
                if state.is_closed {
                    return;
                }
                state.is_busy = state.standby.is_some();
                state.standby.clone()
            };
            if let Some(standby) = &standby {
                let prepared = self.prepare(standby, objects);
                let mut state = self.state();
                (state.is_busy, state.is_urgent) = (false, false);
                let is_same = state.standby.as_ref().is_some_and(|it| Arc::ptr_eq(&it.link, &standby.link));
                drop(state);
                self.turned.notify_all();
                // A standby that cannot have something may get it in a takeover; until the next change it is left alone.
                let process = standby.process;
                match prepared {
                    _ if !is_same => {}
                    Ok(true) => config.tell(&News::Prepared { process, has: standby.tally() }),
                    Ok(false) => {}
                    Err(Unfit { what, error }) => config.tell(&News::Unprepared { process, what, error }),
                }
            }
            self.followed.store(seen, Ordering::SeqCst);
            self.turned.notify_all();
            drop(standby);
            self.sleep(seen);
        }
    }

    /// Sleeps until there is a change, and a moment longer.
    fn sleep(&self, seen: u64) {
        self.is_asleep.store(true, Ordering::SeqCst);
        while self.made.load(Ordering::SeqCst) == seen && !self.state().is_closed {
            std::thread::park();
        }
        self.is_asleep.store(false, Ordering::SeqCst);
        let due = Instant::now() + DELAY;
        loop {
            let left = due.saturating_duration_since(Instant::now());
            let state = self.state();
            if left.is_zero() || state.is_urgent || state.is_closed {
                return;
            }
            drop(state);
            std::thread::park_timeout(left);
        }
    }

    /// Tells a standby what it lacks; whether it has everything now.
    fn prepare(&self, standby: &Outfitted, objects: &Inventory) -> Result<bool, Unfit> {
        let mut outfit = standby.outfit.lock().unwrap_or_else(PoisonError::into_inner);
        let may_go_on = || {
            let state = self.state();
            state.standby.as_ref().is_some_and(|it| Arc::ptr_eq(&it.link, &standby.link))
        };
        let (link, pace) = (&*standby.link, Pace::Calm(&may_go_on));
        let mut fitting = Fitting { link, objects, outfit: &mut outfit, pace, fitted: Fitted::default() };
        fitting.let_go()?;
        Ok(fitting.fit_pages()? && fitting.fit_hosts()? && fitting.fit_code()? && fitting.prepare_queues()?)
    }

    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outfitted {
    pub(crate) fn new(process: u32, link: Arc<Link>) -> Self {
        Self { process, link, outfit: Arc::default() }
    }

    /// What it has.
    pub(crate) fn tally(&self) -> crate::tally::Tally {
        self.outfit.lock().unwrap_or_else(PoisonError::into_inner).tally()
    }
}
