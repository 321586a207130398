//! What belongs to a thread, without thread-local tables.
//!
//! Each thread has a small number. A structure that wants a part per thread keeps the parts itself, in [`Shards`],
//! and a thread finds its own by its number: one thread-local read and two loads. Nothing has to be torn down when a
//! structure goes, and when a thread ends its number, with whatever it left behind, goes to the next one.

mod barrier;
mod biased;
mod chunked;
mod number;
mod shards;
mod sync;
mod tally;

pub(crate) use biased::{Biased, Turn};
pub(crate) use chunked::{Chunked, Spot};
pub(crate) use number::thread_spot;
pub(crate) use shards::Shards;
pub(crate) use tally::Tally;
