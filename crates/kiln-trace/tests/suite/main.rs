//! Recordings: written, read, cut, damaged, exported and explained.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and says why"
)]

mod asked_waits;
mod counted_memory;
mod damage;
mod earlier_work;
mod explain;
mod explained_clocks;
mod explained_parts;
mod explained_rest;
mod full_disk;
mod independent_reader;
mod job;
mod perfetto;
mod perfetto_schema;
mod plain_names;
mod protobuf;
mod published_words;
mod recorder;
mod round_trip;
mod samples;
mod size;
mod stream_lanes;
