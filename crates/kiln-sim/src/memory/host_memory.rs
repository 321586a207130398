//! Host memory, and what the host does to it.

use std::ops::Range;
use std::sync::{Arc, OnceLock, Weak};

use kiln_driver::{Access, Error, HostBlock, HostId, HostWatch, Refusal, Result, SharedBytes};

use crate::check::access_origin::Action;
use crate::check::byte_shadow::{Shadow, Touch};
use crate::check::checker::Stretch;
use crate::device::objects::{HostMemory, Objects};
use crate::memory::allocation::need_bytes;
use crate::memory::host_backing;
use crate::memory::memory_identity::{Region, RegionName};
use crate::memory::physical_memory::Physical;
use crate::schedule::machine_core::Core;

impl Core {
    pub(crate) fn allocate_host(self: &Arc<Self>, objects: &Arc<Objects>, bytes: u64) -> Result<HostBlock> {
        const CALL: &str = "allocate_host";
        let device = objects.info.ordinal;
        let mut state = self.enter(device, CALL)?;
        need_bytes(CALL, bytes)?;
        state.count_allocation(CALL, device, bytes)?;
        drop(state);
        let memory = host_backing::zeroed(bytes).map_err(|_| Error::out_of_memory(CALL, bytes, None))?;
        self.host_block(objects, Arc::new(memory), false)
    }

    pub(crate) fn register_host(
        self: &Arc<Self>,
        objects: &Arc<Objects>,
        bytes: Arc<SharedBytes>,
    ) -> Result<HostBlock> {
        const CALL: &str = "register_host";
        let device = objects.info.ordinal;
        let mut state = self.enter(device, CALL)?;
        if !objects.info.features.host_registration {
            return Err(Error::unsupported(
                CALL,
                "registering host memory",
                "allocate it with allocate_host",
            ));
        }
        need_bytes(CALL, bytes.len() as u64)?;
        let (start, len) = place(&bytes);
        let registered = &mut state.device(device).registered;
        if registered.iter().any(|(other, other_len)| start < other + other_len && *other < start + len) {
            let why = "it is registered already".into();
            return Err(Error::refused(CALL, Refusal::Busy { handle: "the host memory".into(), why }));
        }
        registered.push((start, len));
        drop(state);
        self.host_block(objects, bytes, true)
    }

    pub(crate) fn destroy_host(&self, objects: &Objects, id: HostId) -> Result<()> {
        const CALL: &str = "destroy";
        let device = objects.info.ordinal;
        let mut state = self.enter(device, CALL)?;
        let memory = objects.hosts.remove(CALL, id)?;
        let death = state.host_mark(device, Action::DestroyHost(id));
        let whole = 0..memory.physical.bytes.len() as u64;
        state.check_end(&Stretch::of_host(&memory, whole), &death);
        if memory.registered {
            state.unmap_host(&memory, &death);
            let (start, _) = place(&memory.physical.bytes);
            state.device(device).registered.retain(|(other, _)| *other != start);
        }
        let _ = memory.death.set(death);
        Ok(())
    }

    fn host_block(
        self: &Arc<Self>,
        objects: &Arc<Objects>,
        bytes: Arc<SharedBytes>,
        registered: bool,
    ) -> Result<HostBlock> {
        let device = objects.info.ordinal;
        let born = self.lock().host_mark(device, Action::Map);
        let len = bytes.len() as u64;
        let physical = Arc::new(Physical::new(bytes.clone(), Shadow::new(true), None));
        let make = |id| {
            let name = RegionName::Host(id);
            let region = Arc::new(Region { name, device, address: 0, bytes: len, born });
            HostMemory { id, physical, region, death: OnceLock::new(), registered }
        };
        let (id, memory) = objects.hosts.insert(make)?;
        let watch = Watch { core: Arc::downgrade(self), memory };
        Ok(HostBlock::new(id, bytes, Some(Arc::new(watch))))
    }
}

/// Sees what the host does through one block, as long as the machine is there.
#[derive(Debug)]
struct Watch {
    core: Weak<Core>,
    memory: Arc<HostMemory>,
}

impl HostWatch for Watch {
    fn touch(&self, block: HostId, range: Range<u64>, access: Access) {
        let Some(core) = self.core.upgrade() else { return };
        let mut state = core.lock();
        let device = self.memory.region.device;
        let stretch = Stretch::of_host(&self.memory, range.clone());
        let now_ns = state.now_ns;
        state.journal.write(
            now_ns,
            format_args!("device {device} host {access} of {block} {}..{}", range.start, range.end),
        );
        if access.reads() {
            let mark = state.host_mark(device, Action::HostRead);
            state.check_touch(&stretch, Touch::Read, &mark);
        }
        if access.writes() {
            let mark = state.host_mark(device, Action::HostWrite);
            state.check_touch(&stretch, Touch::Write, &mark);
        }
    }
}

fn place(bytes: &SharedBytes) -> (usize, usize) {
    (bytes.as_ptr().addr(), bytes.len())
}
