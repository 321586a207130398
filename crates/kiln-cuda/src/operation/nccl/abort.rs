//! The end of a communicator by `ncclCommAbort`, which may not return.
//!
//! The call is made in a group of NCCL. It then tells everything that uses the communicator to stop, also threads that wait inside of NCCL; what the communicator has is
//! freed at the end of the group, which comes when those threads have left. NCCL before 2.22 frees at once, so there the abort waits for them first.
//!
//! NCCL says that the communicator is gone once the call returns, so its state cannot be asked; the call itself is given a time limit instead. It frees memory of the
//! device, which may wait for work that never ends, such as a collective of another communicator that waits for the same rank. That is why the call has a thread
//! without any lock: the abort of the other communicator can follow, and both then end.
//!
//! Every queued kernel of NCCL still begins after an abort and asks 10,000 times for the other ranks before it looks whether it is aborted. On an H200 with NCCL over
//! sockets that took 24 ms each, so a thousand queued collectives keep the device for 20 s. Callers are told before the abort, and the call goes on in its thread.

use std::ffi::c_int;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use cudarc::driver::sys::CUstream;
use kiln_driver::{Error, Result, ShortTime};

use super::making::Making;
use super::symbols::NcclApi;
use super::{NcclRank, NcclResult, check, grouped};
use crate::context::Context;
use crate::libraries::LibraryKind;
use crate::operation::PreparedOperation;
use crate::operation::arguments::OperationArguments;
use crate::operation::failure::{LibraryFailure, NO_ANSWER};

const CALL: &str = "ncclCommAbort";
/// The first version that frees a communicator at the end of the group that aborts it: 2.22.
const FREES_LATE_VERSION: c_int = 22_200;
/// How long an abort may take.
const ABORT_LIMIT: Duration = Duration::from_secs(2);
/// How long a thread sleeps before it looks again whether others have left NCCL.
const POLL: Duration = Duration::from_micros(50);

/// A failure that NCCL has no status for.
pub(super) fn without_answer(detail: String) -> LibraryFailure {
    LibraryFailure { library: LibraryKind::Nccl, call: CALL, status: NO_ANSWER, detail }
}

/// Whether a communicator was aborted, and how that went.
#[derive(Default)]
pub(super) struct AbortState {
    ended: Option<NcclResult<()>>,
}

impl AbortState {
    pub(super) fn has_begun(&self) -> bool {
        self.ended.is_some()
    }
}

/// What an abort needs, without the rank.
struct Ending {
    api: &'static NcclApi,
    making: Arc<Making>,
    frees_late: bool,
    words: String,
}

impl Ending {
    /// Aborts the communicator on a separate thread. One that is not aborted in time is left to that thread, with what it holds; the context stays until then.
    ///
    /// # Errors
    /// It was not aborted in time, or NCCL says that it could not.
    fn run(self, context: Option<Arc<Context>>) -> NcclResult<()> {
        let (done, ends) = mpsc::channel();
        let (making, words) = (self.making.clone(), self.words.clone());
        let abort = move || {
            let ended = self.abort();
            self.making.note_aborted();
            drop(context);
            // A caller that waits no longer need not be told.
            let _ = done.send(ended);
        };
        if let Err(error) = std::thread::Builder::new().name("kiln-nccl-abort".into()).spawn(abort) {
            let detail = format!(
                "{words} cannot be aborted without a thread ({error}); work that it has queued may never end: end this process"
            );
            return Err(without_answer(detail));
        }
        if let Ok(ended) = ends.recv_timeout(ABORT_LIMIT) {
            return ended;
        }
        let limit = ShortTime(ABORT_LIMIT);
        Err(without_answer(match making.is_free() {
            true => format!(
                "{CALL} of {words} did not return within {limit}; work that it has queued goes on until NCCL ends it, one collective after the other, and its memory is freed then; if it never ends, abort the other \
                 communicators of this device, or end this process"
            ),
            false => format!(
                "a call of NCCL has not returned within {limit} after {words} was aborted; end this process"
            ),
        }))
    }

    fn abort(&self) -> NcclResult<()> {
        // NCCL may not have said yet where it is.
        let raw = loop {
            match self.making.raw() {
                Some(raw) => break raw,
                None if self.making.is_done() => return Ok(()),
                None => std::thread::sleep(POLL),
            }
        };
        let others_leave = || {
            while !self.making.is_free() {
                std::thread::sleep(POLL);
            }
        };
        // SAFETY: this is the only abort of the communicator, and no call begins after it. NCCL makes the device of the communicator current itself.
        let abort = || check(self.api, CALL, unsafe { (self.api.abort)(raw) });
        if !self.frees_late {
            others_leave();
            return abort();
        }
        grouped(self.api, || {
            let aborted = abort();
            others_leave();
            aborted
        })
    }
}

impl NcclRank {
    /// Ends the communicator: what waits inside of NCCL returns, what it has queued ends, and nothing more is taken.
    pub(super) fn abort(&self) -> NcclResult<()> {
        self.is_to_end.store(true, Ordering::SeqCst);
        self.making.wake();
        let mut state = self.abort.lock().unwrap_or_else(PoisonError::into_inner);
        let ending = || self.ending().run(Some(self.context.clone()));
        state.ended.get_or_insert_with(ending).clone()
    }

    /// Whether no abort is under way.
    ///
    /// # Errors
    /// Unsupported while one is.
    pub(crate) fn abort_state(&self, call: &'static str) -> Result<()> {
        if !self.is_to_end() || self.making.is_aborted() {
            return Ok(());
        }
        let why = format!("the abort of {} has not returned; ask again later", self.words());
        Err(Error::unsupported(call, "a communicator that is being aborted", why))
    }

    fn ending(&self) -> Ending {
        let frees_late = self.version >= FREES_LATE_VERSION;
        Ending { api: self.api, making: self.making.clone(), frees_late, words: self.words() }
    }
}

impl Drop for NcclRank {
    fn drop(&mut self) {
        let state = self.abort.get_mut().unwrap_or_else(PoisonError::into_inner);
        if state.has_begun() {
            return;
        }
        // Weak, because the context keeps the closure.
        let (ending, context) = (self.ending(), Arc::downgrade(&self.context));
        // Its work is done by then. Destroying instead would wait for the other ranks.
        self.context.free_when_idle(move |_| {
            // This was the only owner. A failure leaves memory in use, and there is no caller to tell.
            let _ = ending.run(context.upgrade());
            0
        });
    }
}

/// The function of a rank that ends it.
pub(in crate::operation) struct NcclAbort {
    rank: Arc<NcclRank>,
}

impl NcclAbort {
    pub(in crate::operation) fn new(rank: &Arc<NcclRank>) -> Self {
        Self { rank: rank.clone() }
    }
}

impl PreparedOperation for NcclAbort {
    fn workspace_bytes(&self) -> u64 {
        0
    }

    fn waits_for_device(&self) -> bool {
        true
    }

    fn before_queue(&self) -> NcclResult<()> {
        self.rank.abort()
    }

    /// All is done before.
    unsafe fn queue(&self, _stream: CUstream, _arguments: &OperationArguments<'_>) -> NcclResult<()> {
        Ok(())
    }
}
