//! A device without a GPU: deterministic, asynchronous, and it checks every access.
//!
//! [`Machine`] is a world of simulated devices; [`SimDevice`] is one of them and implements
//! [`kiln_driver::Driver`]. Nothing runs before it must, the seed picks which stream moves next, and every pair of
//! accesses to the same bytes is compared with the order that streams, events and host waits really establish.

mod address_map;
mod address_space;
mod backing;
mod checker;
mod choice;
mod code;
mod code_engine;
mod config;
mod core;
mod costs;
mod device_config;
mod explore;
mod fault_plan;
mod finding;
mod graph;
mod graph_build;
mod host;
mod job;
mod journal;
mod kernel;
mod library;
mod lifecycle;
mod machine;
mod memory;
mod memory_view;
mod objects;
mod occupancy;
mod pace;
mod pages;
mod party;
mod physical;
mod port;
mod region;
mod report;
mod scalar;
mod shadow;
mod sim_device;
mod state;
mod step;
mod stream;
mod submit;
mod table;
mod task;
mod touched;
mod transfer;
mod vector_clock;
mod virtual_clock;
mod wait;

pub use choice::Schedule;
pub use code_engine::{CodeEngine, CompileError, CompiledModule, ModuleVariable};
pub use config::{Checks, MachineConfig, MachineLimits, Mode};
pub use costs::Costs;
pub use device_config::DeviceConfig;
pub use explore::{Exploration, Verdict, explore};
pub use fault_plan::{Fault, FaultPlan};
pub use finding::{Finding, FindingKind, Touching};
pub use journal::Span;
pub use kernel::{Kernel, KernelFault, LaunchContext, Parameter, Signature};
pub use library::{HostKernel, KernelLibrary};
pub use machine::Machine;
pub use memory_view::{AccessCause, AccessFault, MemoryView};
pub use party::{Action, Party};
pub use port::Port;
pub use report::Report;
pub use scalar::Scalar;
pub use sim_device::SimDevice;
pub use virtual_clock::VirtualClock;
