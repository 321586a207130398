//! Launches.
//!
//! The way of a launch to the driver allocates nothing and takes no lock but the stream's own turn: two handles are
//! pinned, the shape is compared with numbers that were read when the device was opened and the kernel looked up,
//! and the caller's packed arguments are handed on where they lie.

use std::ffi::{c_int, c_void};

use cudarc::driver::sys;
use kiln_driver::{Code, Dim3, Error, LaunchCommand, Refusal, Result, StreamId, Submission};

use crate::convert;
use crate::device::CudaDevice;
use crate::function::Kernel;
use crate::libcuda_symbols::{Api, Status};
use crate::stream::Stream;
use crate::stream_progress::SubmissionKind;

/// A kernel's arguments may end in padding up to this alignment.
const ARGUMENT_ALIGNMENT: usize = 16;

impl CudaDevice {
    #[inline(never)]
    pub(crate) fn submit_launch(
        &self,
        call: &'static str,
        stream: StreamId,
        launch: &LaunchCommand<'_>,
    ) -> Result<Submission> {
        let stream = self.streams.pin(stream).map_err(|error| error.seen_by(call))?;
        if launch.cluster.is_some() || launch.cooperative {
            return self.submit_shaped(call, &stream, launch);
        }
        let api = stream.api(call)?;
        let kernel = self.functions.pin(launch.function).map_err(|error| error.seen_by(call))?;
        if !kernel.takes(launch) {
            if let Some(operation) = kernel.operation() {
                return self.submit_operation(call, api, &stream, operation, launch);
            }
            if let Some(callee) = kernel.host() {
                return self.submit_host(call, api, &stream, (&kernel, callee), launch);
            }
            self.check_launch(call, api, &kernel, launch)?;
        }
        let entry = SubmissionKind::Launch(launch.function);
        let submitted = stream.queue(call, entry, |_| launch_plain(api, &stream, &kernel, launch));
        submitted.map_err(|error| self.explain_launch(call, error, launch))
    }

    /// A launch in clusters, or one whose blocks are all resident at once.
    #[cold]
    #[inline(never)]
    fn submit_shaped(
        &self,
        call: &'static str,
        stream: &Stream,
        launch: &LaunchCommand<'_>,
    ) -> Result<Submission> {
        let api = self.context.enter(call)?;
        let kernel = self.functions.pin(launch.function).map_err(|error| error.seen_by(call))?;
        self.check_launch(call, api, &kernel, launch)?;
        let entry = SubmissionKind::Launch(launch.function);
        let submitted = stream.queue(call, entry, |_| launch_shaped(api, stream, &kernel, launch));
        submitted.map_err(|error| self.explain_launch(call, error, launch))
    }

    /// Refuses what the driver would, in words, and prepares the kernel for what it would not.
    #[cold]
    #[inline(never)]
    pub(crate) fn check_launch(
        &self,
        call: &'static str,
        api: &Api,
        kernel: &Kernel,
        launch: &LaunchCommand<'_>,
    ) -> Result<()> {
        let (most_grid, most_block) = kernel.most_extents();
        launch.grid.check_extents(call, "grid", most_grid)?;
        launch.block.check_extents(call, "block", most_block)?;
        // The extents are within those of the device, so that their product fits.
        let threads = u64::from(launch.block.x) * u64::from(launch.block.y) * u64::from(launch.block.z);
        let most = kernel.most_threads();
        if threads > u64::from(most) {
            let what = format!("a block of {threads} threads; this kernel takes {most}");
            return Err(Error::invalid(call, what, "use a smaller block"));
        }
        if kernel.operation().is_some() || kernel.host().is_some() {
            return check_no_kernel(call, kernel, launch);
        }
        self.check_arguments(call, kernel, launch.arguments.len())?;
        kernel.allow_shared(call, &self.context, launch.dynamic_shared_bytes)?;
        if let Some(cluster) = launch.cluster {
            self.check_cluster(call, launch.grid, cluster)?;
        }
        if launch.cooperative {
            self.check_residency(call, api, kernel, launch)?;
        }
        Ok(())
    }

    fn check_arguments(&self, call: &'static str, kernel: &Kernel, given: usize) -> Result<()> {
        match kernel.argument_bytes() {
            // What the device loaded it can launch, so its limit need not be looked up for as many bytes as the kernel takes.
            Some(bytes) if takes_arguments(bytes, given) => Ok(()),
            _ if given > self.info.limits.max_argument_bytes as usize => {
                let limit = u64::from(self.info.limits.max_argument_bytes);
                Err(Error::refused(call, Refusal::Limit { what: "bytes of arguments", limit }))
            }
            Some(bytes) => {
                let what = format!("{given} bytes of arguments; the kernel's parameters take {bytes}");
                Err(Error::invalid(call, what, "pack them as the kernel's signature says"))
            }
            None => Ok(()),
        }
    }

    fn check_cluster(&self, call: &'static str, grid: Dim3, cluster: Dim3) -> Result<()> {
        if !self.info.features.cluster_launch {
            return Err(Error::unsupported(call, "a launch in clusters", "this device has none"));
        }
        let most = self.info.limits.max_cluster_blocks;
        if cluster.count() == 0 || cluster.count() > u128::from(most) {
            let what = format!("a cluster of {cluster} blocks");
            return Err(Error::invalid(call, what, "take at least 1 and at most the device's limit"));
        }
        let divides = |whole: u32, part: u32| whole.is_multiple_of(part);
        if !(divides(grid.x, cluster.x) && divides(grid.y, cluster.y) && divides(grid.z, cluster.z)) {
            let what = format!("a grid of {grid} in clusters of {cluster}");
            return Err(Error::invalid(call, what, "make the grid a multiple of the cluster"));
        }
        Ok(())
    }

    /// A cooperative launch that does not fit would wait for itself for ever, so it is refused before it is made.
    fn check_residency(
        &self,
        call: &'static str,
        api: &Api,
        kernel: &Kernel,
        launch: &LaunchCommand<'_>,
    ) -> Result<()> {
        if !self.info.features.cooperative_launch {
            return Err(Error::unsupported(call, "a cooperative launch", "this device has none"));
        }
        let limit = match launch.cluster {
            Some(cluster) => self.resident_clusters(call, api, kernel, launch)? * cluster.count() as u64,
            None => {
                let threads = launch.block.count() as u32;
                let shared = launch.dynamic_shared_bytes;
                let blocks = kernel.resident_blocks(call, &self.context, api, threads, shared)?;
                u64::from(blocks) * u64::from(self.info.limits.multiprocessors)
            }
        };
        let blocks = u64::try_from(launch.grid.count()).unwrap_or(u64::MAX);
        if blocks > limit {
            return Err(Error::refused(call, Refusal::CooperativeResidencyExceeded { blocks, limit }));
        }
        Ok(())
    }

    fn resident_clusters(
        &self,
        call: &'static str,
        api: &Api,
        kernel: &Kernel,
        launch: &LaunchCommand<'_>,
    ) -> Result<u64> {
        let mut attributes = convert::launch_attributes(launch);
        let config = convert::launch_config(launch, std::ptr::null_mut(), &mut attributes);
        let mut clusters: c_int = 0;
        // SAFETY: the out-parameter, the configuration and its attributes are live locals; the caller pins the kernel.
        let status = unsafe { (api.occupancy_clusters)(&mut clusters, kernel.raw(), &config) };
        self.context.check(call, status)?;
        Ok(u64::try_from(clusters).unwrap_or(0))
    }

    /// A better word for a refusal that only a launch can get.
    #[cold]
    fn explain_launch(&self, call: &'static str, error: Error, launch: &LaunchCommand<'_>) -> Error {
        match error.code() {
            Some(Code::COOPERATIVE_LAUNCH_TOO_LARGE) => {
                let blocks = u64::try_from(launch.grid.count()).unwrap_or(u64::MAX);
                Error::refused(
                    call,
                    Refusal::CooperativeResidencyExceeded { blocks, limit: blocks.saturating_sub(1) },
                )
            }
            Some(Code::LAUNCH_OUT_OF_RESOURCES) => Error::invalid(
                call,
                format!(
                    "blocks of {} threads need more registers or shared memory than there are",
                    launch.block
                ),
                "use smaller blocks, or compile the kernel for fewer registers",
            ),
            _ => error,
        }
    }
}

/// The same for what is launched and is no kernel.
fn check_no_kernel(call: &'static str, kernel: &Kernel, launch: &LaunchCommand<'_>) -> Result<()> {
    if launch.cluster.is_some() || launch.cooperative || launch.dynamic_shared_bytes > 0 {
        let what =
            "a library operation or a function of the host in clusters, cooperative or with shared memory";
        return Err(Error::invalid(call, what, "launch it with a grid and a block of 1"));
    }
    match (kernel.operation(), kernel.host()) {
        (Some(operation), _) => operation.arguments(call, launch.arguments).map(drop),
        (None, Some(callee)) => callee.arguments(call, launch.arguments).map(drop),
        (None, None) => Ok(()),
    }
}

/// The kernel's arguments in the form of `extra`: markers with a pointer to the bytes and a pointer to their number.
/// Without arguments there is nothing to hand over.
pub(crate) struct PackedArguments {
    size: usize,
    list: [*mut c_void; 5],
}

impl PackedArguments {
    /// For so many of the caller's bytes as the kernel takes.
    pub(crate) fn new(kernel: &Kernel, bytes: &[u8]) -> Self {
        let size = kernel.argument_bytes().unwrap_or(bytes.len());
        let marker = |number: u32| std::ptr::without_provenance_mut(number as usize);
        let start = bytes.as_ptr().cast_mut().cast();
        let list = [
            marker(sys::CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT),
            start,
            marker(sys::CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT),
            std::ptr::null_mut(),
            marker(sys::CU_LAUNCH_PARAM_END_AS_INT),
        ];
        Self { size, list }
    }

    /// The list as libcuda takes it; it points into `self`.
    pub(crate) fn extra(&mut self) -> *mut *mut c_void {
        if self.size == 0 {
            return std::ptr::null_mut();
        }
        self.list[3] = (&raw mut self.size).cast();
        self.list.as_mut_ptr()
    }
}

/// Arguments that are given one by one find room in the launch up to this number.
const INLINE_POINTERS: usize = 32;

/// The kernel's arguments one by one. A parameter that is aligned to more than 16 bytes lies where the driver says, and how packed arguments must lie beside it
/// is not documented.
pub(crate) struct ArgumentPointers {
    inline: [*mut c_void; INLINE_POINTERS],
    spilled: Vec<*mut c_void>,
}

impl ArgumentPointers {
    /// Pointers into the caller's bytes, at the offsets of the kernel's parameters. None where the kernel takes packed arguments.
    #[inline(always)]
    pub(crate) fn new(kernel: &Kernel, bytes: &[u8]) -> Option<Self> {
        if kernel.has_wide_parameters() { Self::of_spans(kernel, bytes) } else { None }
    }

    #[cold]
    fn of_spans(kernel: &Kernel, bytes: &[u8]) -> Option<Self> {
        let spans = kernel.attributes().parameters.as_deref()?;
        let mut pointers = Self { inline: [std::ptr::null_mut(); INLINE_POINTERS], spilled: Vec::new() };
        if spans.len() > INLINE_POINTERS {
            pointers.spilled = vec![std::ptr::null_mut(); spans.len()];
        }
        for (pointer, span) in pointers.slice().iter_mut().zip(spans) {
            *pointer = bytes.get(span.offset as usize..)?.as_ptr().cast_mut().cast();
        }
        Some(pointers)
    }

    fn slice(&mut self) -> &mut [*mut c_void] {
        if self.spilled.is_empty() { &mut self.inline } else { &mut self.spilled }
    }
}

/// Both lists as libcuda takes them, of which one is null; they point into what they are made of.
#[inline(always)]
fn lists(
    each: &mut Option<ArgumentPointers>,
    packed: &mut PackedArguments,
) -> (*mut *mut c_void, *mut *mut c_void) {
    match each {
        None => (std::ptr::null_mut(), packed.extra()),
        Some(each) => (each.slice().as_mut_ptr(), std::ptr::null_mut()),
    }
}

impl Kernel {
    /// Whether a launch without clusters is within what was read when the kernel was looked up. Nearly every launch is, and the others
    /// are looked at again to say why not.
    #[inline(always)]
    fn takes(&self, launch: &LaunchCommand<'_>) -> bool {
        let (grid, block) = self.most_extents();
        let within = |given: Dim3, most: Dim3| {
            // None is the largest number when one is taken off.
            let each = |given: u32, most: u32| given.wrapping_sub(1) < most;
            each(given.x, most.x) & each(given.y, most.y) & each(given.z, most.z)
        };
        // Once the extents are within those of the device, their product fits.
        let threads = || u64::from(launch.block.x) * u64::from(launch.block.y) * u64::from(launch.block.z);
        within(launch.grid, grid)
            && within(launch.block, block)
            && threads() <= u64::from(self.most_threads())
            && self.argument_bytes().is_some_and(|bytes| takes_arguments(bytes, launch.arguments.len()))
            && self.allows_shared(launch.dynamic_shared_bytes)
    }
}

/// Whether a kernel with so many bytes of parameters takes so many bytes of arguments.
#[inline(always)]
fn takes_arguments(bytes: usize, given: usize) -> bool {
    (bytes..=bytes.next_multiple_of(ARGUMENT_ALIGNMENT)).contains(&given)
}

#[inline(always)]
fn launch_plain(api: &Api, stream: &Stream, kernel: &Kernel, launch: &LaunchCommand<'_>) -> Status {
    let mut packed = PackedArguments::new(kernel, launch.arguments);
    let mut each = ArgumentPointers::new(kernel, launch.arguments);
    let (each, packed) = lists(&mut each, &mut packed);
    let (grid, block) = (launch.grid, launch.block);
    // SAFETY: kernel and stream are pinned; the arguments live until the call returns, which copies them, and the caller vouched that they have the
    // kernel's layout and that it may run.
    unsafe {
        (api.launch)(
            kernel.raw(),
            grid.x,
            grid.y,
            grid.z,
            block.x,
            block.y,
            block.z,
            launch.dynamic_shared_bytes,
            stream.raw(),
            each,
            packed,
        )
    }
}

fn launch_shaped(api: &Api, stream: &Stream, kernel: &Kernel, launch: &LaunchCommand<'_>) -> Status {
    let mut packed = PackedArguments::new(kernel, launch.arguments);
    let mut each = ArgumentPointers::new(kernel, launch.arguments);
    let (each, packed) = lists(&mut each, &mut packed);
    let mut attributes = convert::launch_attributes(launch);
    let config = convert::launch_config(launch, stream.raw(), &mut attributes);
    // SAFETY: as for `launch_plain`; the configuration and its attributes are live locals.
    unsafe { (api.launch_shaped)(&config, kernel.raw(), each, packed) }
}
