//! Everything a client requests of a worker.

use kiln_driver::{DeviceAddress, PartKind, Protection};

use super::command::{WireCommand, WirePlace};
use super::reader::{Malformed, Reader};
use super::tensor_map::WireTensorMap;
use super::writer::{Put, Take, Writer};

/// A message to the worker. Only [`Request::Ask`] and [`Request::Parcel`] are answered.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Request<'a> {
    /// Queue a command, as this submission of the stream.
    Submit {
        stream: u64,
        number: u64,
        command: WireCommand<'a>,
    },
    /// Make a stream whose next submission has the number after `start`.
    CreateStream {
        id: u64,
        cell: u32,
        priority: i32,
        start: u64,
    },
    CreateEvent {
        id: u64,
        cell: u32,
        timed: bool,
    },
    Destroy {
        object: WireObject,
        id: u64,
    },
    Free {
        memory: u64,
        stream: Option<u64>,
    },
    /// Query the stream until it is that far, and publish its progress.
    WatchStream {
        stream: u64,
        number: u64,
    },
    /// Query the event until that signal is done, and publish that.
    WatchEvent {
        event: u64,
        ticket: u64,
    },
    /// Check the health of the device, and publish that this was done.
    Examine {
        number: u64,
    },
    /// A question; the answer carries its number.
    Ask {
        number: u64,
        ask: Ask<'a>,
    },
    /// A question too long for the ring; it is in the memory file that came through the socket.
    Parcel {
        number: u64,
        bytes: u64,
    },
    /// Exit.
    Bye,
    /// Number the stream, which was made ahead of time: its next submission has the number after `start`.
    ResumeStream {
        id: u64,
        start: u64,
    },
    /// A block begins in memory that is there.
    BeginPart {
        id: u64,
        part: WirePart<'a>,
    },
    /// What is queued on the stream from here on has that number where its times are told; none: it has no number.
    NumberWork {
        stream: u64,
        number: Option<u64>,
    },
}

/// A block that a resource hands out of other memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WirePart<'a> {
    pub(crate) place: WirePlace,
    pub(crate) bytes: u64,
    pub(crate) stream: Option<u64>,
    pub(crate) kind: PartKind,
    pub(crate) label: &'a str,
}

/// A question: a request with an answer.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Ask<'a> {
    MemoryInfo,
    Reserve {
        id: u64,
        bytes: u64,
        at: Option<DeviceAddress>,
    },
    /// Answered with a descriptor of the pages if `keep` is set.
    CreatePages {
        id: u64,
        bytes: u64,
        keep: bool,
    },
    /// The descriptor came through the socket.
    ImportPages {
        id: u64,
        bytes: u64,
    },
    Map {
        reservation: u64,
        offset: u64,
        pages: Vec<u64>,
        protection: Protection,
    },
    Unmap {
        reservation: u64,
        offset: u64,
        bytes: u64,
    },
    Protect {
        reservation: u64,
        offset: u64,
        bytes: u64,
        protection: Protection,
    },
    DestroyReservation {
        id: u64,
    },
    Allocate {
        id: u64,
        bytes: u64,
        stream: Option<u64>,
    },
    TrimPool {
        keep_bytes: u64,
    },
    /// The memory came through the socket.
    RegisterHost {
        id: u64,
        bytes: u64,
    },
    Elapsed {
        from: u64,
        to: u64,
    },
    /// The image came through the socket.
    Load {
        id: u64,
        kind: u8,
        bytes: u64,
    },
    Function {
        id: u64,
        module: u64,
        name: &'a str,
    },
    Global {
        id: u64,
        module: u64,
        name: &'a str,
    },
    Occupancy {
        function: u64,
        block_threads: u32,
        dynamic_shared_bytes: u32,
    },
    BuildGraph {
        id: u64,
        nodes: Vec<WireNode<'a>>,
    },
    UpdateGraph {
        graph: u64,
        node: u32,
        command: WireCommand<'a>,
    },
    /// Several questions, up to the first that fails; none of them a batch.
    Batch {
        asks: Vec<Ask<'a>>,
    },
    /// Answered when every request before it is done.
    Ready,
    /// The oldest finding of the device that was not answered yet is the error of the answer.
    Findings,
    /// When numbered work ran.
    Times(TimesAsk),
    /// The bytes of a tensor map.
    TensorMap(WireTensorMap),
}

/// What is asked of the times of numbered work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimesAsk {
    /// Begin to watch.
    Start,
    /// Watch no more.
    Stop,
    /// Give what came since the last time.
    Take,
    /// The same, after having the device's tool tell what it knows.
    Flush,
    /// The same, of all work that is over.
    FlushAll,
}

/// A node of a graph.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct WireNode<'a> {
    pub(crate) command: WireCommand<'a>,
    pub(crate) after: Vec<u32>,
}

/// Objects that are destroyed without an answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum WireObject {
    Pages,
    Host,
    Stream,
    Event,
    Module,
    Graph,
}

/// The tag of a batch.
const BATCH: u8 = 18;

const OBJECTS: [WireObject; 6] = [
    WireObject::Pages,
    WireObject::Host,
    WireObject::Stream,
    WireObject::Event,
    WireObject::Module,
    WireObject::Graph,
];

const TIMES: [TimesAsk; 5] =
    [TimesAsk::Start, TimesAsk::Stop, TimesAsk::Take, TimesAsk::Flush, TimesAsk::FlushAll];

impl Put for TimesAsk {
    fn put(&self, to: &mut Writer) {
        to.u8(TIMES.iter().position(|ask| ask == self).unwrap_or(TIMES.len()) as u8);
    }
}

impl Take for TimesAsk {
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let tag = usize::from(from.u8()?);
        TIMES.get(tag).copied().ok_or(Malformed { what: "an unknown question for times" })
    }
}

impl Put for WireObject {
    fn put(&self, to: &mut Writer) {
        to.u8(OBJECTS.iter().position(|object| object == self).unwrap_or(OBJECTS.len()) as u8);
    }
}

impl Take for WireObject {
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let tag = usize::from(from.u8()?);
        OBJECTS.get(tag).copied().ok_or(Malformed { what: "an unknown kind of object" })
    }
}

macro_rules! put_all {
    ($to:expr, $tag:literal $(, $field:expr)*) => {{
        $to.u8($tag);
        $(Put::put($field, $to);)*
    }};
}

const PARTS: [PartKind; 3] = [PartKind::NewBlock, PartKind::KeptBlock, PartKind::Inspection];

impl Put for PartKind {
    fn put(&self, to: &mut Writer) {
        to.u8(PARTS.iter().position(|kind| kind == self).unwrap_or(PARTS.len()) as u8);
    }
}

impl Take for PartKind {
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let tag = usize::from(from.u8()?);
        PARTS.get(tag).copied().ok_or(Malformed { what: "an unknown kind of block" })
    }
}

impl Put for Request<'_> {
    fn put(&self, to: &mut Writer) {
        match self {
            Self::Submit { stream, number, command } => put_all!(to, 0, stream, number, command),
            Self::CreateStream { id, cell, priority, start } => put_all!(to, 1, id, cell, priority, start),
            Self::CreateEvent { id, cell, timed } => put_all!(to, 2, id, cell, timed),
            Self::Destroy { object, id } => put_all!(to, 3, object, id),
            Self::Free { memory, stream } => put_all!(to, 4, memory, stream),
            Self::WatchStream { stream, number } => put_all!(to, 5, stream, number),
            Self::WatchEvent { event, ticket } => put_all!(to, 6, event, ticket),
            Self::Examine { number } => put_all!(to, 7, number),
            Self::Ask { number, ask } => put_all!(to, 8, number, ask),
            Self::Parcel { number, bytes } => put_all!(to, 9, number, bytes),
            Self::Bye => put_all!(to, 10),
            Self::ResumeStream { id, start } => put_all!(to, 11, id, start),
            Self::BeginPart { id, part: WirePart { place, bytes, stream, kind, label } } => {
                put_all!(to, 12, id, place, bytes, stream, kind);
                to.slice(label.as_bytes());
            }
            Self::NumberWork { stream, number } => put_all!(to, 13, stream, number),
        }
    }
}

impl<'a> Request<'a> {
    pub(crate) fn take(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut from = Reader::new(bytes);
        let request = Self::take_one(&mut from)?;
        from.end()?;
        Ok(request)
    }

    fn take_one(from: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(match from.u8()? {
            0 => Self::Submit { stream: from.u64()?, number: from.u64()?, command: WireCommand::take(from)? },
            1 => Self::CreateStream {
                id: from.u64()?,
                cell: from.u32()?,
                priority: Take::take(from)?,
                start: from.u64()?,
            },
            2 => Self::CreateEvent { id: from.u64()?, cell: from.u32()?, timed: Take::take(from)? },
            3 => Self::Destroy { object: Take::take(from)?, id: from.u64()? },
            4 => Self::Free { memory: from.u64()?, stream: Take::take(from)? },
            5 => Self::WatchStream { stream: from.u64()?, number: from.u64()? },
            6 => Self::WatchEvent { event: from.u64()?, ticket: from.u64()? },
            7 => Self::Examine { number: from.u64()? },
            8 => Self::Ask { number: from.u64()?, ask: Ask::take(from)? },
            9 => Self::Parcel { number: from.u64()?, bytes: from.u64()? },
            10 => Self::Bye,
            11 => Self::ResumeStream { id: from.u64()?, start: from.u64()? },
            12 => Self::BeginPart {
                id: from.u64()?,
                part: WirePart {
                    place: Take::take(from)?,
                    bytes: from.u64()?,
                    stream: Take::take(from)?,
                    kind: Take::take(from)?,
                    label: from.text()?,
                },
            },
            13 => Self::NumberWork { stream: from.u64()?, number: Take::take(from)? },
            _ => return Err(Malformed { what: "an unknown request" }),
        })
    }
}

impl Put for Ask<'_> {
    fn put(&self, to: &mut Writer) {
        match self {
            Self::MemoryInfo => put_all!(to, 0),
            Self::Reserve { id, bytes, at } => put_all!(to, 1, id, bytes, at),
            Self::CreatePages { id, bytes, keep } => put_all!(to, 2, id, bytes, keep),
            Self::ImportPages { id, bytes } => put_all!(to, 3, id, bytes),
            Self::Map { reservation, offset, pages, protection } => {
                put_all!(to, 4, reservation, offset, pages, protection);
            }
            Self::Unmap { reservation, offset, bytes } => put_all!(to, 5, reservation, offset, bytes),
            Self::Protect { reservation, offset, bytes, protection } => {
                put_all!(to, 6, reservation, offset, bytes, protection);
            }
            Self::DestroyReservation { id } => put_all!(to, 7, id),
            Self::Allocate { id, bytes, stream } => put_all!(to, 8, id, bytes, stream),
            Self::TrimPool { keep_bytes } => put_all!(to, 9, keep_bytes),
            Self::RegisterHost { id, bytes } => put_all!(to, 10, id, bytes),
            Self::Elapsed { from, to: until } => put_all!(to, 11, from, until),
            Self::Load { id, kind, bytes } => put_all!(to, 12, id, kind, bytes),
            Self::Function { id, module, name } => {
                put_all!(to, 13, id, module);
                to.slice(name.as_bytes());
            }
            Self::Global { id, module, name } => {
                put_all!(to, 14, id, module);
                to.slice(name.as_bytes());
            }
            Self::Occupancy { function, block_threads, dynamic_shared_bytes } => {
                put_all!(to, 15, function, block_threads, dynamic_shared_bytes);
            }
            Self::BuildGraph { id, nodes } => put_all!(to, 16, id, nodes),
            Self::UpdateGraph { graph, node, command } => put_all!(to, 17, graph, node, command),
            Self::Batch { asks } => {
                to.u8(BATCH);
                asks.put(to);
            }
            Self::Ready => put_all!(to, 19),
            Self::Findings => put_all!(to, 20),
            Self::Times(ask) => put_all!(to, 21, ask),
            Self::TensorMap(map) => put_all!(to, 22, map),
        }
    }
}

impl<'a> Ask<'a> {
    pub(crate) fn take(from: &mut Reader<'a>) -> Result<Self, Malformed> {
        match from.u8()? {
            BATCH => Ok(Self::Batch { asks: take_list(from, |from| Self::take_single(from.u8()?, from))? }),
            tag => Self::take_single(tag, from),
        }
    }

    /// A question that is no batch: nested batches could exhaust the stack.
    fn take_single(tag: u8, from: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(match tag {
            0 => Self::MemoryInfo,
            1 => Self::Reserve { id: from.u64()?, bytes: from.u64()?, at: Take::take(from)? },
            2 => Self::CreatePages { id: from.u64()?, bytes: from.u64()?, keep: Take::take(from)? },
            3 => Self::ImportPages { id: from.u64()?, bytes: from.u64()? },
            4 => Self::Map {
                reservation: from.u64()?,
                offset: from.u64()?,
                pages: Take::take(from)?,
                protection: Take::take(from)?,
            },
            5 => Self::Unmap { reservation: from.u64()?, offset: from.u64()?, bytes: from.u64()? },
            6 => Self::Protect {
                reservation: from.u64()?,
                offset: from.u64()?,
                bytes: from.u64()?,
                protection: Take::take(from)?,
            },
            7 => Self::DestroyReservation { id: from.u64()? },
            8 => Self::Allocate { id: from.u64()?, bytes: from.u64()?, stream: Take::take(from)? },
            9 => Self::TrimPool { keep_bytes: from.u64()? },
            10 => Self::RegisterHost { id: from.u64()?, bytes: from.u64()? },
            11 => Self::Elapsed { from: from.u64()?, to: from.u64()? },
            12 => Self::Load { id: from.u64()?, kind: from.u8()?, bytes: from.u64()? },
            13 => Self::Function { id: from.u64()?, module: from.u64()?, name: from.text()? },
            14 => Self::Global { id: from.u64()?, module: from.u64()?, name: from.text()? },
            15 => Self::Occupancy {
                function: from.u64()?,
                block_threads: from.u32()?,
                dynamic_shared_bytes: from.u32()?,
            },
            16 => Self::BuildGraph { id: from.u64()?, nodes: take_list(from, WireNode::take)? },
            17 => {
                Self::UpdateGraph { graph: from.u64()?, node: from.u32()?, command: WireCommand::take(from)? }
            }
            19 => Self::Ready,
            20 => Self::Findings,
            21 => Self::Times(Take::take(from)?),
            22 => Self::TensorMap(Take::take(from)?),
            _ => return Err(Malformed { what: "an unknown question" }),
        })
    }
}

impl Put for WireNode<'_> {
    fn put(&self, to: &mut Writer) {
        self.command.put(to);
        self.after.put(to);
    }
}

impl<'a> WireNode<'a> {
    fn take(from: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(Self { command: WireCommand::take(from)?, after: Take::take(from)? })
    }
}

/// A list of values that borrow from the message.
fn take_list<'a, T>(
    from: &mut Reader<'a>,
    mut take: impl FnMut(&mut Reader<'a>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let count = from.u32()? as usize;
    if count > from.left() {
        return Err(Malformed { what: "a list longer than its message" });
    }
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(take(from)?);
    }
    Ok(items)
}
