//! What all objects of an isolated device share: the way to the worker, and the numbers both sides know.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use kiln_driver::{Error, Result, Site, Submission};

use crate::cause::Cause;
use crate::cells::{CellKind, Cells};
use crate::link::Link;
use crate::preparation::Preparation;
use crate::streams::StreamTable;
use crate::wire::{Request, WireObject};

/// Failures of one stream that are kept until somebody asks.
const FAILURES_LIMIT: usize = 64;

pub(crate) struct Shared {
    link: RwLock<Arc<Link>>,
    pub(crate) streams: Arc<StreamTable>,
    pub(crate) preparation: Arc<Preparation>,
    pub(crate) stream_cells: Arc<Cells>,
    pub(crate) event_cells: Arc<Cells>,
    numbers: AtomicU64,
    tickets: AtomicU64,
    closed: AtomicBool,
    /// Objects that ended while no worker could be told.
    ended: Mutex<Vec<(WireObject, u64)>>,
    failures: Mutex<HashMap<u64, VecDeque<Error>>>,
}

impl Shared {
    pub(crate) fn new(
        link: Arc<Link>,
        streams: Arc<StreamTable>,
        preparation: Arc<Preparation>,
    ) -> Arc<Self> {
        Arc::new(Self {
            link: RwLock::new(link),
            streams,
            preparation,
            stream_cells: Cells::new(CellKind::Stream),
            event_cells: Cells::new(CellKind::Event),
            numbers: AtomicU64::new(0),
            tickets: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            ended: Mutex::default(),
            failures: Mutex::default(),
        })
    }

    /// The worker in use.
    pub(crate) fn link(&self) -> Arc<Link> {
        self.link.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A number for a new object; never used twice, whatever happens to workers.
    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A number for a new signal.
    pub(crate) fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Tells the worker that an object ended, or the next one.
    pub(crate) fn forget(&self, object: WireObject, id: u64) {
        if self.closed.load(Ordering::Acquire) {
            return;
        }
        if object != WireObject::Event {
            self.preparation.changed();
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

    /// Puts another worker in the place of the one in use. It has every object that ended meanwhile, too, and is told.
    pub(crate) fn put_link(&self, link: Arc<Link>) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        for (object, id) in ended.drain(..) {
            let _ = link.send("destroy", &Request::Destroy { object, id });
        }
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clear();
        *self.link.write().unwrap_or_else(PoisonError::into_inner) = link;
    }

    /// From here on nothing is sent any more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// The oldest failure of a stream that nobody was told of.
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
                link.condemn(Cause::Violation(violation));
                link.check(call)?;
            }
        }
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        match failures.get_mut(&stream).and_then(VecDeque::pop_front) {
            Some(error) => Err(error.seen_by(call)),
            None => Ok(()),
        }
    }

    /// Forgets the failures of a stream that ended.
    pub(crate) fn forget_failures(&self, stream: u64) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(&stream);
    }
}

/// The other side of an object, which ends with this.
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
