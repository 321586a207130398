//! The laws on the simulator, directly and through each layer, and the rules about laws themselves.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise"
)]

mod broken;
mod flawed;
mod framework;
mod layers;
mod replay;
mod sim_exhaustive;
mod sim_seeded;
mod sim_threaded;
#[path = "../simulated/mod.rs"]
mod simulated;
