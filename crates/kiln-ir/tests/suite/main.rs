//! Programs without a device: text, verifier, interpreter, plans, and the PTX they become, on the executor of kiln-ptx.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise"
)]

mod differential;
mod fences;
mod functions;
#[path = "../generate/mod.rs"]
mod generate;
mod interpreter;
mod kir;
mod long_lengths;
mod meaning;
mod operations;
mod plan;
mod reference;
#[path = "../rig/mod.rs"]
mod rig;
mod strides;
mod text;
mod tiles;
mod verify;
