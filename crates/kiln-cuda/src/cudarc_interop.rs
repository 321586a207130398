//! cudarc's own types, for programs that use both.
//!
//! Each function takes something that cudarc made, so the driver is there: nothing here looks for a library. cudarc retains the primary
//! context of a device, which is the one that [`CudaDevice`](crate::CudaDevice) uses, so streams, events and addresses mean the same on
//! both sides.

use std::sync::Arc;

use cudarc::driver::sys::CUevent_wait_flags;
use cudarc::driver::{DevicePtrMut, DriverError, result};
use kiln_driver::{Code, DeviceAddress, Error, Refusal, Result};

pub use cudarc::driver::{CudaContext, CudaEvent, CudaSlice, CudaStream};

/// The native handle of a stream, as a number.
pub fn stream_number(stream: &CudaStream) -> u64 {
    stream.cu_stream() as usize as u64
}

/// The native handle of an event, as a number.
pub fn event_number(event: &CudaEvent) -> u64 {
    event.cu_event() as usize as u64
}

/// Where a slice lies, and how many bytes it has. Its stream is made to wait for every use of it that cudarc knows.
///
/// # Errors
/// What the driver says.
pub fn settle<T>(slice: &mut CudaSlice<T>) -> Result<(DeviceAddress, u64)> {
    let stream = slice.stream().clone();
    let bytes = slice.num_bytes() as u64;
    let (address, recorded) = slice.device_ptr_mut(&stream);
    drop(recorded);
    // cudarc keeps what went wrong in the waits above until it is asked.
    stream.context().check_err().map_err(|error| refused("import a slice", error))?;
    Ok((DeviceAddress(address), bytes))
}

/// Makes a stream wait for an event, given as a number.
///
/// # Safety
/// It is a live event of the stream's context.
///
/// # Errors
/// What the driver says.
pub unsafe fn wait_on(stream: &CudaStream, event: u64) -> Result<()> {
    const CALL: &str = "wait for an event";
    stream.context().bind_to_thread().map_err(|error| refused(CALL, error))?;
    let event = std::ptr::without_provenance_mut(event as usize);
    // SAFETY: the stream lives, being borrowed; the event does, as the caller says.
    let waited = unsafe {
        result::stream::wait_event(stream.cu_stream(), event, CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT)
    };
    waited.map_err(|error| refused(CALL, error))
}

/// A slice over memory that is not cudarc's. It must be leaked, not dropped: dropping it would free the memory.
///
/// # Safety
/// `len` elements at the address are memory of the stream's device while the slice is used.
///
/// # Errors
/// What the driver says.
pub unsafe fn slice_over<T>(
    stream: &Arc<CudaStream>,
    address: DeviceAddress,
    len: usize,
) -> Result<CudaSlice<T>> {
    // Making the slice makes events, and does not expect to fail; a lost device is noticed here instead.
    drop(stream.context().new_event(None).map_err(|error| refused("lend a slice", error))?);
    // SAFETY: the caller says what this asks.
    Ok(unsafe { stream.upgrade_device_ptr(address.0, len) })
}

fn refused(call: &'static str, error: DriverError) -> Error {
    Error::refused(call, Refusal::Driver(Code(error.0 as u32 as i32)))
}
