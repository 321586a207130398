//! Allocates a block from the driver; if memory is short, reclaims some and asks again.

use kiln_driver::DeviceMemory;

use crate::error::{ErrorKind, Result};
use crate::last_use::Stamp;
use crate::out_of_memory::Exhausted;
use crate::reclaim::{ReclaimAttempt, ReclaimStep};
use crate::resource::MemoryResource;

/// Asks the driver for a block of a resource that has one step to take when there is too little: takes it, asks again if it
/// brought something, and otherwise explains. `pending_until` is what the resource waits for by then.
pub(crate) fn obtain(
    resource: &impl MemoryResource,
    bytes: u64,
    step: ReclaimStep,
    pending_until: impl FnOnce() -> Option<Stamp>,
    ask: impl Fn() -> kiln_driver::Result<DeviceMemory>,
) -> Result<DeviceMemory> {
    let mut answer = ask();
    let mut attempts = Vec::new();
    if answer.as_ref().is_err_and(kiln_driver::Error::is_oom) {
        let reclaimed = resource.reclaim(step)?;
        attempts.push(ReclaimAttempt { step, reclaimed });
        if !reclaimed.is_nothing() {
            answer = ask();
        }
    }
    answer.map_err(|error| {
        if !error.is_oom() {
            return error.into();
        }
        let exhausted = Exhausted {
            pending_until: pending_until(),
            attempts,
            driver: Some(error.to_string()),
            ..Exhausted::over(resource.to_string(), bytes, &resource.accounting())
        };
        ErrorKind::from(exhausted).into()
    })
}
