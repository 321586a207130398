//! kiln-cuda on machines that do not exist: each test runs in a process of its own, with a libcuda made for it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and says why"
)]

#[macro_use]
mod machine;

mod code;
mod devices;
mod events;
mod faults;
mod graphs;
mod launches;
mod laws;
mod loading;
mod memory;
mod opened;
mod pages;
mod process;
mod rest;
mod transfers;
