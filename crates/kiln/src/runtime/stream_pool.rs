//! Streams that can be leased.
//!
//! A stream that comes back keeps what is queued on it; whoever leases it next is ordered after that, as on any stream.
//! Streams are made when they are first needed and destroyed with the runtime. There is a cap and a clear error, never a
//! silent default stream.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use kiln_driver::{Driver, ForeignHandle, StreamRequest};

use super::inner::Inner;
use super::stream::{Home, Keep, Stream};
use crate::error::{Error, ErrorKind, Result};
use crate::misuse::Misuse;
use crate::order::{Lane, Tracker};

/// The streams of one runtime.
pub struct StreamPool {
    limit: usize,
    runtime: Weak<Inner>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    idle: Vec<(i32, Arc<Lane>)>,
    leased: usize,
}

impl StreamPool {
    pub(crate) fn new(limit: usize, runtime: Weak<Inner>) -> Self {
        Self { limit, runtime, state: Mutex::default() }
    }

    /// A stream of the usual priority.
    ///
    /// # Errors
    /// [`ErrorKind::StreamsExhausted`] if all are leased.
    pub fn lease(&self) -> Result<Stream> {
        self.lease_with_priority(0)
    }

    /// A stream of a priority within the device's limits; the smaller the number, the sooner it is served.
    ///
    /// # Errors
    /// [`ErrorKind::StreamsExhausted`] if all are leased; refused for a priority the device does not have.
    pub fn lease_with_priority(&self, priority: i32) -> Result<Stream> {
        let runtime = self.runtime()?;
        runtime.check_ready()?;
        let lane = match self.pick(priority)? {
            Some(idle) => idle,
            None => {
                let request = StreamRequest::New { priority };
                let made = self.add(runtime.tracker(), &**runtime.driver(), request);
                if made.is_err() {
                    self.state().leased -= 1;
                }
                made?
            }
        };
        Ok(Stream::new(lane, Arc::downgrade(&runtime), priority, Home::Pool))
    }

    /// A stream that another library made, tracked like any other. It is left alone when the last clone is dropped.
    ///
    /// # Errors
    /// Past the limits of the runtime; unsupported on a device without native handles.
    pub fn import(&self, foreign: ForeignHandle) -> Result<Stream> {
        self.take_in(foreign, None)
    }

    /// As [`import`](Self::import), and keeps something alive until the last clone is dropped: what owns the stream.
    ///
    /// # Errors
    /// As for [`import`](Self::import).
    pub fn import_kept(&self, foreign: ForeignHandle, owner: impl Send + Sync + 'static) -> Result<Stream> {
        self.take_in(foreign, Some(Box::new(owner)))
    }

    fn take_in(&self, foreign: ForeignHandle, keep: Option<Keep>) -> Result<Stream> {
        let runtime = self.runtime()?;
        runtime.check_ready()?;
        let lane = self.add(runtime.tracker(), &**runtime.driver(), StreamRequest::Foreign(foreign))?;
        Ok(Stream::foreign(lane, Arc::downgrade(&runtime), keep))
    }

    /// Streams leased right now.
    pub fn leased(&self) -> usize {
        self.state().leased
    }

    /// Streams that may be leased at once.
    pub fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn take_back(&self, lane: Arc<Lane>, priority: i32, home: Home) {
        match home {
            Home::Pool => {
                let mut state = self.state();
                state.leased -= 1;
                state.idle.push((priority, lane));
            }
            Home::Foreign | Home::Runtime => {
                if let Ok(runtime) = self.runtime() {
                    runtime.tracker().retire(&lane);
                    // Its key is used again once its work is known to be done; the stream itself is not ours.
                    let _ = runtime.driver().destroy(lane.stream.into());
                }
            }
        }
    }

    /// Counts a lease: an idle stream of that priority, or none if one is to be made.
    fn pick(&self, priority: i32) -> Result<Option<Arc<Lane>>> {
        let mut state = self.state();
        if state.leased >= self.limit {
            return Err(Error::new(ErrorKind::StreamsExhausted { limit: self.limit }));
        }
        state.leased += 1;
        let idle = state.idle.iter().rposition(|(idle, _)| *idle == priority);
        Ok(idle.map(|at| state.idle.swap_remove(at).1))
    }

    fn add(&self, tracker: &Tracker, driver: &dyn Driver, request: StreamRequest) -> Result<Arc<Lane>> {
        let stream = driver.create_stream(request)?;
        let added = match request {
            StreamRequest::New { .. } => tracker.add_lasting(stream),
            _ => tracker.add(stream),
        };
        match added {
            Ok(lane) => Ok(lane),
            Err(error) => {
                driver.destroy(stream.into())?;
                Err(error.into())
            }
        }
    }

    fn runtime(&self) -> Result<Arc<Inner>> {
        self.runtime.upgrade().ok_or_else(|| Error::new(Misuse::RuntimeGone))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for StreamPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} streams leased", self.leased(), self.limit)
    }
}
