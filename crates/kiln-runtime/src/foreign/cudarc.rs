//! Imports and exports cudarc's streams, events and slices.
//!
//! A program that calls cudarc itself keeps its types; kiln orders the work of both. What is taken in is kept alive as long as kiln uses
//! it, so nothing here is unsafe.
//!
//! ```no_run
//! use kiln::foreign::cudarc::CudaContext;
//! use kiln::{DeviceRuntime, foreign::cudarc};
//! use kiln_driver::Access;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gpu = DeviceRuntime::try_get(0)?;
//! let theirs = CudaContext::new(0)?.new_stream()?;
//! let stream = cudarc::import_stream(gpu, &theirs)?;
//!
//! // A slice of theirs as a buffer of ours, freed in their stream's order after our last use.
//! let numbers = cudarc::adopt_slice(gpu, &stream, theirs.clone_htod(&[1.0f32, 2.0])?)?;
//! assert_eq!(numbers.download()?, [1.0, 2.0]);
//!
//! // A buffer of ours as a slice of theirs, for as long as the guard lives.
//! let mut lent = cudarc::lend_slice(gpu, &stream, &theirs, &numbers, Access::Write)?;
//! theirs.memset_zeros(&mut *lent)?;
//! drop(lent);
//! assert_eq!(numbers.download()?, [0.0, 0.0]);
//! # Ok(())
//! # }
//! ```

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use kiln_cuda::cudarc_interop;
use kiln_driver::{Access, DeviceKind, ForeignHandle, ForeignMemory};

pub use kiln_cuda::cudarc_interop::{CudaContext, CudaEvent, CudaSlice, CudaStream};

use super::event::{ForeignEvent, HandedEvent};
use super::prepared_use::RawPointer;
use crate::buffer::{Element, GpuRef};
use crate::error::{Misuse, Result};
use crate::runtime::{DeviceRuntime, Stream};

/// Takes a stream in.
///
/// # Errors
/// A stream of another device; past the limits of the runtime.
pub fn import_stream(gpu: &DeviceRuntime, theirs: &Arc<CudaStream>) -> Result<Stream> {
    check_device(gpu, theirs.context())?;
    // SAFETY: it is a live stream of this device's primary context, and stays so: the import keeps its owner.
    let handle = unsafe { ForeignHandle::new(cudarc_interop::stream_number(theirs)) };
    gpu.streams().import_kept(handle, theirs.clone())
}

/// Takes an event in, to be waited for or signalled.
///
/// # Errors
/// An event of another device.
pub fn import_event(gpu: &DeviceRuntime, theirs: &Arc<CudaEvent>) -> Result<ForeignEvent> {
    check_device(gpu, theirs.context())?;
    // SAFETY: as for a stream.
    let handle = unsafe { ForeignHandle::new(cudarc_interop::event_number(theirs)) };
    gpu.import_event_kept(handle, theirs.clone())
}

/// Makes a stream of cudarc's wait for an event that was handed on.
///
/// # Errors
/// What the driver says; a runtime that is gone.
pub fn wait_for(theirs: &CudaStream, event: &HandedEvent) -> Result<()> {
    let number = event.native()?;
    // SAFETY: the event is alive while it is handed on, which the borrow says it is.
    Ok(unsafe { cudarc_interop::wait_on(theirs, number) }?)
}

/// A slice as a buffer. `home` is the slice's own stream, taken in; the slice is dropped there after the last use of the buffer.
///
/// # Errors
/// A slice of another device or of another stream than `home`; what the driver says.
pub fn adopt_slice<T: Element>(
    gpu: &DeviceRuntime,
    home: &Stream,
    mut slice: CudaSlice<T>,
) -> Result<GpuRef<T>> {
    check_device(gpu, slice.context())?;
    check_stream(gpu, home, slice.stream())?;
    let (address, bytes) = cudarc_interop::settle(&mut slice)?;
    // SAFETY: the slice is that memory and is kept until the buffer's last use is queued before its stream's next work.
    let memory = unsafe { ForeignMemory::new(address, bytes) };
    gpu.adopt_memory(home, memory, slice)
}

/// A buffer as a slice, on a stream that was taken in, until the guard is dropped. Everything else submitted to the stream through kiln
/// waits until then; cudarc's own work on it is what the guard is for.
///
/// # Errors
/// As for [`DeviceRuntime::prepare_block_use`]; `theirs` is not what `stream` was taken in from.
pub fn lend_slice<'a, T: Element>(
    gpu: &'a DeviceRuntime,
    stream: &'a Stream,
    theirs: &Arc<CudaStream>,
    buffer: &GpuRef<T>,
    access: Access,
) -> Result<LentSlice<'a, T>> {
    check_stream(gpu, stream, theirs)?;
    let pointer = gpu.raw_device_ptr(stream, buffer, access)?;
    // SAFETY: the buffer's elements are there; its memory is freed after the use that the guard ends.
    let slice = unsafe { cudarc_interop::slice_over(theirs, pointer.address(), buffer.len()) }?;
    Ok(LentSlice { slice: ManuallyDrop::new(slice), _pointer: pointer })
}

/// A buffer as a slice of cudarc's. The use ends when this is dropped, after the caller queued what uses it.
#[must_use = "queue what uses the slice before this is dropped"]
pub struct LentSlice<'a, T> {
    slice: ManuallyDrop<CudaSlice<T>>,
    /// Dropped after the slice was let go.
    _pointer: RawPointer<'a>,
}

impl<T> Deref for LentSlice<'_, T> {
    type Target = CudaSlice<T>;

    fn deref(&self) -> &CudaSlice<T> {
        &self.slice
    }
}

impl<T> DerefMut for LentSlice<'_, T> {
    fn deref_mut(&mut self) -> &mut CudaSlice<T> {
        &mut self.slice
    }
}

impl<T> Drop for LentSlice<'_, T> {
    fn drop(&mut self) {
        // SAFETY: taken once, here, and not looked at again.
        let slice = unsafe { ManuallyDrop::take(&mut self.slice) };
        // Its stream waits for what cudarc queued elsewhere; the memory itself stays where it is.
        let _ = slice.leak();
    }
}

fn check_device(gpu: &DeviceRuntime, theirs: &CudaContext) -> Result<()> {
    let info = gpu.info();
    if info.kind == DeviceKind::Cuda && info.ordinal as usize == theirs.ordinal() {
        return Ok(());
    }
    Err(Misuse::ForeignStream { stream: format!("a stream of CUDA device {}", theirs.ordinal()) }.into())
}

fn check_stream(gpu: &DeviceRuntime, stream: &Stream, theirs: &CudaStream) -> Result<()> {
    if gpu.driver().native(stream.id().into())? == cudarc_interop::stream_number(theirs) {
        return Ok(());
    }
    Err(Misuse::ForeignStream { stream: stream.id().to_string() }.into())
}
