//! Fills device buffers with random numbers.

use std::collections::HashMap;
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

use kiln_driver::Dim3;
use kiln_runtime::internal::submit_in_call;
use kiln_runtime::{DeviceRuntime, Element, GpuRef, GraphBuilder, Kernel, Launch, NodeId, Stream, Ticket};

use super::distribution::{Distribution, RandomKernel};
use crate::Result;
use crate::error::LibraryError;
use crate::operands::Operands;
use crate::program_kernel::program_kernel;

/// Threads of a block, as the kernels are written.
const BLOCK_THREADS: u64 = 256;
/// The largest grid of one dimension on every device.
const MAX_BLOCKS: u64 = (1 << 31) - 1;

/// Random numbers on one device. It holds kernels, which are loaded when they are first drawn with, and nothing else.
///
/// ```
/// use kiln::DeviceRuntime;
/// use kiln_libs::rand::{Bits, Philox, Sampler};
///
/// let gpu = DeviceRuntime::simulated(1)?;
/// let random = Sampler::new(&gpu);
/// let words = gpu.allocate::<u32>(100)?;
/// random.draw(7).fill(&words, Bits)?;
/// let sequence = Philox::new(7);
/// assert_eq!(words.download()?, (0..100).map(|at| sequence.u32(at)).collect::<Vec<_>>());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Sampler {
    gpu: DeviceRuntime,
    kernels: Mutex<HashMap<&'static str, Kernel>>,
}

impl Sampler {
    /// Random numbers on a device. Nothing is loaded yet.
    pub fn new(gpu: &DeviceRuntime) -> Self {
        Self { gpu: gpu.clone(), kernels: Mutex::default() }
    }

    /// Begins a draw from the sequence of a seed, at its begin.
    pub fn draw(&self, seed: u64) -> Draw<'_> {
        Draw { random: self, seed, offset: 0, stream: None }
    }

    fn kernel(&self, wanted: &RandomKernel) -> Result<Kernel> {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = kernels.get(wanted.name) {
            return Ok(kernel.clone());
        }
        let kernel = program_kernel(&self.gpu, wanted.call, (wanted.name, &(wanted.text)()))?;
        kernels.insert(wanted.name, kernel.clone());
        Ok(kernel)
    }
}

impl std::fmt::Debug for Sampler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "random numbers on {:?}", self.gpu)
    }
}

/// A draw that is being described.
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing is drawn until `fill` or `record`"]
pub struct Draw<'a> {
    random: &'a Sampler,
    seed: u64,
    offset: u64,
    stream: Option<&'a Stream>,
}

impl<'a> Draw<'a> {
    /// The number of the sequence that the first element becomes. A later draw goes on where this one ended if its offset is greater by the number
    /// of elements.
    pub fn offset(self, offset: u64) -> Self {
        Self { offset, ..self }
    }

    /// The stream to draw on. Otherwise it is the home of the buffer.
    pub fn on(self, stream: &'a Stream) -> Self {
        Self { stream: Some(stream), ..self }
    }

    /// Fills a buffer.
    ///
    /// # Errors
    /// Parameters that describe no distribution, an offset whose draw passes 2^64; what the runtime answers. Nothing is queued then.
    #[track_caller]
    pub fn fill<T: Element>(self, buffer: &GpuRef<T>, distribution: impl Distribution<T>) -> Result<Ticket> {
        let wanted = distribution.kernel(buffer.len() as u64)?;
        let operands = Operands::of(wanted.call).with("buffer", buffer);
        operands.check_submission(&self.random.gpu, self.stream)?;
        let _scope = operands.enter(&self.random.gpu, Location::caller());
        let blocks = self.blocks(&wanted, buffer.len() as u64)?;
        let kernel = self.random.kernel(&wanted).map_err(|error| error.told_of(wanted.call))?;
        let mut launch = self.random.gpu.launch(&kernel);
        if let Some(stream) = self.stream {
            launch.on(stream);
        }
        self.describe(&mut launch, &wanted, blocks, buffer);
        // SAFETY: the kernel writes elements of the buffer that are below the length it was given, and ends.
        unsafe { submit_in_call(&mut launch, wanted.call) }
            .map_err(|error| LibraryError::from(error).told_of(wanted.call))
    }

    /// Makes the draw a node of a graph. Each replay draws the same numbers.
    ///
    /// # Errors
    /// As for [`fill`](Self::fill); the graph is unchanged.
    pub fn record<T: Element>(
        self,
        graph: &mut GraphBuilder,
        buffer: &GpuRef<T>,
        distribution: impl Distribution<T>,
    ) -> Result<NodeId> {
        let wanted = distribution.kernel(buffer.len() as u64)?;
        let operands = Operands::of(wanted.call).with("buffer", buffer);
        operands.check_node(&self.random.gpu, graph, self.stream)?;
        let blocks = self.blocks(&wanted, buffer.len() as u64)?;
        let kernel = self.random.kernel(&wanted).map_err(|error| error.told_of(wanted.call))?;
        let mut launch = graph.launch(&kernel);
        self.describe(&mut launch, &wanted, blocks, buffer);
        // SAFETY: as for `fill`, at each replay.
        unsafe { launch.record() }.map_err(|error| LibraryError::from(error).told_of(wanted.call))
    }

    fn describe<'l, T: Element, W>(
        &self,
        launch: &mut Launch<'l, W>,
        wanted: &RandomKernel,
        blocks: u32,
        buffer: &'l GpuRef<T>,
    ) {
        launch.grid(blocks).block(Dim3::from(BLOCK_THREADS as u32));
        launch.write(buffer).value(buffer.len() as u64).value(self.seed).value(self.offset);
        for value in &wanted.values {
            launch.value_bytes(value);
        }
    }

    /// Blocks for the threads that write so many elements: those of a group that begins before the first element, too.
    fn blocks(&self, wanted: &RandomKernel, elements: u64) -> Result<u32> {
        if self.offset.checked_add(elements).is_none() {
            let what = format!("{elements} elements at offset {}, which passes 2^64", self.offset);
            return Err(LibraryError::argument(wanted.call, what, "use a smaller offset, or another seed"));
        }
        let threads = (self.offset % wanted.per_thread + elements).div_ceil(wanted.per_thread);
        let blocks = threads.div_ceil(BLOCK_THREADS).max(1);
        if blocks > MAX_BLOCKS {
            let what = format!("a draw of {elements} elements");
            return Err(LibraryError::argument(wanted.call, what, "split the buffer into views"));
        }
        Ok(blocks as u32)
    }
}
