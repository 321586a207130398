//! The probe, over platforms that answer what a test wrote down.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod availability;
mod backend;
mod devices;
mod gate;
mod log;
mod policy;
mod runtimes;
mod scatter;
mod scripted;
