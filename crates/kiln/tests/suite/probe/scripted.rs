//! Platforms that answer what a test wrote down, over simulated devices.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use kiln::DeviceRuntime;
use kiln::probe::{
    Absence, CudaAbsence, DeviceEntry, DeviceSummary, Listing, Platform, Prober, ProberConfig, Result,
};
use kiln_driver::{Code, DeviceKind, Driver, Error, Image, Refusal};
use kiln_sim::{DeviceConfig, FaultPlan, HostKernel, KernelLibrary, Machine, MachineConfig, PlannedFault};

/// Host functions every scripted device can load: one kernel, `nothing`.
pub(crate) const LIBRARY: &str = "test kernels";

/// A platform with a script. Each listing and each opening takes the next line; without one the machine's devices
/// are listed and opened as they are.
pub(crate) struct Scripted {
    kind: DeviceKind,
    /// Opening takes devices of the last one.
    machine: Mutex<Machine>,
    listings: Mutex<VecDeque<Result<Listing>>>,
    openings: Mutex<VecDeque<Error>>,
    listed: AtomicUsize,
    opened: Mutex<Vec<u32>>,
    /// Called inside of every opening, for tests that need two threads there.
    pub(crate) during_open: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
}

impl Scripted {
    /// A CUDA platform that is a simulated machine underneath.
    pub(crate) fn cuda(devices: impl IntoIterator<Item = DeviceConfig>) -> Arc<Self> {
        Self::new(DeviceKind::Cuda, devices)
    }

    /// A CUDA platform with one plain device.
    pub(crate) fn one_device() -> Arc<Self> {
        Self::cuda([DeviceConfig::default()])
    }

    /// A CUDA platform of a machine without a driver.
    pub(crate) fn absent() -> Arc<Self> {
        let platform = Self::cuda([]);
        platform.will_list(Ok(Listing::Absent(no_driver())));
        platform
    }

    /// A platform of the simulator.
    pub(crate) fn simulator() -> Arc<Self> {
        Self::new(DeviceKind::Simulated, [DeviceConfig::default()])
    }

    fn new(kind: DeviceKind, devices: impl IntoIterator<Item = DeviceConfig>) -> Arc<Self> {
        let config = devices.into_iter().fold(machine_config(), MachineConfig::device);
        Arc::new(Self {
            kind,
            machine: Mutex::new(Machine::new(config)),
            listings: Mutex::default(),
            openings: Mutex::default(),
            listed: AtomicUsize::new(0),
            opened: Mutex::default(),
            during_open: Mutex::default(),
        })
    }

    /// A CUDA platform with one device whose first launch loses it.
    pub(crate) fn faulty() -> Arc<Self> {
        let platform = Self::one_device();
        let plan = FaultPlan::none().on(0, PlannedFault::Sticky { launch: 1, code: Code::ILLEGAL_ADDRESS });
        *platform.machine.lock().unwrap() = Machine::new(machine_config().faults(plan));
        platform
    }

    /// Devices that are opened from here on work, as after a restart of the machine.
    pub(crate) fn restart(&self) {
        *self.machine.lock().unwrap() = Machine::new(machine_config());
    }

    /// The next listing.
    pub(crate) fn will_list(&self, listing: Result<Listing>) {
        self.listings.lock().unwrap().push_back(listing);
    }

    /// The next opening fails.
    pub(crate) fn will_fail_to_open(&self, error: Error) {
        self.openings.lock().unwrap().push_back(error);
    }

    /// How often it was asked to list.
    pub(crate) fn listed(&self) -> usize {
        self.listed.load(Ordering::SeqCst)
    }

    /// Which devices it was asked to open.
    pub(crate) fn opened(&self) -> Vec<u32> {
        self.opened.lock().unwrap().clone()
    }

    /// Its devices as the machine has them.
    pub(crate) fn entries(&self) -> Vec<DeviceEntry> {
        self.machine.lock().unwrap().devices().iter().map(|info| Ok(DeviceSummary::from(info))).collect()
    }
}

impl Platform for Scripted {
    fn kind(&self) -> DeviceKind {
        self.kind
    }

    fn list(&self) -> Result<Listing> {
        self.listed.fetch_add(1, Ordering::SeqCst);
        let scripted = self.listings.lock().unwrap().pop_front();
        scripted.unwrap_or_else(|| Ok(Listing::Devices(self.entries())))
    }

    fn open(&self, ordinal: u32) -> Result<Arc<dyn Driver>> {
        self.opened.lock().unwrap().push(ordinal);
        let hook = self.during_open.lock().unwrap().clone();
        if let Some(hook) = hook {
            hook();
        }
        match self.openings.lock().unwrap().pop_front() {
            Some(error) => Err(error.into()),
            None => Ok(self.machine.lock().unwrap().device(ordinal)?),
        }
    }
}

fn machine_config() -> MachineConfig {
    let library = KernelLibrary::new(LIBRARY).kernel(HostKernel::new("nothing"));
    MachineConfig::seeded(1).library(library)
}

/// Launches the kernel `nothing` and waits for it.
pub(crate) fn launch(gpu: &DeviceRuntime) -> kiln::Result<()> {
    let nothing = gpu.load_kernel(&Image::HostKernels(LIBRARY), "nothing", None)?;
    // SAFETY: it touches nothing.
    unsafe { gpu.launch(&nothing).grid(1).block(1).submit() }?.wait()
}

/// A prober over a CUDA platform and a plain simulator, with no override.
pub(crate) fn prober(cuda: &Arc<Scripted>) -> Prober {
    prober_with(cuda, &Scripted::simulator(), None)
}

/// A prober over two platforms, with the text of the environment variable.
pub(crate) fn prober_with(cuda: &Arc<Scripted>, simulator: &Arc<Scripted>, policy: Option<&str>) -> Prober {
    Prober::new(ProberConfig {
        cuda: Box::new(Arc::clone(cuda)),
        simulator: Box::new(Arc::clone(simulator)),
        policy_override: policy.map(str::to_owned),
    })
}

/// The absence of a machine without a driver.
pub(crate) fn no_driver() -> Absence {
    CudaAbsence::NoDriver { tried: Vec::new() }.into()
}

/// A driver that does not start.
pub(crate) fn fault() -> Error {
    Error::refused("cuInit", Refusal::Driver(Code::NOT_INITIALIZED))
}

/// A lack of memory, which may pass.
pub(crate) fn out_of_memory() -> Error {
    Error::out_of_memory("cuDevicePrimaryCtxRetain", 0, None)
}
