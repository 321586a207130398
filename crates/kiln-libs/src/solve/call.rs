//! One call of a solver.

use std::panic::Location;

use kiln_mem::StreamKey;
use kiln_operation::Operation;
use kiln_runtime::{GraphBuilder, NodeId, Stream};

use super::info::{SolveInfo, SolveTicket};
use super::system::{LIBRARY_WORD, PreparedSystem, System};
use crate::Result;
use crate::call_arguments::Argument;
use crate::call_state::{check_graph, check_stream};
use crate::described::Described;
use crate::library_call::{LibraryCall, RunsAs};
use crate::library_tag::library_tag;
use crate::loaded_operations::LoadedOperations;
use crate::prims::plan::{Plan, Scratch};

/// One call of a solver operation.
///
/// Nothing has happened yet: [`submit`](Self::submit) queues it, [`record`](Self::record) makes it a node of a graph. Both answer what is wrong with
/// it, and have changed nothing then.
#[derive(Debug)]
#[must_use = "nothing is computed until `submit` or `record`"]
pub struct SolveCall<'a> {
    pub(super) loaded: &'a LoadedOperations,
    /// The operation with its arguments but the info word, or what is wrong.
    pub(super) described: Result<Described<'a>>,
    pub(super) stream: Option<&'a Stream>,
    /// Kernels around a system of equations or a factorisation, and the stream that what it writes is at home on.
    pub(super) system: Option<(System<'a>, StreamKey)>,
}

impl<'a> SolveCall<'a> {
    pub(super) fn new(loaded: &'a LoadedOperations, described: Result<Described<'a>>) -> Self {
        Self { loaded, described, stream: None, system: None }
    }

    /// A system of equations, or a factorisation; without right-hand sides there is no system.
    pub(super) fn of_system(
        loaded: &'a LoadedOperations,
        described: Result<(Described<'a>, Option<System<'a>>)>,
        home: StreamKey,
    ) -> Self {
        match described {
            Ok((described, system)) => {
                let system = system.map(|system| (system, home));
                Self { loaded, described: Ok(described), stream: None, system }
            }
            Err(error) => Self::new(loaded, Err(error)),
        }
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
        let (described, gpu) = (self.described.as_ref().map_err(Clone::clone)?, self.loaded.gpu());
        let call = described.call();
        check_stream(gpu, call, self.stream)?;
        described.check_unless_empty()?;
        described.check_usable(gpu)?;
        let _scope = described.enter(gpu, Location::caller());
        self.submit_checked(call).map_err(|error| error.told_of(call))
    }

    #[track_caller]
    fn submit_checked(mut self, name: &'static str) -> Result<SolveTicket> {
        let Some((system, home)) = self.system.take() else {
            let (call, info) = self.with_info()?;
            return Ok(SolveTicket { ticket: call.submit()?, info });
        };
        let gpu = self.loaded.gpu();
        let found = match self.stream {
            Some(_) => None,
            None => gpu.streams().find(home),
        };
        let stream = self.stream.or(found.as_ref()).unwrap_or_else(|| gpu.main_stream());
        let kernels = system.kernels;
        let (call, system, info) = SolveCall { stream: Some(stream), ..self }.with_system(system)?;
        let mut before = Plan::new(kernels, Scratch::Stream(stream));
        system.add_before(&mut before)?;
        let mut after = Plan::new(kernels, Scratch::Stream(stream));
        system.add_after(&mut after)?;
        let call = call.prepare(RunsAs::Submission)?;
        after.check_buffers()?;
        if !before.is_empty() {
            before.submit(stream, name)?;
        }
        let ticket = call.submit()?;
        let ticket = if after.is_empty() { ticket } else { after.submit(stream, name)? };
        Ok(SolveTicket { ticket, info })
    }

    /// Makes the call a node of a graph. Workspace and info word belong to the graph; the word says how the last replay went.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit), and eigenvalues and singular values, for which cuSOLVER waits; the graph is unchanged.
    pub fn record(self, graph: &mut GraphBuilder) -> Result<(NodeId, SolveInfo)> {
        let (described, gpu) = (self.described.as_ref().map_err(Clone::clone)?, self.loaded.gpu());
        let call = described.call();
        check_graph(gpu, call, graph, self.stream)?;
        described.check_unless_empty()?;
        described.check_usable(gpu)?;
        self.record_checked(graph).map_err(|error| error.told_of(call))
    }

    fn record_checked(mut self, graph: &mut GraphBuilder) -> Result<(NodeId, SolveInfo)> {
        let Some((system, _)) = self.system.take() else {
            let (call, info) = self.with_info()?;
            return Ok((call.record(graph)?, info));
        };
        let kernels = system.kernels;
        let (call, system, info) = self.with_system(system)?;
        let mut before = Plan::new(kernels, Scratch::Graph(graph));
        system.add_before(&mut before)?;
        let before = before.into_steps()?;
        let mut after = Plan::new(kernels, Scratch::Graph(graph));
        system.add_after(&mut after)?;
        let after = after.into_steps()?;
        let call = call.prepare(RunsAs::Node)?;
        if !before.is_empty() {
            before.record(graph)?;
        }
        let node = call.record(graph)?;
        Ok((if after.is_empty() { node } else { after.record(graph)? }, info))
    }

    /// The call with what it needs beside the library, whose arguments are checked.
    fn with_system(self, system: System<'a>) -> Result<(LibraryCall<'a>, PreparedSystem<'a>, SolveInfo)> {
        let described = self.described?;
        let operation = described.operation()?;
        let call_name = described.call();
        let gpu = self.loaded.gpu();
        let stream = self.stream.unwrap_or_else(|| gpu.main_stream());
        let system = system.prepare(gpu, stream)?;
        let words = system.words.clone();
        // The operands are the factors, the pivots where there are any, and the right-hand sides.
        let has_pivots = system.usable.is_some();
        let described = match &system.usable {
            Some(usable) => described.replaced(1, Argument::memory(usable)?),
            None => described,
        };
        let described = match &system.columns {
            Some(columns) => described.replaced(if has_pivots { 2 } else { 1 }, Argument::memory(columns)?),
            None => described,
        };
        let library_word = words.view(LIBRARY_WORD..=LIBRARY_WORD)?;
        let described = described.with(Argument::memory(&library_word)?);
        let found = system.found_words()?;
        let word = if found.is_some() { words.view(..1)? } else { library_word };
        let call = LibraryCall::new(self.loaded, Ok(described));
        let call = match self.stream {
            Some(stream) => call.on(stream),
            None => call,
        };
        Ok((call, system, SolveInfo { word, found, operation, call: call_name }))
    }

    /// The call with an info word as its last argument.
    #[track_caller]
    pub(super) fn with_info(self) -> Result<(LibraryCall<'a>, SolveInfo)> {
        let described = self.described?;
        let operation = described.operation()?;
        let call_name = described.call();
        let gpu = self.loaded.gpu();
        let stream = self.stream.unwrap_or_else(|| gpu.main_stream());
        let word = gpu.allocate_tagged::<i32>(stream, 1, library_tag())?;
        let described = if described.is_empty {
            // No library writes it.
            word.fill_on(stream, 0)?;
            described
        } else {
            described.with(Argument::memory(&word)?)
        };
        let call = LibraryCall::new(self.loaded, Ok(described));
        let call = match self.stream {
            Some(stream) => call.on(stream),
            None => call,
        };
        Ok((call, SolveInfo { word, found: None, operation, call: call_name }))
    }
}
