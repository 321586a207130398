//! A handle to elements on a device.

pub(crate) mod weak_buffer;

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Range, RangeBounds};
use std::panic::Location;
use std::sync::Arc;

use kiln_driver::{Access, Command, DeviceAddress, DevicePlace, Place};
use kiln_mem::AllocTag;
use kiln_order::{StreamKey, StreamState, Use};
use kiln_trace::HostWaitCause;

use super::block_range::BlockRange;
use super::element::{Element, bytes_of};
use super::element_range::resolve;
use super::host_vec::zeroed_vec;
use super::last_write::LastWrite;
use super::memory_location::Memory;
use super::pattern::pattern;
use crate::device_state::{Cause, Phase};
use crate::error::{Error, Misuse, Result, Stale};
use crate::ids::{BlockId, Generation};
use crate::runtime::{Block, DeviceRuntime, Inner, Stream, Ticket, transfer};

/// Elements on a device.
///
/// Clones are the same memory, and every clone may be read and written from any thread: the runtime keeps the order. A handle
/// holds its memory and does not hold the device; when the runtime is gone, the handle says so. The memory is freed when the last
/// handle is dropped, after the last work that uses it.
///
/// ```
/// use kiln::DeviceRuntime;
///
/// let gpu = DeviceRuntime::simulated(1)?;
/// let data = gpu.upload(&[1_u32, 2, 3, 4])?;
/// let tail = data.view(2..4)?; // the same memory
/// tail.upload(&[30, 40])?;
/// assert_eq!(data.download()?, [1, 2, 30, 40]);
/// # Ok::<(), kiln::Error>(())
/// ```
pub struct GpuRef<T> {
    block: Arc<Block>,
    /// Bytes from the start of the block.
    offset: u64,
    len: usize,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> GpuRef<T> {
    #[track_caller]
    pub(crate) fn allocate(runtime: &Arc<Inner>, home: &Stream, len: usize, tag: AllocTag) -> Result<Self> {
        let block = Block::allocate(runtime, home, bytes_of::<T>(len)?, align_of::<T>() as u64, tag)?;
        Ok(Self { block, offset: 0, len, element: PhantomData })
    }

    /// All elements of a block that another library owns.
    pub(crate) fn over(block: Arc<Block>, len: usize) -> Self {
        Self { block, offset: 0, len, element: PhantomData }
    }

    /// Elements of a block from a byte on; the caller knows that the block has so many and that they are aligned.
    pub(crate) fn part_of(block: Arc<Block>, offset: u64, len: usize) -> Self {
        Self { block, offset, len, element: PhantomData }
    }

    /// All elements of a block that is held; its bytes are a whole number of them.
    pub(crate) fn of_whole(held: &BlockRange) -> Self {
        let len = held.bytes().checked_div(size_of::<T>() as u64).unwrap_or(0) as usize;
        Self::over(held.block().clone(), len)
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes.
    pub fn bytes(&self) -> u64 {
        self.len as u64 * size_of::<T>() as u64
    }

    /// The name of the block it lies in; views of one block have the same. While the block lives it can be used
    /// [by that name](crate::DeviceRuntime::prepare_block_use_by_id).
    pub fn block_id(&self) -> BlockId {
        self.block.named()
    }

    /// The device it is on; none once the runtime is gone.
    pub fn device_id(&self) -> Option<u32> {
        self.block.runtime().ok().map(|runtime| runtime.driver().info().ordinal)
    }

    /// Whether it is memory of that runtime, or of a clone of it.
    pub fn belongs_to(&self, runtime: &DeviceRuntime) -> bool {
        self.block.runtime().is_ok_and(|own| Arc::ptr_eq(&own, runtime.inner()))
    }

    /// The context it belongs to, counted from 0: the one it was lost with, or else the latest.
    pub fn generation(&self) -> Generation {
        self.block.generation()
    }

    /// The memory, if it can still be reached.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn access(&self) -> std::result::Result<Memory, Stale> {
        let runtime = self.block.runtime().map_err(|_| Stale::DeviceDropped)?;
        match runtime.state().phase() {
            Phase::ShuttingDown | Phase::Stopped => return Err(Stale::ShuttingDown),
            Phase::Failed => return Err(Stale::Failed),
            Phase::Lost | Phase::Rebuilding => return Err(Stale::Rebuilding),
            Phase::Starting | Phase::Ready => {}
        }
        self.block.check_kept(&runtime)?;
        Ok(Memory { address: self.address(), bytes: self.bytes() })
    }

    /// Why its contents are gone, if they are: the fault of the context they were lost with.
    pub fn loss(&self) -> Option<Arc<Cause>> {
        let runtime = self.block.runtime().ok()?;
        self.block.loss(&runtime).map(|(_, cause)| cause)
    }

    /// Where its work goes when nothing else is said: the stream it was allocated on, or the main stream once that one is given back.
    pub fn home(&self) -> StreamKey {
        self.block.home_key()
    }

    /// The stream of the last write to any byte of its block.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    /// use kiln::buffer::LastWrite;
    ///
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let stream = gpu.stream()?;
    /// let data = gpu.allocate::<u32>(4)?;
    /// assert_eq!(data.last_write_stream(), LastWrite::Never);
    /// data.fill_on(&stream, 7)?;
    /// assert_eq!(data.last_write_stream(), LastWrite::Stream(stream.key()));
    /// assert_eq!(gpu.streams().find(stream.key()), Some(stream.clone()));
    /// drop(stream);
    /// assert_eq!(data.last_write_stream(), LastWrite::StreamGone);
    /// # Ok::<(), kiln::Error>(())
    /// ```
    pub fn last_write_stream(&self) -> LastWrite {
        let writes = self.block.writes();
        let mut all = writes.iter();
        match (all.next(), all.next()) {
            (None, _) => LastWrite::Never,
            (Some(_), Some(_)) => LastWrite::SeveralStreams,
            (Some(only), None) => {
                let runtime = self.block.runtime().ok();
                let is_leased = runtime.is_some_and(|runtime| runtime.pool().holds(only));
                if is_leased { LastWrite::Stream(only.stream) } else { LastWrite::StreamGone }
            }
        }
    }

    /// Whether the block it lies in holds what the programs that wrote it were to leave. A program that trapped, or was not done in time, or
    /// whose sequence the device took in part, leaves the buffers it writes in doubt, until an upload, a fill or a copy has overwritten the whole block.
    pub fn is_trusted(&self) -> bool {
        self.block.history().lock().is_trusted()
    }

    /// Says that library code queued a write to it on a stream; for code that ordered that work itself.
    ///
    /// # Errors
    /// A stream of another runtime; a runtime that is gone.
    pub fn record_write(&self, stream: &Stream) -> Result<Ticket> {
        let runtime = self.runtime_for(stream)?;
        let stamp = runtime.stamp(stream.lane(), &mut [self.used(Access::Write, 0)])?;
        Ok(Ticket::new(&runtime, stamp))
    }

    /// A part of it, as a handle. Work on parts that share no bytes is not ordered against each other.
    ///
    /// # Errors
    /// If the range does not lie inside.
    pub fn view(&self, range: impl RangeBounds<usize>) -> Result<Self> {
        let range = resolve(range, self.len)?;
        let offset = self.offset + (range.start * size_of::<T>()) as u64;
        Ok(Self { block: self.block.clone(), offset, len: range.len(), element: PhantomData })
    }

    /// The same bytes as elements of another type.
    ///
    /// # Errors
    /// If the bytes are no whole number of such elements, or not aligned for them.
    pub fn cast<U: Element>(&self) -> Result<GpuRef<U>> {
        let bytes = self.bytes();
        let size = size_of::<U>() as u64;
        let fits = if size == 0 { bytes == 0 } else { bytes.is_multiple_of(size) };
        // A block of another library may begin anywhere.
        if !fits || !self.address().0.is_multiple_of(align_of::<U>() as u64) {
            return Err(Misuse::Cast { bytes, offset: self.offset, element_bytes: size }.into());
        }
        let len = bytes.checked_div(size).unwrap_or(0) as usize;
        Ok(GpuRef { block: self.block.clone(), offset: self.offset, len, element: PhantomData })
    }

    /// Overwrites all elements from host data, which may be changed or dropped as soon as this returns. A buffer that was [lost](Stale::Lost) with a worker process is
    /// usable again then, and after a fill and a copy into it, if it is no view of a part.
    ///
    /// # Errors
    /// If the lengths differ; if the device is lost or refuses a part, and then what the elements are is not to be relied upon.
    #[track_caller]
    pub fn upload(&self, data: &[T]) -> Result<Ticket> {
        self.overwrite(|runtime| self.block.at_home(runtime, |lane| self.upload_lane(runtime, lane, data)))
    }

    /// As [`upload`](Self::upload), on a stream.
    ///
    /// # Errors
    /// As for [`upload`](Self::upload); a stream of another runtime.
    #[track_caller]
    pub fn upload_on(&self, stream: &Stream, data: &[T]) -> Result<Ticket> {
        self.overwrite(|runtime| {
            check_stream(stream, runtime)?;
            self.upload_lane(runtime, stream.lane(), data)
        })
    }

    /// All elements, once everything that writes them is done.
    ///
    /// # Errors
    /// If the device is lost; if the [host has no memory](crate::OutOfHostMemory) for them, and then nothing is queued.
    #[track_caller]
    pub fn download(&self) -> Result<Vec<T>> {
        let mut data = zeroed_vec(self.len)?;
        self.download_into(&mut data)?;
        Ok(data)
    }

    /// As [`download`](Self::download), into the caller's memory.
    ///
    /// # Errors
    /// If the lengths differ, or the device is lost; what `into` holds then is not to be relied upon.
    #[track_caller]
    pub fn download_into(&self, into: &mut [T]) -> Result<()> {
        let runtime = self.runtime()?;
        let download = || self.block.at_home(&runtime, |lane| self.download_lane(&runtime, lane, into));
        runtime.waiting(HostWaitCause::Download, None, download)
    }

    /// As [`download_into`](Self::download_into), on a stream.
    ///
    /// # Errors
    /// As for [`download_into`](Self::download_into); a stream of another runtime.
    #[track_caller]
    pub fn download_into_on(&self, stream: &Stream, into: &mut [T]) -> Result<()> {
        let runtime = self.runtime_for(stream)?;
        let download = || self.download_lane(&runtime, stream.lane(), into);
        runtime.waiting(HostWaitCause::Download, None, download)
    }

    /// Copies all elements from another handle of the same device.
    ///
    /// # Errors
    /// If the lengths differ, the handles belong to different runtimes, or they overlap.
    #[track_caller]
    pub fn copy_from(&self, from: &Self) -> Result<Ticket> {
        self.overwrite(|runtime| self.block.at_home(runtime, |lane| self.copy_lane(runtime, lane, from)))
    }

    /// As [`copy_from`](Self::copy_from), on a stream.
    ///
    /// # Errors
    /// As for [`copy_from`](Self::copy_from); a stream of another runtime.
    #[track_caller]
    pub fn copy_from_on(&self, stream: &Stream, from: &Self) -> Result<Ticket> {
        self.overwrite(|runtime| {
            check_stream(stream, runtime)?;
            self.copy_lane(runtime, stream.lane(), from)
        })
    }

    /// Sets every element to a value.
    ///
    /// # Errors
    /// If the device is lost.
    #[track_caller]
    pub fn fill(&self, value: T) -> Result<Ticket> {
        let unit = bytemuck::bytes_of(&value);
        self.overwrite(|runtime| self.block.at_home(runtime, |lane| self.fill_lane(runtime, lane, unit)))
    }

    /// As [`fill`](Self::fill), on a stream.
    ///
    /// # Errors
    /// As for [`fill`](Self::fill); a stream of another runtime.
    #[track_caller]
    pub fn fill_on(&self, stream: &Stream, value: T) -> Result<Ticket> {
        self.overwrite(|runtime| {
            check_stream(stream, runtime)?;
            self.fill_lane(runtime, stream.lane(), bytemuck::bytes_of(&value))
        })
    }

    /// Sets every byte.
    ///
    /// # Errors
    /// If the device is lost.
    #[track_caller]
    pub fn fill_bytes(&self, byte: u8) -> Result<Ticket> {
        self.overwrite(|runtime| self.block.at_home(runtime, |lane| self.fill_lane(runtime, lane, &[byte])))
    }

    pub(crate) fn used(&self, access: Access, argument: u16) -> Use<'_> {
        Use { history: self.block.history(), range: self.byte_range(), access, argument }
    }

    /// Whether another handle holds the same block.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.block) > 1
    }

    /// Where kernels find its first element; 0 for a buffer of no elements. The order does not see what is done with an
    /// address: [`raw_device_ptr`](crate::DeviceRuntime::raw_device_ptr) gives one that it does see.
    pub fn address(&self) -> DeviceAddress {
        self.block.address(self.offset)
    }

    pub(crate) fn check_runtime(&self, runtime: &Inner) -> Result<()> {
        self.block.check_runtime(runtime)
    }

    /// Whether it can be used by work of a runtime, as far as a look can tell; if not, [`check_runtime`](Self::check_runtime) says.
    #[inline(always)]
    pub(crate) fn is_usable(&self, runtime: &Inner) -> bool {
        self.block.is_usable(runtime)
    }

    pub(crate) fn block(&self) -> &Block {
        &self.block
    }

    pub(crate) fn shared_block(&self) -> &Arc<Block> {
        &self.block
    }

    pub(crate) fn byte_range(&self) -> Range<u64> {
        self.offset..self.offset + self.bytes()
    }

    /// Where commands of the driver find its first byte; none if it has no elements. For those who queue commands themselves, under a
    /// [`PreparedUse`](crate::PreparedUse).
    pub fn place(&self) -> Option<DevicePlace> {
        if self.bytes() == 0 { None } else { self.block.place(self.offset) }
    }

    fn upload_lane(&self, runtime: &Arc<Inner>, lane: &StreamState, data: &[T]) -> Result<Ticket> {
        self.check_len(data.len())?;
        let uses = &mut [self.used(Access::Write, 0)];
        let ticket = transfer::upload(runtime, lane, uses, self.place(), bytemuck::cast_slice(data))?;
        self.overwritten();
        Ok(ticket)
    }

    fn download_lane(&self, runtime: &Arc<Inner>, lane: &StreamState, into: &mut [T]) -> Result<()> {
        self.check_len(into.len())?;
        let uses = &mut [self.used(Access::Read, 0)];
        transfer::download(runtime, lane, uses, self.place(), bytemuck::cast_slice_mut(into))
    }

    fn copy_lane(&self, runtime: &Arc<Inner>, lane: &StreamState, from: &Self) -> Result<Ticket> {
        self.check_len(from.len())?;
        from.check_runtime(runtime)?;
        if self.overlaps(from) {
            return Err(Error::new(Misuse::CopyOverlap));
        }
        let uses = &mut [from.used(Access::Read, 0), self.used(Access::Write, 1)];
        let command = from.place().zip(self.place()).map(|(from, to)| Command::Copy {
            from: Place::Device(from),
            to: Place::Device(to),
            bytes: self.bytes(),
        });
        let ticket = runtime.submit_command(lane, uses, command.as_ref())?;
        self.overwritten();
        Ok(ticket)
    }

    /// Repeats some bytes all over it.
    fn fill_lane(&self, runtime: &Arc<Inner>, lane: &StreamState, unit: &[u8]) -> Result<Ticket> {
        let uses = &mut [self.used(Access::Write, 0)];
        let ticket = match pattern(unit) {
            Some(pattern) => {
                let count = self.bytes() / pattern.bytes();
                let command = self.place().map(|to| Command::Fill { to, pattern, count });
                runtime.submit_command(lane, uses, command.as_ref())?
            }
            // Wider than what the device can fill with.
            None => transfer::repeat(runtime, lane, uses, self.place(), unit, self.bytes())?,
        };
        self.overwritten();
        Ok(ticket)
    }

    /// Notes that all of its bytes were written anew.
    pub(crate) fn overwritten(&self) {
        self.block.history().lock().overwritten(&self.byte_range());
    }

    /// Its runtime, if that lives and its contents are there.
    pub(crate) fn runtime(&self) -> Result<Arc<Inner>> {
        let runtime = self.block.runtime().map_err(|_| Error::new(Stale::DeviceDropped))?;
        self.block.require_kept(&runtime)?;
        Ok(runtime)
    }

    /// Queues work that overwrites all of its elements. If they are a whole block that was lost, the block is usable again from then on; if the work is refused, it
    /// stays lost.
    #[track_caller]
    fn overwrite(&self, queue: impl FnOnce(&Arc<Inner>) -> Result<Ticket>) -> Result<Ticket> {
        let runtime = self.block.runtime().map_err(|_| Error::new(Stale::DeviceDropped))?;
        let _context = runtime.called_from(Location::caller());
        let is_whole = self.is_whole_block();
        let lost = match self.block.check_kept(&runtime) {
            Ok(()) => None,
            // The device is the same: the order with earlier work stays, and the new write hides the one that was ended.
            Err(Stale::NotWritten) if is_whole => None,
            Err(error) => {
                let lost = if is_whole { self.block.rewrite(&runtime) } else { None };
                Some(lost.ok_or_else(|| self.block.gone(&runtime, error))?)
            }
        };
        let queued = queue(&runtime);
        if let (Err(_), Some((generation, cause))) = (&queued, &lost) {
            self.block.lose(*generation, cause);
        }
        queued
    }

    /// Whether it is all of its block.
    fn is_whole_block(&self) -> bool {
        self.byte_range() == (0..self.block.bytes())
    }

    /// Its runtime, if it is all of its block.
    pub(crate) fn whole_block(&self) -> Result<Arc<Inner>> {
        if !self.is_whole_block() {
            return Err(Misuse::PartOfBlock { bytes: self.bytes(), block: self.block.bytes() }.into());
        }
        self.runtime()
    }

    /// Its runtime, if the stream is one of it.
    pub(crate) fn runtime_for(&self, stream: &Stream) -> Result<Arc<Inner>> {
        let runtime = self.runtime()?;
        check_stream(stream, &runtime)?;
        Ok(runtime)
    }

    fn check_len(&self, given: usize) -> Result<()> {
        if given == self.len { Ok(()) } else { Err(Error::new(Misuse::Length { buffer: self.len, given })) }
    }

    /// Whether two handles share bytes.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (own, others) = (self.byte_range(), other.byte_range());
        let are_some = !own.is_empty() && !others.is_empty();
        are_some && Arc::ptr_eq(&self.block, &other.block) && own.start < others.end && others.start < own.end
    }
}

impl<T> Clone for GpuRef<T> {
    fn clone(&self) -> Self {
        Self { block: self.block.clone(), offset: self.offset, len: self.len, element: PhantomData }
    }
}

impl<T> fmt::Debug for GpuRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} elements of {} at byte {} of {}",
            self.len,
            std::any::type_name::<T>(),
            self.offset,
            self.block.id()
        )
    }
}

/// Refuses a stream of another runtime.
fn check_stream(stream: &Stream, runtime: &Arc<Inner>) -> Result<()> {
    if stream.belongs_to(runtime) {
        return Ok(());
    }
    Err(Error::new(Misuse::ForeignStream { stream: stream.id().to_string() }))
}
