//! A launch being put together.

use std::panic::Location;
use std::sync::Arc;

use kiln_driver::{Access, Command, Dim3, Vouched};

use super::arguments::Arguments;
use super::kernel::Kernel;
use super::mismatch::{Given, Mismatch, explain, place};
use super::pass::Pass;
use super::shape::Shape;
use super::slot::Slot;
use crate::buffer::{Element, GpuRef};
use crate::error::{Error, ErrorKind, Result};
use crate::misuse::Misuse;
use crate::order::{Lane, Uses};
use crate::runtime::{Block, DeviceRuntime, Inner, Stream, Ticket};
use crate::telemetry::Timed;

/// A launch being put together: shape, arguments in the order of the parameters, then [`submit`](Self::submit).
///
/// Everything is checked before anything is queued. The first thing that does not fit is what `submit` answers.
#[must_use = "a launch does nothing until it is submitted"]
// In this order: what every launch writes lies together, before the room that few of them need.
#[repr(C)]
pub struct Launch<'a> {
    runtime: &'a Arc<Inner>,
    kernel: &'a Kernel,
    /// The kernel's parameters, if they are known.
    slots: Option<&'a [Slot]>,
    given: usize,
    stream: Option<&'a Stream>,
    home: Option<(&'a Block, Access)>,
    wrong: Option<Error>,
    shape: Shape,
    arguments: Arguments,
    uses: Uses<'a>,
}

impl DeviceRuntime {
    /// Begins a launch of one block of one thread.
    pub fn launch<'a>(&'a self, kernel: &'a Kernel) -> Launch<'a> {
        Launch::new(self.inner(), kernel)
    }
}

impl<'a> Launch<'a> {
    #[inline]
    fn new(runtime: &'a Arc<Inner>, kernel: &'a Kernel) -> Self {
        Self {
            runtime,
            kernel,
            slots: kernel.slots(),
            shape: Shape::ONE,
            stream: None,
            home: None,
            arguments: Arguments::new(),
            uses: Uses::new(),
            given: 0,
            wrong: None,
        }
    }

    /// Blocks in the grid.
    pub fn grid(&mut self, grid: impl Into<Dim3>) -> &mut Self {
        self.shape.grid = grid.into();
        self
    }

    /// Threads in a block.
    pub fn block(&mut self, block: impl Into<Dim3>) -> &mut Self {
        self.shape.block = block.into();
        self
    }

    /// Blocks in a cluster.
    pub fn cluster(&mut self, cluster: impl Into<Dim3>) -> &mut Self {
        self.shape.cluster = Some(cluster.into());
        self
    }

    /// Dynamic shared memory; what lies beyond the usual limit is opted in to.
    pub fn shared(&mut self, bytes: u32) -> &mut Self {
        self.shape.dynamic_shared_bytes = bytes;
        self
    }

    /// Asks that all blocks are resident at once, so that they may wait for each other.
    pub fn cooperative(&mut self) -> &mut Self {
        self.shape.cooperative = true;
        self
    }

    /// The stream to launch on. Otherwise it is the home of the first buffer that is written, or of the first that is read.
    pub fn on(&mut self, stream: &'a Stream) -> &mut Self {
        self.stream = Some(stream);
        self
    }

    /// The next argument: a value. A float where the kernel is known to take an integer is refused, and the other way round; bits that
    /// are carried in a type of another kind go as an array of one, of which nobody knows what it means.
    pub fn value<T: Element>(&mut self, value: T) -> &mut Self {
        self.put(bytemuck::bytes_of(&value), align_of::<T>(), Given::value_of::<T>());
        self
    }

    /// The next argument: a buffer the kernel reads.
    pub fn read<T: Element>(&mut self, buffer: &'a GpuRef<T>) -> &mut Self {
        self.buffer(buffer, Access::Read)
    }

    /// The next argument: a buffer the kernel overwrites.
    pub fn write<T: Element>(&mut self, buffer: &'a GpuRef<T>) -> &mut Self {
        self.buffer(buffer, Access::Write)
    }

    /// The next argument: a buffer the kernel reads and writes.
    pub fn read_write<T: Element>(&mut self, buffer: &'a GpuRef<T>) -> &mut Self {
        self.buffer(buffer, Access::ReadWrite)
    }

    /// The next arguments, several at once.
    pub fn pass(&mut self, arguments: impl Pass<'a>) -> &mut Self {
        arguments.pass(self);
        self
    }

    /// Queues the launch, after everything it has to come after.
    ///
    /// # Safety
    /// The kernel comes from outside. Run with these arguments and this shape, it reads and writes only inside the buffers given, as
    /// declared, or memory of its own; it ends.
    ///
    /// # Errors
    /// What does not fit, or what the driver says. Nothing is queued or stamped if an argument does not fit.
    #[track_caller]
    pub unsafe fn submit(&mut self) -> Result<Ticket> {
        let caller = Location::caller();
        let lane = self.check()?;
        // SAFETY: the caller says of the kernel what this asks; that the arguments have the layout of the parameters was checked as each
        // was given, where the layout is known; the memory is mapped until the stamps of this launch are done.
        let vouched = unsafe { Vouched::new() };
        let command = command(self.kernel, &self.shape, &self.arguments, vouched);
        self.runtime.submit_launch(lane, &mut self.uses, &command, caller).or_else(|error| {
            let again = |lane: &Lane| self.runtime.submit_launch(lane, &mut self.uses, &command, caller);
            elsewhere(self.runtime, lane, error, again).map_err(|error| named(self.kernel, error))
        })
    }

    /// As [`submit`](Self::submit), with the device's time for it.
    ///
    /// # Safety
    /// As for [`submit`](Self::submit).
    ///
    /// # Errors
    /// As for [`submit`](Self::submit).
    #[track_caller]
    pub unsafe fn submit_timed(&mut self) -> Result<Timed> {
        let caller = Location::caller();
        let lane = self.check()?;
        // SAFETY: as for `submit`.
        let vouched = unsafe { Vouched::new() };
        let command = command(self.kernel, &self.shape, &self.arguments, vouched);
        self.runtime.submit_timed(lane, &mut self.uses, Some(command), Some(caller)).or_else(|error| {
            let again =
                |lane: &Lane| self.runtime.submit_timed(lane, &mut self.uses, Some(command), Some(caller));
            elsewhere(self.runtime, lane, error, again).map_err(|error| named(self.kernel, error))
        })
    }

    // Never inlined: a launch has several buffers, and the code of one call is fetched once for all of them.
    #[inline(never)]
    pub(super) fn buffer<T: Element>(&mut self, buffer: &'a GpuRef<T>, access: Access) -> &mut Self {
        let slot = self.slots.and_then(|slots| slots.get(self.given));
        match slot.and_then(|slot| slot.place(Given::Buffer(access))) {
            // What nearly every buffer is. All that is rare is asked for first and done elsewhere, so that this needs no call.
            Some(offset)
                if buffer.is_usable(self.runtime)
                    && !buffer.is_empty()
                    && self.uses.has_room()
                    && self.arguments.are_followed_by(offset, size_of::<u64>()) =>
            {
                self.put_buffer(buffer, access, offset)
            }
            _ => self.buffer_slowly(buffer, access),
        }
    }

    #[inline(always)]
    fn put_buffer<T: Element>(&mut self, buffer: &'a GpuRef<T>, access: Access, offset: usize) -> &mut Self {
        self.take_home(buffer.block(), access);
        self.uses.push(buffer.used(access, self.given as u16));
        self.arguments.put(offset, &buffer.address().0.to_ne_bytes());
        self.given += 1;
        self
    }

    #[inline(always)]
    fn take_home(&mut self, block: &'a Block, access: Access) {
        if self.home.is_none_or(|(_, home)| access.writes() && !home.writes()) {
            self.home = Some((block, access));
        }
    }

    /// A buffer of which something is to be said or done that is rare.
    #[cold]
    #[inline(never)]
    fn buffer_slowly<T: Element>(&mut self, buffer: &'a GpuRef<T>, access: Access) -> &mut Self {
        if !buffer.is_usable(self.runtime) && !self.admit(buffer.block()) {
            return self;
        }
        self.take_home(buffer.block(), access);
        if !buffer.is_empty() {
            self.uses.push(buffer.used(access, self.given as u16));
        }
        self.put(&buffer.address().0.to_ne_bytes(), size_of::<u64>(), Given::Buffer(access));
        self
    }

    #[inline(always)]
    fn put(&mut self, bytes: &[u8], align: usize, given: Given) {
        let index = self.given;
        self.given += 1;
        let Some(slots) = self.slots else {
            return self.arguments.append(bytes, align);
        };
        // One argument too many is said when the count is known.
        let Some(slot) = slots.get(index) else { return };
        match slot.place(given) {
            Some(offset) => self.arguments.put(offset, bytes),
            None => self.refuse(index, given),
        }
    }

    #[cold]
    #[inline(never)]
    fn refuse(&mut self, index: usize, given: Given) {
        let signature = self.kernel.signature();
        if let Some(parameter) = signature.and_then(|signature| signature.parameters().get(index)) {
            self.wrong.get_or_insert_with(|| explain(self.kernel.name(), index, parameter, given).into());
        }
    }

    /// A closer look at a block: whether it can be used after all. If not, that is what is wrong.
    #[cold]
    fn admit(&mut self, block: &Block) -> bool {
        match block.check_runtime(self.runtime) {
            Ok(()) => true,
            Err(error) => {
                let (kernel, index) = (self.kernel, self.given);
                self.wrong.get_or_insert_with(|| error.placed(place(kernel, index)));
                false
            }
        }
    }

    /// Everything that can be said before anything is queued; the stream if there is nothing to say.
    #[inline(always)]
    fn check(&mut self) -> Result<&'a Lane> {
        let fits = self.wrong.is_none()
            && self.kernel.belongs_to(self.runtime)
            && self.slots.is_none_or(|slots| slots.len() == self.given)
            && self.shape.is_allowed_unclustered(self.kernel)
            && !self.shape.cooperative
            && self.stream.is_none_or(|stream| stream.belongs_to(self.runtime));
        if !fits {
            self.explain()?;
        }
        Ok(match (self.stream, self.home) {
            (Some(stream), _) => stream.lane(),
            (None, Some((block, _))) => block.home(self.runtime),
            (None, None) => self.runtime.main_stream().lane(),
        })
    }

    /// What is wrong; nothing, if it was a launch that needs a closer look.
    #[cold]
    #[inline(never)]
    fn explain(&mut self) -> Result<()> {
        let kernel = || self.kernel.name().to_owned();
        // It stays, so that asking again does not launch with what was refused.
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone());
        }
        if !self.kernel.belongs_to(self.runtime) {
            return Err(Mismatch::ForeignKernel { kernel: kernel() }.into());
        }
        if let Some(slots) = self.slots
            && slots.len() != self.given
        {
            return Err(Mismatch::Count { kernel: kernel(), wanted: slots.len(), given: self.given }.into());
        }
        self.shape.check(self.kernel).map_err(|wrong| Error::new(*wrong))?;
        if self.shape.cooperative {
            self.shape.check_residency(self.kernel, &**self.runtime.driver())?;
        }
        match self.stream {
            Some(stream) if !stream.belongs_to(self.runtime) => {
                Err(Misuse::ForeignStream { stream: stream.id().to_string() }.into())
            }
            _ => Ok(()),
        }
    }
}

/// A launch whose stream was given back just then: nobody named that, or it would still be there, so the main one serves as well.
#[cold]
fn elsewhere<R>(
    runtime: &Inner,
    lane: &Lane,
    error: Error,
    again: impl FnOnce(&Lane) -> Result<R>,
) -> Result<R> {
    if lane.is_retired() { again(runtime.main_stream().lane()) } else { Err(error) }
}

/// An error about the arguments, with the kernel they were for.
#[cold]
fn named(kernel: &Kernel, error: Error) -> Error {
    match error.kind() {
        ErrorKind::Misuse(Misuse::Overlap { .. } | Misuse::Sealed { .. }) => {
            error.placed(format!("kernel `{}`", kernel.name()))
        }
        _ => error,
    }
}

#[inline]
fn command<'a>(kernel: &Kernel, shape: &Shape, arguments: &'a Arguments, vouched: Vouched) -> Command<'a> {
    Command::Launch(kiln_driver::Launch {
        function: kernel.id(),
        grid: shape.grid,
        block: shape.block,
        cluster: shape.cluster,
        dynamic_shared_bytes: shape.dynamic_shared_bytes,
        cooperative: shape.cooperative,
        arguments: arguments.bytes(),
        vouched,
    })
}
