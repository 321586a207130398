//! When memory was last used: a stream and a number on it.
//!
//! The heap does not order anything. It is told, with each free, which submissions may still use the block, and asks an
//! [`Order`](crate::Order) whether another stream already runs after them.

pub use kiln_order::{NoSuchStreamKey, Stamp, Stamps, StreamKey, StreamRef};

/// No uses on other streams, for those who free a block that only its own stream used.
pub(crate) static NO_USES: Stamps = Stamps::NONE;
