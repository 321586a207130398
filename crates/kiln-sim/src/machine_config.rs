//! `MachineConfig`: seed, devices, checks and limits of a simulated machine.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::code::code_engine::CodeEngine;
use crate::code::host_kernel_library::KernelLibrary;
use crate::device::device_config::DeviceConfig;
use crate::fault_plan::FaultPlan;
use crate::links::Links;
use crate::schedule::cost_model::Costs;
use crate::schedule::scheduling_choice::Schedule;

/// How a machine is built. Two machines built from the same value, and used in the same way by one thread, do the
/// same thing, unless they are threaded. With communicators this holds while the thread makes a call at least every 400 ms of real time: after that, the thread that looks for
/// lost ranks moves the machine.
///
/// ```
/// use kiln_sim::{DeviceConfig, Machine, MachineConfig};
///
/// let config = MachineConfig::seeded(7)
///     .device(DeviceConfig::with_memory(1 << 30))
///     .device(DeviceConfig::small());
/// let machine = Machine::new(config);
/// assert_eq!(machine.devices().len(), 2);
/// ```
#[derive(Clone)]
pub struct MachineConfig {
    /// Who decides what runs next.
    pub mode: Mode,
    /// The devices, by ordinal; one default device if the list is empty.
    pub devices: Vec<DeviceConfig>,
    /// Host functions that can be loaded.
    pub libraries: Vec<KernelLibrary>,
    /// What runs PTX; without it PTX is unsupported.
    pub engine: Option<Arc<dyn CodeEngine>>,
    /// What goes wrong.
    pub faults: FaultPlan,
    /// A file to which the machine writes each planned fault that comes, by its place in the plan, counted from 0, with a line for each. What cannot be written is left out.
    pub fault_log: Option<PathBuf>,
    /// What is looked at.
    pub checks: SimChecks,
    /// How long things take.
    pub costs: Costs,
    /// Which devices can copy to each other.
    pub links: Links,
    /// Where the machine itself ends.
    pub limits: MachineLimits,
}

/// Who decides what runs next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Nothing runs before it must, and the seed picks which stream moves.
    Seeded(u64),
    /// The same, with choices written down beforehand: how a run of [`explore`](crate::explore) is repeated.
    Scheduled(Schedule),
    /// Threads of the host run streams side by side, for speed.
    Threaded {
        /// How many threads; at least one.
        workers: usize,
    },
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seeded(seed) => write!(f, "seed {seed}"),
            Self::Scheduled(schedule) => write!(f, "schedule {schedule}"),
            Self::Threaded { workers } => write!(f, "{workers} threads"),
        }
    }
}

/// What is looked at. Everything but stale handles is, unless it is turned off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SimChecks {
    /// Accesses to the same bytes that nothing orders.
    pub races: bool,
    /// Memory used outside of its life, and objects destroyed while work needs them.
    pub lifetimes: bool,
    /// Bytes read that were never written.
    pub uninitialised: bool,
    /// Kernels that touch what their launch did not declare. Without this the device does not say that it checks accesses
    /// (`Features::access_checks`), and a runtime above it behaves as on hardware.
    pub declarations: bool,
    /// Objects that are still there when the machine is finished.
    pub leaks: bool,
    /// Calls with handles of objects that are gone, besides memory freed twice. They are refused in any case.
    pub stale_handles: bool,
}

impl Default for SimChecks {
    fn default() -> Self {
        Self {
            races: true,
            lifetimes: true,
            uninitialised: true,
            declarations: true,
            leaks: true,
            stale_handles: false,
        }
    }
}

impl SimChecks {
    /// Nothing is looked at.
    pub fn off() -> Self {
        Self {
            races: false,
            lifetimes: false,
            uninitialised: false,
            declarations: false,
            leaks: false,
            stale_handles: false,
        }
    }

    /// Whether any check needs to know which bytes are touched.
    pub(crate) fn accesses(self) -> bool {
        self.races || self.lifetimes || self.uninitialised || self.declarations
    }
}

/// Where the machine itself ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MachineLimits {
    /// Findings that are kept.
    pub findings: usize,
    /// Bytes of trace that are kept; 0 turns the trace off.
    pub trace_bytes: usize,
    /// Bytes of what kernels print that are kept.
    pub printed_bytes: usize,
    /// Spans of the timeline that are kept.
    pub spans: usize,
    /// Polls in a row that may see nothing move.
    pub idle_polls: u32,
    /// How long a wait without a timeout waits for work that hangs, on the virtual clock.
    pub hang: Duration,
    /// How long, in real time, the host may submit nothing while a kernel waits in a loop for memory and nothing else is left to run. The
    /// kernel is reported as endless then.
    pub idle_host: Duration,
    /// Nodes of a graph, with those of the graphs in it.
    pub graph_nodes: usize,
    /// Commands queued on one stream.
    pub queued_commands: usize,
}

impl Default for MachineLimits {
    fn default() -> Self {
        Self {
            findings: 256,
            trace_bytes: 16 << 20,
            printed_bytes: 16 << 20,
            spans: 1 << 20,
            idle_polls: 3,
            hang: Duration::from_secs(60),
            idle_host: Duration::from_secs(1),
            graph_nodes: 1 << 16,
            queued_commands: 1 << 20,
        }
    }
}

impl MachineConfig {
    /// One default device, driven by a seed.
    pub fn seeded(seed: u64) -> Self {
        Self {
            mode: Mode::Seeded(seed),
            devices: Vec::new(),
            libraries: Vec::new(),
            engine: None,
            faults: FaultPlan::none(),
            fault_log: None,
            checks: SimChecks::default(),
            costs: Costs::default(),
            links: Links::default(),
            limits: MachineLimits::default(),
        }
    }

    /// One default device, run by as many threads as the host has processors.
    pub fn threaded() -> Self {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let mut config = Self { mode: Mode::Threaded { workers }, ..Self::seeded(0) };
        config.limits.trace_bytes = 0;
        config
    }

    /// The same, run in another way.
    #[must_use]
    pub fn mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// One more device.
    #[must_use]
    pub fn device(mut self, device: DeviceConfig) -> Self {
        self.devices.push(device);
        self
    }

    /// One more library of host functions.
    #[must_use]
    pub fn library(mut self, library: KernelLibrary) -> Self {
        self.libraries.push(library);
        self
    }

    /// What runs PTX.
    #[must_use]
    pub fn engine(self, engine: Arc<dyn CodeEngine>) -> Self {
        Self { engine: Some(engine), ..self }
    }

    /// What goes wrong.
    #[must_use]
    pub fn faults(self, faults: FaultPlan) -> Self {
        Self { faults, ..self }
    }

    /// Which devices can copy to each other.
    #[must_use]
    pub fn links(self, links: Links) -> Self {
        Self { links, ..self }
    }

    /// What is looked at.
    #[must_use]
    pub fn checks(self, checks: SimChecks) -> Self {
        Self { checks, ..self }
    }
}

impl fmt::Debug for MachineConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let devices = self.devices.len().max(1);
        write!(f, "a machine with {devices} devices, {}", self.mode)
    }
}
