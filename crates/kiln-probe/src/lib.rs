//! Which devices there are, and how to open one.
//!
//! This crate lists devices and opens drivers. It knows no runtime: what is done with an open device is the business of
//! the crates above.
//!
//! - **Absence is a value, a fault is an error.** A machine without a GPU answers [`Availability::Absent`]; a GPU that does
//!   not work is a [`ProbeError`].
//! - **Listing opens nothing.** A [`Platform`] lists its devices without a context on any of them.
//! - **One attempt at a time.** Threads that ask while an attempt is under way wait for it and share its answer
//!   ([`SharedAttempt`], [`RetryCell`]).
//!
//! In reading order: [`Platform`], [`Listing`], [`Devices`], [`Selection`], [`Policy`], [`Absence`], [`Availability`].

#![forbid(unsafe_code)]

mod absence_reason;
mod availability;
mod cuda_init_error;
mod cuda_platform;
mod devices;
mod error;
mod gpu_policy;
pub mod libraries;
mod platform;
mod process_policy;
mod retry_cell;
mod selection;
mod simulator_faults;
#[cfg(feature = "sim")]
mod simulator_platform;
mod simulator_seed;
#[cfg(not(feature = "sim"))]
mod simulator_stub;
mod single_flight;
mod work_split;

pub use absence_reason::{Absence, CudaAbsence};
pub use availability::Availability;
pub use cuda_platform::CudaPlatform;
pub use devices::{DeviceEntry, DeviceSummary, Devices};
pub use error::{ProbeError, Result};
pub use gpu_policy::{Policy, UnknownPolicy};
pub use platform::{Listing, Platform};
pub use process_policy::{DefaultPolicy, POLICY_VARIABLE};
pub use retry_cell::RetryCell;
pub use selection::{Selection, best_by, no_working, ranked};
pub use simulator_faults::{FAULT_LOG_VARIABLE, FAULTS_VARIABLE};
#[cfg(feature = "sim")]
pub use simulator_platform::{ProcessMachine, SimulatorPlatform, simulated_device};
pub use simulator_seed::SEED_VARIABLE;
pub use single_flight::SharedAttempt;
pub use work_split::split_by_weight;

#[cfg(feature = "sim")]
pub use kiln_sim::Machine;
#[cfg(not(feature = "sim"))]
pub use simulator_stub::{ProcessMachine, simulated_device};
