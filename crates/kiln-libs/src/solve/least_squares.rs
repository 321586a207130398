//! Least squares.

use std::panic::Location;

use kiln_operation::{Diagonal, Geqrf, Operation, Side, Triangle, Trsm};
use kiln_runtime::{GraphBuilder, NodeId, Stream};

use super::call::SolveCall;
use super::handle::{Solve, apply_q, q_operation, qr, qr_operation};
use super::info::{SolveInfo, SolveTicket};
use super::layout::{check_counted, check_shape, check_tall, column_distance};
use crate::Result;
use crate::blas::{Matrix, Real, check_single};
use crate::call_arguments::Argument;
use crate::called::Called;
use crate::described::{Described, check_given};
use crate::library_call::{LibraryCall, PreparedCall, RunsAs};
use crate::library_tag::library_tag;
use crate::loaded_operations::LoadedOperations;
use crate::operands::Operands;

/// The factorisation, what comes after it, and what it finds out.
type Prepared<'a> = (PreparedCall<'a>, Option<[PreparedCall<'a>; 2]>, SolveInfo);

static CALLED: Called = Called::new("solve.least_squares", "b");

/// A least-squares problem that is being described: three launches, which are all checked before the first is queued.
///
/// ```
/// use kiln::DeviceRuntime;
/// use kiln_libs::solve::{Matrix, Solve};
///
/// let gpu = DeviceRuntime::simulated(1)?;
/// let solve = Solve::new(&gpu);
/// // The line through (0, 1), (1, 3), (2, 5): a column of ones, a column of places.
/// let a = gpu.upload(&[1.0_f64, 1.0, 1.0, 0.0, 1.0, 2.0])?;
/// let b = gpu.upload(&[1.0_f64, 3.0, 5.0])?;
/// let by_columns = Matrix::new(&a, 2, 3).transposed();
/// solve.least_squares(by_columns, Matrix::new(&b, 3, 1)).submit()?.wait()?;
/// let line = b.download()?;
/// assert!((line[0] - 1.0).abs() < 1e-14 && (line[1] - 2.0).abs() < 1e-14);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "nothing is computed until `submit` or `record`"]
pub struct LeastSquaresCall<'a, T: Real> {
    loaded: &'a LoadedOperations,
    a: Matrix<'a, T>,
    b: Matrix<'a, T>,
    stream: Option<&'a Stream>,
}

impl Solve {
    /// The `X` with the smallest `‖A X - B‖₂`, for a matrix with at least as many rows as columns, both stored column after column. `X` replaces the
    /// first rows of `B`; the squares of the others add up to that of the residual. `A` is replaced by its factors, as
    /// [`qr`](Self::qr) leaves them. A matrix whose columns depend on each other gives infinities, NaN or very large numbers: use
    /// [`svd`](Self::svd) for those.
    pub fn least_squares<'a, T: Real>(
        &'a self,
        a: Matrix<'a, T>,
        b: Matrix<'a, T>,
    ) -> LeastSquaresCall<'a, T> {
        LeastSquaresCall { loaded: &self.loaded, a, b, stream: None }
    }
}

impl<'a, T: Real> LeastSquaresCall<'a, T> {
    /// The stream to run on. Otherwise each launch runs on the home of the first buffer that it writes.
    pub fn on(self, stream: &'a Stream) -> Self {
        Self { stream: Some(stream), ..self }
    }

    /// Queues the three launches.
    ///
    /// # Errors
    /// As for [`SolveCall::submit`].
    #[track_caller]
    pub fn submit(self) -> Result<SolveTicket> {
        let (operands, gpu) = (self.operands(), self.loaded.gpu());
        operands.check_submission(gpu, self.stream)?;
        let _scope = operands.enter(gpu, Location::caller());
        self.submit_checked().map_err(|error| error.told_of(CALLED.call))
    }

    #[track_caller]
    fn submit_checked(self) -> Result<SolveTicket> {
        if self.a.columns == 0 {
            let (nothing, info) = self.without_unknowns()?;
            return Ok(SolveTicket { ticket: nothing.submit()?, info });
        }
        let (factor, solution, info) = self.prepare(RunsAs::Submission)?;
        let mut ticket = factor.submit()?;
        for call in solution.into_iter().flatten() {
            ticket = call.submit()?;
        }
        Ok(SolveTicket { ticket, info })
    }

    /// Makes the launches three nodes of a graph. Returns the last one.
    ///
    /// # Errors
    /// As for [`SolveCall::record`].
    pub fn record(self, graph: &mut GraphBuilder) -> Result<(NodeId, SolveInfo)> {
        self.operands().check_node(self.loaded.gpu(), graph, self.stream)?;
        self.record_checked(graph).map_err(|error| error.told_of(CALLED.call))
    }

    /// The buffers that were given.
    fn operands(&self) -> Operands<'a> {
        Operands::of(CALLED.call).with("a", self.a.buffer).with("b", self.b.buffer)
    }

    fn record_checked(self, graph: &mut GraphBuilder) -> Result<(NodeId, SolveInfo)> {
        if self.a.columns == 0 {
            let (nothing, info) = self.without_unknowns()?;
            return Ok((nothing.record(graph)?, info));
        }
        let (factor, solution, info) = self.prepare(RunsAs::Node)?;
        let mut node = factor.record(graph)?;
        for call in solution.into_iter().flatten() {
            node = call.record(graph)?;
        }
        Ok((node, info))
    }

    /// The factorisation, and the two launches that solve with it where there are right-hand sides.
    fn prepare(self, runs_as: RunsAs) -> Result<Prepared<'a>> {
        let (a, b) = (self.a, self.b);
        check_tall(CALLED.call, &a, ("there are more unknowns than equations", "use `svd`"))?;
        check_shape(CALLED.call, "b", &b, (a.rows, b.columns))?;
        if b.columns == 0 {
            return self.prepare_factors(runs_as);
        }
        check_counted(CALLED.call, "b", &b)?;
        let b_leading = column_distance(CALLED.call, "b", &b)?;
        // All sizes and buffers, before memory is allocated for them; the substitution uses parts of both.
        let (a_memory, b_memory) = (Argument::memory(a.buffer)?, Argument::memory(b.buffer)?);
        check_given(qr_operation(CALLED.call, &a)?, &CALLED, [Some(a_memory.clone())])?;
        let project = q_operation(CALLED.call, (Side::Left, true), ("a", &a), ("b", &b))?;
        check_given(project, &CALLED, [Some(a_memory), None, Some(b_memory)])?;
        let gpu = self.loaded.gpu();
        let stream = self.stream.unwrap_or_else(|| gpu.main_stream());
        let tau = gpu.allocate_tagged::<T>(stream, a.columns as usize, library_tag())?;
        let solver = |described| SolveCall { stream: self.stream, ..SolveCall::new(self.loaded, described) };
        let (factor, info) = solver(qr(&a, &tau).map(|described| described.called(&CALLED))).with_info()?;
        // Qᵀ B.
        let project = apply_q((Side::Left, true), &a, &tau, &b);
        let (project, _) = solver(project.map(|described| described.called(&CALLED))).with_info()?;
        let trsm = Trsm {
            element: T::TYPE,
            m: a.columns,
            n: b.columns,
            side: Side::Left,
            triangle: Triangle::Upper,
            transposed: false,
            diagonal: Diagonal::Stored,
            a_leading: column_distance(CALLED.call, "a", &a)?,
            b_leading,
        };
        let buffers = [Argument::memory(a.buffer), Argument::memory(b.buffer), Ok(Argument::Scalar(1.0))];
        let substitute =
            Described::new(Operation::from(trsm), buffers).map(|described| described.called(&CALLED));
        let substitute = LibraryCall::new(self.loaded, substitute);
        let substitute = match self.stream {
            Some(stream) => substitute.on(stream),
            None => substitute,
        };
        let factor = factor.prepare(runs_as)?;
        Ok((factor, Some([project.prepare(runs_as)?, substitute.prepare(runs_as)?]), info))
    }

    /// Without unknowns nothing is factored, and all of `B` is the residual.
    fn without_unknowns(self) -> Result<(LibraryCall<'a>, SolveInfo)> {
        let (a, b) = (self.a, self.b);
        check_single(CALLED.call, &a)?;
        check_shape(CALLED.call, "b", &b, (a.rows, b.columns))?;
        b.check_room(CALLED.call, "b")?;
        let operation = Geqrf { element: T::TYPE, m: a.rows, n: 0, leading: a.distance() };
        let described = Described::nothing(self.loaded, operation, &self.operands());
        let described = described.map(|described| described.called(&CALLED));
        SolveCall { stream: self.stream, ..SolveCall::new(self.loaded, described) }.with_info()
    }

    /// Without right-hand sides the matrix is replaced by its factors, and nothing else is written.
    fn prepare_factors(self, runs_as: RunsAs) -> Result<Prepared<'a>> {
        let (a, gpu) = (self.a, self.loaded.gpu());
        check_given(qr_operation(CALLED.call, &a)?, &CALLED, [Some(Argument::memory(a.buffer)?)])?;
        let stream = self.stream.unwrap_or_else(|| gpu.main_stream());
        let tau = gpu.allocate_tagged::<T>(stream, a.columns as usize, library_tag())?;
        let described = qr(&a, &tau).map(|described| described.called(&CALLED));
        let call = SolveCall { stream: self.stream, ..SolveCall::new(self.loaded, described) };
        let (factor, info) = call.with_info()?;
        Ok((factor.prepare(runs_as)?, None, info))
    }
}
