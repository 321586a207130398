//! Calls as a trace writes them.

use std::sync::OnceLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::command::{RecordedCommand, RecordedNode, RecordedPlace, device_place};
use super::handle_name::{Address, Hex, Name};
use crate::call::{Call, CallKind};
use crate::clock::Timeout;
use crate::code_image::Image;
use crate::handle::{DeviceKey, Handle, Kind};
use crate::memory::{MemoryRequest, Protection};
use crate::stream::{EventRequest, StreamRequest, WaitTarget};
use crate::suballocation::{MemoryPart, PartKind};

/// A [`Call`] without lifetimes and keys.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum RecordedCall {
    MemoryInfo,
    Health,
    Reserve { bytes: u64, at: Option<Address> },
    CreatePages { bytes: u64, exportable: bool },
    Map { into: Name, offset: u64, pages: Vec<Name>, protection: RecordedProtection },
    Unmap { from: Name, offset: u64, bytes: u64 },
    Protect { reservation: Name, offset: u64, bytes: u64, protection: RecordedProtection },
    ExportPages { pages: Name },
    ImportPages { bytes: u64 },
    Allocate { request: RecordedMemory },
    Free { memory: Name, stream: Option<Name> },
    TrimPool { keep_bytes: u64 },
    AllocateHost { bytes: u64 },
    RegisterHost { bytes: u64 },
    CreateStream { request: RecordedStream },
    CreateEvent { request: RecordedEvent },
    Wait { target: Name, timeout: RecordedTimeout },
    Findings,
    Elapsed { from: Name, to: Name },
    Load { image: RecordedImage },
    Function { module: Name, name: String },
    Global { module: Name, name: String },
    Occupancy { function: Name, block_threads: u32, dynamic_shared_bytes: u32 },
    Submit { stream: Name, command: RecordedCommand },
    Progress { stream: Name },
    BuildGraph { nodes: Vec<RecordedNode> },
    UpdateGraph { graph: Name, node: u32, command: RecordedCommand },
    Destroy { object: Name },
    Native { object: Name },
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordedProtection {
    Read,
    ReadWrite,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum RecordedMemory {
    Direct { bytes: u64 },
    Pool { bytes: u64, stream: Name },
    Foreign { address: Address, bytes: u64 },
    Part { place: RecordedPlace, bytes: u64, stream: Option<Name>, kind: RecordedPart, label: String },
}

/// What a part of other memory is.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordedPart {
    NewBlock,
    KeptBlock,
    Inspection,
}

impl From<PartKind> for RecordedPart {
    fn from(kind: PartKind) -> Self {
        match kind {
            PartKind::NewBlock => Self::NewBlock,
            PartKind::KeptBlock => Self::KeptBlock,
            PartKind::Inspection => Self::Inspection,
        }
    }
}

impl From<RecordedPart> for PartKind {
    fn from(kind: RecordedPart) -> Self {
        match kind {
            RecordedPart::NewBlock => Self::NewBlock,
            RecordedPart::KeptBlock => Self::KeptBlock,
            RecordedPart::Inspection => Self::Inspection,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum RecordedStream {
    New { priority: i32 },
    Foreign,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordedEvent {
    Plain,
    Timed,
    Foreign,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum RecordedTimeout {
    Poll,
    After { nanoseconds: u64 },
    Never,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum RecordedImage {
    Ptx(String),
    Cubin(Hex),
    HostKernels(String),
    Library(String),
    Communicator(String),
    CommunicatorId,
}

macro_rules! kinds {
    ($($plain:ident,)*; $($variant:ident,)*) => {
        impl RecordedCall {
            pub(crate) fn kind(&self) -> CallKind {
                match self {
                    Self::Findings => CallKind::Health,
                    $(Self::$plain => CallKind::$plain,)*
                    $(Self::$variant { .. } => CallKind::$variant,)*
                }
            }
        }
    };
}

kinds! {
    MemoryInfo, Health,;
    Reserve, CreatePages, Map, Unmap, Protect, ExportPages, ImportPages, Allocate, Free, TrimPool, AllocateHost,
    RegisterHost, CreateStream, CreateEvent, Wait, Elapsed, Load, Function, Global, Occupancy, Submit, Progress,
    BuildGraph, UpdateGraph, Destroy, Native,
}

impl RecordedCall {
    pub(crate) fn of(call: &Call<'_>, here: DeviceKey) -> Self {
        let here = Here(here);
        match *call {
            Call::MemoryInfo => Self::MemoryInfo,
            Call::Health => Self::Health,
            Call::Reserve { request } => {
                Self::Reserve { bytes: request.bytes, at: request.at.map(Address::from) }
            }
            Call::CreatePages { request } => {
                Self::CreatePages { bytes: request.bytes, exportable: request.exportable }
            }
            Call::Map { into, offset, pages, protection } => {
                let pages = pages.iter().map(|pages| here.name(*pages)).collect();
                Self::Map { into: here.name(into), offset, pages, protection: protection.into() }
            }
            Call::Unmap { from, offset, bytes } => Self::Unmap { from: here.name(from), offset, bytes },
            Call::Protect { reservation, offset, bytes, protection } => {
                let (reservation, protection) = (here.name(reservation), protection.into());
                Self::Protect { reservation, offset, bytes, protection }
            }
            Call::ExportPages { pages } => Self::ExportPages { pages: here.name(pages) },
            Call::ImportPages { bytes } => Self::ImportPages { bytes },
            Call::Allocate { request } => Self::Allocate { request: RecordedMemory::of(request, here.0) },
            Call::Free { memory, stream } => {
                Self::Free { memory: here.name(memory), stream: stream.map(|stream| here.name(stream)) }
            }
            Call::TrimPool { keep_bytes } => Self::TrimPool { keep_bytes },
            Call::AllocateHost { bytes } => Self::AllocateHost { bytes },
            Call::RegisterHost { bytes } => Self::RegisterHost { bytes },
            Call::CreateStream { request } => Self::CreateStream { request: request.into() },
            Call::CreateEvent { request } => Self::CreateEvent { request: request.into() },
            Call::Wait { target: WaitTarget::Event(event), timeout } => {
                Self::Wait { target: here.name(event), timeout: timeout.into() }
            }
            Call::Wait { target: WaitTarget::Stream(stream), timeout } => {
                Self::Wait { target: here.name(stream), timeout: timeout.into() }
            }
            Call::Wait { target: WaitTarget::Findings, .. } => Self::Findings,
            Call::Elapsed { from, to } => Self::Elapsed { from: here.name(from), to: here.name(to) },
            Call::Load { image } => Self::Load { image: image.into() },
            Call::Function { module, name } => {
                Self::Function { module: here.name(module), name: name.into() }
            }
            Call::Global { module, name } => Self::Global { module: here.name(module), name: name.into() },
            Call::Occupancy { function, block_threads, dynamic_shared_bytes } => {
                Self::Occupancy { function: here.name(function), block_threads, dynamic_shared_bytes }
            }
            Call::Submit { stream, command } => {
                Self::Submit { stream: here.name(stream), command: RecordedCommand::of(command, here.0) }
            }
            Call::Progress { stream } => Self::Progress { stream: here.name(stream) },
            Call::BuildGraph { nodes } => {
                Self::BuildGraph { nodes: nodes.iter().map(|node| RecordedNode::of(node, here.0)).collect() }
            }
            Call::UpdateGraph { graph, node, command } => {
                let command = RecordedCommand::of(command, here.0);
                Self::UpdateGraph { graph: here.name(graph), node, command }
            }
            Call::Destroy { object } => Self::Destroy { object: Name::of_object(object, here.0) },
            Call::Native { object } => Self::Native { object: Name::of_object(object, here.0) },
        }
    }
}

/// The device whose calls are recorded.
struct Here(DeviceKey);

impl Here {
    fn name<K: Kind>(&self, handle: Handle<K>) -> Name {
        Name::of(handle, self.0)
    }
}

impl RecordedMemory {
    fn of(request: MemoryRequest, here: DeviceKey) -> Self {
        match request {
            MemoryRequest::Direct { bytes } => Self::Direct { bytes },
            MemoryRequest::Pool { bytes, stream } => Self::Pool { bytes, stream: Name::of(stream, here) },
            MemoryRequest::Foreign(memory) => {
                Self::Foreign { address: memory.address().into(), bytes: memory.bytes() }
            }
            MemoryRequest::Part(MemoryPart { place, bytes, stream, kind, label }) => Self::Part {
                place: device_place(place, here, false),
                bytes,
                stream: stream.map(|stream| Name::of(stream, here)),
                kind: kind.into(),
                label: label.to_string(),
            },
        }
    }
}

impl From<Protection> for RecordedProtection {
    fn from(protection: Protection) -> Self {
        match protection {
            Protection::Read => Self::Read,
            Protection::ReadWrite => Self::ReadWrite,
        }
    }
}

impl From<RecordedProtection> for Protection {
    fn from(protection: RecordedProtection) -> Self {
        match protection {
            RecordedProtection::Read => Self::Read,
            RecordedProtection::ReadWrite => Self::ReadWrite,
        }
    }
}

impl From<StreamRequest> for RecordedStream {
    fn from(request: StreamRequest) -> Self {
        match request {
            StreamRequest::New { priority } => Self::New { priority },
            StreamRequest::Foreign(_) => Self::Foreign,
        }
    }
}

impl From<EventRequest> for RecordedEvent {
    fn from(request: EventRequest) -> Self {
        match request {
            EventRequest::Plain => Self::Plain,
            EventRequest::Timed => Self::Timed,
            EventRequest::Foreign(_) => Self::Foreign,
        }
    }
}

impl From<Timeout> for RecordedTimeout {
    fn from(timeout: Timeout) -> Self {
        match timeout {
            Timeout::Poll => Self::Poll,
            Timeout::After(duration) => {
                Self::After { nanoseconds: u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX) }
            }
            Timeout::Never => Self::Never,
        }
    }
}

impl From<RecordedTimeout> for Timeout {
    fn from(timeout: RecordedTimeout) -> Self {
        match timeout {
            RecordedTimeout::Poll => Self::Poll,
            RecordedTimeout::After { nanoseconds } => Self::After(Duration::from_nanos(nanoseconds)),
            RecordedTimeout::Never => Self::Never,
        }
    }
}

impl From<Image<'_>> for RecordedImage {
    fn from(image: Image<'_>) -> Self {
        match image {
            // A trace holds what was loaded; keeping the machine code is the program's affair.
            Image::Ptx(text) | Image::PtxToKeep { text, .. } => Self::Ptx(text.into()),
            Image::Cubin(bytes) => Self::Cubin(Hex(bytes.into())),
            Image::HostKernels(name) => Self::HostKernels(name.into()),
            Image::Library(text) => Self::Library(text.into()),
            Image::Communicator(text) => Self::Communicator(text.into()),
            Image::CommunicatorId { .. } => Self::CommunicatorId,
        }
    }
}

/// Takes the id that a replay makes. The ranks of the trace have the id of the recorded run.
static REPLAYED_ID: OnceLock<Vec<u8>> = OnceLock::new();

impl RecordedImage {
    pub(crate) fn image(&self) -> Image<'_> {
        match self {
            Self::Ptx(text) => Image::Ptx(text),
            Self::Cubin(bytes) => Image::Cubin(&bytes.0),
            Self::HostKernels(name) => Image::HostKernels(name),
            Self::Library(text) => Image::Library(text),
            Self::Communicator(text) => Image::Communicator(text),
            Self::CommunicatorId => Image::CommunicatorId { id: &REPLAYED_ID },
        }
    }
}
