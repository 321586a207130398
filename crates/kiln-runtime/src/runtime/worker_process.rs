//! Whether a device is in a worker process.

use super::DeviceRuntime;

/// Whether the device of a runtime is in a worker process; without the feature `isolate` none is.
#[cfg(feature = "isolate")]
pub fn is_in_worker(runtime: &DeviceRuntime) -> bool {
    runtime.isolated_device().is_some()
}

/// Whether the device of a runtime is in a worker process; without the feature `isolate` none is.
#[cfg(not(feature = "isolate"))]
pub fn is_in_worker(_: &DeviceRuntime) -> bool {
    false
}
