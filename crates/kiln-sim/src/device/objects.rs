//! The objects of a device, by handle: memory, pages, streams, events, modules and graphs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use kiln_driver::{
    DeviceAddress, DeviceInfo, EventId, FunctionAttributes, FunctionId, HostId, MemoryId, ParameterSpan,
    ReservationId, kind,
};
use kiln_operation::CommunicatorRank;

use crate::check::access_origin::Mark;
use crate::check::vector_clock::{Lane, VectorClock};
use crate::code::code_engine::CompileError;
use crate::code::kernel::SimKernel;
use crate::collective::collective_kernel::CollectiveKernel;
use crate::device::handle_table::Table;
use crate::device::native_handle::Natives;
use crate::memory::host_backing;
use crate::memory::memory_identity::Region;
use crate::memory::physical_memory::Physical;
use crate::schedule::graph::GraphPlan;

/// All objects of one device.
#[derive(Debug)]
pub(crate) struct Objects {
    pub(crate) info: DeviceInfo,
    pub(crate) memory: Table<kind::Memory, MemoryBlock>,
    pub(crate) reservations: Table<kind::Reservation, ReservedRange>,
    pub(crate) pages: Table<kind::Pages, Pages>,
    pub(crate) hosts: Table<kind::Host, HostMemory>,
    pub(crate) streams: Table<kind::Stream, Lane>,
    pub(crate) events: Table<kind::Event, Event>,
    pub(crate) modules: Table<kind::Module, Module>,
    pub(crate) functions: Table<kind::Function, LoadedFunction>,
    pub(crate) graphs: Table<kind::Graph, Mutex<Graph>>,
    pub(crate) natives: Natives,
}

impl Objects {
    pub(crate) fn new(info: DeviceInfo) -> Self {
        let (key, ordinal) = (info.key, info.ordinal);
        Self {
            info,
            memory: Table::new(key),
            reservations: Table::new(key),
            pages: Table::new(key),
            hosts: Table::new(key),
            streams: Table::new(key),
            events: Table::new(key),
            modules: Table::new(key),
            functions: Table::new(key),
            graphs: Table::new(key),
            natives: Natives::new(ordinal),
        }
    }

    /// Whether an event measures. Calls about it take no virtual time.
    pub(crate) fn is_timed(&self, event: EventId) -> bool {
        self.events.find("event", event).is_ok_and(|event| event.timed)
    }

    /// Memory that lives and dies with a module.
    pub(crate) fn variables(&self) -> Vec<MemoryId> {
        let modules =
            self.modules.handles().into_iter().filter_map(|id| self.modules.find("handles", id).ok());
        modules.flat_map(|module| module.variables.iter().map(|(_, id)| *id).collect::<Vec<_>>()).collect()
    }
}

/// Memory that was allocated.
#[derive(Debug)]
pub(crate) struct MemoryBlock {
    pub(crate) id: MemoryId,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) origin: Origin,
}

/// Where memory came from, which says how it goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    Direct,
    Pool,
    Foreign,
    Variable,
    /// A block that a resource hands out of other memory.
    Part,
}

/// Addresses that were reserved.
#[derive(Debug)]
pub(crate) struct ReservedRange {
    pub(crate) id: ReservationId,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
}

/// Physical memory that can be mapped.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) physical: Arc<Physical>,
    pub(crate) bytes: u64,
}

/// Host memory the device can reach.
#[derive(Debug)]
pub(crate) struct HostMemory {
    pub(crate) id: HostId,
    pub(crate) physical: Arc<Physical>,
    pub(crate) region: Arc<Region>,
    /// Who gave it back, if it was given back.
    pub(crate) death: OnceLock<Arc<Mark>>,
    /// Whether it was allocated elsewhere.
    pub(crate) registered: bool,
}

impl HostMemory {
    /// Whether its pages are still there: the program may have unmapped what it registered.
    pub(crate) fn is_present(&self) -> bool {
        !self.registered || host_backing::is_mapped(&self.physical.bytes)
    }
}

/// A point in a stream's work.
#[derive(Debug)]
pub(crate) struct Event {
    /// The handle it was made under; others are names that another library was given.
    pub(crate) id: EventId,
    pub(crate) timed: bool,
    pub(crate) last: Mutex<Option<Arc<Signal>>>,
    pub(crate) waiters: Mutex<Users>,
}

impl Event {
    /// The last recording.
    pub(crate) fn last(&self) -> Option<Arc<Signal>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One recording of an event.
#[derive(Debug)]
pub(crate) struct Signal {
    pub(crate) mark: Arc<Mark>,
    /// When it was done, on the virtual clock; empty until it ran.
    pub(crate) done_ns: OnceLock<u64>,
}

/// Loaded code.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) kernels: BTreeMap<Arc<str>, Loaded>,
    /// Kernels that were not accepted.
    pub(crate) refused: BTreeMap<String, CompileError>,
    pub(crate) functions: Mutex<BTreeMap<Arc<str>, FunctionId>>,
    pub(crate) variables: Vec<(String, MemoryId)>,
    pub(crate) globals: Arc<[DeviceAddress]>,
    pub(crate) users: Arc<Mutex<Users>>,
    /// The rank, if it is one of a communicator.
    pub(crate) communicator: Option<CommunicatorRank>,
}

/// A kernel of a module.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) name: Arc<str>,
    pub(crate) kernel: Arc<dyn SimKernel>,
    pub(crate) attributes: FunctionAttributes,
    pub(crate) spans: Arc<[ParameterSpan]>,
    /// The collectives, if it is a function of a communicator.
    pub(crate) collective: Option<Arc<CollectiveKernel>>,
    /// The rank that it ends, if it is that function of a communicator.
    pub(crate) aborts: Option<CommunicatorRank>,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "kernel {}", self.name)
    }
}

/// A kernel with a handle.
#[derive(Debug)]
pub(crate) struct LoadedFunction {
    pub(crate) loaded: Loaded,
    pub(crate) globals: Arc<[DeviceAddress]>,
    pub(crate) users: Arc<Mutex<Users>>,
}

/// A graph with a handle; launches take a snapshot of the plan.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) plan: Arc<GraphPlan>,
    pub(crate) users: Users,
}

/// Steps that need an object, as far as the host does not know them to be done.
#[derive(Debug, Default)]
pub(crate) struct Users {
    marks: Vec<Arc<Mark>>,
}

impl Users {
    pub(crate) fn add(&mut self, mark: &Arc<Mark>, host: &VectorClock) {
        self.marks.retain(|user| !user.is_known_to(host) && !user.is_before(mark));
        self.marks.push(mark.clone());
    }

    /// Those that the host does not know to be done.
    pub(crate) fn unknown(&self, host: &VectorClock) -> impl Iterator<Item = &Arc<Mark>> {
        self.marks.iter().filter(|user| !user.is_known_to(host))
    }
}
