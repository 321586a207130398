//! The probe on machines that do not exist: each test runs in a process of its own, with a libcuda made for it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and says why"
)]

#[macro_use]
#[path = "../../../kiln-cuda/tests/on_fake/machine.rs"]
#[allow(dead_code, reason = "the machines are shared with tests that need more of them")]
mod machine;

mod absence;
mod code;
mod fault;
mod forks;
mod gate;
mod policy;
mod working;
