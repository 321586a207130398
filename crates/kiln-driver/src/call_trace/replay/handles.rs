//! The replay's own handles, by the recorded ones.

use std::collections::HashMap;

use crate::call_trace::command::RecordedPlace;
use crate::call_trace::handle_name::Name;
use crate::command::{Base, DevicePlace, Place};
use crate::handle::{
    EventId, FunctionId, GraphId, HostId, MemoryId, ModuleId, Object, PagesId, ReservationId, StreamId,
};

/// Why a call cannot be made.
pub(super) type Skip = String;

/// Recorded handle to new handle. A handle stays when its object is gone, so that a stale one is stale again.
#[derive(Default)]
pub(super) struct Handles {
    known: HashMap<Name, Known>,
    blocks: Vec<Block>,
}

/// A handle of any kind.
#[derive(Clone, Copy)]
pub(super) enum Known {
    Reservation(ReservationId),
    Pages(PagesId),
    Memory(MemoryId),
    Host(HostId),
    Stream(StreamId),
    Event(EventId),
    Module(ModuleId),
    Function(FunctionId),
    Graph(GraphId),
}

/// Addresses of the recording and where they are now.
#[derive(Clone, Copy)]
struct Block {
    name: Name,
    recorded: u64,
    bytes: u64,
    now: u64,
}

macro_rules! resolve {
    ($($method:ident: $variant:ident -> $id:ty;)*) => {$(
        pub(super) fn $method(&self, name: Name) -> Result<$id, Skip> {
            match self.find(name)? {
                Known::$variant(id) => Ok(id),
                _ => Err(format!("{name} is no {}", stringify!($method))),
            }
        }
    )*};
}

impl Handles {
    resolve! {
        reservation: Reservation -> ReservationId;
        pages: Pages -> PagesId;
        memory: Memory -> MemoryId;
        stream: Stream -> StreamId;
        event: Event -> EventId;
        module: Module -> ModuleId;
        function: Function -> FunctionId;
        graph: Graph -> GraphId;
    }

    pub(super) fn add(&mut self, name: Name, known: Known) {
        self.known.insert(name, known);
    }

    pub(super) fn object(&self, name: Name) -> Result<Object, Skip> {
        Ok(match self.find(name)? {
            Known::Reservation(id) => id.into(),
            Known::Pages(id) => id.into(),
            Known::Host(id) => id.into(),
            Known::Stream(id) => id.into(),
            Known::Event(id) => id.into(),
            Known::Module(id) => id.into(),
            Known::Graph(id) => id.into(),
            Known::Memory(_) | Known::Function(_) => return Err(format!("a {} is no object", name.kind())),
        })
    }

    pub(super) fn place(&self, place: RecordedPlace) -> Result<Place, Skip> {
        let RecordedPlace { block, offset, peer } = place;
        match self.find(block)? {
            Known::Host(block) => Ok(Place::Host { block, offset }),
            _ if peer => Ok(Place::Peer(self.device_place(place)?)),
            _ => Ok(Place::Device(self.device_place(place)?)),
        }
    }

    pub(super) fn device_place(&self, place: RecordedPlace) -> Result<DevicePlace, Skip> {
        let base = match self.find(place.block)? {
            Known::Memory(id) => Base::Memory(id),
            Known::Reservation(id) => Base::Reservation(id),
            _ => return Err(format!("{} is no device memory", place.block)),
        };
        Ok(DevicePlace { base, offset: place.offset })
    }

    pub(super) fn streams(&self) -> impl Iterator<Item = StreamId> {
        self.known.values().filter_map(|known| match known {
            Known::Stream(id) => Some(*id),
            _ => None,
        })
    }

    pub(super) fn add_block(&mut self, name: Name, recorded: u64, bytes: u64, now: u64) {
        self.blocks.push(Block { name, recorded, bytes, now });
    }

    pub(super) fn drop_block(&mut self, name: Name) {
        self.blocks.retain(|block| block.name != name);
    }

    /// Where an address of the recording is now, if it lies in one of its blocks.
    pub(super) fn translate(&self, address: u64) -> Option<u64> {
        let block = self
            .blocks
            .iter()
            .find(|block| address.checked_sub(block.recorded).is_some_and(|offset| offset < block.bytes))?;
        Some(block.now.wrapping_add(address - block.recorded))
    }

    fn find(&self, name: Name) -> Result<Known, Skip> {
        if name.is_other() {
            return Err(format!("{name} belongs to another device"));
        }
        self.known.get(&name).copied().ok_or_else(|| format!("the replay made no {name}"))
    }
}
