//! Handles of the objects of a driver.
//!
//! A handle is a slot, a generation and the key of the device that gave it out. Native handles come back: a
//! CUDA driver reuses the addresses of streams and events it destroyed, so an address cannot tell a new stream
//! from an old one. The generation can, and the key tells one device's handles from another's. Only
//! [`Slots`](crate::Slots) makes handles, so none can be forged.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

/// The identity of one opened device in this process; never used twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct DeviceKey(u32);

impl DeviceKey {
    /// A key that is not used yet.
    pub fn fresh() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Display for DeviceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device key {}", self.0)
    }
}

/// What a handle names; implemented by the markers in [`kind`].
pub trait Kind: 'static {
    /// The word used in messages and traces.
    const NAME: &'static str;
}

/// Markers that keep a stream's handle from being used as an event's.
pub mod kind {
    use super::Kind;

    macro_rules! kinds {
        ($($(#[$doc:meta])* $marker:ident = $name:literal;)*) => {$(
            $(#[$doc])*
            #[derive(Debug)]
            pub enum $marker {}
            impl Kind for $marker {
                const NAME: &'static str = $name;
            }
        )*};
    }

    kinds! {
        /// A reserved range of device addresses.
        Reservation = "reservation";
        /// Physical device memory that can be mapped.
        Pages = "pages";
        /// Device memory that is mapped already.
        Memory = "memory";
        /// Host memory the device can reach.
        Host = "host";
        /// A queue of work.
        Stream = "stream";
        /// A point in a stream's work.
        Event = "event";
        /// Loaded code.
        Module = "module";
        /// A kernel of a module.
        Function = "function";
        /// Work with edges, ready to be submitted as one command.
        Graph = "graph";
    }
}

/// A name for something a driver made: slot, generation, and the device it belongs to.
///
/// Handles are plain values. Using one after its object is gone, or on another device, is refused with an error
/// that says which of the two it was.
pub struct Handle<K> {
    device: DeviceKey,
    slot: u32,
    generation: u32,
    kind: PhantomData<fn() -> K>,
}

/// A reserved range of device addresses.
pub type ReservationId = Handle<kind::Reservation>;
/// Physical device memory that can be mapped.
pub type PagesId = Handle<kind::Pages>;
/// Device memory that is mapped already.
pub type MemoryId = Handle<kind::Memory>;
/// Host memory the device can reach.
pub type HostId = Handle<kind::Host>;
/// A queue of work.
pub type StreamId = Handle<kind::Stream>;
/// A point in a stream's work.
pub type EventId = Handle<kind::Event>;
/// Loaded code.
pub type ModuleId = Handle<kind::Module>;
/// A kernel of a module; it dies with the module.
pub type FunctionId = Handle<kind::Function>;
/// Work with edges, ready to be submitted as one command.
pub type GraphId = Handle<kind::Graph>;

impl<K: Kind> Handle<K> {
    pub(crate) fn new(device: DeviceKey, slot: u32, generation: u32) -> Self {
        Self { device, slot, generation, kind: PhantomData }
    }

    /// The device that gave this handle out.
    pub fn device(self) -> DeviceKey {
        self.device
    }

    /// The slot; a small number that is used again once the object is gone.
    pub fn slot(self) -> u32 {
        self.slot
    }

    /// How often the slot had been used when this handle was given out, starting at 1.
    pub fn generation(self) -> u32 {
        self.generation
    }
}

impl<K> Clone for Handle<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Handle<K> {}

impl<K> PartialEq for Handle<K> {
    fn eq(&self, other: &Self) -> bool {
        (self.device, self.slot, self.generation) == (other.device, other.slot, other.generation)
    }
}

impl<K> Eq for Handle<K> {}

impl<K> Hash for Handle<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.device, self.slot, self.generation).hash(state);
    }
}

impl<K: Kind> fmt::Debug for Handle<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<K: Kind> fmt::Display for Handle<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}.{}", K::NAME, self.slot, self.generation)
    }
}

/// Anything that [`Driver::destroy`](crate::Driver::destroy) takes back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Object {
    /// A range of addresses; nothing may be mapped in it any more.
    Reservation(ReservationId),
    /// Physical memory; it lives on while it is mapped or exported.
    Pages(PagesId),
    /// A host block; its bytes live on while a [`HostBlock`](crate::HostBlock) holds them.
    Host(HostId),
    /// A stream; work already queued still runs.
    Stream(StreamId),
    /// An event without waiters.
    Event(EventId),
    /// A module none of whose kernels is queued or running.
    Module(ModuleId),
    /// A graph that is not queued or running.
    Graph(GraphId),
}

macro_rules! into_object {
    ($($variant:ident($id:ty),)*) => {$(
        impl From<$id> for Object {
            fn from(id: $id) -> Self {
                Self::$variant(id)
            }
        }
    )*};
}

into_object! {
    Reservation(ReservationId),
    Pages(PagesId),
    Host(HostId),
    Stream(StreamId),
    Event(EventId),
    Module(ModuleId),
    Graph(GraphId),
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reservation(id) => id.fmt(f),
            Self::Pages(id) => id.fmt(f),
            Self::Host(id) => id.fmt(f),
            Self::Stream(id) => id.fmt(f),
            Self::Event(id) => id.fmt(f),
            Self::Module(id) => id.fmt(f),
            Self::Graph(id) => id.fmt(f),
        }
    }
}
