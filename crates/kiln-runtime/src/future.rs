//! Futures and callbacks for the completion of submissions and downloads.

mod callback;
mod download;
mod ticket_future;

pub use download::Download;
pub use ticket_future::Done;
