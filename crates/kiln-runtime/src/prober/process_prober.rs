//! The process's own prober.

use std::ops::Range;
use std::sync::LazyLock;

#[cfg(feature = "sim")]
use kiln_probe::Machine;
use kiln_probe::{Availability, CudaPlatform, POLICY_VARIABLE, Policy, ProcessMachine};

use super::memory_budget::MemoryBudget;
use super::multi_device::{Part, PartOutcome, Share};
use super::test_gate::TestGate;
use super::{Prober, ProberConfig};
use crate::error::Result;
use crate::runtime::{DeviceRuntime, RuntimeConfig};

/// The prober behind the functions of this module: CUDA, one simulated device, and the environment.
pub fn prober() -> &'static Prober {
    static PROBER: LazyLock<Prober> = LazyLock::new(|| {
        Prober::new(ProberConfig {
            cuda: Box::new(CudaPlatform),
            simulator: Box::new(ProcessMachine),
            policy_override: std::env::var_os(POLICY_VARIABLE)
                .map(|text| text.to_string_lossy().into_owned()),
        })
    });
    &PROBER
}

/// The machine behind the process's simulated device, to ask what it found. After a fault the next request for the device
/// starts another machine, with the same seed; this is the latest.
///
/// ```
/// kiln::probe::set_policy(kiln::Policy::Simulate)?;
/// let gpu = kiln::DeviceRuntime::auto()?;
/// let squares = gpu.upload(&[1u32, 4, 9])?;
/// assert_eq!(squares.download()?, [1, 4, 9]);
/// assert!(kiln::probe::simulated_machine()?.findings().is_empty());
/// # Ok::<(), kiln::Error>(())
/// ```
///
/// # Errors
/// The environment holds a seed that is no number.
#[cfg(feature = "sim")]
pub fn simulated_machine() -> Result<&'static Machine> {
    Ok(ProcessMachine::machine()?)
}

/// Whether there is a device; see [`Prober::availability`].
///
/// # Errors
/// A fault.
pub fn availability() -> Result<Availability> {
    prober().availability()
}

/// Whether there is a device, looked up anew; see [`Prober::refresh`].
///
/// # Errors
/// A fault.
pub fn refresh() -> Result<Availability> {
    prober().refresh()
}

/// The policy of requests that bring none; see [`Prober::policy`].
///
/// # Errors
/// The environment holds nonsense.
pub fn policy() -> Result<Policy> {
    prober().policy()
}

/// Settles the policy of requests that bring none; see [`Prober::set_policy`].
///
/// # Errors
/// It was settled as another one; or the environment holds nonsense.
pub fn set_policy(policy: Policy) -> Result<Policy> {
    prober().set_policy(policy)
}

/// Sets what runtimes are built with; see [`Prober::set_runtime_config`]. Call it before the first request for a device.
///
/// ```
/// use kiln::{RuntimeConfig, memory::MemoryConfig};
///
/// kiln::probe::set_policy(kiln::Policy::Simulate)?;
/// let memory = MemoryConfig { stack: "stats(heap)".parse()?, limit_bytes: Some(1 << 30), ..MemoryConfig::default() };
/// kiln::probe::set_runtime_config(RuntimeConfig { memory, ..RuntimeConfig::default() })?;
/// assert_eq!(kiln::DeviceRuntime::auto()?.memory().to_string(), "stats(heap)");
/// assert!(kiln::probe::set_runtime_config(RuntimeConfig::default()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A runtime is open, or being opened, with the configuration before; that one stays.
pub fn set_runtime_config(config: RuntimeConfig) -> Result<()> {
    prober().set_runtime_config(config)
}

/// The runtime of the best device, or none where the policy is content without; see [`Prober::resolve`].
///
/// # Errors
/// A fault; under [`Policy::Required`] also absence.
pub fn resolve(policy: Policy) -> Result<Option<&'static DeviceRuntime>> {
    prober().resolve(policy)
}

/// The runtime of the best CUDA device; see [`Prober::require`].
///
/// # Errors
/// A fault, or absence.
pub fn require() -> Result<&'static DeviceRuntime> {
    prober().require()
}

/// The device that [`DeviceRuntime::auto`] would use, for a worker process; see [`Prober::worker_device`].
///
/// ```no_run
/// use kiln::recovery::{Isolation, Process};
/// use kiln::{DeviceRuntime, RuntimeConfig};
///
/// kiln::worker_entry();
/// let isolation = Isolation::Process(Process::default());
/// let config = RuntimeConfig { isolation, ..RuntimeConfig::default() };
/// let gpu = DeviceRuntime::open(&kiln::probe::worker_device()?, config)?;
/// # Ok::<(), kiln::Error>(())
/// ```
///
/// # Errors
/// A fault; absence under [`Policy::Required`].
#[cfg(all(feature = "isolate", target_os = "linux"))]
pub fn worker_device() -> Result<kiln_isolate::DeviceSpec> {
    prober().worker_device()
}

/// What a device could give right now; see [`Prober::memory_budget_for`].
///
/// # Errors
/// Unknown ordinal, absence, a fault.
pub fn memory_budget_for(ordinal: u32) -> Result<MemoryBudget> {
    prober().memory_budget_for(ordinal)
}

/// Splits `0..n` over the working devices; see [`Prober::balanced_partition`].
///
/// # Errors
/// Absence, a fault.
pub fn balanced_partition(n: u64) -> Result<Vec<Share>> {
    prober().balanced_partition(n)
}

/// Runs a job on every device that gets a part of `0..n`; see [`Prober::scatter`].
pub fn scatter<T, J>(n: u64, job: J) -> PartOutcome<Vec<Part<T>>>
where
    T: Send + 'static,
    J: Fn(&'static DeviceRuntime, Range<u64>) -> PartOutcome<T> + Send + Sync + 'static,
{
    prober().scatter(n, job)
}

/// A device for a test, or a counted skip; see [`Prober::gpu_for_test`].
///
/// # Errors
/// A fault; absence under [`Policy::Required`].
pub fn gpu_for_test(label: &str) -> Result<TestGate> {
    prober().gpu_for_test(label)
}

impl DeviceRuntime {
    /// The one runtime of a device in this process, opened by the first request; see [`Prober::runtime`]. It is a CUDA
    /// device, or a simulated one under [`Policy::Simulate`].
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    ///
    /// match DeviceRuntime::try_get(0) {
    ///     Ok(gpu) => assert!(std::ptr::eq(gpu, DeviceRuntime::try_get(0)?)),
    ///     Err(error) if error.is_absence() => println!("{error:#}"),
    ///     Err(fault) => return Err(fault),
    /// }
    /// # Ok::<(), kiln::Error>(())
    /// ```
    ///
    /// # Errors
    /// A fault, absence, an unknown ordinal.
    pub fn try_get(ordinal: u32) -> Result<&'static Self> {
        prober().runtime(ordinal)
    }

    /// The one runtime of a CUDA device in this process, never a simulated one; see [`Prober::cuda`].
    ///
    /// # Errors
    /// A fault, absence, an unknown ordinal.
    pub fn cuda(ordinal: u32) -> Result<&'static Self> {
        prober().cuda(ordinal)
    }

    /// The runtime of the best CUDA device, or of the simulated device where there is none; see [`Prober::auto`].
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    ///
    /// let gpu = DeviceRuntime::auto()?;
    /// println!("running on {gpu:?}");
    /// assert_eq!(gpu.upload(&[1.0f32, 2.0])?.download()?, [1.0, 2.0]);
    /// # Ok::<(), kiln::Error>(())
    /// ```
    ///
    /// # Errors
    /// A fault; absence under [`Policy::Required`].
    pub fn auto() -> Result<&'static Self> {
        prober().auto()
    }
}
