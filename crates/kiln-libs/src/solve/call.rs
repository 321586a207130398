//! One call of a solver.

use kiln_operation::Operation;
use kiln_runtime::{GraphBuilder, NodeId, Stream};

use super::info::{SolveInfo, SolveTicket};
use crate::Result;
use crate::library_call::{Argument, Described, LibraryCall};
use crate::library_tag::library_tag;
use crate::loaded_operations::LoadedOperations;

/// One call of a solver operation.
///
/// Nothing has happened yet: [`submit`](Self::submit) queues it, [`record`](Self::record) makes it a node of a graph. Both answer what is wrong with
/// it, and have changed nothing then.
#[derive(Debug)]
#[must_use = "nothing is computed until `submit` or `record`"]
pub struct SolveCall<'a> {
    pub(super) loaded: &'a LoadedOperations,
    /// The operation with its arguments but the info word, or what is wrong.
    pub(super) described: Result<Described>,
    pub(super) stream: Option<&'a Stream>,
}

impl<'a> SolveCall<'a> {
    pub(super) fn new(loaded: &'a LoadedOperations, described: Result<Described>) -> Self {
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

    /// Loads the operation, and returns the bytes of workspace; see [`LibraryCall::load`].
    ///
    /// # Errors
    /// As for [`LibraryCall::load`].
    pub fn load(self) -> Result<u64> {
        LibraryCall::new(self.loaded, self.described).load()
    }

    /// Queues the call, after everything that it has to come after.
    ///
    /// # Errors
    /// Shapes, lengths, layouts and overlaps that do not fit; a library that is missing; what the runtime answers. Nothing is queued then.
    #[track_caller]
    pub fn submit(self) -> Result<SolveTicket> {
        let (call, info) = self.with_info()?;
        Ok(SolveTicket { ticket: call.submit()?, info })
    }

    /// Makes the call a node of a graph. Workspace and info word belong to the graph; the word says how the last replay went.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit), and eigenvalues and singular values, for which cuSOLVER waits; the graph is unchanged.
    pub fn record(self, graph: &mut GraphBuilder) -> Result<(NodeId, SolveInfo)> {
        let (call, info) = self.with_info()?;
        Ok((call.record(graph)?, info))
    }

    /// The call with an info word as its last argument.
    pub(super) fn with_info(self) -> Result<(LibraryCall<'a>, SolveInfo)> {
        let described = self.described?;
        let operation = described.operation()?;
        let gpu = self.loaded.gpu();
        let stream = self.stream.unwrap_or_else(|| gpu.main_stream());
        let word = gpu.allocate_tagged::<i32>(stream, 1, library_tag())?;
        let call = LibraryCall::new(self.loaded, Ok(described.with(Argument::memory(&word)?)));
        let call = match self.stream {
            Some(stream) => call.on(stream),
            None => call,
        };
        Ok((call, SolveInfo { word, operation }))
    }
}
