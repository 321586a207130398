//! Contexts: created, current, pushed and popped, and what can be set of them.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use cudarc::driver::sys;
use kiln_driver::Code;

use crate::boundary::Answer;
use crate::caller_memory::Out;
use crate::calls::context::{Context, Current, named};
use crate::calls::process_state::{current, state};
use crate::handle_table::RawHandle;

/// Schedules, mapped host memory, local memory, synchronous memory operations.
const ALL_FLAGS: u32 = sys::CUctx_flags::CU_CTX_FLAGS_MASK as u32;
/// Bits of the flags that say how the host waits; at most one of them is set.
const SCHEDULE: u32 = sys::CUctx_flags::CU_CTX_SCHED_MASK as u32;
/// This number and greater ones are no limits.
const LIMITS: u32 = 9;
/// A limit of devices that synchronise from kernels, which none does any more.
const SYNC_DEPTH: u32 = sys::CUlimit::CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH as u32;
/// Stack of a thread, as the driver has it at first.
const STACK_BYTES: usize = 1024;
const PRINT_BYTES: usize = 1 << 20;
const HEAP_BYTES: usize = 8 << 20;

/// Refuses flags that there are not, and two ways to wait at once.
pub(crate) fn check_flags(flags: u32) -> Answer {
    let is_known = flags & !ALL_FLAGS == 0 && (flags & SCHEDULE).count_ones() <= 1;
    if is_known { Ok(()) } else { Err(Code::INVALID_VALUE) }
}

/// Refuses limits that there are not, and those that this device has not.
fn check_limit(limit: u32) -> Answer {
    match limit {
        SYNC_DEPTH | LIMITS => Err(Code(215)),
        limit if limit > LIMITS => Err(Code::INVALID_VALUE),
        _ => Ok(()),
    }
}

fn create(out: Out<RawHandle>, flags: u32, device: c_int) -> Answer {
    let state = state()?;
    out.check()?;
    check_flags(flags)?;
    let place = state.device(device)?;
    let context = Arc::new(Context::create(device as u32, place.driver.clone(), flags)?);
    let handle = state.contexts.insert(context).ok_or(Code::OUT_OF_MEMORY)?;
    Current::push(handle);
    out.set(handle)
}

/// The context of a handle, or the current one for null.
fn given_or_current(handle: RawHandle) -> Answer<Arc<Context>> {
    if handle == 0 {
        return Ok(current()?.1);
    }
    let context = named(state()?, handle)?;
    if context.is_there() { Ok(context) } else { Err(Code::CONTEXT_IS_DESTROYED) }
}

/// What a limit is at first.
fn default_limit(limit: u32) -> usize {
    use sys::CUlimit as L;
    match limit {
        l if l == L::CU_LIMIT_STACK_SIZE as u32 => STACK_BYTES,
        l if l == L::CU_LIMIT_PRINTF_FIFO_SIZE as u32 => PRINT_BYTES,
        l if l == L::CU_LIMIT_MALLOC_HEAP_SIZE as u32 => HEAP_BYTES,
        _ => 0,
    }
}

/// Waits for all work of a context, none of whose streams may capture.
fn wait_for_all(context: &Context) -> Answer {
    context.order()?.get()?.refuse_all_captures()?;
    context.synchronize()
}

driver_api! {
    fn cuCtxCreate_v2(out: Out<RawHandle>, flags: c_uint, device: c_int) = cuCtxCreate {
        create(out, flags, device)
    }

    fn cuCtxCreate_v3(out: Out<RawHandle>, _parameters: *const c_void, count: c_int, flags: c_uint, device: c_int) {
        if count != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        create(out, flags, device)
    }

    fn cuCtxCreate_v4(out: Out<RawHandle>, parameters: *const c_void, flags: c_uint, device: c_int) {
        if !parameters.is_null() {
            return Err(Code::NOT_SUPPORTED);
        }
        create(out, flags, device)
    }

    fn cuCtxDestroy_v2(handle: RawHandle) = cuCtxDestroy {
        let state = state()?;
        if handle == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let context = named(state, handle)?;
        if context.is_primary {
            return Err(Code::INVALID_CONTEXT);
        }
        state.contexts.remove(handle).ok_or(Code::INVALID_CONTEXT)?;
        if Current::handle() == handle {
            Current::pop();
        }
        context.end(state);
        Ok(())
    }

    fn cuCtxGetCurrent(out: Out<RawHandle>) {
        state()?;
        out.set(Current::handle())
    }

    fn cuCtxSetCurrent(handle: RawHandle) {
        let state = state()?;
        if handle != 0 {
            named(state, handle)?;
        }
        Current::set(handle);
        Ok(())
    }

    fn cuCtxPushCurrent_v2(handle: RawHandle) = cuCtxPushCurrent {
        let state = state()?;
        if handle == 0 {
            return Err(Code::INVALID_VALUE);
        }
        named(state, handle)?;
        Current::push(handle);
        Ok(())
    }

    fn cuCtxPopCurrent_v2(out: Out<RawHandle>) = cuCtxPopCurrent {
        state()?;
        let handle = Current::pop().ok_or(Code::INVALID_CONTEXT)?;
        out.set_if_wanted(handle);
        Ok(())
    }

    fn cuCtxGetDevice(out: Out<c_int>) {
        let (_, context) = current()?;
        out.set(context.device as c_int)
    }

    fn cuCtxGetDevice_v2(out: Out<c_int>, handle: RawHandle) {
        out.set(given_or_current(handle)?.device as c_int)
    }

    fn cuCtxGetId(handle: RawHandle, out: Out<c_ulonglong>) {
        out.set(given_or_current(handle)?.number)
    }

    fn cuCtxGetApiVersion(handle: RawHandle, out: Out<c_uint>) {
        given_or_current(handle)?;
        out.set(3020)
    }

    fn cuCtxGetFlags(out: Out<c_uint>) {
        let (_, context) = current()?;
        out.set(context.flags.load(Ordering::Relaxed))
    }

    fn cuCtxSetFlags(flags: c_uint) {
        let (_, context) = current()?;
        check_flags(flags)?;
        context.flags.store(flags, Ordering::Relaxed);
        Ok(())
    }

    fn cuCtxSynchronize() {
        let (_, context) = current()?;
        wait_for_all(&context)
    }

    fn cuCtxSynchronize_v2(handle: RawHandle) {
        let context = given_or_current(handle)?;
        wait_for_all(&context)
    }

    fn cuCtxGetLimit(out: Out<usize>, limit: c_uint) {
        let (_, context) = current()?;
        check_limit(limit)?;
        let limits = context.limits.lock().unwrap_or_else(PoisonError::into_inner);
        out.set(limits.get(&limit).copied().unwrap_or_else(|| default_limit(limit)))
    }

    fn cuCtxSetLimit(limit: c_uint, value: usize) {
        let (_, context) = current()?;
        check_limit(limit)?;
        context.limits.lock().unwrap_or_else(PoisonError::into_inner).insert(limit, value);
        Ok(())
    }

    fn cuCtxGetCacheConfig(out: Out<c_uint>) {
        current()?;
        out.set(0)
    }

    fn cuCtxSetCacheConfig(configuration: c_uint) {
        current()?;
        if configuration > 3 { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    fn cuCtxGetSharedMemConfig(out: Out<c_uint>) {
        current()?;
        out.set(sys::CUsharedconfig::CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE as c_uint)
    }

    fn cuCtxSetSharedMemConfig(configuration: c_uint) {
        current()?;
        if configuration > 2 { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    fn cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) {
        let (_, context) = current()?;
        let range = context.driver.info().limits.priorities;
        least.set_if_wanted(range.lowest);
        greatest.set_if_wanted(range.highest);
        Ok(())
    }

    fn cuCtxResetPersistingL2Cache() {
        current().map(|_| ())
    }
}
