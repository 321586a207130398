//! One call on a batch of matrices, and what it found in each of them.

use std::panic::Location;

use kiln_mem::StreamKey;
use kiln_runtime::internal::runtime_of;
use kiln_runtime::{GpuRef, GraphBuilder, NodeId, Stream, Ticket};

use super::info::ZERO;
use crate::Result;
use crate::error::LibraryError;
use crate::library_tag::library_tag;
use crate::operands::Operands;
use crate::prims::plan::Plan;
use crate::prims::primitive_call::Operation;
use crate::prims::{PrimitiveCall, Primitives};
use crate::solve_failure::SolveFailure;

/// An operation on a batch that says what it found in each matrix.
pub(crate) trait BatchOperation {
    /// Its name in messages.
    const NAME: &'static str;
    /// What a word that is not 0 means.
    const FAILURE: FailureKind;

    /// How many matrices there are and how many rows each has, after everything was checked.
    fn checked_sizes(&self) -> Result<(u64, u64)>;

    /// Adds the steps, which write a word for each matrix.
    fn plan(&self, plan: &mut Plan<'_>, found: &FoundWords) -> Result<()>;

    /// All buffers that the caller gave.
    fn operands(&self) -> Operands<'_>;

    /// The stream that the result is at home on.
    fn home(&self) -> StreamKey;
}

/// What a word that is not 0 means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FailureKind {
    NotPositiveDefinite,
    Singular,
    NotConverged,
    /// There is a value beside each word.
    PivotOutOfRange,
}

/// What an operation writes about each matrix.
#[derive(Clone, Debug)]
pub(crate) struct FoundWords {
    /// 0, or a place counted from 1, or minus a place on the diagonal that no system can be solved with.
    pub(crate) words: GpuRef<i32>,
    /// What is in that place, where the failure says it; otherwise there are none.
    pub(crate) values: GpuRef<i64>,
    /// Rows of each matrix.
    order: u64,
}

/// An operation on a batch of matrices.
///
/// Nothing has happened yet: [`submit`](Self::submit) queues it, [`record`](Self::record) makes it a node of a graph. Both answer what is wrong with
/// it, and have changed nothing then.
#[derive(Debug)]
#[must_use = "nothing is computed until `submit` or `record`"]
pub struct BatchedCall<'a, O> {
    kernels: &'a Primitives,
    operation: O,
    stream: Option<&'a Stream>,
}

/// An operation on a batch that was queued.
#[derive(Clone, Debug)]
#[must_use = "which matrices could be factored or solved is known after `wait`"]
pub struct BatchedTicket {
    ticket: Ticket,
    info: BatchedInfo,
}

/// What an operation found out about each matrix of a batch: a word for each in device memory, 0 if all went well.
#[derive(Clone, Debug)]
pub struct BatchedInfo {
    found: FoundWords,
    operation: &'static str,
    kind: FailureKind,
}

impl FoundWords {
    /// Says of all matrices that all went well.
    pub(crate) fn nothing(&self, plan: &mut Plan<'_>) -> Result<()> {
        if self.words.is_empty() { Ok(()) } else { plan.zero(&self.words) }
    }
}

struct WithInfo<O> {
    operation: O,
    found: FoundWords,
}

#[allow(private_bounds, reason = "which operations there are is decided here")]
impl<'a, O: BatchOperation> BatchedCall<'a, O> {
    pub(super) fn new(kernels: &'a Primitives, operation: O) -> Self {
        Self { kernels, operation, stream: None }
    }

    /// The stream to run on. Otherwise it is the home of the matrices.
    pub fn on(self, stream: &'a Stream) -> Self {
        Self { stream: Some(stream), ..self }
    }

    /// Queues the call, after everything that it has to come after.
    ///
    /// # Errors
    /// Shapes, strides, lengths and overlaps that do not fit; what the runtime answers. Nothing is queued then.
    #[track_caller]
    pub fn submit(self) -> Result<BatchedTicket> {
        let (stream, gpu) = (self.stream, self.kernels.gpu());
        self.operation.checked_sizes()?;
        let operands = self.operation.operands();
        operands.check_submission(gpu, stream)?;
        let _scope = operands.enter(gpu, Location::caller());
        drop(operands);
        let (call, info) = self.with_info().map_err(|error| error.told_of(O::NAME))?;
        let call = match stream {
            Some(stream) => call.on(stream),
            None => call,
        };
        Ok(BatchedTicket { ticket: call.submit()?, info })
    }

    /// Makes the call a node of a graph. The words say how the last replay went.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit).
    pub fn record(self, graph: &mut GraphBuilder) -> Result<(NodeId, BatchedInfo)> {
        self.operation.checked_sizes()?;
        self.operation.operands().check_node(self.kernels.gpu(), graph, self.stream)?;
        let (call, info) = self.with_info().map_err(|error| error.told_of(O::NAME))?;
        Ok((call.record(graph)?, info))
    }

    fn with_info(self) -> Result<(PrimitiveCall<'a, WithInfo<O>>, BatchedInfo)> {
        let (count, order) = self.operation.checked_sizes()?;
        let gpu = self.kernels.gpu();
        let stream = self.stream.unwrap_or_else(|| gpu.main_stream());
        let words = gpu.allocate_tagged(stream, count as usize, library_tag())?;
        let has_values = O::FAILURE == FailureKind::PivotOutOfRange;
        let values =
            gpu.allocate_tagged(stream, if has_values { count as usize } else { 0 }, library_tag())?;
        let found = FoundWords { words, values, order };
        let info = BatchedInfo { found: found.clone(), operation: O::NAME, kind: O::FAILURE };
        Ok((PrimitiveCall::new(self.kernels, WithInfo { operation: self.operation, found }), info))
    }
}

impl<O: BatchOperation> Operation for WithInfo<O> {
    #[track_caller]
    fn check(&self) -> Result<()> {
        self.operation.checked_sizes().map(drop)
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        self.operation.plan(plan, &self.found)
    }

    fn operands(&self) -> Operands<'_> {
        self.operation.operands()
    }

    fn home(&self) -> StreamKey {
        self.operation.home()
    }
}

impl BatchedTicket {
    /// Waits until the operation is done.
    ///
    /// # Errors
    /// [`LibraryError::SolveBatch`] says what the device found in the first matrix that has no such factors or no solution; otherwise the operation failed.
    #[track_caller]
    pub fn wait(&self) -> Result<()> {
        self.ticket.wait().map_err(|error| self.info.told(error.into()))?;
        self.info.check()
    }

    /// The ticket of the launch, which knows nothing of the matrices.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// What the operation finds out.
    pub fn info(&self) -> &BatchedInfo {
        &self.info
    }
}

impl BatchedInfo {
    /// The words themselves, one for each matrix, to be read by kernels that decide on the device. Their meaning is that of LAPACK; of
    /// [`lu_batched`](super::Solve::lu_batched), [`qr_batched`](super::Solve::qr_batched) and [`least_squares_batched`](super::Solve::least_squares_batched) they are also minus the place, counted from 1, that [`SolveFailure::NotFinite`] tells. Of
    /// [`lu_solve_batched`](super::Solve::lu_solve_batched) they are the row, counted from 1, of the first pivot that is out of range, or minus the row of the first
    /// NaN or infinity on the diagonal of the factors, or, where there is none, of the first zero.
    pub fn words(&self) -> &GpuRef<i32> {
        &self.found.words
    }

    /// Reads the words, after the operation or the last replay of its graph.
    ///
    /// # Errors
    /// [`LibraryError::SolveBatch`] says what the device found in the first matrix that has no such factors or no solution; otherwise they could not be read.
    #[track_caller]
    pub fn check(&self) -> Result<()> {
        self.find_failure().map_err(|error| self.told(error))
    }

    /// Why the runtime did not do it, said of the call.
    #[cold]
    fn told(&self, error: LibraryError) -> LibraryError {
        error.told_of_wait(self.operation, runtime_of(&self.found.words).as_ref())
    }

    #[track_caller]
    fn find_failure(&self) -> Result<()> {
        let words = self.found.words.download()?;
        let Some((matrix, word)) = words.iter().enumerate().find(|(_, word)| **word != 0) else {
            return Ok(());
        };
        let place = u64::from(word.unsigned_abs());
        let failure = match self.kind {
            FailureKind::NotPositiveDefinite => SolveFailure::NotPositiveDefinite { order: place },
            FailureKind::Singular if *word < 0 => SolveFailure::NotFinite { pivot: place - 1 },
            FailureKind::Singular => SolveFailure::Singular { pivot: place - 1 },
            FailureKind::NotConverged => SolveFailure::NotConverged,
            FailureKind::PivotOutOfRange => {
                let value = self.found.values.view(matrix..matrix + 1)?.download()?;
                let value = value.first().copied().unwrap_or_default();
                match (*word < 0, value == i64::from(ZERO)) {
                    (false, _) => {
                        let order = self.found.order;
                        SolveFailure::PivotOutOfRange { row: place - 1, pivot: value, order }
                    }
                    (true, true) => SolveFailure::Singular { pivot: place - 1 },
                    (true, false) => SolveFailure::NotFinite { pivot: place - 1 },
                }
            }
        };
        let failed = words.iter().filter(|word| **word != 0).count();
        Err(LibraryError::SolveBatch {
            operation: self.operation,
            matrix,
            count: words.len(),
            failed,
            failure,
        })
    }
}
