//! Systems of equations with a sparse triangular matrix.
//!
//! cuSPARSE analyses a matrix before it solves, waits for the device meanwhile, and keeps what it found in memory of the host, which neither a graph nor a
//! restarted worker has. The kernel of this crate needs no analysis: each row waits for the rows that it depends on.

use std::panic::Location;

use kiln_mem::StreamKey;
use kiln_operation::{Diagonal, SparseFormat, Triangle};
use kiln_runtime::internal::runtime_of;
use kiln_runtime::{GpuRef, GraphBuilder, NodeId, Stream, Ticket};

use super::conversion::{Conversion, check_index, compress};
use super::device_index_check::{Asserted, ElementOrder, assert_indices};
use super::from_dense::{BLOCK_ROWS, ROW_THREADS, check_dense, steps, used};
use super::handle::Sparse;
use super::index::{SparseIndex, matrix_name, number};
use super::view::{SparseNames, SparseView};
use crate::Result;
use crate::blas::{Matrix, Real};
use crate::error::LibraryError;
use crate::library_tag::library_tag;
use crate::operands::Operands;
use crate::prims::check::{Check, begin_together};
use crate::prims::plan::{Argument, Plan};
use crate::prims::primitive_call::Operation;
use crate::prims::{MAX_SORTED, PrimitiveCall, Primitives};
use crate::scalar_argument::checked;
use crate::solve_failure::SolveFailure;

const NAME: &str = "sparse.triangular_solve";
const CHECK: Check = Check(NAME);

/// A triangular system of equations that is being described.
///
/// Nothing has happened yet: [`submit`](Self::submit) queues it, [`record`](Self::record) makes it nodes of a graph. Both answer what is wrong with
/// it, and have changed nothing then.
#[derive(Debug)]
#[must_use = "nothing is computed until `submit` or `record`"]
pub struct TriangularCall<'a, T: Real, I: SparseIndex> {
    kernels: &'a Primitives,
    system: System<'a, T, I>,
    stream: Option<&'a Stream>,
}

/// A triangular system of equations that was queued.
#[derive(Clone, Debug)]
#[must_use = "whether the diagonal has a zero is known after `wait`"]
pub struct TriangularTicket {
    ticket: Ticket,
    info: TriangularInfo,
}

/// What was found on the diagonal of a triangular matrix: a word in device memory, 0 if there is no zero.
#[derive(Clone, Debug)]
pub struct TriangularInfo {
    word: GpuRef<u64>,
    order: u64,
}

#[derive(Clone, Copy, Debug)]
struct System<'a, T: Real, I: SparseIndex> {
    triangle: Triangle,
    diagonal: Diagonal,
    alpha: f64,
    a: SparseView<'a, T, I>,
    b: Matrix<'a, T>,
    x: Matrix<'a, T>,
}

/// A system with the word that says what was found.
struct SystemWithInfo<'a, T: Real, I: SparseIndex> {
    system: System<'a, T, I>,
    word: GpuRef<u64>,
}

impl Sparse {
    /// Solves `A X = alpha B` with a triangle of a sparse matrix; elements outside of the triangle are not read. With [`Diagonal::Unit`] the diagonal counts
    /// as ones, and is not read either. `x` may be `b`. A vector is a matrix of one column.
    ///
    /// A row without an element on the diagonal, or with a zero there, is told by [`TriangularTicket::wait`]; the solution has infinities or NaN then.
    /// Offsets and indices must be those of a matrix, as for [`convert`](Self::convert). Equal calls give equal bits. Compressed columns, and the transpose of rows, are converted into temporary memory in each call: convert a
    /// matrix once if it is used often.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    /// use kiln_libs::sparse::{CsrMatrix, Diagonal, Matrix, Sparse, Triangle};
    ///
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let a: CsrMatrix<f64> = CsrMatrix::from_dense(&gpu, (2, 2), &[2.0, 0.0, 1.0, 4.0])?;
    /// let b = gpu.upload(&[2.0_f64, 9.0])?;
    /// let vector = Matrix::new(&b, 2, 1);
    /// let sparse = Sparse::new(&gpu);
    /// sparse.triangular_solve(Triangle::Lower, Diagonal::Stored, 1.0, &a, vector, vector).submit()?.wait()?;
    /// assert_eq!(b.download()?, [1.0, 2.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn triangular_solve<'a, T: Real, I: SparseIndex>(
        &'a self,
        triangle: Triangle,
        diagonal: Diagonal,
        alpha: f64,
        a: impl Into<SparseView<'a, T, I>>,
        b: Matrix<'a, T>,
        x: Matrix<'a, T>,
    ) -> TriangularCall<'a, T, I> {
        let system = System { triangle, diagonal, alpha, a: a.into(), b, x };
        TriangularCall { kernels: &self.kernels, system, stream: None }
    }
}

impl<'a, T: Real, I: SparseIndex> TriangularCall<'a, T, I> {
    /// The stream to run on, from which temporary memory comes, too. Otherwise it is the home of the solution.
    pub fn on(self, stream: &'a Stream) -> Self {
        Self { stream: Some(stream), ..self }
    }

    /// Queues the call, after everything that it has to come after.
    ///
    /// # Errors
    /// Shapes, lengths and overlaps that do not fit; what the runtime answers. Nothing is queued then.
    #[track_caller]
    pub fn submit(self) -> Result<TriangularTicket> {
        let stream = self.stream;
        self.system.check()?;
        let operands = self.system.operands();
        operands.check_submission(self.kernels.gpu(), stream)?;
        let _scope = operands.enter(self.kernels.gpu(), Location::caller());
        drop(operands);
        let (call, info) = self.with_info()?;
        let call = match stream {
            Some(stream) => call.on(stream),
            None => call,
        };
        Ok(TriangularTicket { ticket: call.submit()?, info })
    }

    /// Makes the call nodes of a graph, and returns the last one. The word says what the last replay found.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit).
    pub fn record(self, graph: &mut GraphBuilder) -> Result<(NodeId, TriangularInfo)> {
        self.system.check()?;
        self.system.operands().check_node(self.kernels.gpu(), graph, self.stream)?;
        let (call, info) = self.with_info()?;
        Ok((call.record(graph)?, info))
    }

    fn with_info(self) -> Result<(PrimitiveCall<'a, SystemWithInfo<'a, T, I>>, TriangularInfo)> {
        let gpu = self.kernels.gpu();
        let stream = self.stream.unwrap_or_else(|| gpu.main_stream());
        let word =
            gpu.allocate_tagged::<u64>(stream, 1, library_tag()).map_err(|error| error.within(NAME))?;
        let info = TriangularInfo { word: word.clone(), order: self.system.a.stored.0 };
        Ok((PrimitiveCall::new(self.kernels, SystemWithInfo { system: self.system, word }), info))
    }
}

impl TriangularTicket {
    /// Waits until the system is solved.
    ///
    /// # Errors
    /// [`LibraryError::Solve`] with the first row whose diagonal is zero; otherwise the operation failed.
    #[track_caller]
    pub fn wait(&self) -> Result<()> {
        self.ticket.wait().map_err(|error| self.info.told(error))?;
        self.info.check()
    }

    /// The ticket of the launches, which knows nothing of the diagonal.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// What was found on the diagonal.
    pub fn info(&self) -> &TriangularInfo {
        &self.info
    }
}

impl TriangularInfo {
    /// Reads the word, after the operation or the last replay of its graph.
    ///
    /// # Errors
    /// [`LibraryError::Solve`] with the first row whose diagonal is zero; otherwise it could not be read.
    #[track_caller]
    pub fn check(&self) -> Result<()> {
        let word = self.word.download().map_err(|error| self.told(error))?;
        match word.first() {
            None | Some(0) => Ok(()),
            Some(found) => {
                let failure = SolveFailure::ZeroDiagonal { row: self.order.saturating_sub(*found) };
                Err(LibraryError::Solve { operation: NAME, failure })
            }
        }
    }

    /// Why the runtime did not do it, said of the call.
    #[cold]
    fn told(&self, error: kiln_runtime::Error) -> LibraryError {
        LibraryError::from(error).told_of_wait(NAME, runtime_of(&self.word).as_ref())
    }
}

impl<'a, T: Real, I: SparseIndex> System<'a, T, I> {
    /// All buffers that the caller gave.
    fn operands(&self) -> Operands<'a> {
        let Self { a, b, x, .. } = self;
        a.operands(Operands::of(NAME), SparseNames::A).with("b", b.buffer).with("x", x.buffer)
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        checked(NAME, "alpha", T::TYPE, self.alpha)?;
        let (rows, columns) = self.a.shape();
        if rows != columns {
            return CHECK.refuse(format!("`a` is {}", self.a.shape_text()), "give a square matrix");
        }
        let (b, x) = (&self.b, &self.x);
        if (b.rows, b.columns) != (x.rows, x.columns) || b.rows != rows {
            let what = format!(
                "`a` is {}, `b` is {} and `x` is {}",
                self.a.shape_text(),
                b.shape_text(),
                x.shape_text()
            );
            return CHECK.refuse(what, "give `b` and `x` with as many rows as `a` and as many columns each");
        }
        check_dense(CHECK, "b", b)?;
        check_dense(CHECK, "x", x)?;
        check_index::<I>(CHECK, self.a.stored, self.a.nonzeros())?;
        if self.a.is_transposed {
            CHECK.at_most("a", self.a.values.len(), MAX_SORTED)?;
        }
        self.a.check_apart(CHECK, SparseNames::A, ("x", x.buffer))?;
        let is_same = self.is_in_place();
        if !is_same {
            CHECK.apart(("b", &used(b)?), ("x", &used(x)?))?;
        }
        Ok(())
    }

    /// Whether the solution replaces the right-hand side.
    fn is_in_place(&self) -> bool {
        let (b, x) = (&self.b, &self.x);
        begin_together(b.buffer, x.buffer) && (b.by_columns, b.distance()) == (x.by_columns, x.distance())
    }

    /// Adds the launch that writes zeros: with a factor of 0 neither the matrix nor the right-hand sides are read.
    fn zero(&self, plan: &mut Plan<'_>) -> Result<()> {
        let of = T::TYPE.name();
        let name = format!("sparse_zeros_{of}");
        let text = || {
            format!(
                "kernel {name}(inout x: {of}[], count: u64, columns: u64, row_step: u64, column_step: u64) block({ROW_THREADS}) {{
                if global.x < count {{
                    x[global.x / columns * row_step + global.x % columns * column_step] = 0.0{of};
                }}
            }}"
            )
        };
        let (x, count) = (used(&self.x)?, self.x.rows.saturating_mul(self.x.columns));
        let mut arguments = vec![
            Argument::read_write(&x)?,
            Argument::value(x.len() as u64),
            Argument::value(count),
            Argument::value(self.x.columns),
        ];
        arguments.extend(steps(&self.x));
        plan.launch_program((&name, text), count.div_ceil(u64::from(ROW_THREADS)), ROW_THREADS, arguments)
    }

    /// Adds the launch that solves, with a matrix in compressed rows.
    fn solve(&self, plan: &mut Plan<'_>, a: &SparseView<'_, T, I>, word: &GpuRef<u64>) -> Result<()> {
        let (order, sides) = (a.stored.0, self.x.columns);
        let state = plan.scratch::<u32>(order + 1)?;
        plan.zero(&state)?;
        let mut arguments = vec![
            Argument::read(a.rows)?,
            Argument::read(a.columns)?,
            Argument::read(a.values)?,
            Argument::value(order),
            Argument::value(a.nonzeros()),
        ];
        let is_same = self.is_in_place();
        arguments.push(if is_same { Argument::Null } else { Argument::read(&used(&self.b)?)? });
        arguments.extend(steps(&self.b));
        arguments.push(Argument::read_write(&used(&self.x)?)?);
        arguments.extend(steps(&self.x));
        arguments.extend([
            Argument::value(sides),
            number::<T>(self.alpha),
            Argument::value(u32::from(self.triangle == Triangle::Upper)),
            Argument::value(u32::from(self.diagonal == Diagonal::Unit)),
            Argument::read_write(&state)?,
            Argument::read_write(word)?,
        ]);
        let kernel = ("sparse_matrix", matrix_name::<T, I>(), "solve_triangular");
        plan.launch(kernel, order.div_ceil(BLOCK_ROWS), ROW_THREADS, arguments)
    }
}

impl<T: Real, I: SparseIndex> Operation for SystemWithInfo<'_, T, I> {
    #[track_caller]
    fn check(&self) -> Result<()> {
        self.system.check()
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let a = &self.system.a;
        let (order, nonzeros) = (a.stored.0, a.nonzeros());
        plan.zero(&self.word)?;
        if order == 0 || self.system.x.columns == 0 {
            return Ok(());
        }
        if checked(NAME, "alpha", T::TYPE, self.system.alpha)? == 0.0 {
            return self.system.zero(plan);
        }
        assert_indices(plan, Asserted::TriangularA, a, ElementOrder::ByRows)?;
        match (a.is_transposed, a.format) {
            (false, SparseFormat::Csr) => self.system.solve(plan, a, &self.word),
            (false, SparseFormat::Coo) => {
                let offsets = plan.scratch::<I>(order + 1)?;
                compress(plan, a.rows, &offsets)?;
                let rows = SparseView { format: SparseFormat::Csr, rows: &offsets, ..*a };
                self.system.solve(plan, &rows, &self.word)
            }
            (true, _) => {
                let (offsets, columns) = (plan.scratch::<I>(order + 1)?, plan.scratch::<I>(nonzeros)?);
                let values = plan.scratch::<T>(nonzeros)?;
                let rows = SparseView {
                    format: SparseFormat::Csr,
                    stored: a.shape(),
                    is_transposed: false,
                    rows: &offsets,
                    columns: &columns,
                    values: &values,
                };
                Conversion { from: *a, to: rows }.add_steps(plan)?;
                self.system.solve(plan, &rows, &self.word)
            }
        }
    }

    fn operands(&self) -> Operands<'_> {
        self.system.operands()
    }

    fn home(&self) -> StreamKey {
        self.system.x.buffer.home()
    }
}
