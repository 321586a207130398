//! Keeps a standby in step with the client's objects.
//!
//! One thread follows what the client makes, changes and destroys, and has the standby do the same: import and map pages, register
//! host blocks, load code, create streams, events and graphs. A takeover then finds most of it done. A call that changes an object
//! only counts the change. The thread compares the tables a few milliseconds after the last change, so the standby never hears of
//! objects that live shorter than that.
//!
//! Pages that the client destroyed stay allocated while the standby has them. A call that asks how much memory is free, or that found none,
//! waits for the thread first.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use super::config::IsolationConfig;
use super::worker_event::WorkerEvent;
use super::worker_objects::{Pace, StateSync, SyncError, SyncOutcome, WorkerHandle};
use crate::client::object_tables::ObjectTables;
use crate::client::standby_hook::StandbyHook;

/// How long after a change the standby is told, so that changes that belong together are sent together.
const DELAY: Duration = Duration::from_millis(5);
/// How long a call waits for the standby to release memory.
const CATCH_UP_LIMIT: Duration = Duration::from_secs(2);

/// Shared by calls that change objects, the supervisor, and the thread that tells the standby.
#[derive(Default)]
pub(crate) struct StandbySync {
    /// Changes so far.
    made: AtomicU64,
    /// Changes the standby was told of; all of them if there is none.
    followed: AtomicU64,
    is_asleep: AtomicBool,
    thread: OnceLock<Thread>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    standby: Option<WorkerHandle>,
    /// The thread is talking to a standby.
    is_busy: bool,
    /// A call waits for the thread.
    is_urgent: bool,
    is_closed: bool,
}

impl StandbyHook for StandbySync {
    fn objects_changed(&self) {
        self.made.fetch_add(1, Ordering::SeqCst);
        if self.is_asleep.load(Ordering::SeqCst) && self.is_asleep.swap(false, Ordering::SeqCst) {
            self.wake();
        }
    }

    fn catch_up(&self) {
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
        let _ = self.changed.wait_timeout_while(state, CATCH_UP_LIMIT, waiting);
    }
}

impl StandbySync {
    /// Starts the thread.
    pub(crate) fn start(
        self: &Arc<Self>,
        objects: Arc<ObjectTables>,
        config: Arc<IsolationConfig>,
    ) -> std::io::Result<JoinHandle<()>> {
        let sync = self.clone();
        let thread = std::thread::Builder::new().name("kiln standby".into());
        let thread = thread.spawn(move || sync.run(&objects, &config))?;
        let _ = self.thread.set(thread.thread().clone());
        Ok(thread)
    }

    /// Takes a standby that has started and has no objects yet.
    pub(crate) fn offer(&self, standby: WorkerHandle) {
        self.state().standby = Some(standby);
        self.objects_changed();
    }

    /// Stops telling the standby anything, because it is needed or has ended. Waits up to `limit` for the thread's current request, and
    /// returns whether the thread is done with the standby.
    pub(crate) fn withdraw(&self, limit: Duration) -> bool {
        let mut state = self.state();
        state.standby = None;
        let waited = self.changed.wait_timeout_while(state, limit, |state| state.is_busy);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.is_busy
    }

    /// Ends the thread.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.standby = None;
        drop(state);
        self.changed.notify_all();
        self.wake();
    }

    fn run(&self, objects: &ObjectTables, config: &IsolationConfig) {
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
                self.changed.notify_all();
                let process = standby.process;
                match prepared {
                    _ if !is_same => {}
                    Ok(true) => config.report(&WorkerEvent::Prepared { process, has: standby.counts() }),
                    Ok(false) => {}
                    // A takeover tries again what failed here; until the next change the standby is left as it is.
                    Err(SyncError { what, error }) => {
                        config.report(&WorkerEvent::Unprepared { process, what, error })
                    }
                }
            }
            self.followed.store(seen, Ordering::SeqCst);
            self.changed.notify_all();
            drop(standby);
            self.sleep(seen);
        }
    }

    /// Sleeps until there is a change, and [`DELAY`] longer unless a call waits.
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

    /// Gives a standby what it lacks; returns whether it has everything.
    fn prepare(&self, standby: &WorkerHandle, objects: &ObjectTables) -> Result<bool, SyncError> {
        let mut worker_state = standby.state.lock().unwrap_or_else(PoisonError::into_inner);
        let may_continue = || {
            let state = self.state();
            state.standby.as_ref().is_some_and(|it| Arc::ptr_eq(&it.link, &standby.link))
        };
        let mut sync = StateSync {
            link: &standby.link,
            objects,
            state: &mut worker_state,
            pace: Pace::Background(&may_continue),
            outcome: SyncOutcome::default(),
        };
        sync.release_queues()?;
        Ok(sync.sync_pages()? && sync.sync_host_blocks()? && sync.sync_code()? && sync.create_queues()?)
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
