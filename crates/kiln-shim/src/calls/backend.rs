//! What is below the devices: the simulated machine, the GPUs of this one, or either in worker processes.
//!
//! A simulated machine checks by itself. Around any other device lies a layer that checks what it sees: the order of commands, and of launches by what their PTX does.

use std::path::PathBuf;
use std::sync::Arc;

use kiln_cuda::{CudaDevice, Libcuda};
use kiln_driver::layer::{Checking, Layered};
use kiln_driver::{Code, Driver, Version};
use kiln_isolate::{DeviceSpec, IsolatedDevice, IsolationConfig, WorkerEntry};
use kiln_sim::{DeviceConfig, Machine, MachineConfig, PtxEngine, SimChecks};

use crate::boundary::Answer;
use crate::calls::{host_callbacks, value_kernels};
use crate::records;
use crate::run_settings::{self, Target};

/// Findings that are kept; more are counted.
const FINDINGS: usize = 1024;
/// The CUDA version that is spoken.
pub(crate) const API_VERSION: Version = Version { major: 13, minor: 0 };
const MEMORY_BYTES: u64 = 80 << 30;
const ALLOCATION_ALIGNMENT_BYTES: u64 = 512;
const MOST_DEVICES: usize = 16;
/// Smaller than the granularity that programs see: each pinned allocation has pages of this size.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// What is below the devices.
pub(crate) enum Backend {
    /// The simulated machine, in this process.
    Simulated(Machine),
    /// Devices without one: GPUs, or devices in worker processes.
    Outside {
        /// The driver library of the GPUs, if they are in this process.
        library: Option<&'static Libcuda>,
    },
}

/// A device, opened.
pub(crate) struct OpenedDevice {
    pub(crate) driver: Arc<dyn Driver>,
    /// The layer that checks, if the device does not check by itself.
    pub(crate) checking: Option<Arc<Layered<Checking>>>,
}

impl Backend {
    /// Opens what the run asks for, with all its devices.
    pub(crate) fn open() -> Answer<(Self, Vec<OpenedDevice>)> {
        match (run_settings::target(), run_settings::worker()) {
            (Target::Simulated, None) => simulated(),
            (Target::Cuda, None) => gpus(),
            (target, Some(worker)) => isolated(target, worker),
        }
    }

    /// The simulated machine, for what there is nowhere else; the name is that of the function that asks.
    pub(crate) fn machine(&self, name: &str) -> Answer<&Machine> {
        match self {
            Self::Simulated(machine) => Ok(machine),
            Self::Outside { .. } => Err(refuse(name)),
        }
    }

    /// Whether the devices have kernels that run on the host, and memory that host and device have at one address.
    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated(_))
    }

    /// An attribute as the GPU's own driver tells it.
    pub(crate) fn attribute(&self, ordinal: u32, number: i32) -> Option<i32> {
        match self {
            Self::Outside { library: Some(library) } => library.attribute(ordinal, number).ok(),
            _ => None,
        }
    }
}

/// The answer of a function that only the simulated device has, with a note.
pub(crate) fn refuse(name: &str) -> Code {
    records::note_once(
        &format!("{name} outside"),
        &format!(
            "{name} is there on the simulated device in the program's own process alone, and answered CUDA_ERROR_NOT_SUPPORTED; \
             leave --device and --isolate out, or run the program without kiln exec"
        ),
    );
    Code::NOT_SUPPORTED
}

fn simulated() -> Answer<(Backend, Vec<OpenedDevice>)> {
    let mut device = DeviceConfig::with_memory(run_settings::memory_bytes().unwrap_or(MEMORY_BYTES));
    device.driver_version = API_VERSION;
    device.limits.page_granularity_bytes = PAGE_BYTES;
    // As the driver has it, so that every block can be a texture.
    device.limits.allocation_alignment_bytes = ALLOCATION_ALIGNMENT_BYTES;
    // A launch says nothing about what it touches, and programs leave much to the end of the process.
    let checks = SimChecks { declarations: false, leaks: false, ..SimChecks::default() };
    let steps = run_settings::step_limit();
    let engine = PtxEngine::default().step_limit(steps).stall_limit(steps);
    let mut config = MachineConfig::seeded(run_settings::seed()).engine(Arc::new(engine)).checks(checks);
    config = config.library(host_callbacks::library()).library(value_kernels::library());
    config.limits.findings = FINDINGS;
    config.limits.trace_bytes = 0;
    config.limits.spans = 0;
    let count = device_count();
    config.devices = vec![device; count.max(1)];
    let machine = Machine::new(config);
    let opened = (0..count as u32).map(|ordinal| {
        let driver: Arc<dyn Driver> = machine.device(ordinal).map_err(|_| Code::NO_DEVICE)?;
        Ok(OpenedDevice { driver, checking: None })
    });
    let opened = opened.collect::<Answer<_>>()?;
    Ok((Backend::Simulated(machine), opened))
}

fn gpus() -> Answer<(Backend, Vec<OpenedDevice>)> {
    let cannot = |why: &dyn std::fmt::Display| no_device("the GPU cannot be used", why);
    let library = Libcuda::load().map_err(|error| cannot(&error))?;
    let there = library.device_count().map_err(|error| cannot(&error))?;
    let count = run_settings::devices().map_or(there, |wanted| there.min(wanted as u32));
    let opened = (0..count).map(|ordinal| {
        let device = CudaDevice::open(ordinal).map_err(|error| cannot(&error))?;
        Ok(checked(device, Checking::new().following_launches()))
    });
    Ok((Backend::Outside { library: Some(library) }, opened.collect::<Answer<_>>()?))
}

fn isolated(target: Target, worker: PathBuf) -> Answer<(Backend, Vec<OpenedDevice>)> {
    let opened = (0..device_count() as u32).map(|ordinal| {
        let spec = match target {
            Target::Cuda => DeviceSpec::cuda(ordinal),
            Target::Simulated => {
                DeviceSpec::simulated_with_step_limit(run_settings::seed(), run_settings::step_limit())
            }
        };
        let config = IsolationConfig::new(spec).entry(WorkerEntry::Program(worker.clone()));
        let device = IsolatedDevice::open(config)
            .map_err(|error| no_device("the device in a worker process cannot be used", &error))?;
        // What a kernel breaks ends the worker, and what the device there found of it ends with it; the loss has it.
        records::expect_losses();
        // A simulated device in a worker checks by itself, and takes what launches declare for all they may touch.
        let layer = match target {
            Target::Cuda => Checking::new().following_launches(),
            Target::Simulated => Checking::new(),
        };
        Ok(checked(device, layer))
    });
    Ok((Backend::Outside { library: None }, opened.collect::<Answer<_>>()?))
}

/// A device with the layer around it.
fn checked(device: Arc<dyn Driver>, layer: Checking) -> OpenedDevice {
    if layer.follows_launches() {
        records::expect_losses();
    }
    let checking = Arc::new(Layered::new(device, layer));
    OpenedDevice { driver: checking.clone(), checking: Some(checking) }
}

fn no_device(what: &str, why: &dyn std::fmt::Display) -> Code {
    let text = format!("{what}, and the program was told CUDA_ERROR_NO_DEVICE: {why}");
    records::note_once(&text, &text);
    Code::NO_DEVICE
}

fn device_count() -> usize {
    run_settings::devices().map_or(1, |count| count as usize).min(MOST_DEVICES)
}
