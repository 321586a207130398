//! The command `kiln`, run as a program: what it prints and how it ends.

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

#[cfg(target_os = "linux")]
#[path = "../../../kiln-group/tests/example_program/mod.rs"]
mod example_program;
#[path = "../../../kiln/tests/skip/mod.rs"]
mod skip;
#[cfg(target_os = "linux")]
#[path = "../../../kiln-group/tests/wild_kernel/mod.rs"]
mod wild_kernel;

mod arguments;
mod arrays;
mod bench;
mod cache;
mod check;
mod check_declared;
mod check_expected;
mod check_orders;
mod check_report;
mod check_undefined;
mod check_unwritten;
#[cfg(target_os = "linux")]
mod checked_ranks;
mod commands_page;
mod constants;
mod demo;
mod doctor;
mod doctor_cluster;
mod doctor_cluster_texts;
#[cfg(target_os = "linux")]
mod doctor_libraries;
mod emit;
mod fault_text;
mod folder;
#[cfg(target_os = "linux")]
mod ignored_signals;
mod inspect;
mod job_recordings;
mod json_errors;
mod kernel_names;
mod kernels;
mod launch;
mod launch_check;
mod launch_crossing;
mod launch_ends;
mod launch_fault;
mod launch_late;
mod launch_loss;
mod launch_restart;
mod launch_transfers;
mod left_files;
mod limits;
mod outcome;
mod output;
mod program;
mod recorded_programs;
mod recordings;
mod repeated_recordings;
mod replay;
mod run;
mod samples;
mod scale;
mod terminal;
mod textures;
mod top;
mod top_figures;
mod troubleshooting_page;
mod unwritten_findings;
mod usage;
mod watch;
