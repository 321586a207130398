//! Allocated memory, and host blocks that both processes map.

use std::sync::Arc;

use kiln_driver::{
    DeviceAddress, DeviceMemory, Error, HostBlock, MemoryId, MemoryInfo, MemoryPart, MemoryRequest, Place,
    Refusal, Result, StreamId,
};

use super::client_state::Remote;
use super::connection::Link;
use super::objects::{Block, Host, Origin, PartOrigin};
use super::proxy::DeviceProxy;
use crate::protocol::memory_file::MemoryFile;
use crate::protocol::wire::{Ask, Malformed, Reader, Request, Take, WireObject, WirePart};

/// Reads an address and a length.
pub(crate) fn take_memory(from: &mut Reader<'_>) -> std::result::Result<(DeviceAddress, u64), Malformed> {
    Ok((DeviceAddress::take(from)?, from.u64()?))
}

impl DeviceProxy {
    pub(crate) fn memory_info(&self) -> Result<MemoryInfo> {
        // Memory that was freed and that the standby still holds would count as used.
        self.shared.standby.catch_up();
        let (info, _) = self.shared.link().ask("memory_info", &Ask::MemoryInfo, None, MemoryInfo::take)?;
        Ok(info)
    }

    pub(crate) fn allocate(&self, request: MemoryRequest) -> Result<DeviceMemory> {
        const CALL: &str = "allocate";
        let _change = self.objects.change();
        let link = self.shared.link();
        link.check(CALL)?;
        let pin = |stream| self.objects.streams.pin(stream).map_err(|error| error.seen_by(CALL));
        let (bytes, stream) = match request {
            MemoryRequest::Direct { bytes } => (bytes, None),
            MemoryRequest::Pool { bytes, stream } => (bytes, Some(pin(stream)?)),
            MemoryRequest::Part(part) => return self.begin_part(&link, part),
            _ => {
                let why = "its owner is in this process and the driver in another";
                return Err(Error::unsupported(CALL, "memory of another library", why));
            }
        };
        let origin = if stream.is_some() { Origin::Pool } else { Origin::Direct };
        let wire = self.shared.new_id();
        let ask = Ask::Allocate { id: wire, bytes, stream: stream.as_ref().map(|stream| stream.remote.id) };
        let ((address, bytes), _) = self.ask_for_memory(|| link.ask(CALL, &ask, None, take_memory))?;
        let id = self.objects.memory.insert(Block { wire, address, bytes, origin })?;
        Ok(DeviceMemory { id, address, bytes })
    }

    /// Names a block to the worker. No answer is waited for: the worker handles it before everything that is queued next.
    fn begin_part(&self, link: &Link, part: MemoryPart) -> Result<DeviceMemory> {
        const CALL: &str = "allocate";
        if !self.info.features.access_checks {
            return Err(Error::unsupported(
                CALL,
                "part of other memory",
                "this device does not check accesses",
            ));
        }
        let MemoryPart { place, bytes, stream, kind, label } = part;
        if bytes == 0 {
            return Err(Error::invalid(CALL, "zero bytes", "ask for at least one"));
        }
        let stream = stream.map(|stream| self.objects.streams.pin(stream)).transpose();
        let stream = stream.map_err(|error| error.seen_by(CALL))?;
        let (place, _held, address) = self.place(CALL, &Place::Device(place), bytes)?;
        let (wire, address) = (self.shared.new_id(), DeviceAddress(address));
        let origin = Origin::Part(PartOrigin { place, kind, label });
        let id = self.objects.memory.insert(Block { wire, address, bytes, origin })?;
        let part = WirePart {
            place,
            bytes,
            stream: stream.as_ref().map(|stream| stream.remote.id),
            kind,
            label: label.as_str(),
        };
        link.send(CALL, &Request::BeginPart { id: wire, part }).inspect_err(|_| {
            let _ = self.objects.memory.remove(id);
        })?;
        Ok(DeviceMemory { id, address, bytes })
    }

    /// Asks for memory; if there is none and the standby may hold freed memory, waits for that and asks again.
    pub(crate) fn ask_for_memory<T>(&self, mut ask: impl FnMut() -> Result<T>) -> Result<T> {
        match ask() {
            Err(error) if error.is_oom() && self.has_standby => {
                self.shared.standby.catch_up();
                ask()
            }
            answer => answer,
        }
    }

    pub(crate) fn free(&self, memory: MemoryId, stream: Option<StreamId>) -> Result<()> {
        const CALL: &str = "free";
        let seen = |error: Error| error.seen_by(CALL);
        let link = self.shared.link();
        let block = self.objects.memory.pin(memory).map_err(seen)?;
        if link.lost().is_some() {
            // The memory was lost with the worker; the handle still becomes stale.
            drop(block);
            return self.objects.memory.remove(memory).map(drop).map_err(seen);
        }
        let stream = stream.map(|stream| self.objects.streams.pin(stream)).transpose().map_err(seen)?;
        let wrong = match (block.origin, &stream) {
            (Origin::Direct, None) | (Origin::Pool, Some(_)) | (Origin::Part(_), _) => None,
            (Origin::Direct, Some(_)) => Some(("direct memory freed on a stream", "free it without one")),
            (Origin::Pool, None) => Some(("pool memory freed on no stream", "name the stream")),
            (Origin::Variable, _) => Some(("a variable of a module freed", "destroy the module")),
        };
        if let Some((what, next)) = wrong {
            return Err(Error::invalid(CALL, what, next));
        }
        let wire = block.wire;
        drop(block);
        self.objects.memory.remove(memory).map_err(seen)?;
        link.send(CALL, &Request::Free { memory: wire, stream: stream.map(|stream| stream.remote.id) })
    }

    pub(crate) fn trim_pool(&self, keep_bytes: u64) -> Result<()> {
        self.shared.link().ask("trim_pool", &Ask::TrimPool { keep_bytes }, None, |_| Ok(())).map(drop)
    }

    pub(crate) fn allocate_host(&self, bytes: u64) -> Result<HostBlock> {
        const CALL: &str = "allocate_host";
        let _change = self.objects.change();
        let link = self.shared.link();
        link.check(CALL)?;
        if bytes == 0 {
            return Err(Error::invalid(CALL, "a host block of zero bytes", "allocate at least one"));
        }
        let oom = |_| Error::out_of_memory(CALL, bytes, None);
        let file = MemoryFile::create(bytes).map_err(oom)?;
        let memory = Arc::new(file.map().map_err(oom)?);
        let id = self.shared.new_id();
        let ask = Ask::RegisterHost { id, bytes };
        link.ask(CALL, &ask, Some(file.descriptor()), |_| Ok(()))?;
        let remote = Remote::new(&self.shared, WireObject::Host, id);
        let handle = self.objects.hosts.insert(Host { remote, file, bytes: memory.clone() })?;
        self.shared.standby.objects_changed();
        Ok(HostBlock::new(handle, memory, None))
    }

    /// Why memory of this process is not registered.
    pub(crate) fn register_host(&self) -> Error {
        if let Err(lost) = self.shared.link().check("register_host") {
            return lost;
        }
        let why = "memory of this process cannot be reached from the worker; allocate it with allocate_host";
        Error::unsupported("register_host", "registering host memory", why)
    }
}

/// A refusal because of the state of an object.
pub(crate) fn busy(call: &'static str, handle: &dyn std::fmt::Display, why: &str) -> Error {
    Error::refused(call, Refusal::Busy { handle: handle.to_string(), why: why.into() })
}
