//! Library operations on every device, against oracles that are neither.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod curand;
mod rand_mistakes;
mod rand_values;
mod rig;
