//! Starts, watches, prepares and replaces workers, in the client process.
//!
//! - [`isolated_device`]: [`IsolatedDevice`](isolated_device::IsolatedDevice), which owns all of it, and [`driver`], its implementation of the driver interface.
//! - [`supervisor`] and [`supervisor_handle`]: the thread that starts workers, notices when they end, and kills them. [`worker_start`] starts
//!   one, [`child_process`] is its process, [`watchdog`] finds one that hangs.
//! - [`worker_objects`]: which objects a worker has, and the requests that give it the rest. [`takeover`] does that for a worker
//!   that replaces another, [`standby`] ahead of time.
//! - [`config`], [`restart_policy`], [`worker_event`], [`worker_process`], [`isolation_support`]: what a program configures and observes.

#[cfg(target_os = "linux")]
pub(crate) mod cancellation;
#[cfg(target_os = "linux")]
pub(crate) mod child_process;
pub(crate) mod config;
#[cfg(target_os = "linux")]
mod driver;
#[cfg(target_os = "linux")]
pub(crate) mod isolated_device;
#[cfg(target_os = "linux")]
pub(crate) mod isolation_support;
pub(crate) mod object_counts;
pub(crate) mod restart_policy;
#[cfg(target_os = "linux")]
pub(crate) mod standby;
pub(crate) mod start_error;
#[cfg(target_os = "linux")]
pub(crate) mod stop_aware_clock;
#[cfg(target_os = "linux")]
pub(crate) mod supervisor;
#[cfg(target_os = "linux")]
pub(crate) mod supervisor_handle;
pub(crate) mod takeover;
#[cfg(not(target_os = "linux"))]
pub(crate) mod unsupported_platform;
#[cfg(target_os = "linux")]
pub(crate) mod watchdog;
pub(crate) mod worker_event;
#[cfg(target_os = "linux")]
pub(crate) mod worker_objects;
#[cfg(target_os = "linux")]
pub(crate) mod worker_process;
#[cfg(target_os = "linux")]
pub(crate) mod worker_start;
