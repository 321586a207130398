//! One call of an operation: checked, then queued or recorded.

use std::sync::Arc;

use kiln_operation::{Matmul, OperandEffect, Operation, OperationOperand};
use kiln_runtime::{DeviceState, Element, GpuRef, GraphBuilder, Launch, NodeId, Stale, Stream, Ticket};
use smallvec::SmallVec;

use crate::Result;
use crate::error::LibraryError;
use crate::kept_workspace::Workspace;
use crate::loaded_operations::{LoadedOperation, LoadedOperations};
use crate::scaling::{PreparedScaling, Scaling};

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
    /// How messages name the operands.
    names: OperandNames,
    /// Whether the result has no elements, so that there is nothing to do.
    is_empty: bool,
}

/// How messages name the operands of a call: as the caller did. BLAS stores matrices column after column, so that a product of matrices that are stored row
/// after row takes the factors in exchange.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct OperandNames {
    /// Whether the first factor of the operation is the caller's second.
    pub(crate) is_exchanged: bool,
}

impl OperandNames {
    fn name(self, operation: &'static str, name: &'static str) -> &'static str {
        if operation != Matmul::NAME {
            return name;
        }
        match (name, self.is_exchanged) {
            ("a", true) => "b",
            ("b", true) => "a",
            ("a_scale", true) => "b_scale",
            ("b_scale", true) => "a_scale",
            ("d", _) => "c",
            _ => name,
        }
    }
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
        let mut described = Self::of(operation);
        for argument in arguments {
            described.arguments.push(argument?);
        }
        Ok(described)
    }

    /// An operation without arguments yet.
    #[inline]
    pub(crate) fn of(operation: impl Into<Operation>) -> Self {
        let (arguments, names) = (SmallVec::new(), OperandNames::default());
        Self { operation: operation.into(), arguments, scaling: None, names, is_empty: false }
    }

    /// A call whose result has no elements: it does nothing.
    pub(crate) fn nothing(operation: impl Into<Operation>) -> Self {
        Self { is_empty: true, ..Self::of(operation) }
    }

    /// The same with other names of operands.
    pub(crate) fn named(self, names: OperandNames) -> Self {
        Self { names, ..self }
    }

    /// Adds a buffer.
    #[inline]
    pub(crate) fn push_memory<T: Element>(&mut self, buffer: &GpuRef<T>) -> Result<()> {
        self.arguments.push(Argument::memory(buffer)?);
        Ok(())
    }

    /// Adds a scalar.
    #[inline]
    pub(crate) fn push_scalar(&mut self, value: f64) {
        self.arguments.push(Argument::Scalar(value));
    }

    /// The same with another argument.
    pub(crate) fn with(mut self, argument: Argument) -> Self {
        self.arguments.push(argument);
        self
    }

    /// The same with another argument in a place.
    pub(crate) fn replaced(mut self, place: usize, argument: Argument) -> Self {
        if let Some(there) = self.arguments.get_mut(place) {
            *there = argument;
        }
        self
    }

    /// Whether the operation and its buffers fit, without loading anything.
    pub(crate) fn check(&self) -> Result<()> {
        let mut arguments = self.arguments.clone();
        checked(&self.operation, self.names, &mut arguments).map(drop)
    }

    /// The operation, checked.
    pub(crate) fn operation(&self) -> Result<Operation> {
        if !self.is_empty {
            self.operation.check()?;
        }
        Ok(self.operation)
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
        self.described.as_ref().map_err(Clone::clone)?.operation()
    }

    /// Loads the operation, if it is not yet: on a GPU that opens the library, makes its plan and loads its kernels, which can take 100 ms. The first
    /// `submit` does it otherwise. Returns the bytes of workspace that a call takes: on a simulated device as much as the data for transforms and
    /// factorisations, and 0 for all other operations.
    ///
    /// # Errors
    /// What is wrong with the call; a library that is missing, too old, or does not have the operation; a device that was shut down.
    pub fn load(&self) -> Result<u64> {
        let described = self.described.as_ref().map_err(Clone::clone)?;
        if described.is_empty {
            return Ok(0);
        }
        let operands = described.operation.checked_operands()?;
        // What was loaded before is known without the device.
        if matches!(self.loaded.gpu().state(), DeviceState::ShuttingDown | DeviceState::Stopped) {
            return Err(kiln_runtime::Error::from(Stale::ShuttingDown).into());
        }
        Ok(self.loaded.load(&described.operation, operands)?.kernel.attributes().workspace_bytes)
    }

    /// Whether the operation and its buffers fit, without loading anything.
    pub(crate) fn check(&self) -> Result<()> {
        self.described.as_ref().map_err(Clone::clone)?.check()
    }

    /// Queues the call, after everything that it has to come after.
    ///
    /// # Errors
    /// Shapes, types, lengths, alignments and overlaps that do not fit; a library that is missing; what the runtime answers. Nothing is
    /// queued then.
    #[track_caller]
    pub fn submit(self) -> Result<Ticket> {
        if self.is_empty() {
            let stream = self.stream.unwrap_or_else(|| self.loaded.gpu().main_stream());
            return Ok(stream.ticket()?);
        }
        self.prepare()?.submit()
    }

    /// Makes the call a node of a graph, or two if its result is scaled. The workspace belongs to the graph. Returns the last node.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit), and an operation for which the library waits for the device; the graph is unchanged.
    pub fn record(self, graph: &mut GraphBuilder) -> Result<NodeId> {
        if self.is_empty() {
            let nothing = graph.scratch::<u8>(0)?;
            return Ok(graph.fill(&nothing, 0)?);
        }
        self.prepare()?.record(graph)
    }

    /// Whether there is nothing to do.
    fn is_empty(&self) -> bool {
        self.described.as_ref().is_ok_and(|described| described.is_empty)
    }

    /// Does everything that can fail before the call is queued: checks, loads the operation, and allocates its workspace.
    #[inline]
    pub(crate) fn prepare(self) -> Result<PreparedCall<'a>> {
        let Described { operation, mut arguments, scaling, names, .. } = self.described?;
        let loaded = match self.loaded.find(&operation) {
            // It was checked when it was loaded.
            Some(loaded) => {
                fit_all((operation.name(), names), &loaded.operands, &mut arguments)?;
                loaded
            }
            None => {
                let operands = checked(&operation, names, &mut arguments)?;
                self.loaded.load(&operation, operands)?
            }
        };
        let gpu = self.loaded.gpu();
        let workspace = match loaded.kernel.attributes().workspace_bytes {
            0 => None,
            bytes => {
                let stream = self.stream.unwrap_or_else(|| gpu.main_stream());
                Some(self.loaded.workspaces.take(gpu, stream, bytes)?)
            }
        };
        let scaling = scaling.map(|scaling| scaling.prepare(gpu, &self.loaded.scaling)).transpose()?;
        let (known, stream) = (self.loaded, self.stream);
        Ok(PreparedCall { known, arguments, names, loaded, workspace, scaling, stream })
    }
}

/// The operands of a call whose buffers fit. Buffers are cut to what their operands reach over.
fn checked(
    operation: &Operation,
    names: OperandNames,
    arguments: &mut Arguments,
) -> Result<Vec<OperationOperand>> {
    let operands = operation.checked_operands()?;
    fit_all((operation.name(), names), &operands, arguments)?;
    Ok(operands)
}

/// Whether an operation fits those of its buffers that are there; `None` stands for one that is allocated later.
pub(crate) fn check_given(
    operation: impl Into<Operation>,
    given: impl IntoIterator<Item = Option<Argument>>,
) -> Result<()> {
    let operation = operation.into();
    let all = operation.checked_operands()?;
    let there = all.into_iter().zip(given).filter_map(|(operand, argument)| Some((operand, argument?)));
    let (operands, mut arguments): (Vec<_>, Arguments) = there.unzip();
    fit_all((operation.name(), OperandNames::default()), &operands, &mut arguments)
}

/// An operation's name, and those of its operands.
type Named = (&'static str, OperandNames);

fn fit_all(named: Named, operands: &[OperationOperand], arguments: &mut Arguments) -> Result<()> {
    for (operand, argument) in operands.iter().zip(arguments.iter_mut()) {
        fit(named, operand, argument)?;
    }
    check_overlaps(named, operands, arguments)
}

/// A call that passed all checks, with everything it needs.
pub(crate) struct PreparedCall<'a> {
    known: &'a LoadedOperations,
    arguments: Arguments,
    names: OperandNames,
    loaded: Arc<LoadedOperation>,
    workspace: Option<Workspace>,
    scaling: Option<PreparedScaling>,
    stream: Option<&'a Stream>,
}

impl PreparedCall<'_> {
    #[inline]
    #[track_caller]
    pub(crate) fn submit(self) -> Result<Ticket> {
        let gpu = self.known.gpu();
        let mut launch = gpu.launch(&self.loaded.kernel);
        if let Some(stream) = self.stream {
            launch.on(stream);
        }
        let workspace = self.workspace.as_ref().map(|workspace| &workspace.buffer);
        describe(&mut launch, &self.arguments, &self.loaded.operands, workspace);
        // SAFETY: the operands lie inside of the buffers that are given, with the effects that are declared, and the operation ends.
        let ticket = unsafe { launch.submit() }.map_err(|error| self.refusal(error))?;
        if let Some(workspace) = self.workspace {
            self.known.workspaces.keep(workspace);
        }
        match self.scaling {
            None => Ok(ticket),
            Some(scaling) => scaling.submit(gpu, self.stream),
        }
    }

    pub(crate) fn record(self, graph: &mut GraphBuilder) -> Result<NodeId> {
        if self.loaded.waits_for_device {
            let what = "no graph can hold it: the library waits for the device while it queues it";
            return Err(LibraryError::argument(self.loaded.name, what, "submit it between two replays"));
        }
        let gpu = self.known.gpu();
        let is_ours = |argument: &Argument| matches!(argument, Argument::Memory(buffer) if buffer.belongs_to(gpu) && !buffer.belongs_to(graph.runtime()));
        if self.arguments.iter().any(is_ours) {
            let what = "the graph belongs to another runtime";
            return Err(LibraryError::argument(
                self.loaded.name,
                what,
                "record into a graph of the runtime of this handle",
            ));
        }
        let workspace = self.workspace.as_ref().map(|workspace| &workspace.buffer);
        let mut launch = graph.launch(&self.loaded.kernel);
        describe(&mut launch, &self.arguments, &self.loaded.operands, workspace);
        // SAFETY: as for `submit`, at each replay.
        let node = unsafe { launch.record() }.map_err(|error| self.refusal(error))?;
        match self.scaling {
            None => Ok(node),
            Some(scaling) => scaling.record(graph),
        }
    }

    /// What the runtime answered, or which operand belongs to another runtime: the launch names operands as the library does.
    #[cold]
    fn refusal(&self, error: kiln_runtime::Error) -> LibraryError {
        let gpu = self.known.gpu();
        let is_foreign = |argument: &Argument| match argument {
            Argument::Memory(buffer) => !buffer.belongs_to(gpu),
            Argument::Scalar(_) => false,
        };
        match self.arguments.iter().zip(&self.loaded.operands).find(|(argument, _)| is_foreign(argument)) {
            None => error.into(),
            Some((_, operand)) => {
                let name = self.names.name(self.loaded.name, operand.name);
                let what = format!("`{name}` belongs to another runtime");
                LibraryError::argument(self.loaded.name, what, "use buffers of the runtime of this handle")
            }
        }
    }
}

/// Cuts a buffer to what the operand reaches over, so that the order knows what is used of it.
fn fit((operation, names): Named, operand: &OperationOperand, argument: &mut Argument) -> Result<()> {
    let Argument::Memory(buffer) = argument else { return Ok(()) };
    if buffer.bytes() < operand.bytes {
        let name = names.name(operation, operand.name);
        let what = format!("`{name}` has {} bytes and must have {}", buffer.bytes(), operand.bytes);
        return Err(LibraryError::argument(operation, what, "use a longer buffer, or smaller sizes"));
    }
    if !buffer.address().0.is_multiple_of(operand.alignment) {
        let name = names.name(operation, operand.name);
        let what = format!("`{name}` does not begin at a multiple of {} bytes", operand.alignment);
        return Err(LibraryError::argument(operation, what, "begin the view at an aligned element"));
    }
    if buffer.bytes() > operand.bytes {
        *buffer = buffer.view(..operand.bytes as usize)?;
    }
    Ok(())
}

/// Refuses a written operand that shares bytes with another: libraries read and write in any order.
fn check_overlaps(
    (operation, names): Named,
    operands: &[OperationOperand],
    arguments: &[Argument],
) -> Result<()> {
    for (at, (first, one)) in operands.iter().zip(arguments).enumerate() {
        let Argument::Memory(one) = one else { continue };
        for (second, other) in operands.iter().zip(arguments).skip(at + 1) {
            let Argument::Memory(other) = other else { continue };
            if (first.effect.changes() || second.effect.changes()) && one.overlaps(other) {
                return Err(overlap(operation, [first, second].map(|one| names.name(operation, one.name))));
            }
        }
    }
    Ok(())
}

#[cold]
fn overlap(operation: &'static str, [first, second]: [&str; 2]) -> LibraryError {
    let what = format!("`{first}` and `{second}` share memory, and one is written");
    LibraryError::argument(operation, what, "use buffers or views that do not overlap")
}

fn describe<'l, W>(
    launch: &mut Launch<'l, W>,
    arguments: &'l [Argument],
    operands: &[OperationOperand],
    workspace: Option<&'l GpuRef<u8>>,
) {
    launch.grid(1).block(1);
    for (argument, operand) in arguments.iter().zip(operands) {
        match (argument, operand.effect) {
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
