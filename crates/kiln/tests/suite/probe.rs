//! The probe, over platforms that answer what a test wrote down.

mod availability;
mod backend;
mod config;
mod devices;
mod fallback;
mod gate;
mod log;
mod policy;
mod reopen;
mod runtimes;
mod scatter;
mod scripted;
