//! The layers around a driver, over the simulated device.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod checking;
mod counting;
#[cfg(feature = "trace")]
mod recording;
