//! Which memory lies at which address: allocations, pinned and managed memory, variables of modules, registered host memory.
//!
//! Addresses of devices and of the host are apart, so one map holds both.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use kiln_driver::{Base, Code, DevicePlace, Driver, HostBlock, MemoryId, Place};
use kiln_sync::{Bias, BiasedLock};

use crate::boundary::{Answer, OrCode};
use crate::calls::address_range::AddressRange;
use crate::calls::external_memory::ExternalBuffer;
use crate::calls::graph_memory::GraphMemory;
use crate::calls::interprocess::ImportedMemory;
use crate::calls::mapped_pages::{MappedPages, PagesBelow};
use crate::recording::{NotedBlock, ProgramRecording, recording};

/// A piece of memory that the program knows.
pub(crate) struct Allocation {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) device: u32,
    /// The number of its context.
    pub(crate) context: u64,
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) backing: Backing,
    /// A number that no other allocation of the process has.
    pub(crate) number: u64,
    /// The memory as a file, once it was shared with other processes.
    pub(crate) exported: OnceLock<OwnedFd>,
}

/// What is behind an allocation.
pub(crate) enum Backing {
    /// Memory from `cuMemAlloc`.
    Direct(MemoryId),
    /// Memory from a pool, with the pool's handle.
    Pool(MemoryId, usize),
    /// Memory of a pool that other processes can have, with the pool's handle.
    SharedPool(MemoryId, usize),
    /// A variable of a module.
    Variable(MemoryId),
    /// Managed memory.
    Managed(MappedPages),
    /// Pinned host memory, with the flags it was made with.
    Pinned(MappedPages, u32),
    /// Memory of the program that was registered.
    Registered(RegisteredMemory),
    /// Reserved addresses, some of which may have memory.
    Reserved(Arc<AddressRange>),
    /// Memory of another process.
    Imported(ImportedMemory),
    /// Memory that another interface shared.
    External(ExternalBuffer),
    /// The texels of an array.
    Array(MemoryId),
    /// Memory of an allocation node of a graph, which is there between the launch and the free.
    Graph(Arc<GraphMemory>),
}

/// Memory of the program that was registered.
pub(crate) struct RegisteredMemory {
    pub(crate) block: HostBlock,
    pub(crate) flags: u32,
    /// Whether kernels reach it, at the addresses of the host.
    pub(crate) is_reached: bool,
}

impl Allocation {
    pub(crate) fn new(
        address: u64,
        bytes: u64,
        device: u32,
        context: u64,
        driver: Arc<dyn Driver>,
        backing: Backing,
    ) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { address, bytes, device, context, driver, backing, number, exported: OnceLock::new() })
    }

    /// The place at an offset, for a command on a device.
    pub(crate) fn place(&self, device: u32, offset: u64) -> Place {
        let base = match &self.backing {
            Backing::Registered(memory) => return Place::Host { block: memory.block.id(), offset },
            Backing::Direct(id)
            | Backing::Pool(id, _)
            | Backing::SharedPool(id, _)
            | Backing::Variable(id)
            | Backing::Array(id) => Base::Memory(*id),
            Backing::Managed(pages) | Backing::Pinned(pages, _) => match pages.below() {
                PagesBelow::Mapped(reservation, _) => Base::Reservation(reservation.id),
                PagesBelow::Host(block) => return Place::Host { block: block.id(), offset },
            },
            Backing::Reserved(range) => Base::Reservation(range.id()),
            Backing::Imported(memory) => Base::Reservation(memory.reservation.id),
            Backing::External(buffer) => Base::Reservation(buffer.reservation.id),
            Backing::Graph(memory) => Base::Memory(memory.below),
        };
        let before = if let Backing::External(buffer) = &self.backing { buffer.offset } else { 0 };
        let place = DevicePlace { base, offset: before + offset };
        if device == self.device { Place::Device(place) } else { Place::Peer(place) }
    }

    /// What it is called below.
    pub(crate) fn name_below(&self) -> String {
        name_of(self.place(self.device, 0))
    }

    /// What its memory is called in a recording; nothing for what is no memory by itself.
    fn tag(&self) -> Option<&'static str> {
        Some(match &self.backing {
            Backing::Direct(_) => "device",
            Backing::Pool(..) | Backing::SharedPool(..) => "pool",
            Backing::Managed(_) => "managed",
            Backing::Pinned(..) => "pinned",
            Backing::Registered(_) => "registered",
            Backing::Imported(_) | Backing::External(_) => "imported",
            Backing::Array(_) => "array",
            Backing::Graph(_) => "graph",
            Backing::Variable(_) | Backing::Reserved(_) => return None,
        })
    }

    /// Whether calls can use it now.
    fn is_there(&self) -> bool {
        match &self.backing {
            Backing::Graph(memory) => memory.is_live(),
            _ => true,
        }
    }

    /// Whether the host can use its addresses.
    pub(crate) fn is_of_host(&self) -> bool {
        matches!(self.backing, Backing::Managed(_) | Backing::Pinned(..) | Backing::Registered(..))
    }

    /// Gives it back, when no work uses it any more.
    pub(crate) fn free(&self) -> Answer {
        match &self.backing {
            Backing::Direct(id) | Backing::SharedPool(id, _) | Backing::Array(id) => {
                self.driver.free(*id, None).or_code()
            }
            Backing::Managed(pages) | Backing::Pinned(pages, _) => pages.free(&*self.driver),
            Backing::Registered(memory) => self.driver.destroy(memory.block.id().into()).or_code(),
            Backing::Imported(memory) => memory.free(&*self.driver),
            Backing::External(buffer) => buffer.free(),
            Backing::Graph(memory) => memory.free(),
            // The first is freed in the order of a stream, the second with its module, the third by a separate call.
            Backing::Pool(..) | Backing::Variable(_) | Backing::Reserved(_) => Ok(()),
        }
    }
}

/// What the memory at a place is called below.
fn name_of(place: Place) -> String {
    match place {
        Place::Device(place) | Place::Peer(place) => place.base.to_string(),
        Place::Host { block, .. } => block.to_string(),
    }
}

/// How often other threads may use the map before it belongs to all alike.
const VISITS: u32 = 256;
/// Blocks that were freed and are remembered.
const FREED_BLOCKS: usize = 1024;

/// A block that was freed.
#[derive(Clone, Copy)]
pub(crate) struct FreedBlock {
    address: u64,
    pub(crate) bytes: u64,
    place: Place,
}

impl FreedBlock {
    /// What it was called below.
    pub(crate) fn name(&self) -> String {
        name_of(self.place)
    }
}

/// All of it.
pub(crate) struct MemoryMap {
    allocations: BiasedLock<BTreeMap<u64, Arc<Allocation>>>,
    /// The newest blocks that were freed, the last one at the end.
    freed: BiasedLock<VecDeque<FreedBlock>>,
}

impl Default for MemoryMap {
    fn default() -> Self {
        Self {
            allocations: BiasedLock::with_bias(BTreeMap::new(), Bias::Returns(VISITS)),
            freed: BiasedLock::with_bias(VecDeque::new(), Bias::Returns(VISITS)),
        }
    }
}

impl MemoryMap {
    pub(crate) fn insert(&self, allocation: Arc<Allocation>) {
        note(&allocation, ProgramRecording::allocated);
        let mut map = self.allocations.lock();
        map.insert(allocation.address, allocation);
    }

    /// The allocation around an address, and the offset in it.
    pub(crate) fn around(&self, address: u64) -> Option<(Arc<Allocation>, u64)> {
        self.around_in_graph(address).filter(|(allocation, _)| allocation.is_there())
    }

    /// The same for nodes of graphs, whose memory may come to be by the launch.
    pub(crate) fn around_in_graph(&self, address: u64) -> Option<(Arc<Allocation>, u64)> {
        let map = self.allocations.lock();
        let (start, allocation) = map.range(..=address).next_back()?;
        let offset = address - start;
        (offset < allocation.bytes).then(|| (allocation.clone(), offset))
    }

    /// The allocation that holds so many bytes from an address on.
    pub(crate) fn find(&self, address: u64, bytes: u64) -> Answer<(Arc<Allocation>, u64)> {
        fitting(self.around(address), bytes)
    }

    /// The same for nodes of graphs, or for other work.
    pub(crate) fn find_in(&self, in_graph: bool, address: u64, bytes: u64) -> Answer<(Arc<Allocation>, u64)> {
        fitting(self.around_in(in_graph, address), bytes)
    }

    /// The allocation around an address, for nodes of graphs or for other work.
    pub(crate) fn around_in(&self, in_graph: bool, address: u64) -> Option<(Arc<Allocation>, u64)> {
        if in_graph { self.around_in_graph(address) } else { self.around(address) }
    }

    /// Where so many bytes are for commands of a device, and whether the host can use them; nothing if the address is not in the map.
    pub(crate) fn place(&self, of: (u32, bool), address: u64, bytes: u64) -> Answer<Option<(Place, bool)>> {
        place_in(&self.allocations.lock(), of, address, bytes)
    }

    /// The same for two ranges, which are looked up at once, as most copies need it.
    pub(crate) fn two_places(
        &self,
        of: (u32, bool),
        [first, second]: [u64; 2],
        bytes: u64,
    ) -> Answer<Option<[(Place, bool); 2]>> {
        let map = self.allocations.lock();
        let (first, second) = (place_in(&map, of, first, bytes)?, place_in(&map, of, second, bytes)?);
        Ok(first.zip(second).map(|(first, second)| [first, second]))
    }

    /// All allocations, by their addresses.
    pub(crate) fn all(&self) -> Vec<Arc<Allocation>> {
        self.allocations.lock().values().cloned().collect()
    }

    /// The first allocation that is meant.
    pub(crate) fn first(&self, is_meant: impl Fn(&Allocation) -> bool) -> Option<Arc<Allocation>> {
        let map = self.allocations.lock();
        map.values().find(|allocation| is_meant(allocation)).cloned()
    }

    /// Frees memory of graphs that are gone; no work of the context uses it any more.
    pub(crate) fn sweep_graph_memory(&self, context: u64) {
        let mut map = self.allocations.lock();
        let is_unused = |allocation: &Allocation| match &allocation.backing {
            Backing::Graph(memory) => {
                allocation.context == context && Arc::strong_count(memory) == 1 && !memory.is_live()
            }
            _ => false,
        };
        let unused: Vec<u64> = map.iter().filter(|(_, of)| is_unused(of)).map(|(at, _)| *at).collect();
        let unused: Vec<Arc<Allocation>> = unused.iter().filter_map(|at| map.remove(at)).collect();
        drop(map);
        for allocation in unused {
            note(&allocation, ProgramRecording::freed);
            // A lost device keeps nothing.
            let _ = allocation.free();
        }
    }

    /// How much memory graphs have on a device.
    pub(crate) fn graph_bytes(&self, device: u32) -> u64 {
        let map = self.allocations.lock();
        let memory = map.values().filter(|allocation| allocation.device == device);
        memory
            .map(|allocation| match &allocation.backing {
                Backing::Graph(memory) => memory.bytes,
                _ => 0,
            })
            .sum()
    }

    /// The allocation that begins at an address and is of a kind.
    pub(crate) fn beginning(
        &self,
        address: u64,
        is_meant: impl Fn(&Backing) -> bool,
    ) -> Answer<Arc<Allocation>> {
        let map = self.allocations.lock();
        let allocation =
            map.get(&address).filter(|allocation| is_meant(&allocation.backing) && allocation.is_there());
        allocation.cloned().ok_or(Code::INVALID_VALUE)
    }

    /// Takes an allocation out; of two threads one gets it.
    pub(crate) fn remove(&self, address: u64) -> Answer<Arc<Allocation>> {
        let mut map = self.allocations.lock();
        let removed = map.remove(&address).ok_or(Code::INVALID_VALUE)?;
        drop(map);
        note(&removed, ProgramRecording::freed);
        if matches!(removed.backing, Backing::Direct(_) | Backing::Pool(..)) {
            let mut freed = self.freed.lock();
            if freed.len() >= FREED_BLOCKS {
                freed.pop_front();
            }
            let place = removed.place(removed.device, 0);
            freed.push_back(FreedBlock { address, bytes: removed.bytes, place });
        }
        Ok(removed)
    }

    /// The block that was last at an address, if it was freed not long ago.
    pub(crate) fn freed(&self, address: u64) -> Option<FreedBlock> {
        let freed = self.freed.lock();
        let was_there = |block: &&FreedBlock| (block.address..block.address + block.bytes).contains(&address);
        freed.iter().rev().find(was_there).copied()
    }

    /// Whether a range overlaps an allocation.
    pub(crate) fn overlaps(&self, address: u64, bytes: u64) -> bool {
        let map = self.allocations.lock();
        let last = map.range(..address.saturating_add(bytes)).next_back();
        last.is_some_and(|(start, allocation)| start + allocation.bytes > address)
    }

    /// Frees all memory of a context whose work is done.
    pub(crate) fn end_context(&self, context: u64) {
        let mut map = self.allocations.lock();
        let ours: Vec<u64> = map.iter().filter(|(_, of)| of.context == context).map(|(at, _)| *at).collect();
        let ours: Vec<Arc<Allocation>> = ours.iter().filter_map(|at| map.remove(at)).collect();
        drop(map);
        for allocation in ours {
            note(&allocation, ProgramRecording::freed);
            // Pool memory belongs to its device and goes with the process; a lost device keeps nothing.
            let _ = allocation.free();
        }
    }

    /// Forgets the variables of a module that is unloaded.
    pub(crate) fn forget_variables(&self, variables: &[u64]) {
        let mut map = self.allocations.lock();
        for address in variables {
            map.remove(address);
        }
    }
}

/// Where so many bytes from an address on are for commands of a device, or for a graph of it.
fn place_in(
    map: &BTreeMap<u64, Arc<Allocation>>,
    (device, in_graph): (u32, bool),
    address: u64,
    bytes: u64,
) -> Answer<Option<(Place, bool)>> {
    let Some((start, allocation)) = map.range(..=address).next_back() else { return Ok(None) };
    let offset = address - start;
    if offset >= allocation.bytes || !(in_graph || allocation.is_there()) {
        return Ok(None);
    }
    if offset.checked_add(bytes).is_none_or(|end| end > allocation.bytes) {
        return Err(Code::INVALID_VALUE);
    }
    Ok(Some((allocation.place(device, offset), allocation.is_of_host())))
}

/// Writes an allocation down, if the process is recorded.
fn note(allocation: &Allocation, write: fn(&ProgramRecording, &NotedBlock)) {
    if let (Some(recording), Some(tag)) = (recording(), allocation.tag()) {
        let Allocation { device, number, address, bytes, .. } = *allocation;
        write(recording, &NotedBlock { device, number, address, bytes, tag });
    }
}

/// What was found, if it holds so many bytes from there on.
fn fitting(found: Option<(Arc<Allocation>, u64)>, bytes: u64) -> Answer<(Arc<Allocation>, u64)> {
    let (allocation, offset) = found.ok_or(Code::INVALID_VALUE)?;
    let fits = offset.checked_add(bytes).is_some_and(|end| end <= allocation.bytes);
    if fits { Ok((allocation, offset)) } else { Err(Code::INVALID_VALUE) }
}
