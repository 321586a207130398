//! Handles to device memory.

mod allocation;
mod block_range;
pub(crate) mod buffer_bytes;
mod element;
mod element_range;
pub(crate) mod gpu_ref;
pub(crate) mod host_vec;
pub(crate) mod last_write;
mod memory_location;
pub(crate) mod pattern;
mod pinned;
pub(crate) mod try_reserve;
pub(crate) mod usable;

pub(crate) use block_range::{BlockRange, used};
pub(crate) use buffer_bytes::BufferBytes;
pub use element::Element;
pub use gpu_ref::GpuRef;
pub(crate) use host_vec::zeroed_vec;
pub use last_write::LastWrite;
pub use memory_location::Memory;
pub(crate) use pattern::pattern;
pub use pinned::PinnedBuffer;
pub(crate) use try_reserve::copied;
#[cfg(all(feature = "isolate", target_os = "linux"))]
pub(crate) use try_reserve::zeros;
