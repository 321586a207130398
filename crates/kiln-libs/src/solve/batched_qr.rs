//! QR and least squares of many small matrices.
//!
//! cuBLAS takes arrays of pointers and has nothing that applies the `Q` of a batch. The kernels of this crate take a stride, any layout, any shape and any number of right-hand
//! sides, and are the same on every device.

use kiln_mem::StreamKey;
use kiln_operation::Side;
use kiln_runtime::GpuRef;

use super::batch::Batch;
use super::batched::{SHARED_BYTES, THREADS};
use super::batched_call::{BatchOperation, BatchedCall, FailureKind, FoundWords};
use super::handle::Solve;
use crate::Result;
use crate::blas::{Matrix, Real};
use crate::operands::Operands;
use crate::prims::PrimitiveCall;
use crate::prims::check::Check;
use crate::prims::plan::{Argument, Plan};
use crate::prims::primitive_call::Operation;

/// The family of the kernels.
const FAMILY: &str = "batch_qr";

const QR: Check = Check("solve.qr_batched");
const APPLY_Q: Check = Check("solve.apply_q_batched");
const APPLY_Q_TRANSPOSED: Check = Check("solve.apply_q_transposed_batched");
const LEAST_SQUARES: Check = Check("solve.least_squares_batched");

/// A [`qr_batched`](Solve::qr_batched).
#[derive(Debug)]
pub struct QrBatched<'a, T: Real> {
    a: Matrix<'a, T>,
    tau: &'a GpuRef<T>,
}

/// An [`apply_q_batched`](Solve::apply_q_batched) or an [`apply_q_transposed_batched`](Solve::apply_q_transposed_batched).
#[derive(Debug)]
pub struct ApplyQBatched<'a, T: Real> {
    side: Side,
    is_transposed: bool,
    factored: Matrix<'a, T>,
    tau: &'a GpuRef<T>,
    c: Matrix<'a, T>,
}

/// A [`least_squares_batched`](Solve::least_squares_batched).
#[derive(Debug)]
pub struct LeastSquaresBatched<'a, T: Real> {
    a: Matrix<'a, T>,
    b: Matrix<'a, T>,
}

impl Solve {
    /// `A = Q R` for each matrix of a batch. `R` replaces the upper triangle; `Q` is kept as Householder vectors below it and in `tau`, which has as many elements for
    /// each matrix as its shorter side, one matrix after the other. A block of threads works on each matrix, in shared memory if it takes at most 40 KiB.
    ///
    /// [`BatchedTicket::wait`](super::BatchedTicket::wait) says which matrix has NaN or infinities, or gets them in its factors. A matrix whose columns depend on each other has
    /// factors, with a zero or a small number on the diagonal of `R`.
    pub fn qr_batched<'a, T: Real>(
        &'a self,
        a: Matrix<'a, T>,
        tau: &'a GpuRef<T>,
    ) -> BatchedCall<'a, QrBatched<'a, T>> {
        BatchedCall::new(&self.kernels, QrBatched { a, tau })
    }

    /// `C = Q C` ([`Side::Left`]) or `C = C Q` ([`Side::Right`]) for each matrix of a batch, with the vectors that [`qr_batched`](Self::qr_batched) left in its matrices and in
    /// `tau`. Factors with a stride of 0 are one factor for all; `tau` has its elements once for each `C` then, too.
    pub fn apply_q_batched<'a, T: Real>(
        &'a self,
        side: Side,
        factored: Matrix<'a, T>,
        tau: &'a GpuRef<T>,
        c: Matrix<'a, T>,
    ) -> PrimitiveCall<'a, ApplyQBatched<'a, T>> {
        let operation = ApplyQBatched { side, is_transposed: false, factored, tau, c };
        PrimitiveCall::new(&self.kernels, operation)
    }

    /// `C = Qᵀ C` ([`Side::Left`]) or `C = C Qᵀ` ([`Side::Right`]); see [`apply_q_batched`](Self::apply_q_batched).
    pub fn apply_q_transposed_batched<'a, T: Real>(
        &'a self,
        side: Side,
        factored: Matrix<'a, T>,
        tau: &'a GpuRef<T>,
        c: Matrix<'a, T>,
    ) -> PrimitiveCall<'a, ApplyQBatched<'a, T>> {
        let operation = ApplyQBatched { side, is_transposed: true, factored, tau, c };
        PrimitiveCall::new(&self.kernels, operation)
    }

    /// The `X` with the smallest `‖A X - B‖₂` for each matrix of a batch, which have at least as many rows as columns. `X` replaces the first rows of `B`; the squares of the
    /// others add up to that of the residual. `A` is replaced by its factors, as [`qr_batched`](Self::qr_batched) leaves them.
    ///
    /// [`BatchedTicket::wait`](super::BatchedTicket::wait) says which matrix has NaN or infinities, or a zero on the diagonal of `R`
    /// ([`SolveFailure::Singular`](super::SolveFailure::Singular)). A matrix whose columns depend on each other but for rounding gives very large numbers: use
    /// [`svd_batched`](Self::svd_batched) for those. `B` is not looked at: a NaN or an infinity in a column of it makes that column of `X` NaN, and is no failure; all others are as without it.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    /// use kiln_libs::solve::{Matrix, Solve};
    ///
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let solve = Solve::new(&gpu);
    /// // Two lines, through the same three places: (0, 1), (1, 3), (2, 5), and (0, 2), (1, 2), (2, 2).
    /// let a = gpu.upload(&[1.0_f64, 0.0, 1.0, 1.0, 1.0, 2.0].repeat(2))?;
    /// let b = gpu.upload(&[1.0_f64, 3.0, 5.0, 2.0, 2.0, 2.0])?;
    /// let (matrices, sides) = (Matrix::new(&a, 3, 2).batch(2), Matrix::new(&b, 3, 1).batch(2));
    /// solve.least_squares_batched(matrices, sides).submit()?.wait()?;
    /// let lines = b.download()?;
    /// for (found, wanted) in [(lines[0], 1.0), (lines[1], 2.0), (lines[3], 2.0), (lines[4], 0.0)] {
    ///     assert!((found - wanted).abs() < 1e-14);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn least_squares_batched<'a, T: Real>(
        &'a self,
        a: Matrix<'a, T>,
        b: Matrix<'a, T>,
    ) -> BatchedCall<'a, LeastSquaresBatched<'a, T>> {
        BatchedCall::new(&self.kernels, LeastSquaresBatched { a, b })
    }
}

/// Shared memory for a matrix, or none.
fn shared_bytes<T: Real>(a: &Batch<T>) -> u32 {
    let bytes = a.rows.saturating_mul(a.columns).saturating_mul(T::TYPE.bytes());
    if bytes <= SHARED_BYTES { bytes as u32 } else { 0 }
}

impl<T: Real> QrBatched<'_, T> {
    fn batch(&self) -> Result<Batch<T>> {
        Batch::written(QR, "a", &self.a)?.counted()?.with_list("tau", self.tau)
    }
}

impl<T: Real> BatchOperation for QrBatched<'_, T> {
    const NAME: &'static str = QR.0;
    const FAILURE: FailureKind = FailureKind::Singular;

    fn checked_sizes(&self) -> Result<(u64, u64)> {
        Ok(self.batch()?.sizes())
    }

    fn plan(&self, plan: &mut Plan<'_>, found: &FoundWords) -> Result<()> {
        let a = self.batch()?;
        if a.is_empty() {
            return found.nothing(plan);
        }
        let shared = shared_bytes(&a);
        let mut arguments = vec![Argument::read_write(&a.buffer)?];
        arguments.extend([a.rows, a.columns].map(Argument::value));
        arguments.extend(a.steps());
        arguments.extend([
            Argument::value(u32::from(shared > 0)),
            Argument::write(self.tau)?,
            Argument::write(&found.words)?,
        ]);
        plan.launch_shared((FAMILY, Batch::<T>::kernels(), "qr"), a.count, THREADS, shared, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(QR.0).with("a", self.a.buffer).with("tau", self.tau)
    }

    fn home(&self) -> StreamKey {
        self.a.buffer.home()
    }
}

impl<T: Real> ApplyQBatched<'_, T> {
    fn name(&self) -> Check {
        if self.is_transposed { APPLY_Q_TRANSPOSED } else { APPLY_Q }
    }

    /// The factors, and `C` as a matrix whose columns are multiplied from the left.
    fn batches(&self) -> Result<(Batch<T>, Batch<T>)> {
        let check = self.name();
        let factored =
            Batch::read(check, "factored", &self.factored)?.counted()?.with_list("tau", self.tau)?;
        let c = Batch::written(check, "c", &self.c)?.counted()?;
        let order = if self.side == Side::Left { c.rows } else { c.columns };
        if (order, c.count) != (factored.rows, factored.count) {
            let factors = factored.shapes_text(("a factor", "factors"));
            let what = format!("{factors} and {}", c.shapes_text(("a matrix `c`", "matrices `c`")));
            let hint =
                "give a `c` for each, whose side next to `q` is as long as the factored matrix has rows";
            return Err(check.refusal(what, hint));
        }
        factored.apart(c.named())?;
        check.apart(("tau", self.tau), c.named())?;
        // C Q is the transpose of Qᵀ Cᵀ.
        Ok((factored, if self.side == Side::Left { c } else { c.transposed() }))
    }
}

impl<T: Real> Operation for ApplyQBatched<'_, T> {
    fn check(&self) -> Result<()> {
        self.batches().map(drop)
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let (factored, c) = self.batches()?;
        if factored.is_empty() || c.is_empty() {
            return Ok(());
        }
        let is_transposed = self.is_transposed != (self.side == Side::Right);
        let mut arguments = vec![Argument::read(&factored.buffer)?];
        arguments.extend([factored.rows, factored.shorter_side()].map(Argument::value));
        arguments.extend(factored.steps());
        arguments.extend([
            Argument::read(self.tau)?,
            Argument::value(u32::from(is_transposed)),
            Argument::read_write(&c.buffer)?,
            Argument::value(c.columns),
        ]);
        arguments.extend(c.steps());
        plan.launch((FAMILY, Batch::<T>::kernels(), "apply_q"), c.count, THREADS, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(self.name().0)
            .with("factored", self.factored.buffer)
            .with("tau", self.tau)
            .with("c", self.c.buffer)
    }

    fn home(&self) -> StreamKey {
        self.c.buffer.home()
    }
}

impl<T: Real> LeastSquaresBatched<'_, T> {
    fn batches(&self) -> Result<(Batch<T>, Batch<T>)> {
        let a = Batch::written(LEAST_SQUARES, "a", &self.a)?.counted()?;
        if a.rows < a.columns {
            let what = format!("`a` is {} x {}: there are more unknowns than equations", a.rows, a.columns);
            return Err(LEAST_SQUARES.refusal(what, "use `svd_batched`"));
        }
        let b = a.sides(&self.b)?;
        Ok((a, b))
    }
}

impl<T: Real> BatchOperation for LeastSquaresBatched<'_, T> {
    const NAME: &'static str = LEAST_SQUARES.0;
    const FAILURE: FailureKind = FailureKind::Singular;

    fn checked_sizes(&self) -> Result<(u64, u64)> {
        let (a, _) = self.batches()?;
        Ok((a.count, a.columns))
    }

    fn plan(&self, plan: &mut Plan<'_>, found: &FoundWords) -> Result<()> {
        let (a, b) = self.batches()?;
        if a.is_empty() {
            return found.nothing(plan);
        }
        let shared = shared_bytes(&a);
        let tau = plan.scratch::<T>(a.shorter_side().saturating_mul(a.count))?;
        let mut arguments = vec![Argument::read_write(&a.buffer)?];
        arguments.extend([a.rows, a.columns].map(Argument::value));
        arguments.extend(a.steps());
        arguments.extend([Argument::value(u32::from(shared > 0)), Argument::write(&tau)?]);
        // Without right-hand sides the matrix is replaced by its factors.
        arguments.push(if b.is_empty() { Argument::Null } else { Argument::read_write(&b.buffer)? });
        arguments.push(Argument::value(b.columns));
        arguments.extend(b.steps());
        arguments.push(Argument::write(&found.words)?);
        let kernel = (FAMILY, Batch::<T>::kernels(), "least_squares");
        plan.launch_shared(kernel, a.count, THREADS, shared, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(LEAST_SQUARES.0).with("a", self.a.buffer).with("b", self.b.buffer)
    }

    fn home(&self) -> StreamKey {
        self.b.buffer.home()
    }
}
