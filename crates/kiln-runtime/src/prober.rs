//! Finds devices and opens one runtime for each, shared by the whole program.
//!
//! A prober stands over two platforms, CUDA and the simulator, and a default policy. The functions of this module
//! ask the process's own prober; a test builds one over platforms of its choice.

mod device_threads;
mod memory_budget;
mod multi_device;
mod process_prober;
mod registry;
mod runtime_cell;
mod shared_config;
mod test_gate;

use std::sync::{Arc, Once};

use kiln_probe::{Absence, Availability, CudaAbsence, DefaultPolicy, Platform, Policy, Selection};

pub use memory_budget::MemoryBudget;
pub use multi_device::{Decline, Part, PartOutcome, Share, gather};
#[cfg(feature = "sim")]
pub use process_prober::simulated_machine;
#[cfg(all(feature = "isolate", target_os = "linux"))]
pub use process_prober::worker_device;
pub use process_prober::{
    availability, balanced_partition, gpu_for_test, memory_budget_for, policy, prober, refresh, require,
    resolve, scatter, set_policy, set_runtime_config,
};
pub use registry::MAX_DEVICES;
pub use test_gate::{SKIP_LOG_VARIABLE, TestGate, count_skip, skipped_tests};

pub(crate) use runtime_cell::is_over;

use device_threads::Workers;
use registry::Registry;
use shared_config::SharedConfig;

use crate::error::{Error, ErrorKind, Result};
use crate::runtime::{DeviceRuntime, RuntimeConfig};

/// What a [`Prober`] stands over.
pub struct ProberConfig {
    /// Where CUDA devices come from.
    pub cuda: Box<dyn Platform>,
    /// Where simulated devices come from.
    pub simulator: Box<dyn Platform>,
    /// The text of [`POLICY_VARIABLE`](kiln_probe::POLICY_VARIABLE), where it is set.
    pub policy_override: Option<String>,
}

/// Finds devices, keeps what it found, and hands out the one runtime of each.
///
/// ```
/// use kiln::probe::{CudaAbsence, Listing, Platform, Prober, ProberConfig};
/// use kiln::Policy;
/// # use kiln_driver::{DeviceKind, Driver, Error};
/// # struct Empty(DeviceKind);
/// # impl Platform for Empty {
/// #     fn kind(&self) -> DeviceKind { self.0 }
/// #     fn list(&self) -> kiln::probe::Result<Listing> { Ok(Listing::Absent(CudaAbsence::NoDevice.into())) }
/// #     fn open(&self, _: u32) -> kiln::probe::Result<std::sync::Arc<dyn Driver>> {
/// #         Err(Error::unsupported("open", "opening", "nothing is here").into())
/// #     }
/// # }
/// # let cuda = Box::new(Empty(DeviceKind::Cuda));
/// # let simulator = Box::new(Empty(DeviceKind::Simulated));
/// let prober = Prober::new(ProberConfig { cuda, simulator, policy_override: None });
/// assert!(prober.resolve(Policy::Auto)?.is_none());
/// assert!(prober.require().is_err_and(|error| error.is_absence()));
/// # Ok::<(), kiln::Error>(())
/// ```
pub struct Prober {
    cuda: Arc<Registry>,
    simulator: Arc<Registry>,
    /// What both build runtimes with.
    config: Arc<SharedConfig>,
    default: DefaultPolicy,
    /// The log says once why a device is simulated, however many ask.
    said_why_simulated: Once,
    workers: Workers,
}

impl Prober {
    /// A prober that has not looked for any device yet.
    pub fn new(platforms: ProberConfig) -> Self {
        let config = Arc::<SharedConfig>::default();
        Self {
            cuda: Arc::new(Registry::new(platforms.cuda, config.clone())),
            simulator: Arc::new(Registry::new(platforms.simulator, config.clone())),
            config,
            default: DefaultPolicy::new(platforms.policy_override),
            said_why_simulated: Once::new(),
            workers: Workers::default(),
        }
    }

    /// Sets what runtimes are built with: their memory stack, budgets, streams and caches. Call it before the first request
    /// for a device, or after every runtime was shut down.
    ///
    /// # Errors
    /// A runtime is open, or being opened, with the configuration before; that one stays. A runtime of another
    /// configuration beside it is made by [`DeviceRuntime::open`].
    pub fn set_runtime_config(&self, config: RuntimeConfig) -> Result<()> {
        let open = |registry: &Registry| Some((registry.kind(), registry.first_open()?));
        let in_use = || open(&self.cuda).or_else(|| open(&self.simulator));
        self.config.set(config, in_use).map_err(|open| Error::new(ErrorKind::ConfigInUse { open }))
    }

    /// The policy of requests that bring none. Asking settles it.
    ///
    /// # Errors
    /// The environment holds nonsense.
    pub fn policy(&self) -> Result<Policy> {
        Ok(self.default.in_force()?)
    }

    /// Settles the policy of requests that bring none, and returns the one in force: the environment overrides.
    ///
    /// # Errors
    /// It was settled as another one, by an earlier setting or by a request that needed it; or the environment holds
    /// nonsense.
    pub fn set_policy(&self, policy: Policy) -> Result<Policy> {
        Ok(self.default.set(policy)?)
    }

    /// Whether there is a device, under the policy in force. Opens none.
    ///
    /// # Errors
    /// A fault: the platform is there and does not work. It is the answer until [`refresh`](Self::refresh), unless it
    /// may pass by itself; then the next call looks again.
    pub fn availability(&self) -> Result<Availability> {
        self.availability_under(self.policy()?)
    }

    /// The same under a policy of the caller's choice.
    ///
    /// # Errors
    /// As [`availability`](Self::availability).
    pub fn availability_under(&self, policy: Policy) -> Result<Availability> {
        match self.site(policy) {
            Ok(registry) => registry.availability(),
            Err(absence) => Ok(Availability::Absent(absence)),
        }
    }

    /// The same, looked up anew. Runtimes that are open stay. Devices that could not be opened are tried again by the next
    /// request, the best first.
    ///
    /// # Errors
    /// As [`availability`](Self::availability).
    pub fn refresh(&self) -> Result<Availability> {
        match self.site(self.policy()?) {
            Ok(registry) => registry.refresh(),
            Err(absence) => Ok(Availability::Absent(absence)),
        }
    }

    /// The runtime of the best device that can be opened, or none where the policy is content without. A runtime that failed
    /// or was shut down is not returned: the device is opened again.
    ///
    /// `Off` gives none and touches nothing. `Auto` gives none on a machine without a device. `Required` does not.
    /// `Simulate` gives the simulated device and leaves CUDA alone. No other policy simulates.
    ///
    /// # Errors
    /// A fault; under `Required` also absence. Where a device cannot be opened [again](ErrorKind::Reopen), the error says why
    /// its last runtime failed, too.
    pub fn resolve(&self, policy: Policy) -> Result<Option<&'static DeviceRuntime>> {
        self.resolve_on(policy, &Selection::Best)
    }

    /// The same for a device of the caller's choice.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve), and if the chosen device does not exist.
    pub fn resolve_on(
        &self,
        policy: Policy,
        selection: &Selection,
    ) -> Result<Option<&'static DeviceRuntime>> {
        let Ok(registry) = self.site(policy) else {
            return Ok(None);
        };
        match registry.select(selection) {
            Err(error) if error.is_absence() && policy == Policy::Auto => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// The runtime of the best CUDA device that can be opened; never a simulated one. It does not ask for the policy in force.
    ///
    /// # Errors
    /// A fault, or absence.
    pub fn require(&self) -> Result<&'static DeviceRuntime> {
        self.cuda.select(&Selection::Best)
    }

    /// The one runtime of a device of the platform that the policy in force leads to: a simulated one under
    /// [`Policy::Simulate`], a CUDA device otherwise. A runtime that failed or was shut down is not returned: the device is
    /// opened again. The last one stays valid for those who hold it, and so does the memory of its live buffers.
    ///
    /// # Errors
    /// A fault, absence (also under [`Policy::Off`]), an unknown ordinal.
    pub fn runtime(&self, ordinal: u32) -> Result<&'static DeviceRuntime> {
        self.in_force()?.runtime(ordinal)
    }

    /// The one runtime of a CUDA device; never a simulated one.
    ///
    /// # Errors
    /// A fault, absence (also where the policy in force leaves CUDA alone), an unknown ordinal.
    pub fn cuda(&self, ordinal: u32) -> Result<&'static DeviceRuntime> {
        let policy = self.policy()?;
        if !policy.may_touch_cuda() {
            return Err(Absence::SwitchedOff { policy }.into());
        }
        self.cuda.runtime(ordinal)
    }

    /// A runtime for a caller that accepts a simulated device: the best CUDA device that can be opened, where there is one and
    /// the policy in force does not leave CUDA alone, else the simulator, also under [`Policy::Off`]. The runtime's info says which, and so does the log.
    ///
    /// # Errors
    /// A fault: a GPU that does not work is not replaced by a simulation. Absence, if the policy in force is
    /// `Required`.
    pub fn auto(&self) -> Result<&'static DeviceRuntime> {
        let policy = self.policy()?;
        let absence = match self.site(policy) {
            Ok(registry) => match registry.select(&Selection::Best) {
                Err(error) if policy == Policy::Auto => match error.absence() {
                    Some(absence) => absence.clone(),
                    None => return Err(error),
                },
                answer => return answer,
            },
            Err(absence) => absence,
        };
        let runtime = self.simulator.select(&Selection::Best)?;
        self.said_why_simulated.call_once(|| {
            let name = &runtime.info().name;
            match absence {
                // A mistake in the environment, and not a machine without a GPU.
                Absence::Cuda(CudaAbsence::Named { .. }) => {
                    tracing::warn!("no CUDA device is used ({absence}); work runs on {name}");
                }
                absence => tracing::info!("no CUDA device is used ({absence}); work runs on {name}"),
            }
        });
        Ok(runtime)
    }

    /// The device that [`auto`](Self::auto) would use, described so that a worker process can open it; nothing is opened here. A worker opens what it is
    /// told, whatever the policy is, so the policy has to be followed where the device is chosen.
    ///
    /// # Errors
    /// A fault; absence under [`Policy::Required`]; a platform whose devices no worker can open.
    #[cfg(all(feature = "isolate", target_os = "linux"))]
    pub fn worker_device(&self) -> Result<kiln_isolate::DeviceSpec> {
        let policy = self.policy()?;
        match self.availability_under(policy)? {
            Availability::Available(_) => self.site(policy)?.best_backend(),
            Availability::Absent(absence) if policy == Policy::Required => Err(absence.into()),
            Availability::Absent(_) => self.simulator.best_backend(),
        }
    }

    /// What a device could give right now, asked of the device itself, which is opened if it was not.
    ///
    /// # Errors
    /// Unknown ordinal, absence, a fault.
    pub fn memory_budget_for(&self, ordinal: u32) -> Result<MemoryBudget> {
        let runtime = self.in_force()?.runtime(ordinal)?;
        Ok(MemoryBudget::new(runtime.memory_info()?, &runtime.memory().accounting()))
    }

    /// The chosen device under a policy, or under the one in force.
    pub(crate) fn choose(
        &self,
        policy: Option<Policy>,
        selection: &Selection,
    ) -> Result<&'static DeviceRuntime> {
        let policy = policy.map_or_else(|| self.policy(), Ok)?;
        self.site(policy)?.select(selection)
    }

    /// The registry the policy in force leads to.
    fn in_force(&self) -> Result<&Arc<Registry>> {
        Ok(self.site(self.policy()?)?)
    }

    fn site(&self, policy: Policy) -> std::result::Result<&Arc<Registry>, Absence> {
        match policy {
            Policy::Off => Err(Absence::SwitchedOff { policy }),
            Policy::Auto | Policy::Required => Ok(&self.cuda),
            Policy::Simulate => Ok(&self.simulator),
        }
    }
}
