//! A launch being built.
//!
//! One builder serves a launch that is submitted to a stream ([`OnStream`]) and one that is recorded as a node of a graph (`IntoGraph`):
//! shape, arguments and checks are the same, and only the last call differs. A launch for a stream borrows its buffers and allocates
//! nothing. A launch for a graph also keeps what it was given, so that the graph owns it ([`LaunchTemplate`]).

use std::panic::Location;
use std::sync::Arc;

use kiln_driver::{Access, DeclaredSpan, Dim3, Vouched};
use kiln_order::{StreamState, Uses};

use super::argument_tuple::Pass;
use super::arguments::Arguments;
use super::check;
use super::kernel::{Kernel, place};
use super::launch_label::labelled;
use super::owned_launch::{LaunchTemplate, TemplateArgument, command};
use super::retained_arguments::Kept;
use super::shape::Shape;
use crate::buffer::{BufferBytes, Element, GpuRef, used};
use crate::error::{Error, ErrorKind, Misuse, Result};
use crate::runtime::{Block, DeviceRuntime, Inner, Stream, Ticket, Timed, WorkLabel};
use crate::signature::{Given, Number, Slot, explain};

/// A launch being built: shape, arguments in the order of the kernel's parameters, then [`submit`](Self::submit) or
/// [`record`](Launch::record).
///
/// Everything is checked before anything is queued. `submit` returns the first error; nothing was queued then. A launch without a grid
/// and a block is refused: say [`grid`](Self::grid) and [`block`](Self::block), or [`threads`](Self::threads).
///
/// ```
/// # use kiln::DeviceRuntime;
/// # const SCALE: &str = "
/// #     .version 7.0
/// #     .target sm_70
/// #     .address_size 64
/// #     .visible .entry scale(.param .u64 data, .param .f32 factor, .param .u32 n) {
/// #         .reg .pred %p; .reg .f32 %f<4>; .reg .b32 %r<6>; .reg .b64 %rd<4>;
/// #         ld.param.u64 %rd1, [data]; ld.param.f32 %f1, [factor]; ld.param.u32 %r5, [n];
/// #         mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
/// #         mad.lo.u32 %r4, %r1, %r2, %r3;
/// #         setp.ge.u32 %p, %r4, %r5;
/// #         @%p ret;
/// #         mul.wide.u32 %rd2, %r4, 4;
/// #         add.s64 %rd3, %rd1, %rd2;
/// #         ld.global.f32 %f2, [%rd3]; mul.f32 %f3, %f1, %f2; st.global.f32 [%rd3], %f3;
/// #         ret;
/// #     }";
/// let gpu = DeviceRuntime::simulated(1)?;
/// let scale = gpu.kernel(SCALE, "scale")?; // scale(float* data, float factor, unsigned n)
/// let data = gpu.upload(&[1.0_f32; 1000])?;
///
/// // SAFETY: `scale` touches the first n elements of `data` and nothing else, and ends.
/// unsafe { gpu.launch(&scale).threads(1000).read_write(&data).value(3.0_f32).value(1000_u32).submit()? };
/// assert_eq!(data.download()?, [3.0; 1000]);
/// # Ok::<(), kiln::Error>(())
/// ```
#[must_use = "a launch does nothing until it is submitted or recorded"]
// In this order: the fields every launch writes lie together, before the inline space that few launches need.
#[repr(C)]
pub struct Launch<'a, T = OnStream<'a>> {
    pub(super) runtime: &'a Arc<Inner>,
    pub(super) kernel: &'a Kernel,
    /// The kernel's parameters, if they are known.
    slots: Option<&'a [Slot]>,
    pub(super) given: usize,
    target: T,
    pub(super) home: Option<(&'a Block, Access)>,
    pub(super) wrong: Option<Error>,
    shape: Shape,
    /// What a graph and a device that checks accesses want to know; none for a launch on a stream of any other device.
    pub(super) kept: Option<Box<Kept>>,
    arguments: Arguments,
    pub(super) uses: Uses<'a>,
}

/// The target of a launch that is submitted to a stream: the stream that was named, if one was.
#[derive(Default)]
pub struct OnStream<'a> {
    stream: Option<&'a Stream>,
}

impl DeviceRuntime {
    /// Begins a launch.
    pub fn launch<'a>(&'a self, kernel: &'a Kernel) -> Launch<'a> {
        Launch::new(self.inner(), kernel, OnStream::default(), Kept::on_stream(kernel))
    }
}

impl<'a, T> Launch<'a, T> {
    #[inline]
    pub(crate) fn new(
        runtime: &'a Arc<Inner>,
        kernel: &'a Kernel,
        target: T,
        kept: Option<Box<Kept>>,
    ) -> Self {
        Self {
            runtime,
            kernel,
            slots: kernel.slots(),
            shape: Shape::UNSET,
            target,
            home: None,
            arguments: Arguments::new(),
            uses: Uses::new(),
            given: 0,
            wrong: None,
            kept,
        }
    }

    /// A number of threads in one dimension: sets the grid so that it has at least `count` threads, with blocks of the size given by
    /// [`block`](Self::block), or of at most 256 threads. The last block may have threads beyond `count`, so the kernel compares its
    /// index with the length, as usual.
    pub fn threads(&mut self, count: u64) -> &mut Self {
        self.shape.set_threads(count, self.kernel);
        self
    }

    /// Blocks in the grid: a number, an array, or a tuple.
    pub fn grid(&mut self, grid: impl Into<Dim3>) -> &mut Self {
        self.shape.set_grid(grid.into());
        self
    }

    /// Threads in a block: a number, an array, or a tuple.
    pub fn block(&mut self, block: impl Into<Dim3>) -> &mut Self {
        self.shape.set_block(block.into());
        self
    }

    /// Blocks in a cluster.
    pub fn cluster(&mut self, cluster: impl Into<Dim3>) -> &mut Self {
        self.shape.cluster = Some(cluster.into());
        self
    }

    /// Bytes of dynamic shared memory. More than the default limit is opted in to, up to what the device has.
    pub fn shared(&mut self, bytes: u32) -> &mut Self {
        self.shape.dynamic_shared_bytes = bytes;
        self
    }

    /// Makes the launch cooperative: all blocks are resident at once and may wait for each other.
    pub fn cooperative(&mut self) -> &mut Self {
        self.shape.cooperative = true;
        self
    }

    /// The next argument: a value, which may be a `repr(C)` struct that is [`Pod`](bytemuck::Pod). A float where the kernel is known to take
    /// an integer is refused, and the other way round; to pass bits regardless of their meaning, pass an array of one.
    pub fn value<V: Element>(&mut self, value: V) -> &mut Self {
        self.put(bytemuck::bytes_of(&value), align_of::<V>(), Given::value_of::<V>());
        self
    }

    /// The next argument: a value given as its bytes, for callers that know the type of a parameter only at run time. The bytes are
    /// those of the parameter as C lays it out, padding included. Where the parameters of the kernel are not known, the value is
    /// aligned to 8 bytes.
    pub fn value_bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.put(bytes, size_of::<u64>(), Given::Value { bytes: bytes.len(), number: Number::Unknown });
        self
    }

    /// The next argument: a null pointer.
    pub fn null(&mut self) -> &mut Self {
        self.put(&[0; size_of::<u64>()], size_of::<u64>(), Given::Null);
        self
    }

    /// The next argument: a buffer the kernel reads.
    pub fn read<V: Element>(&mut self, buffer: &'a GpuRef<V>) -> &mut Self {
        self.buffer(buffer, Access::Read)
    }

    /// The next argument: a buffer the kernel overwrites.
    pub fn write<V: Element>(&mut self, buffer: &'a GpuRef<V>) -> &mut Self {
        self.buffer(buffer, Access::Write)
    }

    /// The next argument: a buffer the kernel reads and writes.
    pub fn read_write<V: Element>(&mut self, buffer: &'a GpuRef<V>) -> &mut Self {
        self.buffer(buffer, Access::ReadWrite)
    }

    /// The next arguments, several at once.
    pub fn pass(&mut self, arguments: impl Pass<'a>) -> &mut Self {
        arguments.pass(self);
        self
    }

    // Never inlined: a launch has several buffers, and the code of one call is fetched once for all of them.
    #[inline(never)]
    pub(crate) fn buffer<V: Element>(&mut self, buffer: &'a GpuRef<V>, access: Access) -> &mut Self {
        let slot = self.slots.and_then(|slots| slots.get(self.given));
        match slot.and_then(|slot| slot.place(Given::Buffer(access))) {
            // What nearly every buffer is. All that is rare is asked for first and done elsewhere, so that this needs no call.
            Some(offset)
                if buffer.is_usable(self.runtime)
                    && !buffer.is_empty()
                    && self.uses.has_room()
                    && self.kept.is_none()
                    && self.arguments.are_followed_by(offset, size_of::<u64>()) =>
            {
                self.put_buffer(buffer, access, offset)
            }
            _ => self.buffer_slowly(buffer, access),
        }
    }

    #[inline(always)]
    fn put_buffer<V: Element>(&mut self, buffer: &'a GpuRef<V>, access: Access, offset: usize) -> &mut Self {
        self.take_home(buffer.block(), access);
        self.uses.push(buffer.used(access, self.given as u16));
        self.arguments.put(offset, &buffer.address().0.to_ne_bytes());
        self.given += 1;
        self
    }

    #[inline(always)]
    pub(super) fn take_home(&mut self, block: &'a Block, access: Access) {
        if self.home.is_none_or(|(_, home)| access.writes() && !home.writes()) {
            self.home = Some((block, access));
        }
    }

    /// As [`buffer`](Self::buffer), for bytes that are borrowed from one.
    #[inline(never)]
    pub(super) fn bytes(&mut self, part: BufferBytes<'a>, access: Access) -> &mut Self {
        let slot = self.slots.and_then(|slots| slots.get(self.given));
        match slot.and_then(|slot| slot.place(Given::Buffer(access))) {
            Some(offset)
                if part.block().is_usable(self.runtime)
                    && !part.is_empty()
                    && self.uses.has_room()
                    && self.kept.is_none()
                    && self.arguments.are_followed_by(offset, size_of::<u64>()) =>
            {
                self.take_home(part.block(), access);
                self.uses.push(part.used(access, self.given as u16));
                self.arguments.put(offset, &part.address().0.to_ne_bytes());
                self.given += 1;
                self
            }
            _ => self.bytes_slowly(part, access),
        }
    }

    /// A buffer that needs a closer look, and every buffer of a graph.
    #[cold]
    #[inline(never)]
    fn buffer_slowly<V: Element>(&mut self, buffer: &'a GpuRef<V>, access: Access) -> &mut Self {
        self.bytes_slowly(BufferBytes::of(buffer), access)
    }

    #[cold]
    #[inline(never)]
    fn bytes_slowly(&mut self, part: BufferBytes<'a>, access: Access) -> &mut Self {
        if !part.block().is_usable(self.runtime) && !self.admit(part.block()) {
            return self;
        }
        self.take_home(part.block(), access);
        if !part.is_empty() {
            self.uses.push(part.used(access, self.given as u16));
        }
        let index = self.given;
        self.put(&part.address().0.to_ne_bytes(), size_of::<u64>(), Given::Buffer(access));
        if let Some(kept) = &mut self.kept {
            kept.declare(&part, access, Some(index));
            if let Some(argument) = kept.arguments.as_mut().and_then(|arguments| arguments.last_mut()) {
                argument.held = part.held();
            }
        }
        self
    }

    #[inline(always)]
    pub(super) fn put(&mut self, bytes: &[u8], align: usize, given: Given) {
        let index = self.given;
        self.given += 1;
        let offset = match self.slots {
            None => self.arguments.next_offset(align),
            // An argument too many is refused when the count is known.
            Some(slots) => match slots.get(index) {
                None => return,
                Some(slot) => match slot.place(given) {
                    Some(offset) => offset,
                    None => return self.refuse(index, given),
                },
            },
        };
        self.arguments.put(offset, bytes);
        if let Some(arguments) = self.kept.as_mut().and_then(|kept| kept.arguments.as_mut()) {
            arguments.push(TemplateArgument { offset, given, held: None });
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

    /// Whether a block can be used after all; if not, `submit` returns why.
    #[cold]
    pub(super) fn admit(&mut self, block: &Block) -> bool {
        match block.check_runtime(self.runtime) {
            Ok(()) => true,
            Err(error) => {
                let (kernel, index) = (self.kernel, self.given);
                self.wrong.get_or_insert_with(|| error.placed(place(kernel, index)));
                false
            }
        }
    }

    /// What a graph keeps of the launch.
    pub(crate) fn template(&self) -> Result<LaunchTemplate> {
        self.check_slowly()?;
        let (arguments, beside) = match self.kept.as_deref() {
            Some(Kept { arguments: Some(arguments), beside, .. }) => (arguments.clone(), beside.clone()),
            _ => (Vec::new(), Vec::new()),
        };
        let packed = self.arguments.bytes();
        let template = LaunchTemplate::new(self.kernel, self.shape, arguments, beside, packed);
        template.check_overlap()?;
        Ok(template)
    }

    /// Where the launch goes.
    pub(crate) fn target_mut(&mut self) -> &mut T {
        &mut self.target
    }

    /// Refuses what does not fit. The error stays, so that a second call does not launch with what was refused.
    #[cold]
    #[inline(never)]
    fn check_slowly(&self) -> Result<()> {
        match &self.wrong {
            Some(wrong) => Err(wrong.clone()),
            None => check::launch(self.runtime, self.kernel, self.given, &self.shape),
        }
    }
}

impl<'a> Launch<'a> {
    /// The stream to launch on. Otherwise it is the home of the first buffer that is written, or of the first that is read.
    pub fn on(&mut self, stream: &'a Stream) -> &mut Self {
        self.target.stream = Some(stream);
        self
    }

    /// Queues the launch, after everything it has to come after.
    ///
    /// # Safety
    /// The kernel comes from outside. Run with these arguments and this shape, it reads and writes only inside the buffers given, as
    /// declared, or its own memory; it ends.
    ///
    /// # Errors
    /// What does not fit, or what the driver says. Nothing is queued or stamped if an argument does not fit.
    #[track_caller]
    pub unsafe fn submit(&mut self) -> Result<Ticket> {
        // SAFETY: the caller says what this asks.
        unsafe { self.submit_counted(Location::caller(), (labelled, StreamState::note_launch)) }
    }

    /// Queues the launch under a label, and counts it as what it is.
    ///
    /// # Safety
    /// As for [`submit`](Self::submit).
    #[inline(always)]
    pub(super) unsafe fn submit_counted(
        &mut self,
        caller: &'static Location<'static>,
        (label, count): (impl Fn(&Kernel, &Shape) -> WorkLabel + Copy, impl Fn(&StreamState) + Copy),
    ) -> Result<Ticket> {
        let lane = self.check()?;
        // SAFETY: the caller says of the kernel what this asks; that the arguments have the layout of the parameters was checked as each
        // was given, where the layout is known; the memory is mapped until the stamps of this launch are done.
        let vouched = unsafe { Vouched::new() };
        let command =
            command(self.kernel, &self.shape, self.arguments.bytes(), declared(&self.kept), vouched);
        let (kernel, shape) = (self.kernel, &self.shape);
        let label = || label(kernel, shape);
        self.runtime.submit_launch(lane, &mut self.uses, &command, caller, (label, count)).or_else(|error| {
            let again = |lane: &StreamState| {
                self.runtime.submit_launch(lane, &mut self.uses, &command, caller, (label, count))
            };
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
        let command =
            command(self.kernel, &self.shape, self.arguments.bytes(), declared(&self.kept), vouched);
        let (kernel, shape) = (self.kernel, &self.shape);
        let label = || Some(labelled(kernel, shape).at(caller));
        self.runtime.submit_timed(lane, &mut self.uses, Some(command), Some(caller), label).or_else(|error| {
            let again = |lane: &StreamState| {
                self.runtime.submit_timed(lane, &mut self.uses, Some(command), Some(caller), label)
            };
            elsewhere(self.runtime, lane, error, again).map_err(|error| named(self.kernel, error))
        })
    }

    /// Checks everything before anything is queued, and chooses the stream.
    #[inline(always)]
    fn check(&mut self) -> Result<&'a StreamState> {
        let fits = self.wrong.is_none()
            && self.kernel.belongs_to(self.runtime)
            && self.slots.is_none_or(|slots| slots.len() == self.given)
            && self.shape.is_allowed_unclustered(self.kernel)
            && !self.shape.cooperative;
        if !fits {
            self.check_slowly()?;
        }
        if self.kernel.has_variables() {
            self.use_variables();
        }
        self.lane()
    }

    #[inline(always)]
    pub(super) fn lane(&self) -> Result<&'a StreamState> {
        match (self.target.stream, self.home) {
            (Some(stream), _) if !stream.belongs_to(self.runtime) => Err(foreign(stream)),
            (Some(stream), _) => Ok(stream.lane()),
            (None, Some((block, _))) => Ok(block.home(self.runtime)),
            (None, None) => Ok(self.runtime.main_stream().lane()),
        }
    }
}

impl<'a> Launch<'a> {
    /// Adds the variables of the kernel's module that were asked for, unless they are arguments.
    #[cold]
    #[inline(never)]
    fn use_variables(&mut self) {
        let kernel: &'a Kernel = self.kernel;
        for variable in kernel.variables() {
            let block = variable.held.block();
            let is_known = self.uses.iter().any(|known| std::ptr::eq(known.history, block.history()));
            if !is_known && block.check_runtime(self.runtime).is_ok() {
                self.uses.push(used(block, variable.held.range().clone(), variable.access));
            }
        }
    }
}

/// What a launch may touch; none where the device does not look at it.
#[inline(always)]
fn declared(kept: &Option<Box<Kept>>) -> Option<&[DeclaredSpan]> {
    kept.as_ref().and_then(|kept| kept.declared.as_deref())
}

#[cold]
fn foreign(stream: &Stream) -> Error {
    Misuse::ForeignStream { stream: stream.id().to_string() }.into()
}

/// Submits to the main stream instead, if the stream was given back meanwhile. The caller did not name that stream, or it would still
/// be leased, so the main stream serves as well.
#[cold]
fn elsewhere<R>(
    runtime: &Inner,
    lane: &StreamState,
    error: Error,
    again: impl FnOnce(&StreamState) -> Result<R>,
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
