//! One call of an operation: checked, then queued or recorded.

use std::panic::Location;

use kiln_operation::Operation;
use kiln_runtime::internal::{StreamKey, pass_bytes, submit_in_call};
use kiln_runtime::{GraphBuilder, Launch, NodeId, Stream, Ticket};

use crate::Result;
use crate::call_arguments::Argument;
use crate::call_state::{check_graph, check_stream};
use crate::described::Described;
use crate::error::LibraryError;
use crate::kept_workspace::Workspace;
use crate::loaded_operation::LoadedOperation;
use crate::loaded_operations::LoadedOperations;
use crate::scaling::PreparedScaling;

/// One call of a library operation.
///
/// Nothing has happened yet: [`submit`](Self::submit) queues it, [`record`](Self::record) makes it a node of a graph. Both answer what is wrong with
/// it, and have changed nothing then.
#[derive(Debug)]
#[must_use = "nothing is computed until `submit` or `record`"]
pub struct LibraryCall<'a> {
    loaded: &'a LoadedOperations,
    /// The operation with its arguments, or what is wrong.
    described: Result<Described<'a>>,
    stream: Option<&'a Stream>,
}

/// What a call runs as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RunsAs {
    /// Work on a stream, which uses the workspace of the calls before it.
    Submission,
    /// A node of a graph, whose workspace nothing else uses.
    Node,
}

impl<'a> LibraryCall<'a> {
    pub(crate) fn new(loaded: &'a LoadedOperations, described: Result<Described<'a>>) -> Self {
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
        self.described()?.operation()
    }

    /// Loads the operation, if it is not yet: on a GPU that opens the library, makes its plan and loads its kernels, which can take 100 ms. The first
    /// `submit` does it otherwise. Returns the bytes of workspace that a call takes: on a simulated device as much as the data for transforms and
    /// factorisations, and 0 for all other operations.
    ///
    /// # Errors
    /// What is wrong with the call; a library that is missing, too old, or does not have the operation; a device that was shut down.
    pub fn load(&self) -> Result<u64> {
        let (described, gpu) = (self.described()?, self.loaded.gpu());
        // What was loaded before is known without the device.
        check_stream(gpu, described.call(), self.stream)?;
        if described.is_empty {
            return Ok(0);
        }
        let operands = described.check()?;
        described.check_usable(gpu)?;
        let loaded = self.loaded.load(&described.operation, &operands);
        Ok(loaded.map_err(|error| error.told_of(described.call()))?.workspace_bytes)
    }

    /// Queues the call, after everything that it has to come after.
    ///
    /// # Errors
    /// Shapes, types, lengths, alignments and overlaps that do not fit; a library that is missing; what the runtime answers. Nothing is
    /// queued then.
    #[track_caller]
    pub fn submit(self) -> Result<Ticket> {
        submit_described(self.loaded, self.described()?, self.stream)
    }

    /// Makes the call a node of a graph, or two if its result is scaled. The workspace belongs to the graph. Returns the last node.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit), and an operation for which the library waits for the device; the graph is unchanged.
    pub fn record(self, graph: &mut GraphBuilder) -> Result<NodeId> {
        let described = self.described()?;
        check_graph(self.loaded.gpu(), described.call(), graph, self.stream)?;
        if described.is_empty {
            let nothing = graph.scratch::<u8>(0)?;
            return Ok(graph.fill(&nothing, 0)?);
        }
        self.prepare(RunsAs::Node)?.record(graph)
    }

    #[inline]
    fn described(&self) -> Result<&Described<'a>> {
        self.described.as_ref().map_err(Clone::clone)
    }

    /// Does everything that can fail before the call is queued: checks, loads the operation, and allocates its workspace.
    pub(crate) fn prepare(self, runs_as: RunsAs) -> Result<PreparedCall<'a>> {
        let described = self.described?;
        let needs = Needs::of(self.loaded, &described, self.stream, runs_as)
            .map_err(|error| refusal(self.loaded, &described, self.stream, error))?;
        Ok(PreparedCall { known: self.loaded, described, needs, stream: self.stream })
    }
}

/// Queues a call. The description stays where it is: it is long, and moving it takes as much time as reading it.
#[track_caller]
pub(crate) fn submit_described(
    loaded: &LoadedOperations,
    described: &Described<'_>,
    stream: Option<&Stream>,
) -> Result<Ticket> {
    if described.is_empty {
        check_stream(loaded.gpu(), described.call(), stream)?;
        let stream = stream.unwrap_or_else(|| loaded.gpu().main_stream());
        return Ok(stream.ticket()?);
    }
    let needs = Needs::of(loaded, described, stream, RunsAs::Submission)
        .map_err(|error| refusal(loaded, described, stream, error))?;
    needs.submit(loaded, described, stream)
}

/// A call that passed all checks, with everything it needs.
pub(crate) struct PreparedCall<'a> {
    known: &'a LoadedOperations,
    described: Described<'a>,
    needs: Needs<'a>,
    stream: Option<&'a Stream>,
}

impl PreparedCall<'_> {
    #[track_caller]
    pub(crate) fn submit(self) -> Result<Ticket> {
        self.needs.submit(self.known, &self.described, self.stream)
    }

    pub(crate) fn record(self, graph: &mut GraphBuilder) -> Result<NodeId> {
        self.needs.record(self.known, &self.described, graph)
    }
}

/// What a call needs beside its buffers.
struct Needs<'a> {
    loaded: &'a LoadedOperation,
    workspace: Option<Workspace>,
    scaling: Option<PreparedScaling>,
}

impl<'a> Needs<'a> {
    #[inline]
    fn of(
        known: &'a LoadedOperations,
        described: &Described<'_>,
        stream: Option<&Stream>,
        runs_as: RunsAs,
    ) -> Result<Self> {
        let loaded = match known.find(&described.operation) {
            // The operation was checked when it was loaded.
            Some(loaded) if described.fits(&loaded.operands) => loaded,
            _ => known.load(&described.operation, &described.check()?)?,
        };
        let gpu = known.gpu();
        let workspace = match loaded.workspace_bytes {
            0 => None,
            bytes => {
                let stream = loaded.stream(known, described, stream);
                Some(match runs_as {
                    RunsAs::Submission => known.workspaces.take(gpu, stream, bytes)?,
                    RunsAs::Node => Workspace::allocate(gpu, stream, bytes)?,
                })
            }
        };
        let scaling = match &described.scaling {
            None => None,
            Some(scaling) => Some(scaling.clone().prepare(gpu, &known.scaling, described.call())?),
        };
        Ok(Self { loaded, workspace, scaling })
    }

    #[inline]
    #[track_caller]
    fn submit(
        self,
        known: &LoadedOperations,
        described: &Described<'_>,
        stream: Option<&Stream>,
    ) -> Result<Ticket> {
        let gpu = known.gpu();
        let _scope = described.enter(gpu, Location::caller());
        // In a block, and not dropped by name: the launch is long, and moving it takes as much time as filling it.
        let ticket = {
            let mut launch = gpu.launch(&self.loaded.kernel);
            if let Some(stream) = stream {
                launch.on(stream);
            }
            self.describe(&mut launch, described);
            // SAFETY: the operands lie inside of the buffers that are given, with the effects that are declared, and the operation ends.
            unsafe { submit_in_call(&mut launch, described.operation.name()) }
                .map_err(|error| refusal(known, described, stream, error.into()))?
        };
        if let Some(workspace) = self.workspace {
            known.workspaces.keep(workspace);
        }
        match self.scaling {
            None => Ok(ticket),
            Some(scaling) => {
                scaling.submit(gpu, stream).map_err(|error| refusal(known, described, stream, error))
            }
        }
    }

    fn record(
        self,
        known: &LoadedOperations,
        described: &Described<'_>,
        graph: &mut GraphBuilder,
    ) -> Result<NodeId> {
        if described.operation.waits_for_device() {
            let what = "no graph can hold it: the library waits for the device while it queues it";
            return Err(LibraryError::argument(described.call(), what, "submit it between two replays"));
        }
        let mut launch = graph.launch(&self.loaded.kernel);
        self.describe(&mut launch, described);
        // SAFETY: as for `submit`, at each replay.
        let node =
            unsafe { launch.record() }.map_err(|error| refusal(known, described, None, error.into()))?;
        drop(launch);
        match self.scaling {
            None => Ok(node),
            Some(scaling) => scaling.record(graph).map_err(|error| error.told_of(described.call())),
        }
    }

    /// Gives a launch its arguments, each buffer cut to what its operand reaches over, so that the order knows what is used of it.
    #[inline]
    fn describe<'l, W>(&'l self, launch: &mut Launch<'l, W>, described: &'l Described<'_>) {
        launch.grid(1).block(1);
        for (argument, operand) in described.arguments.iter().zip(&self.loaded.operands) {
            match argument {
                Argument::Scalar(value) => {
                    launch.value(*value);
                }
                memory => {
                    if let Some(bytes) = memory.bytes() {
                        pass_bytes(launch, bytes.first(operand.bytes), operand.access());
                    }
                }
            }
        }
        if let Some(workspace) = &self.workspace {
            launch.write(&workspace.buffer);
        }
    }
}

impl LoadedOperation {
    /// The stream that a call runs on: the one that was named, or the home of the first buffer that changes.
    #[inline]
    fn stream(
        &self,
        known: &LoadedOperations,
        described: &Described<'_>,
        stream: Option<&Stream>,
    ) -> StreamKey {
        let gpu = known.gpu();
        if let Some(stream) = stream {
            return stream.key();
        }
        let mut pairs = self.operands.iter().zip(described.arguments.iter());
        let changed = pairs.find(|(operand, _)| operand.effect.changes());
        match changed.and_then(|(_, argument)| argument.bytes()) {
            Some(bytes) => bytes.home(gpu),
            None => gpu.main_stream().key(),
        }
    }
}

/// Why a call cannot be, in one order whether it is loaded or not: the device and the stream, sizes and buffers that do not fit, and the first buffer that
/// cannot be used. The launch names operands as the library does.
#[cold]
fn refusal(
    known: &LoadedOperations,
    described: &Described<'_>,
    stream: Option<&Stream>,
    error: LibraryError,
) -> LibraryError {
    if let Err(found) = check_stream(known.gpu(), described.call(), stream) {
        return found;
    }
    if error.runtime().is_none() {
        return error;
    }
    match described.check_usable(known.gpu()) {
        Err(found) => found,
        Ok(()) => error.told_of(described.call()),
    }
}
