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
    /// Out of memory; a device that is lost or was shut down.
    #[track_caller]
    pub fn allocate<T: Element>(&self, len: usize) -> Result<GpuRef<T>> {
        self.allocate_on(self.main_stream(), len)
    }

    /// Room for `len` elements whose home is a stream.
    ///
    /// # Errors
    /// Out of memory; a stream of another runtime; a device that is lost or was shut down.
    #[track_caller]
    pub fn allocate_on<T: Element>(&self, stream: &Stream, len: usize) -> Result<GpuRef<T>> {
        self.allocate_for("allocate", stream, len, AllocTag::default())
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
        self.allocate_for("allocate", stream, len, tag)
    }

    /// `len` zeros.
    ///
    /// # Errors
    /// As for [`allocate`](Self::allocate).
    #[track_caller]
    pub fn zeros<T: Element>(&self, len: usize) -> Result<GpuRef<T>> {
        const REQUEST: &str = "zeros";
        let buffer = self.allocate_for(REQUEST, self.main_stream(), len, AllocTag::default())?;
        buffer.fill_bytes(0).map_err(|error| self.inner().told_of_request(REQUEST, error))?;
        Ok(buffer)
    }

    /// A copy of host data on the device. The data may be changed or dropped as soon as this returns.
    ///
    /// # Errors
    /// As for [`allocate`](Self::allocate).
    #[track_caller]
    pub fn upload<T: Element>(&self, data: &[T]) -> Result<GpuRef<T>> {
        const REQUEST: &str = "upload";
        let buffer = self.allocate_for(REQUEST, self.main_stream(), data.len(), AllocTag::default())?;
        buffer.upload(data).map_err(|error| self.inner().told_of_request(REQUEST, error))?;
        Ok(buffer)
    }

    /// Room for elements that a request needs.
    #[track_caller]
    fn allocate_for<T: Element>(
        &self,
        request: &'static str,
        stream: &Stream,
        len: usize,
        tag: AllocTag,
    ) -> Result<GpuRef<T>> {
        GpuRef::allocate(self.inner(), stream, len, tag)
            .map_err(|error| self.inner().told_of_request(request, error))
    }
}
