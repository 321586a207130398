//! What a command names: bytes it touches and objects it needs while it runs.
//!
//! What a kernel touches cannot be seen from here: a launch names its module, and the blocks that it declared, if those are followed.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::live_objects::Ledger;
use crate::command::{Base, Command, DevicePlace, Place};
use crate::handle::{
    DeviceKey, EventId, GraphId, Handle, HostId, Kind, MemoryId, ModuleId, Object, PagesId, ReservationId,
    StreamId,
};
use crate::host_memory::Access;

/// Anything a caller can hold a handle to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Name {
    Reservation(ReservationId),
    Pages(PagesId),
    Memory(MemoryId),
    Host(HostId),
    Stream(StreamId),
    Event(EventId),
    Module(ModuleId),
    Graph(GraphId),
}

/// Bytes of an object, and what is done to them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Touch {
    pub(super) name: Name,
    pub(super) range: Range<u64>,
    pub(super) access: Access,
    /// Whether it is known only that bytes inside of the range may be touched, and not which: what a launch declares.
    pub(super) is_within: bool,
}

/// Everything a command names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Footprint {
    pub(super) touches: Vec<Touch>,
    /// Modules and graphs that must stay until the command is done.
    pub(super) holds: Vec<Name>,
    /// The kernel, if it is a launch of a known one.
    pub(super) kernel: Option<Arc<str>>,
}

impl Footprint {
    pub(super) fn of(command: &Command<'_>, ledger: &Ledger) -> Self {
        let mut footprint = Self::default();
        match command {
            Command::Copy { from, to, bytes } => {
                footprint.touches.extend(place_touch(from, *bytes, Access::Read));
                footprint.touches.extend(place_touch(to, *bytes, Access::Write));
            }
            Command::Fill { to, pattern, count } => {
                footprint.touches.extend(touch(*to, count.saturating_mul(pattern.bytes()), Access::Write));
            }
            Command::Launch(launch) => {
                footprint.holds.extend(ledger.module_of(launch.function).map(Name::Module));
                footprint.kernel = ledger.kernel_of(launch.function);
                let declared = launch.declared.unwrap_or_default();
                footprint.touches.extend(declared.iter().filter_map(|span| ledger.touch_of(span)));
            }
            Command::Graph(graph) => {
                footprint.holds.push(Name::Graph(*graph));
                for node in ledger.nodes_of(*graph) {
                    footprint.touches.extend_from_slice(&node.footprint.touches);
                    footprint.holds.extend_from_slice(&node.footprint.holds);
                }
            }
            Command::Signal(_) | Command::Wait(_) => {}
        }
        for touch in &footprint.touches {
            if let Name::Memory(memory) = touch.name {
                footprint.holds.extend(ledger.module_of_variable(memory).map(Name::Module));
            }
        }
        footprint
    }
}

impl Touch {
    /// Whether the two share bytes.
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.name == other.name && self.range.start < other.range.end && other.range.start < self.range.end
    }

    /// What it does to the object, for a message.
    pub(super) fn describe(&self) -> String {
        let verb = if self.access == Access::Read { "read" } else { "write" };
        let Range { start, end } = &self.range;
        match self.is_within {
            true => format!("may {verb} within bytes {start}..{end}"),
            false => format!("{verb}s bytes {start}..{end}"),
        }
    }

    /// Whether the two share bytes, or may, and one of them writes.
    pub(super) fn conflicts(&self, other: &Self) -> bool {
        self.meets(other) && (self.access.writes() || other.access.writes())
    }

    /// Whether two that conflict share bytes for certain: what is touched within a range lies in one that is touched as a whole.
    pub(super) fn shares_for_certain(&self, other: &Self) -> bool {
        let lies_in = |part: &Self, whole: &Self| {
            whole.range.start <= part.range.start && part.range.end <= whole.range.end
        };
        match (self.is_within, other.is_within) {
            (false, false) => true,
            (true, false) => lies_in(self, other),
            (false, true) => lies_in(other, self),
            (true, true) => false,
        }
    }
}

impl Name {
    /// Kind, device, slot and generation.
    pub(super) fn parts(self) -> (&'static str, DeviceKey, u32, u32) {
        fn of<K: Kind>(handle: Handle<K>) -> (&'static str, DeviceKey, u32, u32) {
            (K::NAME, handle.device(), handle.slot(), handle.generation())
        }
        match self {
            Self::Reservation(id) => of(id),
            Self::Pages(id) => of(id),
            Self::Memory(id) => of(id),
            Self::Host(id) => of(id),
            Self::Stream(id) => of(id),
            Self::Event(id) => of(id),
            Self::Module(id) => of(id),
            Self::Graph(id) => of(id),
        }
    }

    /// The handles of a command, functions aside.
    pub(super) fn all_of(command: &Command<'_>) -> Vec<Self> {
        let place = |place: &Place| match place {
            Place::Device(place) => Some(base_name(place.base)),
            Place::Host { block, .. } => Some(Self::Host(*block)),
            Place::Peer(_) => None,
        };
        match command {
            Command::Copy { from, to, .. } => place(from).into_iter().chain(place(to)).collect(),
            Command::Fill { to, .. } => vec![base_name(to.base)],
            Command::Launch(_) => Vec::new(),
            Command::Signal(event) | Command::Wait(event) => vec![Self::Event(*event)],
            Command::Graph(graph) => vec![Self::Graph(*graph)],
        }
    }
}

impl From<Object> for Name {
    fn from(object: Object) -> Self {
        match object {
            Object::Reservation(id) => Self::Reservation(id),
            Object::Pages(id) => Self::Pages(id),
            Object::Host(id) => Self::Host(id),
            Object::Stream(id) => Self::Stream(id),
            Object::Event(id) => Self::Event(id),
            Object::Module(id) => Self::Module(id),
            Object::Graph(id) => Self::Graph(id),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, _, slot, generation) = self.parts();
        write!(f, "{kind}:{slot}.{generation}")
    }
}

fn place_touch(place: &Place, bytes: u64, access: Access) -> Option<Touch> {
    match place {
        Place::Device(place) => touch(*place, bytes, access),
        Place::Host { block, offset } => span(Name::Host(*block), *offset, bytes, access),
        // The other device's layer, if it has one, sees its own side.
        Place::Peer(_) => None,
    }
}

fn touch(place: DevicePlace, bytes: u64, access: Access) -> Option<Touch> {
    span(base_name(place.base), place.offset, bytes, access)
}

fn span(name: Name, offset: u64, bytes: u64, access: Access) -> Option<Touch> {
    let range = offset..offset.saturating_add(bytes);
    (bytes > 0).then_some(Touch { name, range, access, is_within: false })
}

fn base_name(base: Base) -> Name {
    match base {
        Base::Memory(id) => Name::Memory(id),
        Base::Reservation(id) => Name::Reservation(id),
    }
}
