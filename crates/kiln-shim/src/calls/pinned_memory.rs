//! Pinned host memory: allocated, and registered.

use std::ffi::{c_uint, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use cudarc::driver::sys;
use kiln_driver::{Code, SharedBytes};

use crate::boundary::{Answer, OrCode};
use crate::caller_memory::{Out, fetch_slice};
use crate::calls::memory::{allocate_mapped, free_synchronously};
use crate::calls::memory_map::{Allocation, Backing, RegisteredMemory};
use crate::calls::process_state::current;

const ALLOCATION_FLAGS: u32 =
    sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP | sys::CU_MEMHOSTALLOC_WRITECOMBINED;
const REGISTRATION_FLAGS: u32 = sys::CU_MEMHOSTREGISTER_PORTABLE
    | sys::CU_MEMHOSTREGISTER_DEVICEMAP
    | sys::CU_MEMHOSTREGISTER_IOMEMORY
    | sys::CU_MEMHOSTREGISTER_READ_ONLY;
const ALREADY_REGISTERED: Code = Code(712);
const NOT_REGISTERED: Code = Code(713);

fn allocate(out: Out<*mut c_void>, bytes: usize, flags: u32) -> Answer {
    let (state, context) = current()?;
    out.check()?;
    if flags & !ALLOCATION_FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    if bytes == 0 {
        return out.set(std::ptr::null_mut());
    }
    let address = allocate_mapped(state, &context, bytes as u64, |pages| Backing::Pinned(pages, flags))?;
    out.set(address as usize as *mut c_void)
}

driver_api! {
    fn cuMemHostAlloc(out: Out<*mut c_void>, bytes: usize, flags: c_uint) {
        allocate(out, bytes, flags)
    }

    fn cuMemAllocHost_v2(out: Out<*mut c_void>, bytes: usize) {
        allocate(out, bytes, 0)
    }

    fn cuMemFreeHost(address: u64) {
        let (state, _) = current()?;
        if address == 0 {
            return Ok(());
        }
        let allocation =
            state.memory.beginning(address, |backing| matches!(backing, Backing::Pinned(..)))?;
        free_synchronously(state, &allocation)
    }

    fn cuMemHostGetDevicePointer_v2(out: Out<u64>, address: u64, flags: c_uint) {
        let (state, _) = current()?;
        out.check()?;
        let (allocation, _) = state.memory.around(address).ok_or(Code::INVALID_VALUE)?;
        match &allocation.backing {
            Backing::Pinned(..) | Backing::Managed(_) if flags == 0 => out.set(address),
            Backing::Registered(memory) if flags == 0 && memory.is_reached => out.set(address),
            Backing::Registered(_) if flags == 0 => Err(Code::NOT_SUPPORTED),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn cuMemHostGetFlags(out: Out<c_uint>, address: u64) {
        let (state, _) = current()?;
        let (allocation, _) = state.memory.around(address).ok_or(Code::INVALID_VALUE)?;
        match &allocation.backing {
            Backing::Pinned(_, flags) => out.set(flags | sys::CU_MEMHOSTALLOC_DEVICEMAP),
            Backing::Registered(memory) => out.set(memory.flags),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn cuMemHostRegister_v2(address: u64, bytes: usize, flags: c_uint) = cuMemHostRegister {
        let (state, context) = current()?;
        let Some(start) = NonNull::new(address as usize as *mut u8).filter(|_| bytes > 0) else {
            return Err(Code::INVALID_VALUE);
        };
        if flags & !REGISTRATION_FLAGS != 0 || address.checked_add(bytes as u64).is_none() {
            return Err(Code::INVALID_VALUE);
        }
        if state.memory.overlaps(address, bytes as u64) {
            return Err(ALREADY_REGISTERED);
        }
        // Both ends are looked at, so that an address without memory is an error here and no crash later.
        let mut byte = [0];
        fetch_slice(address as usize, &mut byte)?;
        fetch_slice(address as usize + bytes - 1, &mut byte)?;
        // SAFETY: the API requires that registered memory stays readable and writable until it is unregistered, and it is memory of a foreign
        // program, to which Rust has no references.
        let memory = unsafe { SharedBytes::from_raw(start, bytes, Box::new(())) };
        let block = context.driver.register_host(Arc::new(memory)).or_code()?;
        let is_reached = state.backend.map_registered(context.device, block.id());
        let backing = Backing::Registered(RegisteredMemory { block, flags, is_reached });
        let driver = context.driver.clone();
        state.memory.insert(Allocation::new(
            address, bytes as u64, context.device, context.number, driver, backing,
        ));
        Ok(())
    }

    fn cuMemHostUnregister(address: u64) {
        let (state, _) = current()?;
        let is_registered = |backing: &Backing| matches!(backing, Backing::Registered(..));
        let registered = state.memory.beginning(address, is_registered);
        let is_inside = || state.memory.around(address).is_some_and(|(around, _)| is_registered(&around.backing));
        if registered.is_err() && (address == 0 || is_inside()) {
            return Err(Code::INVALID_VALUE);
        }
        free_synchronously(state, &registered.map_err(|_| NOT_REGISTERED)?)
    }
}
