//! The launches and temporary memory of an operation, prepared before anything is queued.
//!
//! A plan has loaded its kernels and allocated its temporary memory when it is complete, and all buffers are checked before the first step: a call that is
//! refused has changed nothing.
//! The steps of a plan are ordered by what they do to which bytes, as all work is.

use kiln_mem::AllocTag;
use kiln_runtime::internal::{check_usable, mark_workspace, submit_in_call};
use kiln_runtime::{DeviceRuntime, Element, GpuRef, GraphBuilder, Kernel, Launch, NodeId, Stream, Ticket};

use super::check::begin_together;
use super::primitives::Primitives;
use crate::Result;
use crate::error::{LibraryError, UNNAMED};

/// The largest grid of one dimension on every device.
pub(crate) const MAX_BLOCKS: u64 = (1 << 31) - 1;

/// An argument of a kernel.
pub(crate) enum Argument {
    Read(GpuRef<u8>),
    Write(GpuRef<u8>),
    ReadWrite(GpuRef<u8>),
    Value([u8; 8], usize),
    Null,
}

impl Argument {
    pub(crate) fn read<T: Element>(buffer: &GpuRef<T>) -> Result<Self> {
        Ok(Self::Read(buffer.cast()?))
    }

    pub(crate) fn write<T: Element>(buffer: &GpuRef<T>) -> Result<Self> {
        Ok(Self::Write(buffer.cast()?))
    }

    pub(crate) fn read_write<T: Element>(buffer: &GpuRef<T>) -> Result<Self> {
        Ok(Self::ReadWrite(buffer.cast()?))
    }

    /// A buffer that is written, or none.
    pub(crate) fn write_some<T: Element>(buffer: Option<&GpuRef<T>>) -> Result<Self> {
        buffer.map_or(Ok(Self::Null), Self::write)
    }

    /// A number of at most eight bytes.
    pub(crate) fn value<T: Element>(value: T) -> Self {
        let (mut bytes, given) = ([0; 8], bytemuck::bytes_of(&value));
        let len = given.len().min(8);
        bytes[..len].copy_from_slice(&given[..len]);
        Self::Value(bytes, len)
    }
}

/// One command.
enum Step {
    Launch { kernel: Kernel, blocks: u32, threads: u32, shared_bytes: u32, arguments: Vec<Argument> },
    Zero(GpuRef<u8>),
    Copy { from: GpuRef<u8>, to: GpuRef<u8> },
}

impl Step {
    /// Refuses buffers that work of the runtime cannot use.
    fn check_buffers(&self, gpu: &DeviceRuntime) -> Result<()> {
        match self {
            Self::Zero(buffer) => check_usable(buffer, gpu)?,
            Self::Copy { from, to } => {
                check_usable(from, gpu)?;
                check_usable(to, gpu)?;
            }
            Self::Launch { arguments, .. } => {
                for argument in arguments {
                    match argument {
                        Argument::Read(buffer) | Argument::Write(buffer) | Argument::ReadWrite(buffer) => {
                            check_usable(buffer, gpu)?;
                        }
                        Argument::Value(..) | Argument::Null => {}
                    }
                }
            }
        }
        Ok(())
    }
}

/// Where temporary memory comes from.
pub(crate) enum Scratch<'a> {
    Stream(&'a Stream),
    Graph(&'a mut GraphBuilder),
}

/// Steps in their order.
pub(crate) struct Plan<'a> {
    primitives: &'a Primitives,
    scratch: Scratch<'a>,
    steps: Vec<Step>,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(primitives: &'a Primitives, scratch: Scratch<'a>) -> Self {
        Self { primitives, scratch, steps: Vec::new() }
    }

    fn gpu(&self) -> &DeviceRuntime {
        self.primitives.gpu()
    }

    /// Whether operations launch assertions about their inputs before their own kernels.
    pub(crate) fn has_assertions(&self) -> bool {
        self.primitives.has_assertions
    }

    /// Temporary memory, freed in the order of the stream, or with the graph.
    pub(crate) fn scratch<T: Element>(&mut self, len: u64) -> Result<GpuRef<T>> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let primitives = self.primitives;
        match &mut self.scratch {
            Scratch::Stream(stream) => {
                let tag = AllocTag::new("primitives").unwrap_or_default();
                Ok(primitives.gpu().allocate_tagged(stream, len, tag)?)
            }
            Scratch::Graph(graph) => {
                let scratch = graph.scratch(len)?;
                mark_workspace(&scratch.cast()?)?;
                Ok(scratch)
            }
        }
    }

    /// Sets all bytes to zero.
    pub(crate) fn zero<T: Element>(&mut self, buffer: &GpuRef<T>) -> Result<()> {
        self.steps.push(Step::Zero(buffer.cast()?));
        Ok(())
    }

    /// Copies all elements, unless they are in the same place already.
    pub(crate) fn copy<T: Element>(&mut self, from: &GpuRef<T>, to: &GpuRef<T>) -> Result<()> {
        if from.is_empty() || begin_together(from, to) {
            return Ok(());
        }
        self.steps.push(Step::Copy { from: from.cast()?, to: to.cast()? });
        Ok(())
    }

    /// A launch of a kernel of an operation for a type.
    pub(crate) fn launch(
        &mut self,
        (family, of, entry): (&'static str, &'static str, &'static str),
        blocks: u64,
        threads: u32,
        arguments: Vec<Argument>,
    ) -> Result<()> {
        self.launch_shared((family, of, entry), blocks, threads, 0, arguments)
    }

    /// As [`launch`](Self::launch), with dynamic shared memory.
    pub(crate) fn launch_shared(
        &mut self,
        (family, of, entry): (&'static str, &'static str, &'static str),
        blocks: u64,
        threads: u32,
        shared_bytes: u32,
        arguments: Vec<Argument>,
    ) -> Result<()> {
        check_blocks(family, blocks)?;
        let kernel = self.primitives.kernel(family, of, entry)?;
        self.steps.push(Step::Launch { kernel, blocks: blocks as u32, threads, shared_bytes, arguments });
        Ok(())
    }

    /// A launch of a program (`.kir`) that a name stands for.
    pub(crate) fn launch_program(
        &mut self,
        (name, text): (&str, impl FnOnce() -> String),
        blocks: u64,
        threads: u32,
        arguments: Vec<Argument>,
    ) -> Result<()> {
        check_blocks(name, blocks)?;
        let kernel = self.primitives.program_kernel(name, text)?;
        self.steps.push(Step::Launch { kernel, blocks: blocks as u32, threads, shared_bytes: 0, arguments });
        Ok(())
    }

    /// Queues all steps on a stream, as work of a call.
    #[track_caller]
    pub(crate) fn submit(self, stream: &Stream, call: &'static str) -> Result<Ticket> {
        let gpu = self.gpu();
        self.check_buffers()?;
        let mut last = None;
        for step in &self.steps {
            last = Some(match step {
                Step::Zero(buffer) => buffer.fill_on(stream, 0)?,
                Step::Copy { from, to } => to.copy_from_on(stream, from)?,
                Step::Launch { kernel, blocks, threads, shared_bytes, arguments } => {
                    let mut launch = gpu.launch(kernel);
                    launch.on(stream).grid(*blocks).block(*threads).shared(*shared_bytes);
                    give(&mut launch, arguments);
                    // SAFETY: the kernels are those of this crate. They touch elements inside of the lengths that they are given, which the
                    // operation took from the buffers, and end: a block that waits for others waits for blocks that started before it.
                    unsafe { submit_in_call(&mut launch, call) }?
                }
            });
        }
        match last {
            Some(ticket) => Ok(ticket),
            None => Ok(stream.ticket()?),
        }
    }

    /// The steps, without the loan of the graph that their memory came from.
    pub(crate) fn into_steps(self) -> Result<Steps> {
        self.check_buffers()?;
        Ok(Steps { steps: self.steps })
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Refuses buffers that work of the runtime cannot use.
    pub(crate) fn check_buffers(&self) -> Result<()> {
        self.steps.iter().try_for_each(|step| step.check_buffers(self.gpu()))
    }
}

/// A plan whose memory belongs to a graph.
pub(crate) struct Steps {
    steps: Vec<Step>,
}

impl Steps {
    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Makes all steps nodes of the graph, and gives the last of them; without steps, a node that does nothing.
    pub(crate) fn record(self, graph: &mut GraphBuilder) -> Result<NodeId> {
        let mut last = None;
        for step in &self.steps {
            last = Some(match step {
                Step::Zero(buffer) => graph.fill(buffer, 0)?,
                Step::Copy { from, to } => graph.copy(from, to)?,
                Step::Launch { kernel, blocks, threads, shared_bytes, arguments } => {
                    let mut launch = graph.launch(kernel);
                    launch.grid(*blocks).block(*threads).shared(*shared_bytes);
                    give(&mut launch, arguments);
                    // SAFETY: as in `submit`, at each replay.
                    unsafe { launch.record() }?
                }
            });
        }
        match last {
            Some(node) => Ok(node),
            None => {
                let nothing = graph.scratch::<u8>(0)?;
                Ok(graph.fill(&nothing, 0)?)
            }
        }
    }
}

fn check_blocks(name: &str, blocks: u64) -> Result<()> {
    if blocks <= MAX_BLOCKS {
        return Ok(());
    }
    let what = format!("{name}: {blocks} blocks");
    Err(LibraryError::argument(UNNAMED, what, "split the buffer into views"))
}

fn give<'l, W>(launch: &mut Launch<'l, W>, arguments: &'l [Argument]) {
    for argument in arguments {
        match argument {
            Argument::Read(buffer) => launch.read(buffer),
            Argument::Write(buffer) => launch.write(buffer),
            Argument::ReadWrite(buffer) => launch.read_write(buffer),
            Argument::Value(bytes, len) => launch.value_bytes(&bytes[..*len]),
            Argument::Null => launch.null(),
        };
    }
}
