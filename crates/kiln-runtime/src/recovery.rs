//! A device that outlives its context: isolated in a worker process, and taken over by another when that is gone.
//!
//! After one illegal access a CUDA context is dead for good. With [`Isolation::Process`] the context lives in a worker process
//! ([`kiln_isolate`]), and a runtime brings its device back by itself:
//!
//! ```text
//!   fault, death or hang of the worker
//!        │ noticed by the next call, or by the recovery thread, which looks now and then
//!        ▼
//!   Lost ── every waiter gets the fault, once; calls are refused until it is over
//!        ▼
//!   Rebuilding ── another worker maps the same pages at the same addresses, loads the same code, makes the same streams
//!        │
//!        ├─ no thread submits for a moment: how far was each stream? which blocks was unfinished work to write?
//!        ▼
//!   Ready, one generation later ── those blocks are lost, all others are as they were; a [`PostMortem`] says which and why
//! ```
//!
//! # The contract
//!
//! - A block is **lost** if the last write of any of its bytes was queued and is not known to have completed: the host waited for it, or
//!   the worker had said so. Its handles are [stale](crate::Stale::Lost) from then on, with the [cause](crate::GpuRef::loss),
//!   until an upload, a fill or a copy overwrites the whole block.
//! - Every other block is **kept**: same handle, same address, same bytes. A block that was allocated and never written is kept.
//! - Work that was queued and not known to be done has failed, whatever it did; its tickets say so for ever. Work that was known to be
//!   done is done.
//! - By choice ([`Replay::NotStarted`]), work that had certainly not started and needs nothing that is lost is done again before the device is
//!   ready, once; its tickets say that it is done, and the blocks it writes are kept. Waiters are told when that is decided.
//! - Pinned buffers, staging memory, streams, events, kernels, modules and graphs stay valid. Memory that was freed behind unfinished work
//!   comes back at once, since nothing runs any more. Variables of modules start over.
//! - When a takeover fails, or there were too many, the device is Failed with the cause, as if it had never been isolated.
//!
//! - A block that is lost and carries a way to be filled again ([`GpuRef::heal_with`](crate::GpuRef::heal_with),
//!   [`heal_by`](crate::GpuRef::heal_by)) is **healed** instead, before any thread sees it.
//!
//! What "untouched" is worth: accesses are declared, and a kernel that strays outside of what it declared may have written anywhere before
//! it faulted. Programs of `kiln-ir` cannot stray; foreign kernels can. So a block that is filled and then only read can be sealed, in
//! two ways:
//!
//! - [By checksum](crate::GpuRef::seal): it is summed on the device, summed again after a takeover, and lost (or healed) if the sums differ. A
//!   wild write is found.
//! - [Read-only](crate::GpuRef::seal_read_only), if it owns its pages: a wild write is a fault, and the block is as it was. A write through
//!   this crate is refused before it is queued.
//!
//! The report says of each kept block whether its checksum was verified, whether it was read-only, or only that no unfinished launch declared a write to it.
//!
//! # Types in reading order
//!
//! [`Isolation`], [`Process`], [`Replay`], [`DeviceSpec`], [`WorkerEntry`]; [`worker_entry`]; [`PostMortem`], [`UnfinishedWork`], [`Outcome`],
//! [`BlockRecord`], [`BlockOutcome`]; [`SealError`].
//!
//! # What it does not do
//!
//! An isolated device takes in no streams, events or memory of other libraries, which live in this process. Its memory stack is based on
//! pages, by the heap over them or whole: what other bases give out would be gone with its worker.

#[cfg(all(feature = "isolate", target_os = "linux"))]
mod block_repair;
pub(crate) mod expendable_buffers;
#[cfg(all(feature = "isolate", target_os = "linux"))]
mod loss_detection;
#[cfg(all(feature = "isolate", target_os = "linux"))]
mod lost_blocks;
mod manual_recovery;
#[cfg(all(feature = "isolate", target_os = "linux"))]
mod report;
#[cfg(all(feature = "isolate", target_os = "linux"))]
mod worker_replacement;

pub use crate::error::SealError;
pub use crate::isolation::{Isolation, Process};
pub use crate::resubmission::{Outcome, Replay, ReplayRefusal};
#[cfg(all(feature = "isolate", target_os = "linux"))]
pub use kiln_isolate::{
    DeviceSpec, RestartPolicy, TakeoverPhases, WorkerEntry, WorkerStartError, worker_entry,
};
pub use manual_recovery::RecoveryControl;
#[cfg(all(feature = "isolate", target_os = "linux"))]
pub use report::{BlockOutcome, BlockRecord, PostMortem, UnfinishedWork};
