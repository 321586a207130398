//! The end of work, awaited: tickets and downloads as futures, and functions that are called.

mod callback;
mod done;
mod download;

pub use done::Done;
pub use download::Download;
