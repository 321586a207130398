//! The simulated device through its public API.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod child;
mod correct;
mod dependent_launches;
mod determinism;
mod faults;
mod graphs;
mod host_functions;
mod limits;
mod memory;
mod memory_waits;
mod modes;
mod oracle;
mod pages;
mod peers;
mod planned_links;
mod planted;
mod processes;
mod ptx;
mod ptx_clusters;
mod ptx_order;
mod ptx_waits;
mod refused_kernels;
mod rig;
mod time;
