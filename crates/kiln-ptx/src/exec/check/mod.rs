//! Checks that watch the threads of one block.

mod clocks;
mod race;

pub(crate) use race::{Conflict, RaceCheck, Touch};
