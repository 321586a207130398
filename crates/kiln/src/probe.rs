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
//! - **Asking opens nothing.** Devices are listed without a context on any of them; a device is opened by the first request
//!   for it, and every later request gets the same runtime.
//! - **A runtime that is over is not returned.** Once it failed or was shut down, the next request opens the device again; if
//!   that fails, the error says why the last runtime failed, too.
//! - **A device that cannot be opened hides no other.** A request for the best device gets the best that can be opened;
//!   [`Devices::skipped`] and the log say which were skipped and why.
//! - **[`Policy::Off`] touches nothing**, not even the driver's file.
//! - **Only [`DeviceRuntime::auto`](crate::DeviceRuntime::auto) replaces a missing GPU by a simulation**, and says so. A broken GPU
//!   is never replaced, and a request for CUDA by name ([`require`], [`DeviceRuntime::cuda`](crate::DeviceRuntime::cuda),
//!   [`BackendOptions::cuda`](crate::backend::BackendOptions::cuda)) never gets a simulated device.
//! - **Requests at the same time share one attempt.** No lock is held meanwhile.
//!
//! The functions here ask the process's own [`Prober`]; a test builds one over [`Platform`]s of its choice.

#[cfg(feature = "sim")]
pub use kiln_probe::SimulatorPlatform;
pub use kiln_probe::{
    Absence, Availability, CudaAbsence, CudaPlatform, DeviceEntry, DeviceSummary, Devices,
    FAULT_LOG_VARIABLE, FAULTS_VARIABLE, Listing, POLICY_VARIABLE, Platform, Policy, ProbeError, Result,
    SEED_VARIABLE, Selection, UnknownPolicy, best_by, split_by_weight,
};
pub use kiln_runtime::backend::{probe_backend, probe_backend_on, probe_backend_with_compile};
#[cfg(feature = "sim")]
pub use kiln_runtime::prober::simulated_machine;
#[cfg(all(feature = "isolate", target_os = "linux"))]
pub use kiln_runtime::prober::worker_device;
pub use kiln_runtime::prober::{
    Decline, MAX_DEVICES, MemoryBudget, Part, PartOutcome, Prober, ProberConfig, SKIP_LOG_VARIABLE, Share,
    TestGate, availability, balanced_partition, count_skip, gather, gpu_for_test, memory_budget_for, policy,
    prober, refresh, require, resolve, scatter, set_policy, set_runtime_config, skipped_tests,
};
