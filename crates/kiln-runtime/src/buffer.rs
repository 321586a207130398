//! Handles to device memory.

mod allocation;
mod element;
mod gpu_ref;
mod held;
mod memory;
pub(crate) mod pattern;
mod pinned;
mod room;

pub use element::Element;
pub use gpu_ref::GpuRef;
pub(crate) use held::{Held, used};
pub use memory::Memory;
pub(crate) use pattern::pattern;
pub use pinned::PinnedBuffer;
