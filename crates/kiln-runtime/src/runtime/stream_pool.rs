//! Streams that can be leased.
//!
//! A stream that comes back keeps what is queued on it; the next lease is ordered after that, as on any stream.
//! Streams are made when they are first needed. The first few are destroyed with the runtime; others make room, once they are idle, where
//! another stream would be one too many. There is a cap and a clear error, never a silent default stream.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use kiln_driver::{ForeignHandle, Refusal, StreamRequest};
use kiln_order::{Stamp, StreamKey, StreamState};

use super::inner::Inner;
use super::stream::{Home, Keep, Lease, Stream};
use crate::error::{Error, ErrorKind, Misuse, Result};

/// The priority of streams for which none is asked.
const USUAL: i32 = 0;
/// Streams of that priority that last as long as the runtime, which makes waiting for them a little cheaper.
const LASTING: usize = 8;

/// The streams of one runtime.
pub struct StreamPool {
    limit: usize,
    runtime: Weak<Inner>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    idle: Vec<(i32, Arc<StreamState>)>,
    leased: usize,
    /// Streams that last.
    lasting: usize,
    /// The last lease of each key, those of other libraries' streams included. The main stream has none.
    leases: BTreeMap<StreamKey, Weak<Lease>>,
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
        self.lease_with_priority(USUAL)
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
                let made = self.make(&runtime, StreamRequest::New { priority });
                if made.is_err() {
                    self.state().leased -= 1;
                }
                made?
            }
        };
        Ok(self.known(Stream::new(lane, Arc::downgrade(&runtime), priority, Home::Pool)))
    }

    /// The stream with a key, while it is leased: also the main stream, and those of other libraries.
    pub fn find(&self, key: StreamKey) -> Option<Stream> {
        let runtime = self.runtime().ok()?;
        let main = runtime.main_stream();
        if main.key() == key {
            return Some(main.clone());
        }
        let lease = self.state().leases.get(&key).cloned()?;
        Stream::upgrade(&lease)
    }

    /// Whether the stream that made a submission is leased still.
    pub(crate) fn holds(&self, stamp: Stamp) -> bool {
        self.find(stamp.stream).is_some_and(|stream| stream.made(stamp))
    }

    /// Makes a lease known by its key.
    fn known(&self, stream: Stream) -> Stream {
        self.state().leases.insert(stream.key(), stream.downgrade());
        stream
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
        let lane = self.make(&runtime, StreamRequest::Foreign(foreign))?;
        Ok(self.known(Stream::foreign(lane, Arc::downgrade(&runtime), keep)))
    }

    /// Streams leased right now.
    pub fn leased(&self) -> usize {
        self.state().leased
    }

    /// Streams that were made and wait to be leased again.
    pub fn idle(&self) -> usize {
        self.state().idle.len()
    }

    /// Streams that may be leased at once.
    pub fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn take_back(&self, lane: Arc<StreamState>, priority: i32, home: Home) {
        match home {
            Home::Pool => {
                let mut state = self.state();
                state.leased -= 1;
                state.idle.push((priority, lane));
            }
            // The stream itself is not ours, only its name.
            Home::Foreign | Home::Runtime => {
                if let Ok(runtime) = self.runtime() {
                    let_go(&runtime, &lane);
                }
            }
        }
    }

    /// Counts a lease: an idle stream of that priority, or none if one is to be made.
    fn pick(&self, priority: i32) -> Result<Option<Arc<StreamState>>> {
        let mut state = self.state();
        if state.leased >= self.limit {
            return Err(Error::new(ErrorKind::StreamsExhausted { limit: self.limit }));
        }
        state.leased += 1;
        let idle = state.idle.iter().rposition(|(idle, _)| *idle == priority);
        Ok(idle.map(|at| state.idle.swap_remove(at).1))
    }

    /// A stream that is taken in; idle ones make room for it if need be.
    fn make(&self, runtime: &Inner, request: StreamRequest) -> Result<Arc<StreamState>> {
        let stream = runtime.driver().create_stream(request)?;
        loop {
            let lasts = request == StreamRequest::New { priority: USUAL } && self.state().lasting < LASTING;
            let tracker = runtime.tracker();
            let error = match if lasts { tracker.add_lasting(stream) } else { tracker.add(stream) } {
                Ok(lane) => {
                    self.state().lasting += usize::from(lasts);
                    return Ok(lane);
                }
                Err(error) => error,
            };
            let is_full = matches!(error.refusal(), Some(Refusal::Limit { .. }));
            match is_full.then(|| self.spare()).flatten() {
                Some(spare) => let_go(runtime, &spare),
                None => {
                    // If it cannot be destroyed, the device is lost, and that is what the error says.
                    let _ = runtime.driver().destroy(stream.into());
                    return Err(error.into());
                }
            }
        }
    }

    /// An idle stream that need not be kept.
    fn spare(&self) -> Option<Arc<StreamState>> {
        let mut state = self.state();
        let at = state.idle.iter().position(|(_, lane)| !lane.is_lasting())?;
        Some(state.idle.swap_remove(at).1)
    }

    fn runtime(&self) -> Result<Arc<Inner>> {
        self.runtime.upgrade().ok_or_else(|| Error::new(Misuse::RuntimeGone))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives a stream's name back. Its key is used again once its work is known to be done.
fn let_go(runtime: &Inner, lane: &StreamState) {
    runtime.tracker().retire(lane);
    // What is queued still runs; a lost device has no names.
    let _ = runtime.driver().destroy(lane.stream.into());
}

impl std::fmt::Debug for StreamPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} streams leased", self.leased(), self.limit)
    }
}
