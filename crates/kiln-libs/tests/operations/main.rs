//! Library operations on every device, against oracles that are neither.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and says what it skips"
)]

mod curand;
mod rand_mistakes;
mod rand_values;
mod rig;
