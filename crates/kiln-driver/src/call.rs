//! A call of the `Driver` trait as a value, as layers see it.

use std::time::Duration;

use crate::clock::{Timeout, Waited};
use crate::code_image::{Function, Image, Occupancy};
use crate::command::{Command, Submission};
use crate::device::MemoryInfo;
use crate::graph::GraphNode;
use crate::handle::{
    EventId, FunctionId, GraphId, MemoryId, ModuleId, Object, PagesId, ReservationId, StreamId,
};
use crate::host_memory::HostBlock;
use crate::memory::{DeviceMemory, MemoryRequest, PageRequest, Protection, Reservation, ReserveRequest};
use crate::stream::{EventRequest, Health, Progress, StreamRequest, WaitTarget};

macro_rules! calls {
    ($($(#[$doc:meta])* $variant:ident $({ $($field:ident: $type:ty),* $(,)? })? = $name:literal;)*) => {
        /// One call of [`Driver`](crate::Driver) with its arguments. Calls that only read what is fixed (`info`,
        /// `clock`) are not calls in this sense.
        #[derive(Clone, Copy, Debug)]
        pub enum Call<'a> {
            $($(#[$doc])* $variant $({ $(
                #[doc = concat!("The argument `", stringify!($field), "`.")]
                $field: $type,
            )* })?,)*
        }

        /// Which call it is.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(usize)]
        pub enum CallKind {
            $(#[doc = concat!("`", $name, "`.")] $variant,)*
        }

        impl CallKind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name of the method.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }

        impl Call<'_> {
            /// Which call it is. A question for findings waits for nothing, and naming a block allocates nothing: both are only for devices that check
            /// accesses, and count as questions for the health of the device.
            pub fn kind(&self) -> CallKind {
                match self { Self::Wait { target: WaitTarget::Findings, .. } | Self::Allocate { request: MemoryRequest::Part(_), .. } => CallKind::Health, $(calls!(@pattern $variant $({ $($field),* })?) => CallKind::$variant,)* }
            }
        }
    };
    (@pattern $variant:ident) => { Self::$variant };
    (@pattern $variant:ident { $($field:ident),* }) => { Self::$variant { .. } };
}

calls! {
    /// Asks what is free.
    MemoryInfo = "memory_info";
    /// Asks whether the device can be used.
    Health = "health";
    /// Reserves addresses.
    Reserve { request: ReserveRequest } = "reserve";
    /// Creates pages.
    CreatePages { request: PageRequest } = "create_pages";
    /// Maps pages.
    Map { into: ReservationId, offset: u64, pages: &'a [PagesId], protection: Protection } = "map";
    /// Takes mappings out.
    Unmap { from: ReservationId, offset: u64, bytes: u64 } = "unmap";
    /// Changes protection.
    Protect { reservation: ReservationId, offset: u64, bytes: u64, protection: Protection } = "protect";
    /// Exports pages.
    ExportPages { pages: PagesId } = "export_pages";
    /// Imports pages.
    ImportPages { bytes: u64 } = "import_pages";
    /// Allocates memory.
    Allocate { request: MemoryRequest } = "allocate";
    /// Frees memory.
    Free { memory: MemoryId, stream: Option<StreamId> } = "free";
    /// Trims the pool.
    TrimPool { keep_bytes: u64 } = "trim_pool";
    /// Allocates host memory.
    AllocateHost { bytes: u64 } = "allocate_host";
    /// Registers host memory.
    RegisterHost { bytes: u64 } = "register_host";
    /// Creates a stream.
    CreateStream { request: StreamRequest } = "create_stream";
    /// Creates an event.
    CreateEvent { request: EventRequest } = "create_event";
    /// Waits on the host.
    Wait { target: WaitTarget, timeout: Timeout } = "wait";
    /// Measures time.
    Elapsed { from: EventId, to: EventId } = "elapsed";
    /// Loads code.
    Load { image: Image<'a> } = "load";
    /// Looks a kernel up.
    Function { module: ModuleId, name: &'a str } = "function";
    /// Looks a variable up.
    Global { module: ModuleId, name: &'a str } = "global";
    /// Asks how many blocks fit.
    Occupancy { function: FunctionId, block_threads: u32, dynamic_shared_bytes: u32 } = "occupancy";
    /// Queues a command.
    Submit { stream: StreamId, command: &'a Command<'a> } = "submit";
    /// Asks how far a stream is.
    Progress { stream: StreamId } = "progress";
    /// Builds a graph.
    BuildGraph { nodes: &'a [GraphNode<'a>] } = "build_graph";
    /// Changes a node.
    UpdateGraph { graph: GraphId, node: u32, command: &'a Command<'a> } = "update_graph";
    /// Takes an object back.
    Destroy { object: Object } = "destroy";
    /// Asks for the native handle.
    Native { object: Object } = "native";
}

/// What a call gave back.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// Done, with nothing to say.
    Done,
    /// A file descriptor.
    Descriptor,
    /// Addresses.
    Reservation(&'a Reservation),
    /// Pages.
    Pages(PagesId),
    /// Memory.
    Memory(&'a DeviceMemory),
    /// A host block.
    Host(&'a HostBlock),
    /// A stream.
    Stream(StreamId),
    /// An event.
    Event(EventId),
    /// A module.
    Module(ModuleId),
    /// A kernel.
    Function(&'a Function),
    /// A graph.
    Graph(GraphId),
    /// A submission.
    Submission(Submission),
    /// How a wait ended.
    Waited(Waited),
    /// How far a stream is.
    Progress(Progress),
    /// Device time.
    Elapsed(Duration),
    /// How many blocks fit.
    Occupancy(Occupancy),
    /// What is free.
    MemoryInfo(MemoryInfo),
    /// Whether the device can be used.
    Health(&'a Health),
    /// A native handle.
    Native(u64),
}

/// Values a call gives back.
pub trait Answered {
    /// The value, for layers to look at.
    fn answer(&self) -> Answer<'_>;
}

macro_rules! answered {
    ($($type:ty => $answer:expr;)*) => {$(
        impl Answered for $type {
            #[inline]
            fn answer(&self) -> Answer<'_> {
                let make: fn(&$type) -> Answer<'_> = $answer;
                make(self)
            }
        }
    )*};
}

answered! {
    () => |()| Answer::Done;
    crate::fd::OwnedFd => |_| Answer::Descriptor;
    Reservation => |value| Answer::Reservation(value);
    PagesId => |value| Answer::Pages(*value);
    DeviceMemory => |value| Answer::Memory(value);
    HostBlock => |value| Answer::Host(value);
    StreamId => |value| Answer::Stream(*value);
    EventId => |value| Answer::Event(*value);
    ModuleId => |value| Answer::Module(*value);
    Function => |value| Answer::Function(value);
    GraphId => |value| Answer::Graph(*value);
    Submission => |value| Answer::Submission(*value);
    Waited => |value| Answer::Waited(*value);
    Progress => |value| Answer::Progress(*value);
    Duration => |value| Answer::Elapsed(*value);
    Occupancy => |value| Answer::Occupancy(*value);
    MemoryInfo => |value| Answer::MemoryInfo(*value);
    Health => |value| Answer::Health(value);
    u64 => |value| Answer::Native(*value);
}
