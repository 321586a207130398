//! `Stream`: a stream that is leased from the pool.

use std::any::Any;
use std::panic::Location;
use std::sync::{Arc, Weak};
use std::time::Duration;

use kiln_driver::{StreamId, Timeout};
use kiln_order::{Stamp, StreamKey, StreamState};
use kiln_trace::HostWaitCause;

use super::inner::Inner;
use super::ticket::Ticket;
use crate::error::{Error, Misuse, Result};

/// A queue of work. Clones are the same stream; it goes back to its pool when the last one is dropped, with whatever is
/// queued still running.
///
/// ```
/// use kiln::DeviceRuntime;
///
/// let gpu = DeviceRuntime::simulated(1)?;
/// let (first, second) = (gpu.stream()?, gpu.stream()?);
/// let data = gpu.zeros::<u32>(1000)?;
/// data.fill_on(&first, 7)?;
/// // The second stream waits for the first by itself, because both use `data`.
/// let copy = gpu.zeros::<u32>(1000)?;
/// copy.copy_from_on(&second, &data)?;
/// second.synchronize()?;
/// assert_eq!(copy.download()?, [7; 1000]);
/// # Ok::<(), kiln::Error>(())
/// ```
#[derive(Clone)]
pub struct Stream {
    lease: Arc<Lease>,
}

pub(super) struct Lease {
    lane: Arc<StreamState>,
    runtime: Weak<Inner>,
    priority: i32,
    home: Home,
    /// The number of the last submission before the lease, which belongs to an earlier lease.
    before: u64,
    /// What keeps a stream of another library alive; let go after its name is given back.
    _keep: Option<Keep>,
}

/// Something that must not go away before something else does.
pub(crate) type Keep = Box<dyn Any + Send + Sync>;

/// Where a stream goes when its lease ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Home {
    /// Back to the pool.
    Pool,
    /// It belongs to the runtime itself.
    Runtime,
    /// Another library owns it.
    Foreign,
}

impl Stream {
    pub(crate) fn new(lane: Arc<StreamState>, runtime: Weak<Inner>, priority: i32, home: Home) -> Self {
        let before = lane.submitted();
        Self { lease: Arc::new(Lease { lane, runtime, priority, home, before, _keep: None }) }
    }

    /// A stream of another library, with what keeps it alive.
    pub(crate) fn foreign(lane: Arc<StreamState>, runtime: Weak<Inner>, keep: Option<Keep>) -> Self {
        let (before, home) = (lane.submitted(), Home::Foreign);
        Self { lease: Arc::new(Lease { lane, runtime, priority: 0, home, before, _keep: keep }) }
    }

    /// Its name at the driver, bound to its device.
    pub fn id(&self) -> StreamId {
        self.lease.lane.stream
    }

    /// Its small number in this runtime.
    pub fn key(&self) -> StreamKey {
        self.lease.lane.key
    }

    /// It as a [memory stack](crate::DeviceRuntime::memory) names it, for a request of memory.
    pub fn memory_ref(&self) -> kiln_mem::StreamRef {
        self.lane().stream_ref()
    }

    /// Its priority.
    pub fn priority(&self) -> i32 {
        self.lease.priority
    }

    /// Waits until everything submitted to it so far is done.
    ///
    /// # Errors
    /// The fault, if the device is lost. One that comes back has not done the work: that is told until something new is submitted to the
    /// stream, also to those who ask only then.
    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        self.synchronize_for(Timeout::Never).map(|_| ())
    }

    /// As [`synchronize`](Self::synchronize), but no longer than this; false if time ran out.
    ///
    /// # Errors
    /// The fault, if the device is lost.
    #[track_caller]
    pub fn synchronize_within(&self, limit: Duration) -> Result<bool> {
        self.synchronize_for(Timeout::After(limit))
    }

    #[track_caller]
    fn synchronize_for(&self, timeout: Timeout) -> Result<bool> {
        let runtime = self.runtime()?;
        let stamp = Stamp { stream: self.key(), number: self.lease.lane.submitted() };
        runtime.waiting(HostWaitCause::Synchronize, Some(stamp), || self.await_all(&runtime, timeout))
    }

    fn await_all(&self, runtime: &Inner, timeout: Timeout) -> Result<bool> {
        let generation = runtime.state().generation();
        let ticket = self.ticket()?;
        if ticket.stamp().number == self.lease.before {
            // What became of it is reported to the lease that had the stream then.
            return runtime.wait_out(ticket.stamp(), timeout);
        }
        let done = ticket.wait_for(timeout)?;
        // The latest work may have been done again, and work before it not.
        if done && runtime.state().defers() {
            runtime.check_stream(generation, self.key())?;
            runtime.check_latest(&[ticket.stamp()])?;
        }
        Ok(done)
    }

    /// A ticket for everything submitted so far.
    ///
    /// # Errors
    /// If the runtime is gone.
    pub fn ticket(&self) -> Result<Ticket> {
        let stamp = Stamp { stream: self.key(), number: self.lease.lane.submitted() };
        Ok(Ticket::new(&*self.runtime()?, stamp))
    }

    /// Makes everything submitted to this stream from here on come after a ticket, on the device.
    ///
    /// Work that uses the same buffers is in order without it. A [recording](crate::DeviceRuntime::trace) says which line asked for a wait, and
    /// what that cost.
    ///
    /// # Errors
    /// A ticket of another runtime; what the driver says.
    #[track_caller]
    pub fn wait_for(&self, ticket: &Ticket) -> Result<()> {
        let runtime = self.runtime()?;
        ticket.check_runtime(&runtime)?;
        runtime.check_ready()?;
        let _context = runtime.asks_for_order(Location::caller());
        runtime.tracker().order_after(self.lane(), &kiln_order::Stamps::from(ticket.stamp()))?;
        Ok(())
    }

    /// Whether this lease made a submission, and none before it did.
    pub(super) fn made(&self, stamp: Stamp) -> bool {
        stamp.stream == self.key() && stamp.number > self.lease.before
    }

    /// The lease, for a table that does not hold it.
    pub(super) fn downgrade(&self) -> Weak<Lease> {
        Arc::downgrade(&self.lease)
    }

    /// The stream of a lease, while the lease is held.
    pub(super) fn upgrade(lease: &Weak<Lease>) -> Option<Self> {
        lease.upgrade().map(|lease| Self { lease })
    }

    pub(crate) fn lane(&self) -> &Arc<StreamState> {
        &self.lease.lane
    }

    pub(crate) fn runtime(&self) -> Result<Arc<Inner>> {
        self.lease.runtime.upgrade().ok_or_else(|| Error::new(Misuse::RuntimeGone))
    }

    pub(crate) fn belongs_to(&self, runtime: &Inner) -> bool {
        std::ptr::eq(self.lease.runtime.as_ptr(), runtime)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.home == Home::Runtime {
            return;
        }
        if let Some(runtime) = self.runtime.upgrade() {
            runtime.pool().take_back(self.lane.clone(), self.priority, self.home);
        }
    }
}

impl PartialEq for Stream {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.lease.lane, &other.lease.lane)
    }
}

impl Eq for Stream {}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.id())
    }
}
