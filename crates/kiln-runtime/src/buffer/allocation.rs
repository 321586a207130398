//! Buffers from a runtime.

use kiln_mem::AllocTag;

use super::element::Element;
use super::gpu_ref::GpuRef;
use crate::error::Result;
use crate::runtime::{DeviceRuntime, Stream};

impl DeviceRuntime {
    /// Room for `len` elements on the main stream, with nothing known of its contents.
    ///
    /// # Errors
    /// Out of memory.
    #[track_caller]
    pub fn allocate<T: Element>(&self, len: usize) -> Result<GpuRef<T>> {
        self.allocate_on(self.main_stream(), len)
    }

    /// Room for `len` elements whose home is a stream.
    ///
    /// # Errors
    /// Out of memory; a stream of another runtime.
    #[track_caller]
    pub fn allocate_on<T: Element>(&self, stream: &Stream, len: usize) -> Result<GpuRef<T>> {
        GpuRef::allocate(self.inner(), stream, len, AllocTag::default())
    }

    /// As [`allocate_on`](Self::allocate_on), counted under a tag.
    ///
    /// # Errors
    /// As for [`allocate_on`](Self::allocate_on).
    #[track_caller]
    pub fn allocate_tagged<T: Element>(
        &self,
        stream: &Stream,
        len: usize,
        tag: AllocTag,
    ) -> Result<GpuRef<T>> {
        GpuRef::allocate(self.inner(), stream, len, tag)
    }

    /// `len` zeros.
    ///
    /// # Errors
    /// Out of memory.
    #[track_caller]
    pub fn zeros<T: Element>(&self, len: usize) -> Result<GpuRef<T>> {
        let buffer = self.allocate(len)?;
        buffer.fill_bytes(0)?;
        Ok(buffer)
    }

    /// A copy of host data on the device. The data may be changed or dropped as soon as this returns.
    ///
    /// # Errors
    /// Out of memory.
    #[track_caller]
    pub fn upload<T: Element>(&self, data: &[T]) -> Result<GpuRef<T>> {
        let buffer = self.allocate(data.len())?;
        buffer.upload(data)?;
        Ok(buffer)
    }
}
