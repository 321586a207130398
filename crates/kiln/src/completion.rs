//! Futures of submitted work and of downloads, and how they are completed.

pub use kiln_runtime::{CompletionConfig, Done, Download};
