//! The runtime on the simulated device, and the probe on machines that do not exist.
//!
//! Tests that count what the whole process holds run in a process for each (`alone`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise"
)]

mod absurd_sizes;
#[path = "../alone/mod.rs"]
mod alone;
mod checking;
mod code;
mod code_limits;
mod code_on_disk;
mod counter_examples;
mod counts;
mod disk_cache;
mod examples;
mod fewest_waits;
mod foreign_events;
mod foreign_memory;
mod foreign_work;
#[path = "../graph"]
mod graph {
    pub(crate) mod changes;
    pub(crate) mod operation;
    pub(crate) mod program;
    pub(crate) mod refusals;
    pub(crate) mod replays;
    pub(crate) mod rig;
}
mod graph_oracle;
mod handles;
mod launch_limits;
mod launches;
mod loaded_code;
#[macro_use]
#[path = "../../../kiln-cuda/tests/on_fake/machine.rs"]
#[allow(dead_code, reason = "the machines are shared with tests that need more of them")]
mod machine;
mod machines;
mod made_on_streams;
mod memory;
#[path = "../order"]
mod order {
    pub(crate) mod asked_seeds;
    pub(crate) mod between;
    pub(crate) mod kernels;
    pub(crate) mod library;
    pub(crate) mod program;
    pub(crate) mod reports;
}
mod order_oracle;
mod order_threads;
mod overlap;
mod prepared_uses;
mod probe;
mod program_lines;
mod reactor_thread;
mod recording;
mod refusals;
mod refused_calls;
mod scarce_events;
#[path = "../skip/mod.rs"]
mod skip;
mod streams_that_end;
mod survival;
mod telemetry;
mod tensor_maps;
mod testing_helper;
mod tickets;
mod transfers;
mod unsupported_instructions;
mod views;
