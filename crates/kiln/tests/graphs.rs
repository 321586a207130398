//! Graphs: what they hold, what they refuse, and how they stand among other work.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod order {
    pub(crate) mod kernels;
}
mod graph {
    pub(crate) mod changes;
    pub(crate) mod refusals;
    pub(crate) mod replays;
    pub(crate) mod rig;
}
