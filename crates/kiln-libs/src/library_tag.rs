//! The tag that memory of libraries is counted under.

use std::sync::OnceLock;

use kiln_mem::AllocTag;
use kiln_runtime::{DeviceRuntime, Element, GpuRef};

const NAME: &str = "library";

/// The tag of workspace and of other memory that a library call allocates.
pub(crate) fn library_tag() -> AllocTag {
    static TAG: OnceLock<AllocTag> = OnceLock::new();
    *TAG.get_or_init(|| AllocTag::new(NAME).unwrap_or_default())
}

/// Zeros that stand for an operand that is not read.
pub(crate) fn library_zeros<T: Element>(gpu: &DeviceRuntime, len: usize) -> kiln_runtime::Result<GpuRef<T>> {
    let zeros = gpu.allocate_tagged(gpu.main_stream(), len, library_tag())?;
    zeros.fill_bytes(0)?;
    Ok(zeros)
}
