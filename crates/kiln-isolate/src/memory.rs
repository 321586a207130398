//! Memory: what is allocated ready for use, and host blocks both processes map.

use std::sync::Arc;

use kiln_driver::{
    DeviceAddress, Error, HostBlock, Memory, MemoryId, MemoryInfo, MemoryRequest, Refusal, Result, StreamId,
};

use crate::device::IsolatedDevice;
use crate::objects::{Block, Host, Origin};
use crate::shared::Remote;
use crate::shared_file::SharedFile;
use crate::wire::{Ask, Malformed, Reader, Request, Take, WireObject};

/// Address and length, as a worker tells them.
pub(crate) fn take_memory(from: &mut Reader<'_>) -> std::result::Result<(DeviceAddress, u64), Malformed> {
    Ok((DeviceAddress::take(from)?, from.u64()?))
}

impl IsolatedDevice {
    pub(crate) fn memory_info(&self) -> Result<MemoryInfo> {
        // What was freed and is still held by the standby would count as used.
        self.shared.preparation.settle();
        let (info, _) = self.shared.link().ask("memory_info", &Ask::MemoryInfo, None, MemoryInfo::take)?;
        Ok(info)
    }

    pub(crate) fn allocate(&self, request: MemoryRequest) -> Result<Memory> {
        const CALL: &str = "allocate";
        let _turn = self.objects.change();
        let link = self.shared.link();
        link.check(CALL)?;
        let pin = |stream| self.objects.streams.pin(stream).map_err(|error| error.seen_by(CALL));
        let (bytes, stream) = match request {
            MemoryRequest::Direct { bytes } => (bytes, None),
            MemoryRequest::Pool { bytes, stream } => (bytes, Some(pin(stream)?)),
            _ => {
                let why = "its owner is in this process and the driver in another";
                return Err(Error::unsupported(CALL, "memory of another library", why));
            }
        };
        let origin = if stream.is_some() { Origin::Pool } else { Origin::Direct };
        let wire = self.shared.number();
        let ask = Ask::Allocate { id: wire, bytes, stream: stream.as_ref().map(|stream| stream.remote.id) };
        let ((address, bytes), _) = self.ask_for_memory(|| link.ask(CALL, &ask, None, take_memory))?;
        let id = self.objects.memory.insert(Block { wire, address, bytes, origin })?;
        Ok(Memory { id, address, bytes })
    }

    /// Asks for memory, and once more if there was none and the standby still held some that was freed.
    pub(crate) fn ask_for_memory<T>(&self, mut ask: impl FnMut() -> Result<T>) -> Result<T> {
        match ask() {
            Err(error) if error.is_oom() && self.config.standby => {
                self.shared.preparation.settle();
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
            // A lost device has taken the memory along; the name for it still ends.
            drop(block);
            return self.objects.memory.remove(memory).map(drop).map_err(seen);
        }
        let stream = stream.map(|stream| self.objects.streams.pin(stream)).transpose().map_err(seen)?;
        let wrong = match (block.origin, &stream) {
            (Origin::Direct, None) | (Origin::Pool, Some(_)) => None,
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
        let _turn = self.objects.change();
        let link = self.shared.link();
        link.check(CALL)?;
        if bytes == 0 {
            return Err(Error::invalid(CALL, "a host block of zero bytes", "ask for at least one"));
        }
        let oom = |_| Error::out_of_memory(CALL, bytes, None);
        let file = SharedFile::create(bytes).map_err(oom)?;
        let memory = Arc::new(file.map().map_err(oom)?);
        let id = self.shared.number();
        let ask = Ask::RegisterHost { id, bytes };
        link.ask(CALL, &ask, Some(file.descriptor()), |_| Ok(()))?;
        let remote = Remote::new(&self.shared, WireObject::Host, id);
        let handle = self.objects.hosts.insert(Host { remote, file, bytes: memory.clone() })?;
        self.shared.preparation.changed();
        Ok(HostBlock::new(handle, memory, None))
    }

    /// Whether the worker can do what host blocks need.
    pub(crate) fn refuse_registration(&self) -> Error {
        let why = "memory of this process cannot be reached from the worker; allocate it with allocate_host";
        Error::unsupported("register_host", "registering host memory", why)
    }
}

/// A refusal for an object that other objects use.
pub(crate) fn busy(call: &'static str, handle: &dyn std::fmt::Display, why: &str) -> Error {
    Error::refused(call, Refusal::Busy { handle: handle.to_string(), why: why.into() })
}
