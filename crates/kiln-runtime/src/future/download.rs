//! A readback as a future.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use kiln_driver::{Access, Command, HostBlock, Place};
use kiln_order::{Stamp, Stamps, StreamState, Use};

use super::ticket_future::Done;
use crate::buffer::{Element, GpuRef, zeroed_vec};
use crate::error::{Error, Result};
use crate::runtime::{Inner, Stream};

/// Elements on their way to the host, to be awaited on any executor.
///
/// The copy is queued when this is made, into pinned memory of the same size from the runtime's pool; awaiting it copies from there. Dropping
/// it early lets the copy go on and gives the memory back after it. To read into memory that stays pinned, copy into a
/// [`PinnedBuffer`](crate::PinnedBuffer) and await the ticket.
#[must_use = "a future does nothing until it is awaited"]
pub struct Download<T> {
    /// Held, so that the pinned memory can be given back.
    runtime: Arc<Inner>,
    done: Done,
    /// None for no elements, and once it was read.
    block: Option<HostBlock>,
    len: usize,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> GpuRef<T> {
    /// All elements, as a future that any executor can await. The copy is queued right away.
    ///
    /// ```
    /// # fn main() -> kiln::Result<()> {
    /// # fn block_on<F: Future>(future: F) -> F::Output {
    /// #     let mut future = std::pin::pin!(future);
    /// #     loop {
    /// #         let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// #         if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
    /// #             return output;
    /// #         }
    /// #         std::thread::yield_now();
    /// #     }
    /// # }
    /// let gpu = kiln::DeviceRuntime::simulated(1)?;
    /// let data = gpu.upload(&[1.0f32, 2.0])?;
    /// assert_eq!(block_on(async { data.download_async()?.await })?, [1.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the device is lost, or out of pinned memory. The future answers with an error where the
    /// [host has no memory](crate::OutOfHostMemory) for the elements; the buffer keeps them.
    #[track_caller]
    pub fn download_async(&self) -> Result<Download<T>> {
        let runtime = self.runtime()?;
        let _context = runtime.called_from(Location::caller());
        self.block().at_home(&runtime, |lane| self.download_async_lane(&runtime, lane))
    }

    /// As [`download_async`](Self::download_async), on a stream.
    ///
    /// # Errors
    /// As for [`download_async`](Self::download_async); a stream of another runtime.
    #[track_caller]
    pub fn download_async_on(&self, stream: &Stream) -> Result<Download<T>> {
        let runtime = self.runtime_for(stream)?;
        let _context = runtime.called_from(Location::caller());
        self.download_async_lane(&runtime, stream.lane())
    }

    fn download_async_lane(&self, runtime: &Arc<Inner>, lane: &StreamState) -> Result<Download<T>> {
        let from = self.place().map(Place::Device);
        Download::start(runtime, lane, self.used(Access::Read, 0), from, self.len())
    }
}

impl<T: Element> Download<T> {
    /// Queues the copy of `len` elements.
    fn start(
        runtime: &Arc<Inner>,
        lane: &StreamState,
        used: Use<'_>,
        from: Option<Place>,
        len: usize,
    ) -> Result<Self> {
        runtime.check_ready()?;
        let bytes = (len * size_of::<T>()) as u64;
        let block = match from {
            Some(_) => Some(runtime.staging().take(bytes, runtime.tracker())?),
            None => None,
        };
        let command = from.zip(block.as_ref()).map(|(from, block)| {
            let to = Place::Host { block: block.id(), offset: 0 };
            Command::Copy { from, to, bytes }
        });
        match runtime.submit_command(lane, &mut [used], command.as_ref()) {
            Ok(ticket) => {
                let (runtime, done) = (runtime.clone(), ticket.into_future());
                Ok(Self { runtime, done, block, len, element: PhantomData })
            }
            Err(error) => {
                if let Some(block) = block {
                    // Whatever was queued before the failure is on this stream, so its latest number covers it.
                    let after = Stamp { stream: lane.key, number: lane.submitted() };
                    runtime.staging().put_back(block, Stamps::from(after), runtime.tracker());
                }
                Err(error)
            }
        }
    }

    fn read(&self) -> Result<Vec<T>> {
        let mut data = zeroed_vec(self.len)?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut data);
        match &self.block {
            Some(block) if !block.read(0, bytes) => {
                let what = format!("{} bytes do not lie inside of {}", bytes.len(), block.id());
                Err(kiln_driver::Error::invalid("download", what, "report this with the log above").into())
            }
            _ => Ok(data),
        }
    }
}

impl<T: Element> Future for Download<T> {
    type Output = Result<Vec<T>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match Pin::new(&mut self.done).poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err::<_, Error>(error)),
            Poll::Ready(Ok(())) => Poll::Ready(self.read()),
        }
    }
}

impl<T> Drop for Download<T> {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            let after = Stamps::from(self.done.ticket().stamp());
            self.runtime.staging().put_back(block, after, self.runtime.tracker());
        }
    }
}

impl<T> fmt::Debug for Download<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} elements of {} on their way", self.len, std::any::type_name::<T>())
    }
}
