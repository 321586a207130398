//! The probe, over platforms that answer what a test wrote down.

mod availability;
mod backend;
mod devices;
mod gate;
mod log;
mod policy;
mod runtimes;
mod scatter;
mod scripted;
