//! The probe, over platforms that answer what a test wrote down.

mod availability;
mod backend;
mod config;
mod devices;
mod fallback;
mod gate;
mod log;
pub(crate) use log::lines;
mod policy;
mod reopen;
mod runtimes;
mod scatter;
mod scripted;
