//! Test suites of other projects, unmodified, on the simulated device: `cargo xtask cudarc-suite`, `cubecl-suite` and `numba-suite`. That of cudarc runs on a GPU, too.
//!
//! ```text
//! sources or packages, below target/ ─► a program with tests ─► kiln exec ─► results and findings ─► compared with a list
//! ```
//!
//! Nothing of theirs is kept here but names: each suite has a list of the tests that are known to fail, with reasons, and of findings that are right. Another failure
//! or finding fails the command, and so does a test of the list that passes. A fault loses the device for the rest of a process, as on a GPU, so that
//! tests that failed are run once more, each alone.

pub(crate) mod cubecl;
pub(crate) mod cudarc;
mod exec_run;
mod known_results;
pub(crate) mod numba;
pub(crate) mod python_packages;
mod rust_suite;
mod tally;
