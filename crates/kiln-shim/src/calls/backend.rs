//! What is below the devices: the simulated machine, the GPUs of this one, or either in worker processes.
//!
//! A simulated machine checks by itself. Around any other device lies a layer that checks what it sees: the order of commands, and of launches by what their PTX does.

use std::path::PathBuf;
use std::sync::Arc;

use cudarc::driver::sys;
use kiln_cuda::{CudaDevice, Libcuda};
use kiln_driver::layer::{Checking, Layered};
use kiln_driver::{Code, Driver, HostId, Version};
use kiln_isolate::{DeviceSpec, IsolatedDevice, IsolationConfig, WorkerEntry};
use kiln_sim::{DeviceConfig, Machine, MachineConfig, PtxEngine};

use crate::boundary::{Answer, OrCode};
use crate::calls::{host_callbacks, value_kernels};
use crate::program_lines;
use crate::recording;
use crate::records;
use crate::run_settings::{self, Target};

/// Findings that are kept; more are counted.
const FINDINGS: usize = 1024;
/// Times of work that are kept until the program waits.
const SPANS: usize = 1 << 20;
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
    /// The GPUs of this machine, in this process.
    Gpus(&'static Libcuda, Vec<Arc<CudaDevice>>),
    /// Devices in worker processes.
    Workers,
}

/// A device, opened.
pub(crate) struct OpenedDevice {
    pub(crate) driver: Arc<dyn Driver>,
    /// The layer that checks, if the device does not check by itself.
    pub(crate) checking: Option<Arc<Layered<Checking>>>,
    /// Whether its streams call functions of this process.
    pub(crate) calls_functions: bool,
}

impl Backend {
    /// Opens what the run asks for, with all its devices.
    pub(crate) fn open() -> Answer<(Self, Vec<OpenedDevice>)> {
        let (backend, mut opened) = match (run_settings::target(), run_settings::worker()) {
            (Target::Simulated, None) => simulated(),
            (Target::Cuda, None) => gpus(),
            (target, Some(worker)) => isolated(target, worker),
        }?;
        let mut drivers: Vec<Arc<dyn Driver>> = opened.iter().map(|opened| opened.driver.clone()).collect();
        let tells_work = run_settings::target() == Target::Simulated;
        program_lines::begin(&mut drivers, (tells_work, run_settings::trace_file().is_some()));
        recording::begin(&mut drivers, backend.is_simulated());
        opened.iter_mut().zip(drivers).for_each(|(opened, driver)| opened.driver = driver);
        Ok((backend, opened))
    }

    /// Writes down when work ran, if the process is recorded.
    pub(crate) fn note_times(&self) {
        if let (Self::Simulated(machine), Some(recording)) = (self, recording::recording()) {
            recording.ran(machine.take_timeline());
        }
    }

    /// The simulated machine, for what there is nowhere else; the name is that of the function that asks.
    pub(crate) fn machine(&self, name: &str) -> Answer<&Machine> {
        match self {
            Self::Simulated(machine) => Ok(machine),
            Self::Gpus(..) | Self::Workers => Err(refuse(name)),
        }
    }

    /// Whether the devices have kernels that run on the host, and memory that host and device have at one address.
    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated(_))
    }

    /// An attribute as the GPU's own driver tells it.
    pub(crate) fn attribute(&self, ordinal: u32, number: i32) -> Option<i32> {
        match self {
            Self::Gpus(library, _) => library.attribute(ordinal, number).ok(),
            _ => None,
        }
    }

    /// Whether kernels of a device reach host memory that the program registers, at the addresses of the host.
    pub(crate) fn reaches_registered_memory(&self, ordinal: u32) -> bool {
        const NUMBER: u32 =
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM as u32;
        self.is_simulated() || self.attribute(ordinal, NUMBER as i32) == Some(1)
    }

    /// Lets kernels of a device reach host memory that was registered; whether they do.
    pub(crate) fn map_registered(&self, ordinal: u32, block: HostId) -> bool {
        let Self::Simulated(machine) = self else { return self.reaches_registered_memory(ordinal) };
        let mapped = machine.map_host(ordinal, block);
        if let Err(error) = &mapped {
            records::note(&format!("kernels do not reach memory that was registered: {error}"));
        }
        mapped.is_ok()
    }

    /// Whether kernels of one device can be let into the memory of another.
    pub(crate) fn can_access_peer(&self, device: u32, peer: u32) -> bool {
        match self {
            Self::Simulated(machine) => machine.can_access_peer(device, peer),
            Self::Gpus(library, _) => library.can_access_peer(device, peer).unwrap_or(false),
            Self::Workers => false,
        }
    }

    /// What the driver of GPUs says of two devices; nothing for others.
    pub(crate) fn peer_attribute(&self, number: u32, device: u32, peer: u32) -> Option<i32> {
        match self {
            Self::Gpus(library, _) => library.peer_attribute(number, device, peer).ok(),
            _ => None,
        }
    }

    /// Lets kernels of one device into the memory of another, or no longer.
    pub(crate) fn set_peer_access(&self, device: u32, peer: u32, is_enabled: bool) -> Answer {
        if !self.can_access_peer(device, peer) {
            return Err(Code::PEER_ACCESS_UNSUPPORTED);
        }
        match self {
            Self::Simulated(machine) if is_enabled => machine.enable_peer_access(device, peer).or_code(),
            Self::Simulated(machine) => machine.disable_peer_access(device, peer).or_code(),
            Self::Gpus(_, devices) => {
                let find = |ordinal: u32| devices.get(ordinal as usize).ok_or(Code::INVALID_DEVICE);
                let (device, peer) = (find(device)?, find(peer)?);
                let set = if is_enabled {
                    device.enable_peer_access(peer)
                } else {
                    device.disable_peer_access(peer)
                };
                set.or_code()
            }
            Self::Workers => Err(Code::PEER_ACCESS_UNSUPPORTED),
        }
    }
}

/// The answer of a function that needs the devices in the program's own process, with a note.
pub(crate) fn refuse_in_worker(name: &str) -> Code {
    records::note_once(
        &format!("{name} in a worker"),
        &format!(
            "{name} is not there with the devices in worker processes, and answered CUDA_ERROR_NOT_SUPPORTED; leave --isolate out"
        ),
    );
    Code::NOT_SUPPORTED
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
    let steps = run_settings::step_limit();
    let engine = PtxEngine::default().step_limit(steps).stall_limit(steps);
    let mut config = MachineConfig::seeded(run_settings::seed()).engine(Arc::new(engine));
    config = config.checks(run_settings::checks()).faults(run_settings::faults());
    config = config.library(host_callbacks::library()).library(value_kernels::library());
    config.fault_log = run_settings::fault_log();
    config.limits.findings = FINDINGS;
    config.limits.trace_bytes = 0;
    // They are taken whenever the program waits.
    config.limits.spans = if run_settings::trace_file().is_some() { SPANS } else { 0 };
    let count = device_count();
    config.devices = vec![device; count.max(1)];
    let machine = Machine::new(config);
    let opened = (0..count as u32).map(|ordinal| {
        let driver: Arc<dyn Driver> = machine.device(ordinal).map_err(|_| Code::NO_DEVICE)?;
        Ok(OpenedDevice { driver, checking: None, calls_functions: true })
    });
    let opened = opened.collect::<Answer<_>>()?;
    Ok((Backend::Simulated(machine), opened))
}

fn gpus() -> Answer<(Backend, Vec<OpenedDevice>)> {
    let cannot = |why: &dyn std::fmt::Display| no_device("the GPU cannot be used", why);
    let library = Libcuda::load().map_err(|error| cannot(&error))?;
    let there = library.device_count().map_err(|error| cannot(&error))?;
    let count = run_settings::devices().map_or(there, |wanted| there.min(wanted as u32));
    let opened = (0..count).map(|ordinal| CudaDevice::open(ordinal).map_err(|error| cannot(&error)));
    let devices: Vec<Arc<CudaDevice>> = opened.collect::<Answer<_>>()?;
    let opened = devices.iter().map(|device| {
        device.add_host_functions(host_callbacks::functions());
        OpenedDevice {
            calls_functions: true,
            ..checked(device.clone(), Checking::new().following_launches())
        }
    });
    let opened = opened.collect();
    Ok((Backend::Gpus(library, devices), opened))
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
    Ok((Backend::Workers, opened.collect::<Answer<_>>()?))
}

/// A device with the layer around it.
fn checked(device: Arc<dyn Driver>, layer: Checking) -> OpenedDevice {
    if layer.follows_launches() {
        records::expect_losses();
    }
    let checking = Arc::new(Layered::new(device, layer));
    OpenedDevice { driver: checking.clone(), checking: Some(checking), calls_functions: false }
}

fn no_device(what: &str, why: &dyn std::fmt::Display) -> Code {
    let text = format!("{what}, and the program was told CUDA_ERROR_NO_DEVICE: {why}");
    records::note_once(&text, &text);
    Code::NO_DEVICE
}

fn device_count() -> usize {
    run_settings::devices().map_or(1, |count| count as usize).min(MOST_DEVICES)
}
