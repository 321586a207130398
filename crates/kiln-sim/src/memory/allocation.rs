//! Allocates and frees device memory: directly, from the pool, or imported.

use std::sync::Arc;

use kiln_driver::{
    DeviceAddress, DeviceMemory, Error, ForeignMemory, MemoryId, MemoryInfo, MemoryRequest, Protection,
    Refusal, Result, StreamId,
};

use crate::check::access_origin::{Action, Mark};
use crate::check::byte_shadow::Shadow;
use crate::device::objects::{MemoryBlock, Objects, Origin};
use crate::fault_plan::PlannedFault;
use crate::memory::address_map::Segment;
use crate::memory::host_backing;
use crate::memory::memory_identity::{Region, RegionName};
use crate::memory::physical_memory::{Charge, Physical};
use crate::schedule::machine_core::{Core, Guard};
use crate::schedule::machine_state::State;
use crate::schedule::stream_queue::Step;

impl Core {
    pub(crate) fn memory_info(&self, objects: &Objects) -> Result<MemoryInfo> {
        let mut state = self.enter(objects.info.ordinal, "memory_info")?;
        let device = state.device(objects.info.ordinal);
        Ok(MemoryInfo { free_bytes: device.free_bytes(), total_bytes: device.total_bytes })
    }

    pub(crate) fn allocate(&self, objects: &Objects, request: MemoryRequest) -> Result<DeviceMemory> {
        const CALL: &str = "allocate";
        if let MemoryRequest::Part(part) = request {
            return self.begin_part(objects, part);
        }
        let state = self.enter(objects.info.ordinal, CALL)?;
        match request {
            MemoryRequest::Direct { bytes } => self.allocate_direct(state, objects, bytes),
            MemoryRequest::Pool { bytes, stream } => self.allocate_pool(state, objects, bytes, stream),
            MemoryRequest::Foreign(foreign) => adopt(state, objects, foreign),
            _ => Err(Error::unsupported(CALL, "this kind of memory", "the simulator does not know it")),
        }
    }

    pub(crate) fn free(&self, objects: &Objects, memory: MemoryId, stream: Option<StreamId>) -> Result<()> {
        const CALL: &str = "free";
        let device = objects.info.ordinal;
        if let Ok(part) = objects.memory.find(CALL, memory)
            && part.origin == Origin::Part
        {
            return self.end_part(objects, &part, stream);
        }
        let mut state = self.enter(device, CALL)?;
        let block = objects.memory.find(CALL, memory)?;
        let lane = stream.map(|stream| objects.streams.find(CALL, stream)).transpose()?;
        match (block.origin, lane) {
            (Origin::Variable, _) => {
                let next = "destroy the module instead";
                Err(Error::invalid(CALL, format!("{memory} is a variable of a module"), next))
            }
            (Origin::Pool, None) => {
                let next = "name the stream whose order it is freed in";
                Err(Error::invalid(CALL, format!("{memory} is pool memory, and no stream was named"), next))
            }
            (Origin::Direct | Origin::Foreign | Origin::Part, Some(_)) => {
                let next = "free it without a stream";
                Err(Error::invalid(CALL, format!("{memory} is not pool memory"), next))
            }
            (Origin::Pool, Some(lane)) => {
                let mark = state.stream_mark(*lane, Action::Free(memory), false);
                let mark = mark.ok_or_else(|| gone(CALL, stream))?;
                objects.memory.remove(CALL, memory)?;
                state.queue(*lane, mark, Step::Free(block));
                self.notify();
                Ok(())
            }
            (Origin::Foreign | Origin::Part, None) => objects.memory.remove(CALL, memory).map(|_| ()),
            (Origin::Direct, None) => {
                objects.memory.remove(CALL, memory)?;
                let death = state.host_mark(device, Action::Free(memory));
                state.free_now(device, &block, &death);
                Ok(())
            }
        }
    }

    pub(crate) fn trim_pool(&self, objects: &Objects, keep_bytes: u64) -> Result<()> {
        const CALL: &str = "trim_pool";
        let mut state = self.enter(objects.info.ordinal, CALL)?;
        need_pool(CALL, objects)?;
        let pool = &mut state.device(objects.info.ordinal).pool;
        pool.held_bytes = pool.held_bytes.min(pool.used_bytes.max(keep_bytes));
        Ok(())
    }

    fn allocate_direct<'a>(
        &'a self,
        mut state: Guard<'a>,
        objects: &Objects,
        bytes: u64,
    ) -> Result<DeviceMemory> {
        const CALL: &str = "allocate";
        let device = objects.info.ordinal;
        need_bytes(CALL, bytes)?;
        state.count_allocation(CALL, device, bytes)?;
        state = self.make_room(state, device, bytes, DeviceRoom::Direct)?;
        let charge = Charge::new(&state.device(device).used_bytes, bytes);
        let born = |state: &mut State, id| Some(state.host_mark(device, Action::Allocate(id)));
        state.place(CALL, objects, bytes, Origin::Direct, Some(charge), born)
    }

    fn allocate_pool<'a>(
        &'a self,
        mut state: Guard<'a>,
        objects: &Objects,
        bytes: u64,
        stream: StreamId,
    ) -> Result<DeviceMemory> {
        const CALL: &str = "allocate";
        let device = objects.info.ordinal;
        need_pool(CALL, objects)?;
        let lane = *objects.streams.find(CALL, stream)?;
        need_bytes(CALL, bytes)?;
        state.count_allocation(CALL, device, bytes)?;
        state = self.make_room(state, device, bytes, DeviceRoom::Pool)?;
        let born = |state: &mut State, id| state.stream_mark(lane, Action::Allocate(id), false);
        let memory = state.place(CALL, objects, bytes, Origin::Pool, None, born)?;
        let pool = &mut state.device(device).pool;
        pool.used_bytes += bytes;
        pool.held_bytes = pool.held_bytes.max(pool.used_bytes);
        Ok(memory)
    }

    /// Lets queued work run while that may free enough memory, and says so if there is not enough even then.
    fn make_room<'a>(
        &'a self,
        mut state: Guard<'a>,
        device: u32,
        bytes: u64,
        room: DeviceRoom,
    ) -> Result<Guard<'a>> {
        loop {
            let available = state.room(device, room);
            if available >= bytes {
                return Ok(state);
            }
            let oom = || Error::out_of_memory("allocate", bytes, Some(available));
            if bytes > state.device(device).total_bytes || !state.has_queued_frees(device) {
                return Err(oom());
            }
            let (next, moved) = self.advance(state, None);
            state = self.answer_lost(next, device, "allocate")?;
            if !moved {
                return Err(oom());
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DeviceRoom {
    Direct,
    Pool,
}

impl State {
    /// Counts an allocation, and refuses it if the plan says so.
    pub(crate) fn count_allocation(&mut self, call: &'static str, device: u32, bytes: u64) -> Result<()> {
        let state = self.device(device);
        state.counts.allocations += 1;
        let (number, free_bytes) = (state.counts.allocations, state.free_bytes());
        let planned = self.faults.meet(device, |fault| match fault {
            PlannedFault::OutOfMemory { allocation } if *allocation == number => Some(()),
            _ => None,
        });
        match planned {
            Some(()) => Err(Error::out_of_memory(call, bytes, Some(free_bytes))),
            None => Ok(()),
        }
    }

    fn room(&self, device: u32, room: DeviceRoom) -> u64 {
        let device = &self.devices[device as usize];
        let unused = device.pool.held_bytes - device.pool.used_bytes;
        match room {
            DeviceRoom::Direct => device.free_bytes(),
            DeviceRoom::Pool => device.free_bytes().saturating_add(unused),
        }
    }

    fn has_queued_frees(&self, device: u32) -> bool {
        let of_device = self.streams.values().filter(|stream| stream.device == device);
        of_device.flat_map(|stream| &stream.queue).any(|queued| matches!(queued.step, Step::Free(_)))
    }

    /// Puts new memory at new addresses.
    pub(crate) fn place(
        &mut self,
        call: &'static str,
        objects: &Objects,
        bytes: u64,
        origin: Origin,
        charge: Option<Charge>,
        born: impl FnOnce(&mut Self, MemoryId) -> Option<Arc<Mark>>,
    ) -> Result<DeviceMemory> {
        let device = objects.info.ordinal;
        let oom =
            |state: &mut Self| Error::out_of_memory(call, bytes, Some(state.device(device).free_bytes()));
        let Ok(backing) = host_backing::zeroed(bytes) else { return Err(oom(self)) };
        let alignment = objects.info.limits.allocation_alignment_bytes;
        let Some(address) = self.addresses.place(bytes, alignment) else { return Err(oom(self)) };
        let (id, _) = objects.memory.insert(|id| MemoryBlock { id, address, bytes, origin })?;
        let Some(born) = born(self, id) else {
            objects.memory.remove(call, id)?;
            return Err(gone(call, None));
        };
        let region = Arc::new(Region { name: RegionName::Memory(id), device, address, bytes, born });
        let shadow = Shadow::new(origin == Origin::Variable);
        let segment = Segment {
            start: address,
            end: address + bytes,
            physical: Arc::new(Physical::new(Arc::new(backing), shadow, charge)),
            offset: 0,
            protection: Protection::ReadWrite,
            region,
        };
        let state = self.device(device);
        state.parts.forget(address..address + bytes);
        Arc::make_mut(&mut state.map).insert(segment);
        Ok(DeviceMemory { id, address: DeviceAddress(address), bytes })
    }
}

/// Names memory that is in the map already.
fn adopt(mut state: Guard<'_>, objects: &Objects, foreign: ForeignMemory) -> Result<DeviceMemory> {
    const CALL: &str = "allocate";
    let (address, bytes) = (foreign.address(), foreign.bytes());
    need_bytes(CALL, bytes)?;
    let range = address.0..address.0.saturating_add(bytes);
    if !state.device(objects.info.ordinal).map.covers(range) {
        let what = format!("{bytes} bytes at {address} are not memory of this device");
        return Err(Error::invalid(CALL, what, "name memory that this device has mapped"));
    }
    let block = |id| MemoryBlock { id, address: address.0, bytes, origin: Origin::Foreign };
    let (id, _) = objects.memory.insert(block)?;
    Ok(DeviceMemory { id, address, bytes })
}

pub(crate) fn need_bytes(call: &'static str, bytes: u64) -> Result<()> {
    match bytes {
        0 => Err(Error::invalid(call, "zero bytes", "ask for at least one")),
        _ => Ok(()),
    }
}

fn need_pool(call: &'static str, objects: &Objects) -> Result<()> {
    if objects.info.features.memory_pool {
        return Ok(());
    }
    Err(Error::unsupported(call, "a memory pool", "this device has none; allocate directly"))
}

fn gone(call: &'static str, stream: Option<StreamId>) -> Error {
    let handle = stream.map_or_else(|| "the stream".into(), |stream| stream.to_string());
    Error::refused(call, Refusal::Stale { handle })
}

impl MemoryBlock {
    /// Whether it holds so many bytes from an offset on.
    pub(crate) fn check_range(&self, call: &'static str, offset: u64, bytes: u64) -> Result<u64> {
        if offset.checked_add(bytes).is_some_and(|end| end <= self.bytes) {
            return Ok(self.address + offset);
        }
        let (handle, size) = (self.id.to_string(), self.bytes);
        Err(Error::refused(call, Refusal::OutOfRange { handle, offset, bytes, size }))
    }
}
