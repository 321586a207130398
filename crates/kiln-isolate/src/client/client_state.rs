//! The state that all objects of an isolated device share: the connection to the current worker, and object ids.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use kiln_driver::{Error, Result, Site, Submission};

use super::connection::Link;
use super::loss_cause::LossCause;
use super::standby_hook::StandbyHook;
use super::stream_table::StreamTable;
use crate::protocol::progress_cells::{CellKind, ProgressCells};
use crate::protocol::wire::{Request, WireObject};

/// The most failures of one stream that are kept until a call returns them.
const FAILURES_LIMIT: usize = 64;

/// Shared by all objects of an isolated device.
pub(crate) struct Shared {
    link: RwLock<Arc<Link>>,
    pub(crate) streams: Arc<StreamTable>,
    pub(crate) standby: Arc<dyn StandbyHook>,
    pub(crate) stream_cells: Arc<ProgressCells>,
    pub(crate) event_cells: Arc<ProgressCells>,
    numbers: AtomicU64,
    tickets: AtomicU64,
    closed: AtomicBool,
    /// Objects that were destroyed while no worker could be told.
    ended: Mutex<Vec<(WireObject, u64)>>,
    failures: Mutex<HashMap<u64, VecDeque<Error>>>,
}

impl Shared {
    pub(crate) fn new(
        link: Arc<Link>,
        streams: Arc<StreamTable>,
        standby: Arc<dyn StandbyHook>,
    ) -> Arc<Self> {
        Arc::new(Self {
            link: RwLock::new(link),
            streams,
            standby,
            stream_cells: ProgressCells::new(CellKind::Stream),
            event_cells: ProgressCells::new(CellKind::Event),
            numbers: AtomicU64::new(0),
            tickets: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            ended: Mutex::default(),
            failures: Mutex::default(),
        })
    }

    /// The link to the worker in use.
    pub(crate) fn link(&self) -> Arc<Link> {
        self.link.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// An id for a new object. Ids are never used again, also not after a takeover.
    pub(crate) fn new_id(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A ticket for a new signal.
    pub(crate) fn new_ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Tells the worker, or the next one, that an object was destroyed.
    pub(crate) fn forget(&self, object: WireObject, id: u64) {
        if self.closed.load(Ordering::Acquire) {
            return;
        }
        if object != WireObject::Event {
            self.standby.objects_changed();
        }
        let request = Request::Destroy { object, id };
        let link = self.link();
        if link.send("destroy", &request).is_ok() {
            return;
        }
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let newer = self.link();
        if Arc::ptr_eq(&link, &newer) {
            ended.push((object, id));
        } else {
            drop(ended);
            let _ = newer.send("destroy", &request);
        }
    }

    /// Replaces the link. The new worker also has objects that were destroyed meanwhile, and is told of them.
    pub(crate) fn replace_link(&self, link: Arc<Link>) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        for (object, id) in ended.drain(..) {
            let _ = link.send("destroy", &Request::Destroy { object, id });
        }
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clear();
        *self.link.write().unwrap_or_else(PoisonError::into_inner) = link;
    }

    /// Sends nothing any more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Returns the oldest failure of a stream that no call has returned yet.
    pub(crate) fn late_failure(&self, link: &Link, call: &'static str, stream: u64) -> Result<()> {
        match link.late_failures() {
            Ok(arrived) if arrived.is_empty() => {}
            Ok(arrived) => {
                let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
                for failure in arrived {
                    let Some(name) = self.streams.name(failure.stream) else { continue };
                    let submission = Submission(failure.number);
                    let site = Site { stream: name, submission, command: String::new() };
                    let of_stream = failures.entry(failure.stream).or_default();
                    if of_stream.len() < FAILURES_LIMIT {
                        of_stream.push_back(failure.error.at(site));
                    }
                }
            }
            Err(violation) => {
                link.mark_lost(LossCause::Violation(violation));
                link.check(call)?;
            }
        }
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        match failures.get_mut(&stream).and_then(VecDeque::pop_front) {
            Some(error) => Err(error.seen_by(call)),
            None => Ok(()),
        }
    }

    /// Drops the failures of a stream that was destroyed.
    pub(crate) fn forget_failures(&self, stream: u64) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(&stream);
    }
}

/// The worker's part of an object, destroyed on drop.
pub(crate) struct Remote {
    pub(crate) shared: Arc<Shared>,
    pub(crate) object: WireObject,
    pub(crate) id: u64,
}

impl Remote {
    pub(crate) fn new(shared: &Arc<Shared>, object: WireObject, id: u64) -> Self {
        Self { shared: shared.clone(), object, id }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.shared.forget(self.object, self.id);
    }
}
