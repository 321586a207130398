//! Communicators by NCCL.
//!
//! A rank is made without waiting for the others; the first launch waits for them, on the host, until the deadline of the communicator. Every call is
//! made in a group of NCCL, so that the sends and receives of one launch do not wait for each other. A communicator that failed or ran out of time is aborted, and
//! so is one whose function `abort` is launched, also while a thread waits for its ranks or a collective runs. `ncclCommAbort` may not return; it is called on a
//! separate thread, and a communicator that it does not return from is left to that thread. A graph with collectives of a communicator that was aborted is not replayed: its
//! kernels use memory that the abort has freed.

mod abort;
mod collective;
mod replay;
mod symbols;

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use kiln_driver::{Error, Refusal, Result};
use kiln_operation::{CommunicatorId, CommunicatorRank};

use super::failure::LibraryFailure;
use crate::context::Context;
use crate::device::CudaDevice;
use crate::libraries::LibraryKind;
use crate::native_handle::Native;
pub(super) use abort::NcclAbort;
use abort::{abort_in_time, without_answer};
pub(super) use collective::NcclCollective;
pub(crate) use replay::NcclReplay;
use symbols::{NcclApi, NcclConfig, UniqueId};

/// The oldest version whose entry points and configuration these are: 2.18.
const OLDEST_VERSION: c_int = 21_800;
/// The first version with numbers of 8 bits: 2.24.
const FLOAT8_VERSION: c_int = 22_400;
/// `ncclInProgress`.
const IN_PROGRESS: c_int = 7;
/// How long a thread sleeps before it asks again.
const POLL: Duration = Duration::from_micros(50);
/// How often it asks before it sleeps: NCCL queues most calls in less time than a thread takes to wake.
const ASKED_AT_ONCE: u32 = 200;

pub(super) type NcclResult<T> = std::result::Result<T, LibraryFailure>;

/// One rank of a communicator.
pub(crate) struct NcclRank {
    api: &'static NcclApi,
    version: c_int,
    rank: CommunicatorRank,
    context: Arc<Context>,
    /// Whether it is to be aborted, or was: a thread that waits in its turn leaves, and no graph is replayed.
    is_to_end: AtomicBool,
    /// NCCL takes one call at a time.
    turn: Mutex<Turn>,
}

struct Turn {
    raw: Native<c_void>,
    is_ready: bool,
    /// Why it was aborted.
    aborted: Option<LibraryFailure>,
    /// Why the abort did not succeed.
    left: Option<LibraryFailure>,
}

/// Opens NCCL.
fn open(call: &'static str) -> Result<(&'static NcclApi, c_int)> {
    let api = NcclApi::load(call)?;
    let mut version = 0;
    // SAFETY: the out-parameter is a live local.
    let status = unsafe { (api.version)(&mut version) };
    LibraryFailure::check(LibraryKind::Nccl, "ncclGetVersion", status)
        .map_err(|failure| failure.error(call, "its version"))?;
    if version < OLDEST_VERSION {
        let (kind, major, minor) = (LibraryKind::Nccl, version / 10_000, version / 100 % 100);
        let why = format!("it is version {major}.{minor}, and 2.18 or newer is needed; {}", kind.advice());
        return Err(Error::refused(call, Refusal::Library { library: kind.name(), why }));
    }
    Ok((api, version))
}

/// Makes the id of a communicator.
pub(crate) fn make_id(call: &'static str, id: &OnceLock<Vec<u8>>) -> Result<()> {
    let (api, _) = open(call)?;
    let mut made = UniqueId([0; CommunicatorId::BYTES]);
    // SAFETY: the out-parameter is a live local of the size that NCCL declares.
    let status = unsafe { (api.unique_id)(&mut made) };
    check(api, None, "ncclGetUniqueId", status).map_err(|failure| failure.error(call, "a communicator"))?;
    // A cell that is full already stays as it is.
    let _ = id.set(made.0.to_vec());
    Ok(())
}

impl NcclRank {
    /// Begins to make a rank. It does not wait for the others.
    pub(crate) fn load(call: &'static str, device: &CudaDevice, text: &str) -> Result<Arc<Self>> {
        device.context.enter(call)?;
        let rank: CommunicatorRank = text
            .parse()
            .map_err(|error| Error::refused(call, Refusal::Image { code: None, log: format!("{error}") }))?;
        let (api, version) = open(call)?;
        let (size, number) = (c_int::try_from(rank.size), c_int::try_from(rank.rank));
        let (Ok(size), Ok(number)) = (size, number) else {
            let what = format!("rank {} of {}", rank.rank, rank.size);
            return Err(Error::invalid(call, what, "use fewer than 2^31 ranks"));
        };
        let mut raw = Native::NULL;
        let mut config = NcclConfig::non_blocking();
        let id = UniqueId(*rank.id.bytes());
        // SAFETY: the out-parameter and the configuration are live locals, the id has the size NCCL declares, and the context is current.
        let status = unsafe { (api.init_rank)(raw.slot(), size, id, number, &mut config) };
        let context = device.context.clone();
        let turn = Mutex::new(Turn { raw, is_ready: false, aborted: None, left: None });
        let is_to_end = AtomicBool::new(false);
        let made = Self { api, version, rank, context, is_to_end, turn };
        check(api, Some(raw), "ncclCommInitRankConfig", status)
            .map_err(|failure| failure.error(call, &made.words()))?;
        Ok(Arc::new(made))
    }

    /// The rank in words.
    fn words(&self) -> String {
        let CommunicatorRank { id, rank, size, .. } = self.rank;
        format!("rank {rank} of {size} of communicator {}", id.short())
    }

    /// Runs calls of NCCL as one group, once all ranks have joined.
    ///
    /// # Safety
    /// The calls may be made with the communicator they are given.
    unsafe fn grouped(
        &self,
        calls: impl FnOnce(&'static NcclApi, *mut c_void) -> NcclResult<()>,
    ) -> NcclResult<()> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(aborted) = &turn.aborted {
            return Err(aborted.clone());
        }
        self.grouped_in_turn(&mut turn, calls).map_err(|mut failure| {
            self.is_to_end.store(true, Ordering::Release);
            if let Err(left) = self.abort_in_turn(&mut turn) {
                failure.detail = format!("{}; {}", failure.detail, left.detail);
            }
            turn.aborted = Some(failure.clone());
            failure
        })
    }

    /// Ends the communicator.
    fn abort(&self) -> NcclResult<()> {
        self.is_to_end.store(true, Ordering::Release);
        let mut turn = self.turn_in_time()?;
        if turn.aborted.is_none() {
            turn.aborted = Some(self.ended());
        }
        self.abort_in_turn(&mut turn)
    }

    fn abort_in_turn(&self, turn: &mut Turn) -> NcclResult<()> {
        // Taken out of the turn, so that no call uses it any more.
        let raw = std::mem::replace(&mut turn.raw, Native::NULL);
        if raw != Native::NULL {
            turn.left = abort_in_time(self.api, raw, Some(self.context.clone()), &self.words()).err();
        }
        turn.left.clone().map_or(Ok(()), Err)
    }

    fn is_to_end(&self) -> bool {
        self.is_to_end.load(Ordering::Acquire)
    }

    /// What calls are told after an abort.
    fn ended(&self) -> LibraryFailure {
        without_answer(format!("{} was aborted; make another communicator", self.words()))
    }

    fn grouped_in_turn(
        &self,
        turn: &mut Turn,
        calls: impl FnOnce(&'static NcclApi, *mut c_void) -> NcclResult<()>,
    ) -> NcclResult<()> {
        let (api, raw) = (self.api, turn.raw);
        if self.is_to_end() {
            return Err(self.ended());
        }
        if !turn.is_ready {
            self.wait(raw, "ncclCommInitRankConfig")?;
            turn.is_ready = true;
        }
        // SAFETY: the call takes nothing; the group is ended below on the same thread.
        check(api, Some(raw), "ncclGroupStart", unsafe { (api.group_start)() })?;
        let queued = calls(api, raw.raw());
        // SAFETY: the group was begun above.
        let ended = check(api, Some(raw), "ncclGroupEnd", unsafe { (api.group_end)() });
        queued?;
        ended?;
        self.wait(raw, "ncclGroupEnd")
    }

    /// Waits until the communicator has done what it was asked, for no longer than its deadline.
    fn wait(&self, raw: Native<c_void>, call: &'static str) -> NcclResult<()> {
        let began = Instant::now();
        let mut asked = 0;
        loop {
            let mut state = 0;
            // SAFETY: the communicator is alive while the turn is held, and the out-parameter is a live local.
            let status = unsafe { (self.api.async_error)(raw.raw(), &mut state) };
            check(self.api, Some(raw), "ncclCommGetAsyncError", status)?;
            if state != IN_PROGRESS {
                return check(self.api, Some(raw), call, state);
            }
            if self.is_to_end() {
                return Err(self.ended());
            }
            if began.elapsed() >= self.rank.deadline {
                let detail = format!(
                    "{} waited {:?} for the other ranks; start all {} ranks, give them one id, and see what NCCL_DEBUG=INFO says",
                    self.words(),
                    self.rank.deadline,
                    self.rank.size
                );
                return Err(LibraryFailure { library: LibraryKind::Nccl, call, status: state, detail });
            }
            if asked < ASKED_AT_ONCE {
                asked += 1;
                std::thread::yield_now();
            } else {
                std::thread::sleep(POLL);
            }
        }
    }
}

impl Drop for NcclRank {
    fn drop(&mut self) {
        let turn = self.turn.get_mut().unwrap_or_else(PoisonError::into_inner);
        let (api, raw) = (self.api, turn.raw);
        if raw == Native::NULL {
            return;
        }
        // Weak, because the context keeps the closure.
        let (words, context) = (self.words(), Arc::downgrade(&self.context));
        // Its work is done by then. Destroying instead would wait for the other ranks.
        self.context.free_when_idle(move |_| {
            // This was the only owner. A failure leaves memory in use, and there is no caller to tell.
            let _ = abort_in_time(api, raw, context.upgrade(), &words);
            0
        });
    }
}

/// Success or progress, or the failure with what NCCL says of it.
fn check(api: &NcclApi, raw: Option<Native<c_void>>, call: &'static str, status: c_int) -> NcclResult<()> {
    if status == 0 || status == IN_PROGRESS {
        return Ok(());
    }
    let pointer = raw.map_or(std::ptr::null_mut(), |raw| raw.raw());
    // SAFETY: both calls answer a text that ends in a zero and is not freed; NCCL takes a null communicator for the last error.
    let texts = unsafe { [(api.error_string)(status), (api.last_error)(pointer)] };
    let text = |text: *const std::ffi::c_char| {
        // SAFETY: as above.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_owned())
    };
    let words: Vec<String> = texts.into_iter().filter_map(text).filter(|text| !text.is_empty()).collect();
    Err(LibraryFailure { library: LibraryKind::Nccl, call, status, detail: words.join(": ") })
}
