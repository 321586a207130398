//! Handles to device memory.

mod allocation;
mod block_range;
mod element;
mod gpu_ref;
pub(crate) mod host_alloc;
pub(crate) mod host_vec;
mod last_write;
mod memory;
pub(crate) mod pattern;
mod pinned;

pub(crate) use block_range::{BlockRange, used};
pub use element::Element;
pub use gpu_ref::GpuRef;
pub(crate) use host_alloc::copied;
pub(crate) use host_vec::zeroed_vec;
pub use last_write::LastWrite;
pub use memory::Memory;
pub(crate) use pattern::pattern;
pub use pinned::PinnedBuffer;
