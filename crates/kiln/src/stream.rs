//! The pool that streams are leased from.

pub use kiln_runtime::StreamPool;
