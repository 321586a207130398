//! The kernels of the demo: PTX for a GPU, host functions for the simulated device, the same arithmetic to the last bit.

use kiln::{DeviceRuntime, Kernel};
use kiln_driver::{Access, Image};
use kiln_sim::{HostKernel, KernelLibrary};

/// What the library of host functions is called.
pub(crate) const LIBRARY: &str = "kiln demo";

/// `y = a * x + y`, rounded once.
pub(crate) const AXPY: &str = "axpy";
/// `z = p + y`.
pub(crate) const BLEND: &str = "blend";

/// Threads of a block.
pub(crate) const BLOCK_THREADS: u32 = 256;

/// Both kernels, as the compiler would write them.
const PTX: &str = include_str!("kernels.ptx");

/// The kernels, loaded.
pub(crate) struct Kernels {
    pub(crate) axpy: Kernel,
    pub(crate) blend: Kernel,
}

impl Kernels {
    /// Loads them in the form the device runs.
    ///
    /// # Errors
    /// What the loader says.
    pub(crate) fn load(runtime: &DeviceRuntime) -> kiln::Result<Self> {
        let module = match runtime.info().features.ptx {
            true => runtime.load_module(&Image::Ptx(PTX))?,
            false => runtime.load_module(&Image::HostKernels(LIBRARY))?,
        };
        Ok(Self { axpy: module.kernel(AXPY, None)?, blend: module.kernel(BLEND, None)? })
    }
}

/// The host functions.
pub(crate) fn library() -> KernelLibrary {
    let axpy = HostKernel::new(AXPY)
        .value::<f32>()
        .pointer(Access::Read)
        .pointer(Access::ReadWrite)
        .value::<u32>()
        .body(|launch| {
            let (a, x, y) = (launch.value::<f32>(0)?, launch.address(1)?, launch.address(2)?);
            let mut port = launch.port();
            for at in (0..u64::from(launch.value::<u32>(3)?).min(launch.threads())).map(|at| 4 * at) {
                let sum = a.mul_add(port.load::<f32>(x + at)?, port.load::<f32>(y + at)?);
                port.store(y + at, sum)?;
            }
            Ok(())
        });
    let blend = HostKernel::new(BLEND)
        .pointer(Access::Read)
        .pointer(Access::Read)
        .pointer(Access::Write)
        .value::<u32>()
        .body(|launch| {
            let (p, y, z) = (launch.address(0)?, launch.address(1)?, launch.address(2)?);
            let mut port = launch.port();
            for at in (0..u64::from(launch.value::<u32>(3)?).min(launch.threads())).map(|at| 4 * at) {
                let sum = port.load::<f32>(p + at)? + port.load::<f32>(y + at)?;
                port.store(z + at, sum)?;
            }
            Ok(())
        });
    KernelLibrary::new(LIBRARY).kernel(axpy).kernel(blend)
}
