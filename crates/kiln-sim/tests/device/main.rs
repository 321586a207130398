//! The simulated device through its public face.

// Tests may stop at the first surprise, also in the parts they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod child;
mod correct;
mod determinism;
mod faults;
mod graphs;
mod limits;
mod memory;
mod modes;
mod oracle;
mod pages;
mod planted;
mod processes;
mod rig;
mod time;
