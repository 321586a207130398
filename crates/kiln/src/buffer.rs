//! Typed buffers: element types, pinned host buffers, and what a handle says when its memory is gone.
//!
//! [`GpuRef`](crate::GpuRef) is the buffer itself.

pub use kiln_runtime::{BlockId, Element, Generation, LastWrite, Memory, PinnedBuffer, Stale};
