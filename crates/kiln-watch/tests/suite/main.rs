//! The page of a recording: its tiles against a brute-force count, its words, its server, and files that grow, are cut or damaged.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and says why"
)]

mod blocks;
mod bounds;
mod client;
mod clocks;
#[path = "../../../kiln-trace/tests/suite/counted_memory.rs"]
mod counted_memory;
mod details;
mod device_states;
mod files;
mod findings;
mod job;
mod memory;
mod oracle;
mod plain_names;
mod published_words;
mod requests;
mod samples;
mod tiles;
