//! For those who queue CUDA work themselves.
//!
//! Such work uses blocks that kiln tracks, so kiln must know: waits before it, stamps after. A [`PreparedUse`] is both ends in one
//! value. While it lives its stream is entered; the caller queues on the native stream; `finish` (or `commit`) ends it and gives a
//! ticket. Blocks that the caller took from the memory stack are tracked as buffers ([`track_block`](crate::DeviceRuntime::track_block)). Work on streams that kiln does not know is ordered by events, taken in ([`ForeignEvent`]) and handed on ([`HandedEvent`]).

mod block_id_uses;
mod block_use;
#[cfg(feature = "cudarc")]
pub mod cudarc;
mod event;
mod memory;
mod prepared;
mod recorder;
mod tracked_block;

pub use block_use::BlockUse;
pub use event::{ForeignEvent, HandedEvent};
pub use prepared::{PreparedUse, RawPointer};
pub use recorder::Recorder;
pub use tracked_block::TrackError;
