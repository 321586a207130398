//! Handles to device memory.

mod element;
mod gpu_ref;
mod held;
pub(crate) mod pattern;
mod pinned;
mod room;
mod stale;

pub use element::Element;
pub use gpu_ref::GpuRef;
pub(crate) use held::{Held, used};
pub(crate) use pattern::pattern;
pub use pinned::PinnedBuffer;
pub use stale::{Memory, Stale};
