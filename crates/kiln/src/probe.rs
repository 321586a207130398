//! One probe for every backend of a program.
//!
//! Many parts of one program each want the GPU. They share one answer to "is there one?", one runtime per device, and one
//! way to fail.
//!
//! ```text
//!    availability()   resolve(policy)   probe_backend(label)   scatter(n, job)   gpu_for_test(label)
//!          └───────────────┴──────────── Prober ───────┴───────────────┴──────────────┘
//!                                 policy │ in force
//!                        ┌───────────────┴───────────────┐
//!                     Registry                        Registry        list once, open each device once
//!                        │                               │
//!                  Platform: CUDA                Platform: simulator  list without opening; open
//! ```
//!
//! - **Absence is a value, a fault is an error.** A machine without a GPU answers [`Availability::Absent`]; a GPU that does
//!   not work is an [`Error`](crate::Error), kept until [`refresh`] and not for ever.
//! - **Asking opens nothing.** Devices are listed without a context on any of them; only the device somebody asks to use
//!   is opened, once, and every later caller gets the same runtime.
//! - **[`Policy::Off`] touches nothing**, not even the driver's file.
//! - **Only [`DeviceRuntime::auto`](crate::DeviceRuntime::auto) replaces a missing GPU by a simulation**, and says so. Nobody replaces a broken one.
//! - **Whoever asks at the same time shares one attempt.** No lock is held meanwhile.
//!
//! The functions here ask the process's own [`Prober`]; a test builds one over [`Platform`]s of its choice.

mod absence;
mod availability;
mod budget;
mod cuda;
mod devices;
mod flight;
mod partition;
mod platform;
mod policy;
mod prober;
mod process;
mod registry;
mod retry_cell;
mod scatter;
mod selection;
mod simulator;
mod test_gate;
mod workers;

pub use absence::{Absence, CudaAbsence};
pub use availability::Availability;
pub use budget::MemoryBudget;
pub use cuda::CudaPlatform;
pub use devices::{DeviceEntry, DeviceSummary, Devices};
pub use partition::split_by_weight;
pub use platform::{Listing, Platform};
pub use policy::{POLICY_VARIABLE, Policy};
pub use prober::{Prober, ProberConfig};
pub use process::{
    availability, balanced_partition, gpu_for_test, memory_budget_for, policy, probe_backend,
    probe_backend_with_compile, prober, refresh, require, resolve, scatter, set_policy, set_runtime_config,
    simulated_machine,
};
pub use registry::MAX_DEVICES;
pub use scatter::{Decline, Outcome, Part, Share, gather};
pub use selection::{Selection, best_by};
pub use simulator::{SEED_VARIABLE, SimulatorPlatform};
pub use test_gate::{SKIP_LOG_VARIABLE, TestGate, count_skip, skipped_tests};

pub(crate) use cuda::unavailable;
pub(crate) use retry_cell::RetryCell;
