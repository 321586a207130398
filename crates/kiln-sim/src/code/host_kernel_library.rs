//! Kernels that are host functions, in libraries that can be loaded by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kiln_driver::{Access, Code};

use crate::code::kernel::{KernelFault, LaunchContext, SimKernel, SimParameter, SimSignature};
use crate::code::launch_readiness::LaunchReadiness;
use crate::memory::memory_view::MemoryView;
use crate::memory::scalar::Scalar;

type Body = dyn Fn(&LaunchContext<'_>) -> Result<(), KernelFault> + Send + Sync;
type Lost = dyn Fn(&[u8], Code) + Send + Sync;
type Condition = dyn Fn(&[u8], &MemoryView) -> LaunchReadiness + Send + Sync;

/// A kernel that is a host function with declared parameters.
///
/// The declaration is checked: a launch whose arguments have another size is refused, and bytes touched in a block
/// that no declared pointer allows are a finding.
///
/// ```
/// use kiln_driver::Access;
/// use kiln_sim::{HostKernel, KernelLibrary};
///
/// let axpy = HostKernel::new("axpy")
///     .value::<f32>()
///     .pointer(Access::Read)
///     .pointer(Access::ReadWrite)
///     .value::<u32>()
///     .body(|launch| {
///         let (a, x, y) = (launch.value::<f32>(0)?, launch.address(1)?, launch.address(2)?);
///         let mut port = launch.port();
///         for at in 0..u64::from(launch.value::<u32>(3)?).min(launch.threads()) {
///             let sum = a * port.load::<f32>(x + 4 * at)? + port.load::<f32>(y + 4 * at)?;
///             port.store(y + 4 * at, sum)?;
///         }
///         Ok(())
///     });
/// let library = KernelLibrary::new("demo").kernel(axpy);
/// assert_eq!(library.name(), "demo");
/// ```
#[derive(Clone)]
pub struct HostKernel {
    name: Arc<str>,
    signature: SimSignature,
    body: Arc<Body>,
    runs_on_host_thread: bool,
    lost: Option<Arc<Lost>>,
    condition: Option<Arc<Condition>>,
}

impl HostKernel {
    /// A kernel without parameters that does nothing yet.
    pub fn new(name: &str) -> Self {
        let signature = SimSignature { registers: 32, declares_accesses: true, ..SimSignature::default() };
        let body = Arc::new(|_: &LaunchContext<'_>| Ok(()));
        Self { name: name.into(), signature, body, runs_on_host_thread: false, lost: None, condition: None }
    }

    /// One more parameter: a pointer, and what is done to the block behind it.
    #[must_use]
    pub fn pointer(self, access: Access) -> Self {
        self.parameter(SimParameter::Pointer(access))
    }

    /// One more parameter: a number.
    #[must_use]
    pub fn value<T: Scalar>(self) -> Self {
        let bytes = T::BYTES as u32;
        self.parameter(SimParameter::Value { bytes, alignment: bytes })
    }

    /// One more parameter.
    #[must_use]
    pub fn parameter(mut self, parameter: SimParameter) -> Self {
        self.signature.parameters.push(parameter);
        self
    }

    /// What it needs besides its parameters, which are kept.
    #[must_use]
    pub fn needs(mut self, change: impl FnOnce(&mut SimSignature)) -> Self {
        change(&mut self.signature);
        self
    }

    /// What it does. It is called once for a launch and does the work of all its threads.
    #[must_use]
    pub fn body(
        self,
        body: impl Fn(&LaunchContext<'_>) -> Result<(), KernelFault> + Send + Sync + 'static,
    ) -> Self {
        Self { body: Arc::new(body), ..self }
    }

    /// Makes it a function of the host, which runs on a separate thread: it may wait for a thread of the program.
    #[must_use]
    pub fn on_host_thread(self) -> Self {
        Self { runs_on_host_thread: true, ..self }
    }

    /// What such a function does instead if the device is lost before its turn: it gets the packed arguments and the code.
    #[must_use]
    pub fn if_lost(self, lost: impl Fn(&[u8], Code) + Send + Sync + 'static) -> Self {
        Self { lost: Some(Arc::new(lost)), ..self }
    }

    /// Makes its launches wait: each runs once the condition holds, which gets the packed arguments and memory as it is. Until then it holds
    /// back its stream alone. What comes after a launch comes after the work that wrote the bytes which the body reads as atomics.
    #[must_use]
    pub fn when(
        self,
        condition: impl Fn(&[u8], &MemoryView) -> LaunchReadiness + Send + Sync + 'static,
    ) -> Self {
        Self { condition: Some(Arc::new(condition)), ..self }
    }
}

impl SimKernel for HostKernel {
    fn signature(&self) -> &SimSignature {
        &self.signature
    }

    fn runs_on_host_thread(&self) -> bool {
        self.runs_on_host_thread
    }

    fn is_lost(&self, arguments: &[u8], code: Code) {
        if let Some(lost) = &self.lost {
            lost(arguments, code);
        }
    }

    fn waits_for_memory(&self) -> bool {
        self.condition.is_some()
    }

    fn readiness(&self, arguments: &[u8], memory: &MemoryView) -> LaunchReadiness {
        self.condition.as_ref().map_or(LaunchReadiness::Ready, |condition| condition(arguments, memory))
    }

    fn run(&self, launch: &LaunchContext<'_>) -> Result<(), KernelFault> {
        (self.body)(launch)
    }
}

impl fmt::Debug for HostKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {} with {} parameters", self.name, self.signature.parameters.len())
    }
}

/// Kernels that are loaded together, by `Image::HostKernels` and this name.
#[derive(Clone)]
pub struct KernelLibrary {
    name: Arc<str>,
    kernels: BTreeMap<Arc<str>, Arc<dyn SimKernel>>,
}

impl KernelLibrary {
    /// An empty library.
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), kernels: BTreeMap::new() }
    }

    /// Adds a kernel; one of the same name is replaced.
    #[must_use]
    pub fn kernel(mut self, kernel: HostKernel) -> Self {
        self.kernels.insert(kernel.name.clone(), Arc::new(kernel));
        self
    }

    /// The name it is loaded by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether one of its kernels runs on a thread of the host.
    pub(crate) fn has_host_functions(&self) -> bool {
        self.kernels.values().any(|kernel| kernel.runs_on_host_thread())
    }

    pub(crate) fn kernels(&self) -> &BTreeMap<Arc<str>, Arc<dyn SimKernel>> {
        &self.kernels
    }
}

impl fmt::Debug for KernelLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "library {} with {:?}", self.name, self.kernels.keys())
    }
}
