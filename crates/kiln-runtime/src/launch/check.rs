//! Checks every launch before it is submitted or recorded.

use super::kernel::Kernel;
use super::shape::Shape;
use crate::error::{Error, Result};
use crate::runtime::Inner;
use crate::signature::Mismatch;

/// Refuses a kernel of another runtime, a wrong number of arguments, and a shape that the kernel or the device does not allow.
#[cold]
pub(super) fn launch(runtime: &Inner, kernel: &Kernel, given: usize, shape: &Shape) -> Result<()> {
    let name = || kernel.name().to_owned();
    if !kernel.belongs_to(runtime) {
        return Err(Mismatch::ForeignKernel { kernel: name() }.into());
    }
    if let Some(slots) = kernel.slots()
        && slots.len() != given
    {
        return Err(Mismatch::Count { kernel: name(), wanted: slots.len(), given }.into());
    }
    shape.check(kernel).map_err(|wrong| Error::new(*wrong))?;
    if shape.cooperative { shape.check_residency(kernel, &**runtime.driver()) } else { Ok(()) }
}
