//! What the resources of this crate do, on the simulated device: one module for each part.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[path = "../pages/exported.rs"]
mod exported;
#[path = "../laws/law.rs"]
mod law;
#[path = "../rig/mod.rs"]
mod rig;
#[path = "../laws/subject.rs"]
mod subject;

mod accounting;
mod budget;
mod chunks;
mod endurance;
mod exhausted;
mod failures;
mod fragmentation;
mod guard;
mod handover;
mod laws;
mod layer_features;
mod layers;
mod mapping;
mod model;
mod ownership;
mod pages;
mod pressure;
mod reclaim;
mod replay;
mod reported_to_checker;
mod reuse;
mod spare;
mod stack;
mod trace;
