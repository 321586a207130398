//! kiln-cuda over a stand-in for libcuda: each test runs in a separate process, with a library compiled for it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and says why"
)]

#[macro_use]
mod machine;

mod code;
mod deferred_frees;
mod devices;
mod dnn;
mod events;
mod faults;
mod graphs;
mod host_functions;
mod launches;
mod laws;
mod loading;
mod memory;
mod nccl;
mod opened;
mod operations;
mod pages;
mod process;
mod products;
mod solvers;
mod sparse;
mod transfers;
mod transforms;
