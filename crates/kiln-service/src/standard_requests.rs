//! Requests most programs need.

use std::fmt;
use std::marker::PhantomData;

use kiln_runtime::{DeviceRuntime, Element, GpuRef, PinnedBuffer, Result};

use crate::request::{Request, Started};

/// Host data to be copied to the device. The data comes back inside the error.
#[derive(Clone, PartialEq, Debug)]
pub struct Upload<T> {
    /// The data.
    pub data: Vec<T>,
}

impl<T: Element> Upload<T> {
    /// That data.
    pub fn new(data: Vec<T>) -> Self {
        Self { data }
    }
}

impl<T: Element> Request for Upload<T> {
    type Output = GpuRef<T>;

    fn start(&mut self, device: &DeviceRuntime) -> Result<Started<GpuRef<T>>> {
        let buffer = device.allocate(self.data.len())?;
        let ticket = buffer.upload(&self.data)?;
        Ok(Started::after(ticket, buffer))
    }
}

/// A buffer to be copied to the host. The handle comes back inside the error.
#[derive(Clone, Debug)]
pub struct Readback<T> {
    /// The buffer.
    pub from: GpuRef<T>,
}

impl<T: Element> Readback<T> {
    /// That buffer.
    pub fn new(from: GpuRef<T>) -> Self {
        Self { from }
    }
}

impl<T: Element> Request for Readback<T> {
    type Output = Vec<T>;

    fn start(&mut self, device: &DeviceRuntime) -> Result<Started<Vec<T>>> {
        let mut pinned: PinnedBuffer<T> = device.pinned_uninit(self.from.len())?;
        let ticket = pinned.copy_from(&self.from)?;
        Ok(Started::then(ticket, move || pinned.to_vec()))
    }
}

/// A function with what it needs: launches, graphs, library calls.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use kiln::service::{DeviceService, ServiceConfig, Started, Task};
/// use kiln::DeviceRuntime;
///
/// let service = DeviceService::over(DeviceRuntime::simulated(1)?, ServiceConfig::default())?;
/// let sum = Task::new(vec![1.0f32; 64], |device, data| {
///     let buffer = device.upload(data)?;
///     let ticket = buffer.fill(2.0)?;
///     Ok(Started::then(ticket, move || Ok(buffer.len())))
/// });
/// assert_eq!(service.submit(sum).wait()?, 64);
/// # Ok(())
/// # }
/// ```
pub struct Task<B, F, T> {
    /// What it needs; comes back inside the error.
    pub needs: B,
    start: F,
    output: PhantomData<fn() -> T>,
}

impl<B, F, T> Task<B, F, T>
where
    F: FnMut(&DeviceRuntime, &mut B) -> Result<Started<T>>,
{
    /// A function that queues work with what it needs.
    pub fn new(needs: B, start: F) -> Self {
        Self { needs, start, output: PhantomData }
    }
}

impl<B, F, T> Request for Task<B, F, T>
where
    B: Send + 'static,
    T: Send + 'static,
    F: FnMut(&DeviceRuntime, &mut B) -> Result<Started<T>> + Send + 'static,
{
    type Output = T;

    fn start(&mut self, device: &DeviceRuntime) -> Result<Started<T>> {
        (self.start)(device, &mut self.needs)
    }
}

impl<B: fmt::Debug, F, T> fmt::Debug for Task<B, F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task with {:?}", self.needs)
    }
}
