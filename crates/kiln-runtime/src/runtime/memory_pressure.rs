//! What those need to know that keep memory of a runtime between two calls.

use kiln_mem::PressurePolicy;

use super::DeviceRuntime;
use crate::ids::Generation;

/// Whom the runtime asks for memory when it is short: memory that is kept for the next call must be given back then.
pub fn pressure_policy(gpu: &DeviceRuntime) -> &PressurePolicy {
    &gpu.inner().config().memory.pressure
}

/// The context that memory taken now belongs to; what was taken before it may be lost.
pub fn current_generation(gpu: &DeviceRuntime) -> Generation {
    gpu.inner().state().generation()
}
