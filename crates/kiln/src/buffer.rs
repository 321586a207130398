//! Handles to device memory.

mod element;
mod gpu_ref;
mod pinned;
mod stale;

pub use element::Element;
pub use gpu_ref::GpuRef;
pub use pinned::PinnedBuffer;
pub use stale::{Memory, Stale};
