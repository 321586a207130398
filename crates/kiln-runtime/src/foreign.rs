//! Interoperation with code that queues CUDA work itself: its memory, its events, and its uses of kiln's buffers.
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
mod prepared_use;
mod tracked_block;
mod use_recorder;

pub use block_use::BlockUse;
pub use event::{ForeignEvent, HandedEvent};
pub use prepared_use::{PreparedUse, RawPointer};
pub use tracked_block::TrackError;
pub use use_recorder::Recorder;
