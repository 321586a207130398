//! One call of an operation: checked, then queued or recorded.

use kiln_mem::AllocTag;
use kiln_operation::{OperandEffect, Operation, OperationOperand};
use kiln_runtime::{Element, GpuRef, GraphBuilder, Kernel, Launch, NodeId, Stream, Ticket};
use smallvec::SmallVec;

use crate::Result;
use crate::error::LibraryError;
use crate::loaded::LoadedOperations;
use crate::scaling::Scaling;

/// The tag that workspace is counted under.
const WORKSPACE_TAG: &str = "library";

/// One call of a library operation.
///
/// Nothing has happened yet: [`submit`](Self::submit) queues it, [`record`](Self::record) makes it a node of a graph. Both answer what is wrong with
/// it, and have changed nothing then.
#[derive(Debug)]
#[must_use = "nothing is computed until `submit` or `record`"]
pub struct LibraryCall<'a> {
    loaded: &'a LoadedOperations,
    /// The operation with its arguments, or what is wrong.
    described: Result<Described>,
    stream: Option<&'a Stream>,
}

/// An operation with its arguments.
#[derive(Debug)]
pub(crate) struct Described {
    operation: Operation,
    arguments: Arguments,
    /// What the result is multiplied with, by another launch.
    scaling: Option<Scaling>,
}

type Arguments = SmallVec<[Argument; 8]>;

/// One argument: memory, or a scalar.
#[derive(Clone, Debug)]
pub(crate) enum Argument {
    Memory(GpuRef<u8>),
    Scalar(f64),
}

impl Argument {
    /// A buffer, as its bytes.
    pub(crate) fn memory<T: Element>(buffer: &GpuRef<T>) -> Result<Self> {
        Ok(Self::Memory(buffer.cast::<u8>()?))
    }
}

impl Described {
    pub(crate) fn new(
        operation: impl Into<Operation>,
        arguments: impl IntoIterator<Item = Result<Argument>>,
    ) -> Result<Self> {
        let arguments = arguments.into_iter().collect::<Result<_>>()?;
        Ok(Self { operation: operation.into(), arguments, scaling: None })
    }

    /// The same with a factor for the result.
    pub(crate) fn scaled(self, scaling: Option<Scaling>) -> Self {
        Self { scaling, ..self }
    }
}

impl<'a> LibraryCall<'a> {
    pub(crate) fn new(loaded: &'a LoadedOperations, described: Result<Described>) -> Self {
        Self { loaded, described, stream: None }
    }

    /// The stream to run on. Otherwise it is the home of the first buffer that is written.
    pub fn on(self, stream: &'a Stream) -> Self {
        Self { stream: Some(stream), ..self }
    }

    /// The operation, for [`Tolerance::of`](crate::Tolerance::of) and for messages.
    ///
    /// # Errors
    /// What is wrong with the call.
    pub fn operation(&self) -> Result<Operation> {
        let described = self.described.as_ref().map_err(Clone::clone)?;
        described.operation.check()?;
        Ok(described.operation)
    }

    /// Loads the operation, if it is not yet: on a GPU that opens the library, makes its plan and loads its kernels, which can take 100 ms. The first
    /// `submit` does it otherwise. Returns the bytes of workspace that a call takes.
    ///
    /// # Errors
    /// What is wrong with the call; a library that is missing, too old, or does not have the operation.
    pub fn load(&self) -> Result<u64> {
        let described = self.described.as_ref().map_err(Clone::clone)?;
        let operands = described.operation.checked_operands()?;
        Ok(self.loaded.kernel(&described.operation, &operands)?.attributes().workspace_bytes)
    }

    /// Queues the call, after everything that it has to come after.
    ///
    /// # Errors
    /// Shapes, types, lengths, alignments and overlaps that do not fit; a library that is missing; what the runtime answers. Nothing is
    /// queued then.
    #[track_caller]
    pub fn submit(self) -> Result<Ticket> {
        let Ready { arguments, effects, kernel, scaling } = Ready::new(self.loaded, self.described)?;
        let gpu = self.loaded.gpu();
        let workspace = match kernel.attributes().workspace_bytes {
            0 => None,
            bytes => {
                let tag = AllocTag::new(WORKSPACE_TAG).unwrap_or_default();
                let stream = self.stream.unwrap_or_else(|| gpu.main_stream());
                Some(gpu.allocate_tagged::<u8>(stream, bytes as usize, tag)?)
            }
        };
        // Whatever can fail in the second launch is found before the first.
        let scaling = scaling.map(|scaling| scaling.prepare(gpu, &self.loaded.scaling)).transpose()?;
        let mut launch = gpu.launch(&kernel);
        if let Some(stream) = self.stream {
            launch.on(stream);
        }
        describe(&mut launch, &arguments, &effects, workspace.as_ref());
        // SAFETY: the operands lie inside of the buffers that are given, with the effects that are declared, and the operation ends.
        let ticket = unsafe { launch.submit() }?;
        match scaling {
            None => Ok(ticket),
            Some(scaling) => scaling.submit(gpu, self.stream),
        }
    }

    /// Makes the call a node of a graph, or two if its result is scaled. The workspace belongs to the graph. Returns the last node.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit); the graph is unchanged.
    pub fn record(self, graph: &mut GraphBuilder) -> Result<NodeId> {
        let Ready { arguments, effects, kernel, scaling } = Ready::new(self.loaded, self.described)?;
        let gpu = self.loaded.gpu();
        let workspace = match kernel.attributes().workspace_bytes {
            0 => None,
            bytes => {
                let tag = AllocTag::new(WORKSPACE_TAG).unwrap_or_default();
                Some(gpu.allocate_tagged::<u8>(gpu.main_stream(), bytes as usize, tag)?)
            }
        };
        let scaling = scaling.map(|scaling| scaling.prepare(gpu, &self.loaded.scaling)).transpose()?;
        let mut launch = graph.launch(&kernel);
        describe(&mut launch, &arguments, &effects, workspace.as_ref());
        // SAFETY: as for `submit`, at each replay.
        let node = unsafe { launch.record() }?;
        match scaling {
            None => Ok(node),
            Some(scaling) => scaling.record(graph),
        }
    }
}

/// A call that passed all checks.
struct Ready {
    arguments: Arguments,
    effects: SmallVec<[OperandEffect; 8]>,
    kernel: Kernel,
    scaling: Option<Scaling>,
}

impl Ready {
    fn new(loaded: &LoadedOperations, described: Result<Described>) -> Result<Self> {
        let Described { operation, mut arguments, scaling } = described?;
        let operands = operation.checked_operands()?;
        for (operand, argument) in operands.iter().zip(&mut arguments) {
            fit(operation.name(), operand, argument)?;
        }
        check_overlaps(operation.name(), &operands, &arguments)?;
        let kernel = loaded.kernel(&operation, &operands)?;
        let effects = operands.iter().map(|operand| operand.effect).collect();
        Ok(Self { arguments, effects, kernel, scaling })
    }
}

/// Cuts a buffer to what the operand reaches over, so that the order knows what is used of it.
fn fit(operation: &'static str, operand: &OperationOperand, argument: &mut Argument) -> Result<()> {
    let Argument::Memory(buffer) = argument else { return Ok(()) };
    if buffer.bytes() < operand.bytes {
        let what = format!("`{}` has {} bytes and must have {}", operand.name, buffer.bytes(), operand.bytes);
        return Err(LibraryError::argument(operation, what, "use a longer buffer, or smaller sizes"));
    }
    if !buffer.address().0.is_multiple_of(operand.alignment) {
        let what = format!("`{}` does not begin at a multiple of {} bytes", operand.name, operand.alignment);
        return Err(LibraryError::argument(operation, what, "begin the view at an aligned element"));
    }
    *buffer = buffer.view(..operand.bytes as usize)?;
    Ok(())
}

/// Refuses a written operand that shares bytes with another: libraries read and write in any order.
fn check_overlaps(
    operation: &'static str,
    operands: &[OperationOperand],
    arguments: &[Argument],
) -> Result<()> {
    let memory = operands.iter().zip(arguments).filter_map(|(operand, argument)| match argument {
        Argument::Memory(buffer) => Some((operand, buffer)),
        Argument::Scalar(_) => None,
    });
    let memory: SmallVec<[_; 8]> = memory.collect();
    for (at, (first, one)) in memory.iter().enumerate() {
        for (second, other) in memory.iter().skip(at + 1) {
            if (first.effect.changes() || second.effect.changes()) && one.overlaps(other) {
                let what = format!("`{}` and `{}` share memory, and one is written", first.name, second.name);
                return Err(LibraryError::argument(
                    operation,
                    what,
                    "use buffers or views that do not overlap",
                ));
            }
        }
    }
    Ok(())
}

fn describe<'l, W>(
    launch: &mut Launch<'l, W>,
    arguments: &'l [Argument],
    effects: &[OperandEffect],
    workspace: Option<&'l GpuRef<u8>>,
) {
    launch.grid(1).block(1);
    for (argument, effect) in arguments.iter().zip(effects) {
        match (argument, effect) {
            (Argument::Scalar(value), _) => launch.value(*value),
            (Argument::Memory(buffer), OperandEffect::Scalar | OperandEffect::Reads) => launch.read(buffer),
            (Argument::Memory(buffer), OperandEffect::Overwrites) => launch.write(buffer),
            // What lies in the gaps stays, so that the buffer is not overwritten.
            (Argument::Memory(buffer), OperandEffect::Writes | OperandEffect::ReadsAndWrites) => {
                launch.read_write(buffer)
            }
        };
    }
    if let Some(workspace) = workspace {
        launch.write(workspace);
    }
}
