//! Allocations of device and managed memory, and questions about them.

use std::ffi::{c_int, c_uint};
use std::sync::Arc;

use cudarc::driver::sys;
use kiln_driver::{Code, MemoryRequest};

use crate::boundary::{Answer, OrCode};
use crate::caller_memory::Out;
use crate::calls::context::Context;
use crate::calls::mapped_pages::MappedPages;
use crate::calls::memory_map::{Allocation, Backing};
use crate::calls::process_state::{ProcessState, current, state};
use crate::calls::refused_addresses;
use crate::calls::streams::chosen;
use crate::handle_table::RawHandle;

/// Rows of `cuMemAllocPitch` begin at multiples of this.
const PITCH_BYTES: usize = 512;
const ATTACH_GLOBAL: u32 = sys::CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL as u32;
const ATTACH_HOST: u32 = sys::CUmemAttach_flags::CU_MEM_ATTACH_HOST as u32;

/// Allocates, and frees again if the result cannot be written.
fn allocate(state: &ProcessState, context: &Context, bytes: u64) -> Answer<u64> {
    if bytes == 0 {
        return Err(Code::INVALID_VALUE);
    }
    context.order()?.get()?.captures.refuse_unsafe()?;
    let memory = context.driver.allocate(MemoryRequest::Direct { bytes }).or_code()?;
    let allocation = Allocation::new(
        memory.address.0,
        bytes,
        context.device,
        context.number,
        context.driver.clone(),
        Backing::Direct(memory.id),
    );
    state.memory.insert(allocation);
    Ok(memory.address.0)
}

/// Makes memory that the host and the device have.
pub(crate) fn allocate_mapped(
    state: &ProcessState,
    context: &Context,
    bytes: u64,
    backing: impl FnOnce(MappedPages) -> Backing,
) -> Answer<u64> {
    if bytes == 0 {
        return Err(Code::INVALID_VALUE);
    }
    context.order()?.get()?.captures.refuse_unsafe()?;
    let setup = context.order()?.get()?.setup_stream()?;
    let pages = MappedPages::new(&*context.driver, bytes, setup, state.backend.is_simulated())?;
    let address = pages.address();
    let allocation = Allocation::new(
        address,
        bytes,
        context.device,
        context.number,
        context.driver.clone(),
        backing(pages),
    );
    state.memory.insert(allocation);
    Ok(address)
}

/// Frees memory that no pool made: waits for all work of the context first, as the driver does.
pub(crate) fn free_synchronously(state: &ProcessState, allocation: &Arc<Allocation>) -> Answer {
    let owner = state.contexts.find_object(|context| context.number == allocation.context);
    if let Some(owner) = owner.filter(|owner| owner.is_there()) {
        owner.order()?.get()?.captures.refuse_unsafe()?;
        owner.synchronize()?;
    }
    state.memory.remove(allocation.address)?.free()
}

driver_api! {
    fn cuMemAlloc_v2(out: Out<u64>, bytes: usize) {
        let (state, context) = current()?;
        // A call that fails leaves no address, as with the driver.
        out.set(0)?;
        out.set(allocate(state, &context, bytes as u64)?)
    }

    fn cuMemAllocPitch_v2(out: Out<u64>, pitch: Out<usize>, width: usize, height: usize, element: c_uint) {
        let (state, context) = current()?;
        out.check()?;
        pitch.check()?;
        if !matches!(element, 4 | 8 | 16) {
            return Err(Code::INVALID_VALUE);
        }
        let row = width.checked_next_multiple_of(PITCH_BYTES).ok_or(Code::INVALID_VALUE)?;
        let bytes = row.checked_mul(height).ok_or(Code::INVALID_VALUE)?;
        out.set(allocate(state, &context, bytes as u64)?)?;
        pitch.set(row)
    }

    fn cuMemAllocManaged(out: Out<u64>, bytes: usize, flags: c_uint) {
        let (state, context) = current()?;
        out.check()?;
        if !matches!(flags, ATTACH_GLOBAL | ATTACH_HOST) {
            return Err(Code::INVALID_VALUE);
        }
        out.set(allocate_mapped(state, &context, bytes as u64, Backing::Managed)?)
    }

    fn cuMemFree_v2(address: u64) {
        let process = state()?;
        if address == 0 {
            return Ok(());
        }
        let (state, _) = (process, current()?);
        let is_meant =
            |backing: &Backing| match backing {
                Backing::Direct(_) | Backing::Managed(_) | Backing::Pool(..) | Backing::SharedPool(..) | Backing::Graph(_) => true,
                Backing::External(_) => true,
                Backing::Imported(memory) => memory.is_of_pool(),
                _ => false,
            };
        let found = state.memory.beginning(address, is_meant);
        let allocation = found.inspect_err(|_| refused_addresses::note_free(state, address))?;
        match &allocation.backing {
            Backing::Graph(memory) => {
                let owner = state.contexts.find_object(|context| context.number == allocation.context);
                owner.ok_or(Code::INVALID_VALUE)?.synchronize()?;
                memory.end(None)
            }
            Backing::Pool(id, _) => crate::calls::pools::free_at_once(state, &allocation, *id),
            Backing::SharedPool(id, _) => crate::calls::pools::retire(state, &allocation, *id),
            _ => free_synchronously(state, &allocation),
        }
    }

    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        let (_, context) = current()?;
        let info = context.driver.memory_info().or_code()?;
        free.set_if_wanted(info.free_bytes as usize);
        total.set_if_wanted(info.total_bytes as usize);
        Ok(())
    }

    fn cuMemGetAddressRange_v2(start: Out<u64>, bytes: Out<usize>, address: u64) {
        let (state, _) = current()?;
        let (allocation, _) = state.memory.around(address).ok_or(Code::NOT_FOUND)?;
        start.set_if_wanted(allocation.address);
        bytes.set_if_wanted(allocation.bytes as usize);
        Ok(())
    }

    fn cuMemAdvise(address: u64, bytes: usize, advice: c_uint, _device: c_int) {
        check_advice(advice)?;
        advise(address, bytes)
    }

    fn cuMemAdvise_v2(address: u64, bytes: usize, advice: c_uint, _location: u64) {
        check_advice(advice)?;
        advise(address, bytes)
    }

    fn cuMemPrefetchAsync | cuMemPrefetchAsync_ptsz (address: u64, bytes: usize, _device: c_int, stream: RawHandle) {
        chosen(state()?, stream)?;
        advise(address, bytes)
    }

    fn cuMemPrefetchAsync_v2 | cuMemPrefetchAsync_v2_ptsz (address: u64, bytes: usize, _location: u64, _flags: c_uint, stream: RawHandle) {
        chosen(state()?, stream)?;
        advise(address, bytes)
    }
}

/// Refuses numbers that are no advice.
fn check_advice(number: c_uint) -> Answer {
    use sys::CUmem_advise as A;
    let (first, last) = (A::CU_MEM_ADVISE_SET_READ_MOSTLY, A::CU_MEM_ADVISE_UNSET_ACCESSED_BY);
    if (first as c_uint..=last as c_uint).contains(&number) { Ok(()) } else { Err(Code::INVALID_VALUE) }
}

/// Advice about managed memory changes nothing that can be seen; only whether it is managed memory is checked.
fn advise(address: u64, bytes: usize) -> Answer {
    let (state, _) = current()?;
    let (allocation, _) = state.memory.find(address, bytes as u64)?;
    if matches!(allocation.backing, Backing::Managed(_)) { Ok(()) } else { Err(Code::INVALID_VALUE) }
}
