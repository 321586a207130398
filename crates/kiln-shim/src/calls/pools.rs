//! Memory pools, and allocations in the order of a stream.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys;
use kiln_driver::{Code, MemoryId, MemoryRequest};
use kiln_sync::{Bias, BiasedLock};

use crate::boundary::{Answer, OrCode};
use crate::caller_memory::{In, Out};
use crate::calls::context::Context;
use crate::calls::graph_memory::{AllocationParameters, GraphMemory};
use crate::calls::graph_work::NodeWork;
use crate::calls::memory_map::{Allocation, Backing};
use crate::calls::pool_sharing::FILE_DESCRIPTOR;
use crate::calls::process_state::{ProcessState, state};
use crate::calls::stream_order::StreamChoice;
use crate::calls::streams::choose;
use crate::handle_table::RawHandle;

/// How often other threads may use a pool before it belongs to all alike.
const VISITS: u32 = 256;

/// A pool of a device. All pools of a device share the device's one; what differs is what the program set and counts.
pub(crate) struct Pool {
    pub(crate) device: u32,
    /// What it can be exported as.
    pub(crate) handle_types: u32,
    /// Whether another process made it: memory of it comes from there.
    pub(crate) is_imported: bool,
    attributes: Mutex<BTreeMap<u32, u64>>,
    used: BiasedLock<Used>,
}

#[derive(Default)]
struct Used {
    bytes: u64,
    most_bytes: u64,
}

impl Pool {
    pub(crate) fn new(device: u32, handle_types: u32) -> Self {
        Self {
            device,
            handle_types,
            is_imported: false,
            attributes: Mutex::default(),
            used: BiasedLock::with_bias(Used::default(), Bias::Returns(VISITS)),
        }
    }

    /// One of another process.
    pub(crate) fn imported(device: u32) -> Self {
        Self { is_imported: true, ..Self::new(device, 0) }
    }

    fn count(&self, bytes: u64) {
        let mut used = self.used.lock();
        used.bytes += bytes;
        used.most_bytes = used.most_bytes.max(used.bytes);
    }

    fn uncount(&self, bytes: u64) {
        let mut used = self.used.lock();
        used.bytes = used.bytes.saturating_sub(bytes);
    }
}

/// The attributes, and whether a value is 4 bytes or 8.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PoolAttribute {
    Reuse(u32),
    ReleaseThreshold,
    Current,
    High,
}

impl PoolAttribute {
    fn new(number: u32) -> Answer<Self> {
        use sys::CUmemPool_attribute as A;
        Ok(match number {
            n if n == A::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD as u32 => Self::ReleaseThreshold,
            n if n == A::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT as u32
                || n == A::CU_MEMPOOL_ATTR_USED_MEM_CURRENT as u32 =>
            {
                Self::Current
            }
            n if n == A::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH as u32
                || n == A::CU_MEMPOOL_ATTR_USED_MEM_HIGH as u32 =>
            {
                Self::High
            }
            n if n >= A::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES as u32
                && n <= A::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES as u32 =>
            {
                Self::Reuse(n)
            }
            _ => return Err(Code::INVALID_VALUE),
        })
    }
}

/// The structure `CUmemPoolProps`, as far as it is looked at.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PoolProperties {
    pub(crate) kind: u32,
    pub(crate) handle_types: u32,
    pub(crate) location_kind: u32,
    pub(crate) location: c_int,
    security: usize,
    most_bytes: usize,
    rest: [u8; 56],
}

const _: () = assert!(size_of::<PoolProperties>() == size_of::<sys::CUmemPoolProps>());

pub(crate) fn pool(state: &ProcessState, handle: RawHandle) -> Answer<Arc<Pool>> {
    state.pools.get(handle).ok_or(Code::INVALID_VALUE)
}

fn allocate(out: Out<u64>, bytes: usize, wanted: Option<RawHandle>, stream: RawHandle) -> Answer {
    let state = state()?;
    let chosen = choose(state, stream)?;
    let (context, choice) = (chosen.context()?, &chosen.choice);
    out.check()?;
    if bytes == 0 {
        return out.set(0);
    }
    let device = state.device(context.device as c_int)?;
    let handle =
        wanted.unwrap_or_else(|| *device.current_pool.lock().unwrap_or_else(PoisonError::into_inner));
    let pool = pool(state, handle)?;
    if pool.device != context.device || pool.is_imported {
        return Err(Code::INVALID_VALUE);
    }
    let entered = context.order()?.get()?.enter_if_it_runs(choice)?;
    let Some(stream) = entered else {
        return out.set(capture_allocation(state, context, choice, bytes)?);
    };
    let bytes = bytes as u64;
    let request = match pool.handle_types {
        0 => MemoryRequest::Pool { bytes, stream },
        // Other processes can have directly allocated memory alone.
        _ => MemoryRequest::Direct { bytes },
    };
    let memory = context.driver.allocate(request).or_code()?;
    pool.count(bytes);
    let backing = match pool.handle_types {
        0 => Backing::Pool(memory.id, handle),
        _ => Backing::SharedPool(memory.id, handle),
    };
    let (number, driver) = (context.number, context.driver.clone());
    state.memory.insert(Allocation::new(memory.address.0, bytes, context.device, number, driver, backing));
    out.set(memory.address.0)
}

/// An allocation that is captured becomes a node.
fn capture_allocation(
    state: &ProcessState,
    context: &Context,
    choice: &StreamChoice,
    bytes: usize,
) -> Answer<u64> {
    let pool = PoolProperties {
        kind: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED as u32,
        handle_types: 0,
        location_kind: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE as u32,
        location: context.device as c_int,
        security: 0,
        most_bytes: 0,
        rest: [0; 56],
    };
    let given = AllocationParameters { pool, access: 0, access_count: 0, bytes, address: 0 };
    let memory = GraphMemory::create(state, context, given)?;
    let address = memory.address;
    context.order()?.get()?.record(choice, NodeWork::Allocate(memory))?;
    Ok(address)
}

/// A free that is captured becomes a node, if it frees memory of a graph.
fn capture_free(state: &ProcessState, context: &Context, choice: &StreamChoice, address: u64) -> Answer {
    match state.memory.around_in_graph(address) {
        Some((allocation, 0)) => match &allocation.backing {
            Backing::Graph(memory) => context.order()?.get()?.record(choice, NodeWork::Free(memory.clone())),
            _ => context.order()?.get()?.refuse_capture(choice),
        },
        _ => Err(Code::INVALID_VALUE),
    }
}

/// Takes pool memory out of the map.
fn take(state: &ProcessState, allocation: &Allocation) -> Answer {
    state.memory.remove(allocation.address)?;
    if let Backing::Pool(_, handle) | Backing::SharedPool(_, handle) = allocation.backing
        && let Some(pool) = state.pools.get(handle)
    {
        pool.uncount(allocation.bytes);
    }
    Ok(())
}

/// Frees pool memory without a stream: the program says that all uses are done.
pub(crate) fn free_at_once(state: &ProcessState, allocation: &Allocation, id: MemoryId) -> Answer {
    let owner = state.contexts.find_object(|context| context.number == allocation.context);
    let owner = owner.ok_or(Code::INVALID_VALUE)?;
    let legacy = owner.order()?.get()?.look(&StreamChoice::Legacy);
    take(state, allocation)?;
    allocation.driver.free(id, Some(legacy)).or_code()
}

/// Frees memory that other processes may have when the context is waited for, because work that is queued may use it.
pub(crate) fn retire(state: &ProcessState, allocation: &Allocation, id: MemoryId) -> Answer {
    let owner = state.contexts.find_object(|context| context.number == allocation.context);
    let owner = owner.ok_or(Code::INVALID_VALUE)?;
    take(state, allocation)?;
    owner.order()?.get()?.retire_memory(id);
    Ok(())
}

driver_api! {
    fn cuMemAllocAsync | cuMemAllocAsync_ptsz (out: Out<u64>, bytes: usize, stream: RawHandle) {
        allocate(out, bytes, None, stream)
    }

    fn cuMemAllocFromPoolAsync | cuMemAllocFromPoolAsync_ptsz (out: Out<u64>, bytes: usize, pool: RawHandle, stream: RawHandle) {
        allocate(out, bytes, Some(pool), stream)
    }

    fn cuMemFreeAsync | cuMemFreeAsync_ptsz (address: u64, stream: RawHandle) {
        let state = state()?;
        let chosen = choose(state, stream)?;
        let (context, choice) = (chosen.context()?, &chosen.choice);
        if address == 0 {
            return Ok(());
        }
        if context.order()?.get()?.is_capturing(choice) {
            return capture_free(state, context, choice, address);
        }
        let is_meant = |backing: &Backing| {
            matches!(
                backing,
                Backing::Pool(..) | Backing::SharedPool(..) | Backing::Direct(_) | Backing::Graph(_) | Backing::Imported(_)
            )
        };
        let allocation = state.memory.beginning(address, is_meant)?;
        if let Backing::Graph(memory) = &allocation.backing {
            let stream = context.order()?.get()?.enter(choice)?;
            return memory.end(Some(stream));
        }
        if let Backing::SharedPool(id, _) = allocation.backing {
            return retire(state, &allocation, id);
        }
        if let Backing::Imported(memory) = &allocation.backing
            && !memory.is_of_pool()
        {
            return Err(Code::INVALID_VALUE);
        }
        let Backing::Pool(id, _) = allocation.backing else {
            // The driver takes memory of `cuMemAlloc` here, too; its free waits.
            return crate::calls::memory::free_synchronously(state, &allocation);
        };
        if context.device != allocation.device {
            return Err(Code::INVALID_VALUE);
        }
        let stream = context.order()?.get()?.enter(choice)?;
        take(state, &allocation)?;
        allocation.driver.free(id, Some(stream)).or_code()
    }

    fn cuDeviceGetDefaultMemPool(out: Out<RawHandle>, device: c_int) {
        out.set(state()?.device(device)?.default_pool)
    }

    fn cuDeviceGetMemPool(out: Out<RawHandle>, device: c_int) {
        let device = state()?.device(device)?;
        out.set(*device.current_pool.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn cuDeviceSetMemPool(device: c_int, handle: RawHandle) {
        let state = state()?;
        let pool = pool(state, handle)?;
        let place = state.device(device).map_err(|_| Code::INVALID_VALUE)?;
        if pool.device as c_int != device {
            return Err(Code::INVALID_VALUE);
        }
        *place.current_pool.lock().unwrap_or_else(PoisonError::into_inner) = handle;
        Ok(())
    }

    fn cuMemPoolCreate(out: Out<RawHandle>, properties: In<PoolProperties>) {
        let state = state()?;
        out.check()?;
        let properties = properties.get()?;
        let on_device = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE as u32;
        let pinned = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED as u32;
        if properties.kind != pinned {
            return Err(Code::INVALID_VALUE);
        }
        // Handles of another system.
        if matches!(properties.handle_types, 2 | 4) {
            return Err(Code::INVALID_VALUE);
        }
        if properties.location_kind != on_device || properties.handle_types & !FILE_DESCRIPTOR != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        if properties.handle_types != 0 {
            state.backend.machine("cuMemPoolCreate of a pool for other processes")?;
        }
        state.device(properties.location)?;
        let pool = Arc::new(Pool::new(properties.location as u32, properties.handle_types));
        out.set(state.pools.insert(pool).ok_or(Code::OUT_OF_MEMORY)?)
    }

    fn cuMemPoolDestroy(handle: RawHandle) {
        let state = state()?;
        let pool = pool(state, handle)?;
        let device = state.device(pool.device as c_int)?;
        if handle == device.default_pool {
            return Err(Code::INVALID_VALUE);
        }
        let mut chosen = device.current_pool.lock().unwrap_or_else(PoisonError::into_inner);
        if *chosen == handle {
            *chosen = device.default_pool;
        }
        state.pools.remove(handle).map(|_| ()).ok_or(Code::INVALID_VALUE)
    }

    fn cuMemPoolTrimTo(handle: RawHandle, keep: usize) {
        let state = state()?;
        let pool = pool(state, handle)?;
        state.device(pool.device as c_int)?.driver.trim_pool(keep as u64).or_code()
    }

    fn cuMemPoolGetAttribute(handle: RawHandle, attribute: c_uint, value: *mut c_void) {
        let pool = pool(state()?, handle)?;
        let attributes = pool.attributes.lock().unwrap_or_else(PoisonError::into_inner);
        let used = pool.used.lock();
        match PoolAttribute::new(attribute)? {
            PoolAttribute::Reuse(number) => {
                Out::<c_int>::at(value).set(attributes.get(&number).copied().unwrap_or(1) as c_int)
            }
            PoolAttribute::ReleaseThreshold => {
                Out::<u64>::at(value).set(attributes.get(&attribute).copied().unwrap_or(0))
            }
            PoolAttribute::Current => Out::<u64>::at(value).set(used.bytes),
            PoolAttribute::High => Out::<u64>::at(value).set(used.most_bytes),
        }
    }

    fn cuMemPoolSetAttribute(handle: RawHandle, attribute: c_uint, value: *mut c_void) {
        let pool = pool(state()?, handle)?;
        let mut attributes = pool.attributes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut used = pool.used.lock();
        match PoolAttribute::new(attribute)? {
            PoolAttribute::Reuse(number) => {
                attributes.insert(number, Out::<c_int>::at(value).get()? as u64);
            }
            PoolAttribute::ReleaseThreshold => {
                attributes.insert(attribute, Out::<u64>::at(value).get()?);
            }
            // The high marks can be set to 0 only.
            PoolAttribute::High if Out::<u64>::at(value).get()? == 0 => used.most_bytes = used.bytes,
            PoolAttribute::Current | PoolAttribute::High => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }

    fn cuMemPoolSetAccess(handle: RawHandle, access: *const c_void, _count: usize) {
        // Devices of a simulated machine reach each other's memory by copies.
        pool(state()?, handle)?;
        if access.is_null() { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    fn cuMemPoolGetAccess(out: Out<c_uint>, handle: RawHandle, location: In<[c_int; 2]>) {
        let pool = pool(state()?, handle)?;
        let [_, device] = location.get()?;
        let flags = sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE as u32;
        out.set(if device == pool.device as c_int { flags } else { 0 })
    }
}
