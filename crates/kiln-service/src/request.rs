//! The trait `Request`: work that a service starts on its device.

use std::fmt;

use kiln_runtime::{DeviceRuntime, Result, Ticket};

/// Something a device is to do, with everything it needs.
///
/// ```
/// use kiln::service::{Request, Started};
/// use kiln::{DeviceRuntime, GpuRef};
///
/// /// Uploads and doubles on the device.
/// struct Ones(usize);
///
/// impl Request for Ones {
///     type Output = GpuRef<f32>;
///
///     fn start(&mut self, device: &DeviceRuntime) -> kiln::Result<Started<GpuRef<f32>>> {
///         let buffer = device.allocate(self.0)?;
///         let ticket = buffer.fill(1.0)?;
///         Ok(Started::after(ticket, buffer))
///     }
/// }
/// ```
pub trait Request: Send + 'static {
    /// What it gives.
    type Output: Send + 'static;

    /// Queues the work and says when it is done. It should not wait. If it fails, or the work does, the request goes back to its
    /// sender; a [`DeviceFleet`](super::DeviceFleet) starts a request that failed here on another device. So leave it as it was sent.
    ///
    /// # Errors
    /// What the device answers; the request goes back with it.
    fn start(&mut self, device: &DeviceRuntime) -> Result<Started<Self::Output>>;
}

/// Work that was queued, and what it gives when it is done.
pub struct Started<T> {
    pub(crate) ticket: Option<Ticket>,
    pub(crate) finish: Box<dyn FnOnce() -> Result<T> + Send>,
}

impl<T: Send + 'static> Started<T> {
    /// Nothing has to be waited for.
    pub fn now(output: T) -> Self {
        Self { ticket: None, finish: Box::new(|| Ok(output)) }
    }

    /// The output, once the work is done.
    pub fn after(ticket: Ticket, output: T) -> Self {
        Self { ticket: Some(ticket), finish: Box::new(|| Ok(output)) }
    }

    /// The result of `finish`, once the work is done. It runs on the service's thread and should not wait for work of the device.
    pub fn then(ticket: Ticket, finish: impl FnOnce() -> Result<T> + Send + 'static) -> Self {
        Self { ticket: Some(ticket), finish: Box::new(finish) }
    }
}

impl<T> fmt::Debug for Started<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.ticket {
            Some(ticket) => write!(f, "work that ends with {ticket:?}"),
            None => f.write_str("work that is done"),
        }
    }
}
