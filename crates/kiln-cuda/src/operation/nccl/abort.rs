//! The end of a communicator by `ncclCommAbort`, which may not return.
//!
//! NCCL says that the communicator is gone once the call returns, so its state cannot be asked; the call itself is given a time limit instead. It frees memory of the
//! device, which may wait for work that never ends, such as a collective of another communicator that waits for the same rank. That is why the call has a thread
//! without any lock: the abort of the other communicator can follow, and both then end.

use std::ffi::{c_int, c_void};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use cudarc::driver::sys::CUstream;

use super::symbols::NcclApi;
use super::{NcclRank, NcclResult, POLL, Turn, check};
use crate::context::Context;
use crate::libraries::LibraryKind;
use crate::native_handle::Native;
use crate::operation::PreparedOperation;
use crate::operation::arguments::OperationArguments;
use crate::operation::failure::{LibraryFailure, NO_ANSWER};

const CALL: &str = "ncclCommAbort";

/// How long an abort may take.
const ABORT_LIMIT: Duration = Duration::from_secs(2);

/// How long an abort waits for a call of another thread, which may itself abort.
const TURN_LIMIT: Duration = Duration::from_secs(4);

/// A failure that NCCL has no status for.
pub(super) fn without_answer(detail: String) -> LibraryFailure {
    LibraryFailure { library: LibraryKind::Nccl, call: CALL, status: NO_ANSWER, detail }
}

/// Aborts a communicator that no other call uses any more, on a separate thread. One that is not aborted in time is left to that thread, with what it holds; the
/// context stays until then.
///
/// # Errors
/// It was not aborted in time, or NCCL says that it could not.
pub(super) fn abort_in_time(
    api: &'static NcclApi,
    raw: Native<c_void>,
    context: Option<Arc<Context>>,
    words: &str,
) -> NcclResult<()> {
    let (done, ends) = mpsc::channel::<c_int>();
    let abort = move || {
        // SAFETY: the caller took the communicator away from all others. NCCL makes the device of the communicator current itself.
        let status = unsafe { (api.abort)(raw.raw()) };
        drop(context);
        // A caller that waits no longer need not be told.
        let _ = done.send(status);
    };
    if let Err(error) = std::thread::Builder::new().name("kiln-nccl-abort".into()).spawn(abort) {
        let detail = format!(
            "{words} cannot be aborted without a thread ({error}); work that it has queued may never end: end this process"
        );
        return Err(without_answer(detail));
    }
    match ends.recv_timeout(ABORT_LIMIT) {
        Ok(status) => check(api, None, CALL, status),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Err(without_answer(format!(
            "{CALL} of {words} did not return within {ABORT_LIMIT:?}; work that it has queued may go on or never end, and its memory is not freed: abort the other \
             communicators of this device, or end this process"
        ))),
    }
}

impl NcclRank {
    /// The turn, also if another thread does not give it back for a while.
    pub(super) fn turn_in_time(&self) -> NcclResult<MutexGuard<'_, Turn>> {
        let began = Instant::now();
        loop {
            match self.turn.try_lock() {
                Ok(turn) => return Ok(turn),
                Err(TryLockError::Poisoned(turn)) => return Ok(turn.into_inner()),
                Err(TryLockError::WouldBlock) if began.elapsed() < TURN_LIMIT => std::thread::sleep(POLL),
                Err(TryLockError::WouldBlock) => {
                    let detail = format!(
                        "{} is not aborted: another call of NCCL has not returned for {TURN_LIMIT:?}; end this process",
                        self.words()
                    );
                    return Err(without_answer(detail));
                }
            }
        }
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
    unsafe fn queue(&self, _stream: CUstream, _arguments: &OperationArguments) -> NcclResult<()> {
        Ok(())
    }
}
