//! kiln-cuda on machines that do not exist: each test runs in a process of its own, with a libcuda made for it.

#[macro_use]
mod machine;

mod code;
mod devices;
mod events;
mod faults;
mod graphs;
mod launches;
mod loading;
mod memory;
mod opened;
mod pages;
mod process;
mod transfers;
