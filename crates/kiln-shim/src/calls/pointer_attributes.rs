//! Questions about addresses.

use std::ffi::{c_int, c_uint, c_void};

use cudarc::driver::sys;
use kiln_driver::Code;

use crate::boundary::Answer;
use crate::caller_memory::{In, Out};
use crate::calls::memory_map::{Allocation, Backing};
use crate::calls::process_state::{ProcessState, current, state};
use crate::handle_table::RawHandle;

/// The numbers that are attributes.
const FIRST: c_uint = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_CONTEXT as c_uint;
const LAST: c_uint = 21;

/// Writes one attribute of an address.
fn attribute(state: &ProcessState, out: *mut c_void, number: c_uint, address: u64) -> Answer {
    use sys::CUpointer_attribute as A;
    let found = state.memory.around(address).filter(|(allocation, offset)| match &allocation.backing {
        Backing::Reserved(range) => range.at(*offset).is_some(),
        _ => true,
    });
    let known = || found.as_ref().map(|(allocation, _)| &**allocation).ok_or(Code::INVALID_VALUE);
    let is = |attribute: A| attribute as u32 == number;
    if is(A::CU_POINTER_ATTRIBUTE_CONTEXT) {
        let context = known()?.context;
        if matches!(known()?.backing, Backing::Reserved(_)) {
            // No context owns it.
            return Out::<RawHandle>::at(out).set(0);
        }
        let handle = state.contexts.find(|other| other.number == context);
        Out::<RawHandle>::at(out).set(handle.ok_or(Code::INVALID_VALUE)?)
    } else if is(A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
        Out::<c_uint>::at(out).set(memory_type(known()?))
    } else if is(A::CU_POINTER_ATTRIBUTE_DEVICE_POINTER) {
        match &known()?.backing {
            Backing::Registered(memory) if !memory.is_reached => Err(Code::INVALID_VALUE),
            _ => Out::<u64>::at(out).set(address),
        }
    } else if is(A::CU_POINTER_ATTRIBUTE_HOST_POINTER) {
        if known()?.is_of_host() { Out::<u64>::at(out).set(address) } else { Err(Code::INVALID_VALUE) }
    } else if is(A::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) {
        known()?;
        Out::<c_int>::at(out).set(0)
    } else if is(A::CU_POINTER_ATTRIBUTE_BUFFER_ID) {
        Out::<u64>::at(out).set(known()?.number)
    } else if is(A::CU_POINTER_ATTRIBUTE_IS_MANAGED) {
        let is_managed = matches!(known()?.backing, Backing::Managed(_));
        Out::<c_int>::at(out).set(c_int::from(is_managed))
    } else if is(A::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
        Out::<c_int>::at(out).set(known()?.device as c_int)
    } else if is(A::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE) {
        let can_be_shared = matches!(known()?.backing, Backing::Direct(_));
        Out::<c_int>::at(out).set(c_int::from(can_be_shared))
    } else if is(A::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) {
        Out::<u64>::at(out).set(known()?.address)
    } else if is(A::CU_POINTER_ATTRIBUTE_RANGE_SIZE) {
        Out::<usize>::at(out).set(known()?.bytes as usize)
    } else if is(A::CU_POINTER_ATTRIBUTE_MAPPED) {
        Out::<c_int>::at(out).set(c_int::from(found.is_some()))
    } else if is(A::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE) {
        match known()?.backing {
            Backing::Pool(_, pool) | Backing::SharedPool(_, pool) => Out::<RawHandle>::at(out).set(pool),
            _ => Out::<RawHandle>::at(out).set(0),
        }
    } else if is(A::CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES) {
        match (&known()?.backing, &found) {
            (Backing::Reserved(range), Some((_, offset))) => {
                let types = range.at(*offset).map_or(0, |(memory, _)| memory.handle_types);
                Out::<u64>::at(out).set(types.into())
            }
            _ => Out::<u64>::at(out).set(0),
        }
    } else if (FIRST..=LAST).contains(&number) {
        known()?;
        Err(Code::NOT_SUPPORTED)
    } else {
        Err(Code::INVALID_VALUE)
    }
}

fn memory_type(allocation: &Allocation) -> c_uint {
    match allocation.backing {
        Backing::Pinned(..) | Backing::Registered(..) => sys::CUmemorytype::CU_MEMORYTYPE_HOST as c_uint,
        _ => sys::CUmemorytype::CU_MEMORYTYPE_DEVICE as c_uint,
    }
}

driver_api! {
    fn cuPointerGetAttribute(out: *mut c_void, number: c_uint, address: u64) {
        attribute(state()?, out, number, address)
    }

    fn cuPointerGetAttributes(count: c_uint, numbers: In<c_uint>, outs: In<*mut c_void>, address: u64) {
        let (state, _) = current()?;
        for index in 0..count as usize {
            let (number, out) = (numbers.at(index)?, outs.at(index)?);
            match attribute(state, out, number, address) {
                // An attribute that the address does not have is zero here, as the API says.
                Err(Code::INVALID_VALUE) if !out.is_null() => zero(out, number)?,
                other => other?,
            }
        }
        Ok(())
    }

    fn cuPointerSetAttribute(value: *const c_void, number: c_uint, address: u64) {
        let (state, _) = current()?;
        let is_known = number == sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS as u32;
        if value.is_null() || !is_known {
            return Err(Code::INVALID_VALUE);
        }
        state.memory.find(address, 1).map(|_| ())
    }
}

fn zero(out: *mut c_void, number: c_uint) -> Answer {
    use sys::CUpointer_attribute as A;
    let words = [
        A::CU_POINTER_ATTRIBUTE_CONTEXT,
        A::CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        A::CU_POINTER_ATTRIBUTE_HOST_POINTER,
        A::CU_POINTER_ATTRIBUTE_BUFFER_ID,
        A::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        A::CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        A::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
    ];
    if words.iter().any(|attribute| *attribute as u32 == number) {
        return Out::<u64>::at(out).set(0);
    }
    // No device is -2, as the driver says it.
    let is_ordinal = number == A::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL as u32;
    Out::<c_int>::at(out).set(if is_ordinal { -2 } else { 0 })
}
