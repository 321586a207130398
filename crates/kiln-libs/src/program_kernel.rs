//! Kernels that are made of programs (`.kir`), which give the same bits on every device.

use kiln_ir::{Program, PtxTarget};
use kiln_runtime::{DeviceRuntime, Kernel};

use crate::Result;
use crate::error::LibraryError;

/// The kernel of that name in a program, for a device. A device that is too old is told of the call.
pub(crate) fn program_kernel(
    gpu: &DeviceRuntime,
    call: &'static str,
    (name, text): (&str, &str),
) -> Result<Kernel> {
    let program = Program::parse(text).map_err(kiln_runtime::Error::other)?;
    let capability = gpu.info().capability;
    let target = PtxTarget::for_device(capability.major * 10 + capability.minor).ok_or_else(|| {
        let what = format!("the device has compute capability {capability}");
        LibraryError::argument(call, what, "use a device of compute capability 7.0 or newer")
    })?;
    Ok(gpu.kernel(program.emit(target).text.as_str(), name)?)
}
