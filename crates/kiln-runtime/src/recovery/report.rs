//! Reports of takeovers.

mod post_mortem;
mod reports;
mod text;

pub use post_mortem::{BlockOutcome, BlockRecord, PostMortem, UnfinishedWork};

pub(super) use reports::Reports;
