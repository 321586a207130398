//! Pinned host buffers that users write and read themselves.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::{Arc, Weak};

use kiln_driver::{Access, Command, HostBlock, Place, Timeout};
use kiln_order::{AccessHistory, Stamp, Stamps, StreamState, Use};
use kiln_sync::BiasedLock;
use kiln_trace::HostWaitCause;

use super::element::{Element, bytes_of};
use super::gpu_ref::GpuRef;
use super::try_reserve::{copied, zeros};
use crate::error::{Error, Misuse, Result};
use crate::runtime::{DeviceRuntime, Inner, Stream, Ticket};

/// Elements in pinned host memory.
///
/// Copies to and from it run while the host goes on. The buffer knows which ones are under way: [`read`](Self::read) waits for those
/// that write it, [`write`](Self::write) for all of them, so that no byte is looked at or changed too early.
///
/// ```
/// use kiln::DeviceRuntime;
///
/// let gpu = DeviceRuntime::simulated(1)?;
/// let mut host = gpu.pinned::<f32>(4)?;
/// host.write()?.copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
/// let data = gpu.zeros::<f32>(4)?;
/// host.copy_to(&data)?; // runs while the host goes on
/// host.write()?[0] = 9.0; // waits until the copy has read the buffer
/// assert_eq!(data.download()?, [1.0, 2.0, 3.0, 4.0]);
/// # Ok::<(), kiln::Error>(())
/// ```
pub struct PinnedBuffer<T> {
    runtime: Weak<Inner>,
    /// None for a buffer of no elements.
    block: Option<HostBlock>,
    history: BiasedLock<AccessHistory>,
    len: usize,
    element: PhantomData<T>,
}

impl DeviceRuntime {
    /// `len` zeros in pinned memory, from a pool.
    ///
    /// # Errors
    /// Out of pinned memory.
    pub fn pinned<T: Element>(&self, len: usize) -> Result<PinnedBuffer<T>> {
        let mut buffer = self.pinned_uninit(len)?;
        buffer.write()?.fill(T::zeroed());
        Ok(buffer)
    }

    /// `len` elements in pinned memory, from a pool, with whatever its last user left in them.
    ///
    /// # Errors
    /// Out of pinned memory.
    pub fn pinned_uninit<T: Element>(&self, len: usize) -> Result<PinnedBuffer<T>> {
        let bytes = bytes_of::<T>(len)?;
        let inner = self.inner();
        let block = match bytes {
            0 => None,
            _ => {
                let taken = inner.staging().take(bytes, inner.tracker());
                Some(taken.map_err(|error| inner.told_of_request("pinned", error.into()))?)
            }
        };
        let history = BiasedLock::new(AccessHistory::new(bytes, Stamp::default()));
        let buffer =
            PinnedBuffer { runtime: Arc::downgrade(inner), block, history, len, element: PhantomData };
        let offset = buffer.block.as_ref().map_or(0, |block| block.bytes().as_ptr().addr() % align_of::<T>());
        if offset != 0 {
            let element_bytes = size_of::<T>() as u64;
            return Err(Misuse::Cast { bytes, offset: offset as u64, element_bytes }.into());
        }
        Ok(buffer)
    }
}

impl<T: Element> PinnedBuffer<T> {
    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements, once every copy into them is done.
    ///
    /// # Errors
    /// The fault, if the device is lost; a runtime that is gone.
    #[track_caller]
    pub fn read(&self) -> Result<&[T]> {
        let Some(block) = self.settled(Access::Read)? else { return Ok(&[]) };
        // SAFETY: the block holds at least `len` elements and was found aligned for them when it was taken; any bytes are a `T`, which is `Pod`. Copies into
        // it are done, and a new one can only be queued through `copy_from`, which takes `&mut self` and so ends this borrow, or by a
        // graph that owns this buffer, which lends it out through `&mut` of itself.
        Ok(unsafe { std::slice::from_raw_parts(block.bytes().as_ptr().cast(), self.len) })
    }

    /// A copy of the elements, once every copy into them is done.
    ///
    /// # Errors
    /// As for [`read`](Self::read); no host memory for the copy.
    #[track_caller]
    pub fn to_vec(&self) -> Result<Vec<T>> {
        copied(self.read()?, "a copy of pinned memory")
    }

    /// The elements to be changed, once every copy from or into them is done.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    #[track_caller]
    pub fn write(&mut self) -> Result<&mut [T]> {
        if self.settled(Access::Write)?.is_none() {
            return Ok(&mut []);
        }
        // Nothing uses it any more, and what it holds from here on is the host's.
        *self.history.get_mut() = AccessHistory::new((self.len * size_of::<T>()) as u64, Stamp::default());
        let Some(block) = &self.block else { return Ok(&mut []) };
        // SAFETY: as for `read`; copies from it are done too, and no new one can be queued while `self` is borrowed.
        Ok(unsafe { std::slice::from_raw_parts_mut(block.bytes().as_ptr().cast(), self.len) })
    }

    /// Queues a copy of all elements to a device buffer of the same length.
    ///
    /// # Errors
    /// If the lengths differ or the buffers belong to different runtimes.
    #[track_caller]
    pub fn copy_to(&self, to: &GpuRef<T>) -> Result<Ticket> {
        self.copy(None, to, Access::Read)
    }

    /// As [`copy_to`](Self::copy_to), on a stream.
    ///
    /// # Errors
    /// As for [`copy_to`](Self::copy_to); a stream of another runtime.
    #[track_caller]
    pub fn copy_to_on(&self, stream: &Stream, to: &GpuRef<T>) -> Result<Ticket> {
        self.copy(Some(stream), to, Access::Read)
    }

    /// Queues a copy of all elements from a device buffer of the same length.
    ///
    /// # Errors
    /// As for [`copy_to`](Self::copy_to).
    #[track_caller]
    pub fn copy_from(&mut self, from: &GpuRef<T>) -> Result<Ticket> {
        self.copy(None, from, Access::Write)
    }

    /// As [`copy_from`](Self::copy_from), on a stream.
    ///
    /// # Errors
    /// As for [`copy_to_on`](Self::copy_to_on).
    #[track_caller]
    pub fn copy_from_on(&mut self, stream: &Stream, from: &GpuRef<T>) -> Result<Ticket> {
        self.copy(Some(stream), from, Access::Write)
    }

    /// Where commands find the first byte; none for a buffer of no elements.
    pub(crate) fn place(&self) -> Option<Place> {
        self.block.as_ref().map(|block| Place::Host { block: block.id(), offset: 0 })
    }

    /// All its bytes, used by foreign work.
    pub(crate) fn used(&self, access: Access) -> Use<'_> {
        let bytes = (self.len * size_of::<T>()) as u64;
        Use { history: &self.history, range: 0..bytes, access, argument: 0 }
    }

    /// The elements as they are, for a caller that knows that every copy into them is done. None where the host has no memory for them.
    pub(crate) fn as_it_is(&self) -> Option<Vec<T>> {
        let mut elements = zeros(self.len, "a copy of pinned memory").ok()?;
        match &self.block {
            Some(block) => block.read(0, bytemuck::cast_slice_mut(&mut elements)).then_some(elements),
            None => Some(elements),
        }
    }

    /// Refuses a buffer of another runtime.
    pub(crate) fn check_runtime(&self, runtime: &Inner) -> Result<()> {
        if std::ptr::eq(self.runtime.as_ptr(), runtime) { Ok(()) } else { Err(Misuse::ForeignPinned.into()) }
    }

    /// Copies on a stream, or on the home of the device buffer.
    #[track_caller]
    fn copy(&self, stream: Option<&Stream>, device: &GpuRef<T>, host_access: Access) -> Result<Ticket> {
        let runtime = self.runtime()?;
        let _context = runtime.called_from(Location::caller());
        device.check_runtime(&runtime)?;
        if let Some(stream) = stream.filter(|stream| !stream.belongs_to(&runtime)) {
            return Err(Misuse::ForeignStream { stream: stream.id().to_string() }.into());
        }
        if device.len() != self.len {
            return Err(Misuse::Length { buffer: device.len(), given: self.len }.into());
        }
        let host = self.place();
        let (from, to, device_access) = match host_access {
            Access::Read => (host, device.place().map(Place::Device), Access::Write),
            _ => (device.place().map(Place::Device), host, Access::Read),
        };
        let command = from.zip(to).map(|(from, to)| Command::Copy { from, to, bytes: device.bytes() });
        let submit = |lane: &StreamState| {
            let uses = &mut [self.used(host_access), device.used(device_access, 1)];
            runtime.submit_command(lane, uses, command.as_ref())
        };
        let ticket = match stream {
            Some(stream) => submit(stream.lane())?,
            None => device.block().at_home(&runtime, submit)?,
        };
        if device_access.writes() {
            device.overwritten();
        }
        Ok(ticket)
    }

    /// The block, once the copies that an access of the host has to come after are done.
    #[track_caller]
    fn settled(&self, access: Access) -> Result<Option<&HostBlock>> {
        let Some(block) = &self.block else { return Ok(None) };
        let bytes = self.len * size_of::<T>();
        let mut stamps = Stamps::default();
        let history = self.history.lock();
        history.needs(&(0..bytes as u64), access, |stamp| stamps.insert(stamp));
        drop(history);
        let runtime = self.runtime()?;
        for stamp in stamps.iter() {
            let cause = if access.writes() { HostWaitCause::Memory } else { HostWaitCause::Download };
            let _ = runtime.waiting(cause, Some(stamp), || runtime.wait_out(stamp, Timeout::Never))?;
            // What a lost device was to copy here is not here. That does not matter if it is overwritten.
            if let Some(cause) = runtime.state().failure_of(stamp).filter(|_| !access.writes()) {
                return Err(Error::of_cause(&cause));
            }
        }
        let _ = block.touch(0, bytes, access);
        Ok(Some(block))
    }

    fn runtime(&self) -> Result<Arc<Inner>> {
        self.runtime.upgrade().ok_or_else(|| Error::new(Misuse::RuntimeGone))
    }
}

impl<T> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        if let (Some(block), Some(runtime)) = (self.block.take(), self.runtime.upgrade()) {
            let uses = self.history.get_mut().all();
            runtime.staging().put_back(block, uses, runtime.tracker());
        }
    }
}

impl<T> fmt::Debug for PinnedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pinned elements of {}", self.len, std::any::type_name::<T>())
    }
}
