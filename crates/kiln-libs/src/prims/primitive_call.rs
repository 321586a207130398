//! `PrimitiveCall`: an operation with its stream, to be submitted or recorded.

use std::panic::Location;

use kiln_runtime::{GraphBuilder, NodeId, Stream, Ticket};

use super::plan::{Plan, Scratch};
use super::primitives::Primitives;
use crate::Result;
use crate::operands::Operands;

/// An operation on device memory: what it checks, and what it queues.
pub(crate) trait Operation {
    /// Refuses what has no meaning, before anything is allocated.
    fn check(&self) -> Result<()>;

    /// Adds the steps.
    fn plan(&self, plan: &mut Plan<'_>) -> Result<()>;

    /// All buffers that the caller gave, which are looked at also where there is nothing to do with them.
    fn operands(&self) -> Operands<'_>;

    /// The stream that the result is at home on.
    fn home(&self) -> kiln_mem::StreamKey;
}

/// An operation that is being described: options, a stream, then [`submit`](Self::submit) or [`record`](Self::record).
#[derive(Clone, Copy)]
#[must_use = "nothing is queued until `submit` or `record`"]
pub struct PrimitiveCall<'a, O> {
    primitives: &'a Primitives,
    pub(crate) operation: O,
    stream: Option<&'a Stream>,
}

impl<'a, O> PrimitiveCall<'a, O> {
    pub(crate) fn new(primitives: &'a Primitives, operation: O) -> Self {
        Self { primitives, operation, stream: None }
    }

    /// The stream to run on, from which temporary memory comes, too. Otherwise it is the home of the output.
    pub fn on(self, stream: &'a Stream) -> Self {
        Self { stream: Some(stream), ..self }
    }
}

#[allow(private_bounds, reason = "which operations there are is decided here")]
impl<O: Operation> PrimitiveCall<'_, O> {
    /// Queues the operation.
    ///
    /// # Errors
    /// Buffers that do not fit the operation or each other; what the runtime answers. No buffer of the caller is changed then.
    #[track_caller]
    pub fn submit(self) -> Result<Ticket> {
        self.operation.check()?;
        let (gpu, operands) = (self.primitives.gpu(), self.operation.operands());
        operands.check_submission(gpu, self.stream)?;
        let _scope = operands.enter(gpu, Location::caller());
        self.submit_checked(operands.call()).map_err(|error| error.told_of(operands.call()))
    }

    #[track_caller]
    fn submit_checked(&self, call: &'static str) -> Result<Ticket> {
        let found;
        let gpu = self.primitives.gpu();
        let stream = match self.stream {
            Some(stream) => stream,
            None => {
                found = gpu.streams().find(self.operation.home());
                found.as_ref().unwrap_or_else(|| gpu.main_stream())
            }
        };
        let mut plan = Plan::new(self.primitives, Scratch::Stream(stream));
        self.operation.plan(&mut plan)?;
        plan.submit(stream, call)
    }

    /// Makes the operation nodes of a graph, which owns the temporary memory. Returns the last node.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit), and a graph of another runtime. No node is added then.
    pub fn record(self, graph: &mut GraphBuilder) -> Result<NodeId> {
        self.operation.check()?;
        let operands = self.operation.operands();
        operands.check_node(self.primitives.gpu(), graph, self.stream)?;
        self.record_checked(graph).map_err(|error| error.told_of(operands.call()))
    }

    fn record_checked(&self, graph: &mut GraphBuilder) -> Result<NodeId> {
        let mut plan = Plan::new(self.primitives, Scratch::Graph(graph));
        self.operation.plan(&mut plan)?;
        plan.into_steps()?.record(graph)
    }
}

impl<O: std::fmt::Debug> std::fmt::Debug for PrimitiveCall<'_, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} on {:?}", self.operation, self.primitives)
    }
}
