//! Memory that kernels of a device reach beside its own: registered host memory, and memory of other devices.
//!
//! Addresses are those of one space for the host and all devices. So registered memory has the addresses of the host on every device, and a block of another device the
//! addresses that it has there.

use std::sync::Arc;

use kiln_driver::{DeviceAddress, Error, HostId, Protection, Refusal, Result};

use crate::check::access_origin::{Action, Mark};
use crate::device::objects::{HostMemory, Objects};
use crate::memory::address_map::{AddressMap, Segment};
use crate::memory::address_space::is_chosen;
use crate::memory::memory_identity::{Region, RegionName};
use crate::schedule::machine_core::Core;
use crate::schedule::machine_state::State;

impl Core {
    /// Lets kernels of a device reach the memory of another one, or no longer.
    pub(crate) fn set_peer_access(&self, device: u32, peer: u32, is_enabled: bool) -> Result<()> {
        const CALL: &str = "peer access";
        if device == peer || self.devices.get(device.max(peer) as usize).is_none() {
            let what = format!("devices {device} and {peer}");
            return Err(Error::invalid(CALL, what, "name two devices of the machine"));
        }
        if !self.config.links.connects(device, peer) {
            let why = format!("devices {device} and {peer} are not connected; copy through the host");
            return Err(Error::unsupported(CALL, "memory of another device in a kernel", why));
        }
        let mut state = self.enter(device, CALL)?;
        let reached = &mut state.device(device).reached;
        reached.retain(|other| *other != peer);
        if is_enabled {
            reached.push(peer);
        }
        Ok(())
    }

    /// Lets kernels of all devices reach registered host memory, at the addresses of the host.
    pub(crate) fn map_host(&self, objects: &Objects, id: HostId) -> Result<DeviceAddress> {
        const CALL: &str = "map_host";
        let device = objects.info.ordinal;
        let mut state = self.enter(device, CALL)?;
        let memory = objects.hosts.find(CALL, id)?;
        let start = memory.physical.bytes.as_ptr().addr() as u64;
        let range = start..start + memory.physical.bytes.len() as u64;
        let is_taken = state.devices.iter().any(|other| !other.map.overlapping(range.clone()).is_empty());
        let bytes = range.end - range.start;
        if is_taken || is_chosen(start) && !state.addresses.reserve_at(start, bytes) {
            let why = format!("a device has other memory at {start:#x}");
            return Err(Error::refused(CALL, Refusal::Busy { handle: id.to_string(), why }));
        }
        let born = state.host_mark(device, Action::Map);
        let name = RegionName::Host(id);
        let region = Arc::new(Region { name, device, address: start, bytes, born });
        for other in &mut state.devices {
            let segment = Segment {
                start,
                end: range.end,
                physical: memory.physical.clone(),
                offset: 0,
                protection: Protection::ReadWrite,
                region: region.clone(),
            };
            Arc::make_mut(&mut other.map).insert(segment);
        }
        state.device(device).reached_hosts.push(memory);
        Ok(DeviceAddress(start))
    }
}

impl State {
    /// What kernels of a device find at which address: its own memory, and that of devices which it reaches.
    pub(crate) fn map_for_kernels(&mut self, device: u32) -> Arc<AddressMap> {
        let own = self.device(device);
        if own.reached.is_empty() {
            return own.map.clone();
        }
        let (mut whole, reached) = (own.map.clone(), own.reached.clone());
        for peer in reached {
            let theirs = self.device(peer).map.clone();
            let whole = Arc::make_mut(&mut whole);
            // Registered host memory is in the maps of both.
            let new = theirs.segments().iter().filter(|segment| whole.index_of(segment.start).is_none());
            let new: Vec<Segment> = new.cloned().collect();
            new.into_iter().for_each(|segment| whole.insert(segment));
        }
        whole
    }

    /// Takes registered host memory whose pages the program has unmapped out of the maps of all devices, so that its use is a fault of the device and not of this process.
    /// Costs a call of the system for each block that kernels reach.
    pub(crate) fn unmap_missing_hosts(&mut self) {
        let reached = self.devices.iter().flat_map(|device| &device.reached_hosts);
        let missing: Vec<_> = reached.filter(|memory| !memory.is_present()).cloned().collect();
        for memory in missing {
            let death = self.host_mark(memory.region.device, Action::FreeRegistered(memory.id));
            self.unmap_host(&memory, &death);
        }
    }

    /// Takes registered host memory out of the maps of all devices, if it is in them.
    pub(crate) fn unmap_host(&mut self, memory: &HostMemory, death: &Arc<Mark>) {
        let reached = &mut self.device(memory.region.device).reached_hosts;
        reached.retain(|other| !Arc::ptr_eq(&other.physical, &memory.physical));
        let start = memory.physical.bytes.as_ptr().addr() as u64;
        let range = start..start + memory.physical.bytes.len() as u64;
        let mut was_mapped = false;
        for device in &mut self.devices {
            if !device.map.has(&memory.physical) {
                continue;
            }
            was_mapped = true;
            for segment in Arc::make_mut(&mut device.map).remove(range.clone()) {
                device.graveyard.bury(&segment.region, death);
            }
        }
        if was_mapped && is_chosen(start) {
            self.addresses.release(start);
        }
    }
}
