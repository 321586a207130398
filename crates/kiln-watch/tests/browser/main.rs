//! The page in a real browser, driven over its DevTools: it is clicked, zoomed, read and looked at. Any request that leaves the page's
//! address, any error on the console and any refused part fails the test.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and says why"
)]

mod base64;
mod chromium;
mod dev_tools;
mod figures;
mod job_scenarios;
mod memory_scenarios;
mod scenarios;
mod web_socket;
mod worker_scenarios;

#[allow(dead_code, unused_imports, reason = "the recordings are shared with tests that need more of them")]
#[path = "../suite/samples.rs"]
mod samples;
