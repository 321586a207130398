//! The probe on machines that do not exist: each test runs in a separate process, with a libcuda made for it.

mod absence;
mod code;
mod fault;
mod forks;
mod gate;
mod lost_processes;
mod policy;
mod ranks;
mod working;
