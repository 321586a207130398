//! How a communicator is made: by a call that returns when all ranks have joined, on a separate thread.
//!
//! NCCL says where the communicator is before it waits for the other ranks, so that it can be aborted from another thread meanwhile. What is here outlives the rank:
//! threads that are inside of NCCL keep it.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::abort::without_answer;
use super::symbols::{NcclApi, NcclConfig, UniqueId};
use super::{NcclResult, check};
use crate::context::Context;

const CALL: &str = "ncclCommInitRankConfig";
/// How long a thread sleeps before it looks again whether it is to leave. It is woken before, as a rule.
const LOOK: Duration = Duration::from_millis(50);

pub(super) struct Making {
    api: &'static NcclApi,
    /// Written by NCCL while it makes the communicator.
    raw: AtomicPtr<c_void>,
    outcome: Mutex<Option<NcclResult<()>>>,
    changed: Condvar,
    is_done: AtomicBool,
    /// When a caller first waited for it, or asked.
    asked: OnceLock<Instant>,
    /// Calls that queue something, twice; odd while one is inside of NCCL. Those are made one at a time.
    calls: AtomicU64,
    /// Graphs with collectives that are being launched.
    replays: AtomicU64,
    /// Whether the abort of the communicator has returned.
    is_aborted: AtomicBool,
}

impl Making {
    pub(super) fn new(api: &'static NcclApi) -> Arc<Self> {
        Arc::new(Self {
            api,
            raw: AtomicPtr::default(),
            outcome: Mutex::default(),
            changed: Condvar::new(),
            is_done: AtomicBool::new(false),
            asked: OnceLock::new(),
            calls: AtomicU64::new(0),
            replays: AtomicU64::new(0),
            is_aborted: AtomicBool::new(false),
        })
    }

    /// Has NCCL make the communicator, on another thread.
    pub(super) fn start(
        self: &Arc<Self>,
        context: Arc<Context>,
        size: c_int,
        rank: c_int,
        id: UniqueId,
    ) -> std::io::Result<()> {
        let making = self.clone();
        let make = move || {
            let outcome = making.make(&context, size, rank, id);
            drop(context);
            *making.lock() = Some(outcome);
            making.is_done.store(true, Ordering::SeqCst);
            making.changed.notify_all();
        };
        std::thread::Builder::new().name("kiln-nccl-join".into()).spawn(make).map(drop)
    }

    fn make(&self, context: &Context, size: c_int, rank: c_int, id: UniqueId) -> NcclResult<()> {
        context.enter("load").map_err(|error| without_answer(error.to_string()))?;
        let mut config = NcclConfig::blocking();
        // SAFETY: the out-parameter lives as long as this, the configuration is a live local, the id has the size NCCL declares, and the context is
        // current.
        let status = unsafe { (self.api.init_rank)(self.raw.as_ptr(), size, id, rank, &mut config) };
        check(self.api, CALL, status)
    }

    /// Whether all ranks have joined, or cannot.
    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.is_done.load(Ordering::SeqCst)
    }

    /// A caller asks whether that is so: from now on time counts.
    pub(super) fn ask(&self) -> Instant {
        *self.asked.get_or_init(Instant::now)
    }

    /// Waits for that, unless the caller is to leave. False if time ran out since a caller first asked.
    pub(super) fn wait(&self, limit: Duration, leaves: impl Fn() -> bool) -> bool {
        let began = self.ask();
        let mut outcome = self.lock();
        loop {
            if outcome.is_some() || leaves() {
                return true;
            }
            let left = limit.saturating_sub(began.elapsed());
            if left.is_zero() {
                return false;
            }
            let waited = self.changed.wait_timeout(outcome, left.min(LOOK));
            outcome = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Wakes a thread that waits, so that it looks whether it is to leave.
    pub(super) fn wake(&self) {
        drop(self.lock());
        self.changed.notify_all();
    }

    /// The communicator of all ranks, or why there is none.
    pub(super) fn outcome(&self) -> NcclResult<*mut c_void> {
        let outcome = self.lock().clone();
        outcome.unwrap_or_else(|| Err(without_answer("its ranks have not joined".into())))?;
        Ok(self.raw.load(Ordering::SeqCst))
    }

    /// The communicator, also while it is being made; none if NCCL has not said yet where it is, or has made none.
    pub(super) fn raw(&self) -> Option<*mut c_void> {
        Some(self.raw.load(Ordering::SeqCst)).filter(|raw| !raw.is_null())
    }

    /// A thread goes inside of NCCL to queue something; it is alone in that.
    #[inline]
    pub(super) fn enter_call(&self) -> Inside<'_> {
        Inside::new(&self.calls)
    }

    /// A thread launches a graph with collectives; it is alone in that.
    pub(super) fn enter_replay(&self) -> Inside<'_> {
        Inside::new(&self.replays)
    }

    /// The call that is inside of NCCL to queue something.
    pub(super) fn call(&self) -> Option<u64> {
        Some(self.calls.load(Ordering::SeqCst)).filter(|calls| calls % 2 == 1)
    }

    /// Whether no thread is inside of NCCL with the communicator.
    pub(super) fn is_free(&self) -> bool {
        self.is_done() && self.call().is_none() && self.replays.load(Ordering::SeqCst).is_multiple_of(2)
    }

    /// The abort of the communicator has returned.
    pub(super) fn note_aborted(&self) {
        self.is_aborted.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_aborted(&self) -> bool {
        self.is_aborted.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, Option<NcclResult<()>>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that is inside of NCCL.
pub(super) struct Inside<'m> {
    count: &'m AtomicU64,
    number: u64,
}

impl<'m> Inside<'m> {
    #[inline]
    fn new(count: &'m AtomicU64) -> Self {
        // No other thread changes it: the caller has the turn.
        let number = count.load(Ordering::Relaxed) + 1;
        count.store(number, Ordering::SeqCst);
        Self { count, number }
    }
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.count.store(self.number + 1, Ordering::Release);
    }
}
