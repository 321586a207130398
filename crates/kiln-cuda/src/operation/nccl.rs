//! Communicators by NCCL.
//!
//! A rank is made on a separate thread, by a call that returns when all ranks have joined; the first launch waits for that thread until the deadline of the
//! communicator. The calls of a communicator are blocking ones: they return when the work is queued, so that a submission asks NCCL for nothing else. A call that needs
//! new connections waits inside of NCCL for the other ranks, without any lock that an abort takes. A second thread, one for the process, looks at the
//! communicators from outside: it reads what NCCL found wrong in the background, and aborts a communicator whose call has not returned by the deadline.
//!
//! A communicator that failed takes nothing more, and says why. It is aborted by its function `abort`, also while a thread waits for its ranks, is inside of NCCL, or a
//! collective runs; and with its module. A graph with collectives of a communicator that was aborted is not replayed: its kernels use memory that the abort has freed.

mod abort;
mod collective;
mod making;
mod replay;
mod symbols;
mod watch;

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use kiln_driver::{Error, Refusal, Result, ShortTime};
use kiln_operation::{CommunicatorId, CommunicatorRank};

use super::failure::LibraryFailure;
use super::symbol_lookup;
use crate::context::Context;
use crate::device::CudaDevice;
use crate::libraries::{LibraryKind, LibraryVersion};
pub(super) use abort::NcclAbort;
use abort::{AbortState, without_answer};
pub(super) use collective::NcclCollective;
use making::Making;
pub(crate) use replay::NcclReplay;
use symbols::{NcclApi, UniqueId};

/// The first version with numbers of 8 bits: 2.24.
const FLOAT8_VERSION: c_int = 22_400;
/// `ncclInProgress`.
const IN_PROGRESS: c_int = 7;

pub(super) type NcclResult<T> = std::result::Result<T, LibraryFailure>;

/// One rank of a communicator.
pub(crate) struct NcclRank {
    api: &'static NcclApi,
    version: c_int,
    rank: CommunicatorRank,
    context: Arc<Context>,
    /// The communicator, and who is inside of NCCL with it.
    making: Arc<Making>,
    /// Whether it is to be aborted, or was: a thread that waits for its ranks leaves, and nothing more is queued or replayed.
    is_to_end: AtomicBool,
    /// Why nothing more is taken.
    failed: OnceLock<LibraryFailure>,
    /// Whether a call is inside of NCCL for longer than the deadline.
    is_late: AtomicBool,
    /// NCCL takes one call at a time. Held while a call is queued; an abort does not take it.
    turn: Mutex<Turn>,
    /// Taken by aborts, and by the thread that looks at the communicator.
    abort: Mutex<AbortState>,
}

struct Turn {
    /// The communicator, once all ranks have joined.
    raw: Option<RawComm>,
}

/// A communicator of NCCL.
#[derive(Clone, Copy)]
struct RawComm(*mut c_void);

// SAFETY: it is only passed to NCCL, which takes a communicator from any thread.
unsafe impl Send for RawComm {}

/// Opens NCCL.
fn open(call: &'static str) -> Result<(&'static NcclApi, c_int)> {
    let api = NcclApi::load(call)?;
    let mut version = 0;
    // SAFETY: the out-parameter is a live local.
    let status = unsafe { (api.version)(&mut version) };
    LibraryFailure::check(LibraryKind::Nccl, "ncclGetVersion", status)
        .map_err(|failure| failure.error(call, "its version"))?;
    let number = LibraryVersion::of_number(u32::try_from(version).unwrap_or(0));
    symbol_lookup::check_version(call, LibraryKind::Nccl, number)?;
    Ok((api, version))
}

/// Makes the id of a communicator.
pub(crate) fn make_id(call: &'static str, id: &OnceLock<Vec<u8>>) -> Result<()> {
    let (api, _) = open(call)?;
    let mut made = UniqueId([0; CommunicatorId::BYTES]);
    // SAFETY: the out-parameter is a live local of the size that NCCL declares.
    let status = unsafe { (api.unique_id)(&mut made) };
    check(api, "ncclGetUniqueId", status).map_err(|failure| failure.error(call, "a communicator"))?;
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
        let context = device.context.clone();
        let id = UniqueId(*rank.id.bytes());
        let no_thread = |error: std::io::Error| {
            let why = format!("a communicator cannot be made without a thread ({error}); end other threads");
            Error::refused(call, Refusal::Library { library: LibraryKind::Nccl.name(), why })
        };
        let made = Arc::new(Self {
            api,
            version,
            rank,
            context: context.clone(),
            making: Making::new(api),
            is_to_end: AtomicBool::new(false),
            failed: OnceLock::new(),
            is_late: AtomicBool::new(false),
            turn: Mutex::new(Turn { raw: None }),
            abort: Mutex::default(),
        });
        made.making.start(context, size, number, id).map_err(no_thread)?;
        watch::watch(&made).map_err(no_thread)?;
        Ok(made)
    }

    /// The rank in words.
    fn words(&self) -> String {
        let CommunicatorRank { id, rank, size, .. } = self.rank;
        format!("rank {rank} of {size} of communicator {}", id.short())
    }

    /// Waits until all ranks have joined, for no longer than the deadline. No lock is held meanwhile.
    fn join(&self) -> NcclResult<()> {
        if self.making.is_done() {
            return Ok(());
        }
        let is_done = self.making.wait(self.rank.deadline, || self.is_to_end());
        if is_done || self.is_to_end() {
            return Ok(());
        }
        let failure = self.late("ncclCommInitRankConfig");
        self.fail(failure.clone());
        // A call that does not return is left to its thread.
        Err(match self.abort() {
            Ok(()) => failure,
            Err(left) => LibraryFailure { detail: format!("{}; {}", failure.detail, left.detail), ..failure },
        })
    }

    /// Runs calls of NCCL, once all ranks have joined. `is_group` makes several of them one.
    ///
    /// # Safety
    /// The calls may be made with the communicator they are given.
    unsafe fn queue(
        &self,
        is_group: bool,
        calls: impl FnOnce(&'static NcclApi, *mut c_void) -> NcclResult<()>,
    ) -> NcclResult<()> {
        let mut turn = self.turn();
        let raw = match turn.raw {
            Some(raw) => raw,
            None => self.joined(&mut turn)?,
        };
        let inside = self.making.enter_call();
        // After the thread has said that it is inside: an abort either waits for it, or is seen here.
        if self.is_to_end() {
            return Err(self.ended());
        }
        if let Some(failed) = self.failed.get() {
            return Err(failed.clone());
        }
        let api = self.api;
        let queued = match is_group {
            false => calls(api, raw.0),
            true => grouped(api, || calls(api, raw.0)),
        };
        drop(inside);
        queued.map_err(|failure| {
            if self.is_to_end() {
                return self.ended();
            }
            self.fail(failure.clone());
            failure
        })
    }

    /// The communicator, once all ranks have joined.
    #[cold]
    fn joined(&self, turn: &mut Turn) -> NcclResult<RawComm> {
        self.join()?;
        if self.is_to_end() {
            return Err(self.ended());
        }
        if let Some(failed) = self.failed.get() {
            return Err(failed.clone());
        }
        let raw = self.making.outcome().inspect_err(|failure| self.fail(failure.clone()))?;
        turn.raw = Some(RawComm(raw));
        Ok(RawComm(raw))
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It takes nothing more. The first reason counts.
    fn fail(&self, failure: LibraryFailure) {
        let _ = self.failed.set(failure);
    }

    fn is_to_end(&self) -> bool {
        self.is_to_end.load(Ordering::SeqCst)
    }

    /// What calls are told after an abort.
    fn ended(&self) -> LibraryFailure {
        let aborted = || without_answer(format!("{} was aborted; make another communicator", self.words()));
        self.failed.get().cloned().unwrap_or_else(aborted)
    }

    /// The failure of a call that has not returned by the deadline.
    fn late(&self, call: &'static str) -> LibraryFailure {
        let detail = format!(
            "{} waited {} for the other ranks; start all {} ranks, give them one id, and see what NCCL_DEBUG=INFO says",
            self.words(),
            ShortTime(self.rank.deadline),
            self.rank.size
        );
        LibraryFailure { library: LibraryKind::Nccl, call, status: IN_PROGRESS, detail }
    }

    /// Whether all ranks have joined, and nothing has failed since.
    ///
    /// # Errors
    /// Unsupported while ranks are missing; refused with the reason why it takes nothing more.
    pub(crate) fn state(&self, call: &'static str) -> Result<()> {
        match self.failed.get() {
            Some(failed) => Err(failed.error(call, "the communicator")),
            None if self.making.is_done() || self.is_to_end() => Ok(()),
            None => {
                self.making.ask();
                let why = format!("{} waits for the others; ask again later", self.words());
                Err(Error::unsupported(call, "a communicator whose ranks have not all joined", why))
            }
        }
    }
}

/// Makes calls of NCCL one: none of them waits for another.
fn grouped(api: &NcclApi, calls: impl FnOnce() -> NcclResult<()>) -> NcclResult<()> {
    // SAFETY: the call takes nothing; the group is ended below on the same thread.
    check(api, "ncclGroupStart", unsafe { (api.group_start)() })?;
    let queued = calls();
    // SAFETY: the group was begun above.
    let ended = check(api, "ncclGroupEnd", unsafe { (api.group_end)() });
    queued?;
    ended
}

/// Success, or the failure with what NCCL says of it.
#[inline]
fn check(api: &NcclApi, call: &'static str, status: c_int) -> NcclResult<()> {
    if status == 0 { Ok(()) } else { Err(failure(api, call, status)) }
}

#[cold]
fn failure(api: &NcclApi, call: &'static str, status: c_int) -> LibraryFailure {
    // SAFETY: both calls answer a text that ends in a zero and is not freed; NCCL takes a null communicator for the last error.
    let texts = unsafe { [(api.error_string)(status), (api.last_error)(std::ptr::null_mut())] };
    let text = |text: *const std::ffi::c_char| {
        // SAFETY: as above.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_owned())
    };
    let words: Vec<String> = texts.into_iter().filter_map(text).filter(|text| !text.is_empty()).collect();
    LibraryFailure { library: LibraryKind::Nccl, call, status, detail: words.join(": ") }
}
