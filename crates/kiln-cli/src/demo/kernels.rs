//! The kernels of the demo, in PTX, which a GPU and the simulated device both run.

use kiln::{DeviceRuntime, Kernel};

/// Both kernels, as a compiler would write them.
pub(crate) const PTX: &str = include_str!("kernels.ptx");

/// `y = a * x + y`, rounded once.
pub(crate) const AXPY: &str = "axpy";
/// `z = p + y`.
const BLEND: &str = "blend";

/// Threads of a block.
pub(crate) const BLOCK_THREADS: u32 = 256;

/// The kernels, loaded.
pub(crate) struct Kernels {
    pub(crate) axpy: Kernel,
    pub(crate) blend: Kernel,
}

impl Kernels {
    /// Loads them; parameters and accesses are read from the PTX.
    ///
    /// # Errors
    /// The loader failed.
    pub(crate) fn load(runtime: &DeviceRuntime) -> kiln::Result<Self> {
        Ok(Self { axpy: runtime.kernel(PTX, AXPY)?, blend: runtime.kernel(PTX, BLEND)? })
    }
}
