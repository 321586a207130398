//! Reports of takeovers.

mod post_mortem;
mod report_history;
mod text;

pub use post_mortem::{BlockOutcome, BlockRecord, PostMortem, UnfinishedWork};

pub(super) use report_history::Reports;
