//! Cholesky and LU of many small matrices.
//!
//! The libraries take arrays of pointers, which a program would have to keep in device memory, and only one right-hand side for Cholesky. The kernels of this
//! crate take a stride, any layout and any number of right-hand sides, and are the same on every device.

use kiln_mem::StreamKey;
use kiln_operation::Triangle;
use kiln_runtime::GpuRef;

use super::batch::Batch;
use super::batched_call::{BatchOperation, BatchedCall, FailureKind, FoundWords};
use super::handle::Solve;
use crate::Result;
use crate::blas::{Matrix, Real};
use crate::operands::Operands;
use crate::prims::PrimitiveCall;
use crate::prims::check::Check;
use crate::prims::plan::{Argument, Plan};
use crate::prims::primitive_call::Operation;

/// Threads of a block, as the kernels are written.
pub(super) const THREADS: u32 = 128;
/// A matrix of at most so many bytes is factored in shared memory.
pub(super) const SHARED_BYTES: u64 = 40 << 10;

const CHOLESKY: Check = Check("solve.cholesky_batched");
const CHOLESKY_SOLVE: Check = Check("solve.cholesky_solve_batched");
const LU: Check = Check("solve.lu_batched");
const LU_SOLVE: Check = Check("solve.lu_solve_batched");

/// A [`cholesky_batched`](Solve::cholesky_batched).
#[derive(Debug)]
pub struct CholeskyBatched<'a, T: Real> {
    a: Matrix<'a, T>,
    triangle: Triangle,
}

/// A [`cholesky_solve_batched`](Solve::cholesky_solve_batched).
#[derive(Debug)]
pub struct CholeskySolveBatched<'a, T: Real> {
    factor: Matrix<'a, T>,
    triangle: Triangle,
    b: Matrix<'a, T>,
}

/// An [`lu_batched`](Solve::lu_batched).
#[derive(Debug)]
pub struct LuBatched<'a, T: Real> {
    a: Matrix<'a, T>,
    pivots: &'a GpuRef<i64>,
}

/// An [`lu_solve_batched`](Solve::lu_solve_batched).
#[derive(Debug)]
pub struct LuSolveBatched<'a, T: Real> {
    factors: Matrix<'a, T>,
    pivots: &'a GpuRef<i64>,
    b: Matrix<'a, T>,
}

impl Solve {
    /// The Cholesky factor of each matrix of a batch: `A = L Lᵀ` for [`Triangle::Lower`], `A = Uᵀ U` for [`Triangle::Upper`]. It replaces that triangle; the
    /// other one is neither read nor written. A block of threads works on each matrix, in shared
    /// memory if it takes at most 40 KiB.
    ///
    /// [`BatchedTicket::wait`](super::BatchedTicket::wait) says which matrix is not positive definite. The factors of the others are there.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    /// use kiln_libs::solve::{Matrix, Solve, Triangle};
    ///
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let solve = Solve::new(&gpu);
    /// let a = gpu.upload(&[4.0_f64, 2.0, 2.0, 5.0, 9.0, 0.0, 0.0, 16.0])?;
    /// let b = gpu.upload(&[8.0_f64, 12.0, 18.0, 48.0])?;
    /// let (matrices, vectors) = (Matrix::new(&a, 2, 2).batch(2), Matrix::new(&b, 2, 1).batch(2));
    /// solve.cholesky_batched(matrices, Triangle::Lower).submit()?.wait()?;
    /// solve.cholesky_solve_batched(matrices, Triangle::Lower, vectors).submit()?;
    /// assert_eq!(b.download()?, [1.0, 2.0, 2.0, 3.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cholesky_batched<'a, T: Real>(
        &'a self,
        a: Matrix<'a, T>,
        triangle: Triangle,
    ) -> BatchedCall<'a, CholeskyBatched<'a, T>> {
        BatchedCall::new(&self.kernels, CholeskyBatched { a, triangle })
    }

    /// Solves `A X = B` for each matrix of a batch with the factor that [`cholesky_batched`](Self::cholesky_batched) left in the same triangle. `X` replaces `B`.
    /// Factors with a stride of 0 are one factor for all.
    pub fn cholesky_solve_batched<'a, T: Real>(
        &'a self,
        factor: Matrix<'a, T>,
        triangle: Triangle,
        b: Matrix<'a, T>,
    ) -> PrimitiveCall<'a, CholeskySolveBatched<'a, T>> {
        PrimitiveCall::new(&self.kernels, CholeskySolveBatched { factor, triangle, b })
    }

    /// `P A = L U` with partial pivoting for each square matrix of a batch; the factors replace `A`, and the rows that were exchanged, counted from 1, go into
    /// `pivots`, one matrix after the other. [`BatchedTicket::wait`](super::BatchedTicket::wait) says which matrix has NaN or infinities, gets them in its factors, or is singular. A block of threads works on
    /// each matrix, in shared memory if it takes at most 40 KiB.
    pub fn lu_batched<'a, T: Real>(
        &'a self,
        a: Matrix<'a, T>,
        pivots: &'a GpuRef<i64>,
    ) -> BatchedCall<'a, LuBatched<'a, T>> {
        BatchedCall::new(&self.kernels, LuBatched { a, pivots })
    }

    /// Solves `A X = B` for each matrix of a batch with the factors and pivots of [`lu_batched`](Self::lu_batched), given in the layout that `A` had. `X` replaces
    /// `B`. A zero, a NaN or an infinity on the diagonal of the factors gives a solution without meaning, and is told by `wait`. Where a pivot is no row of the matrix, its right-hand sides stay as they are, and
    /// [`BatchedTicket::wait`](super::BatchedTicket::wait) says which pivot it is; the other matrices are solved.
    pub fn lu_solve_batched<'a, T: Real>(
        &'a self,
        factors: Matrix<'a, T>,
        pivots: &'a GpuRef<i64>,
        b: Matrix<'a, T>,
    ) -> BatchedCall<'a, LuSolveBatched<'a, T>> {
        BatchedCall::new(&self.kernels, LuSolveBatched { factors, pivots, b })
    }
}

/// A batch whose lower triangle is the one that counts.
pub(super) fn lower<T: Real>(batch: Batch<T>, triangle: Triangle) -> Batch<T> {
    if triangle == Triangle::Upper { batch.transposed() } else { batch }
}

/// Shared memory for a matrix, or none.
fn shared_bytes<T: Real>(a: &Batch<T>) -> u32 {
    let bytes = a.rows.saturating_mul(a.rows).saturating_mul(T::TYPE.bytes());
    if bytes <= SHARED_BYTES { bytes as u32 } else { 0 }
}

impl<T: Real> CholeskyBatched<'_, T> {
    fn batch(&self) -> Result<Batch<T>> {
        Ok(lower(Batch::written(CHOLESKY, "a", &self.a)?.square()?, self.triangle))
    }
}

impl<T: Real> BatchOperation for CholeskyBatched<'_, T> {
    const NAME: &'static str = CHOLESKY.0;
    const FAILURE: FailureKind = FailureKind::NotPositiveDefinite;

    fn checked_sizes(&self) -> Result<(u64, u64)> {
        Ok(self.batch()?.sizes())
    }

    fn plan(&self, plan: &mut Plan<'_>, found: &FoundWords) -> Result<()> {
        let a = self.batch()?;
        if a.is_empty() {
            return found.nothing(plan);
        }
        let shared = shared_bytes(&a);
        let mut arguments = vec![Argument::read_write(&a.buffer)?, Argument::value(a.rows)];
        arguments.extend(a.steps());
        arguments.extend([Argument::value(u32::from(shared > 0)), Argument::write(&found.words)?]);
        plan.launch_shared(("batch", Batch::<T>::kernels(), "cholesky"), a.count, THREADS, shared, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(CHOLESKY.0).with("a", self.a.buffer)
    }

    fn home(&self) -> StreamKey {
        self.a.buffer.home()
    }
}

impl<T: Real> LuBatched<'_, T> {
    fn batch(&self) -> Result<Batch<T>> {
        Batch::written(LU, "a", &self.a)?.square()?.with_pivots(self.pivots)
    }
}

impl<T: Real> BatchOperation for LuBatched<'_, T> {
    const NAME: &'static str = LU.0;
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
        let mut arguments = vec![Argument::read_write(&a.buffer)?, Argument::value(a.rows)];
        arguments.extend(a.steps());
        arguments.extend([
            Argument::value(u32::from(shared > 0)),
            Argument::write(self.pivots)?,
            Argument::write(&found.words)?,
        ]);
        plan.launch_shared(("batch", Batch::<T>::kernels(), "lu"), a.count, THREADS, shared, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(LU.0).with("a", self.a.buffer).with("pivots", self.pivots)
    }

    fn home(&self) -> StreamKey {
        self.a.buffer.home()
    }
}

impl<T: Real> CholeskySolveBatched<'_, T> {
    fn batches(&self) -> Result<(Batch<T>, Batch<T>)> {
        let factor = Batch::read(CHOLESKY_SOLVE, "factor", &self.factor)?.square()?;
        let b = factor.sides(&self.b)?;
        Ok((lower(factor, self.triangle), b))
    }
}

impl<T: Real> Operation for CholeskySolveBatched<'_, T> {
    fn check(&self) -> Result<()> {
        self.batches().map(drop)
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let (factor, b) = self.batches()?;
        if b.is_empty() {
            return Ok(());
        }
        let mut arguments = vec![Argument::read(&factor.buffer)?, Argument::value(factor.rows)];
        arguments.extend(factor.steps());
        arguments.extend([Argument::read_write(&b.buffer)?, Argument::value(b.columns)]);
        arguments.extend(b.steps());
        plan.launch(("batch", Batch::<T>::kernels(), "cholesky_solve"), b.count, THREADS, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(CHOLESKY_SOLVE.0).with("factor", self.factor.buffer).with("b", self.b.buffer)
    }

    fn home(&self) -> StreamKey {
        self.b.buffer.home()
    }
}

impl<T: Real> LuSolveBatched<'_, T> {
    fn batches(&self) -> Result<(Batch<T>, Batch<T>)> {
        let factors = Batch::read(LU_SOLVE, "factors", &self.factors)?.square()?.with_pivots(self.pivots)?;
        let b = factors.sides(&self.b)?;
        LU_SOLVE.apart(("pivots", self.pivots), b.named())?;
        Ok((factors, b))
    }
}

impl<T: Real> BatchOperation for LuSolveBatched<'_, T> {
    const NAME: &'static str = LU_SOLVE.0;
    const FAILURE: FailureKind = FailureKind::PivotOutOfRange;

    fn checked_sizes(&self) -> Result<(u64, u64)> {
        let (factors, _) = self.batches()?;
        Ok(factors.sizes())
    }

    fn plan(&self, plan: &mut Plan<'_>, found: &FoundWords) -> Result<()> {
        let (factors, b) = self.batches()?;
        if b.is_empty() {
            return found.nothing(plan);
        }
        let mut arguments = vec![Argument::read(&factors.buffer)?, Argument::value(factors.rows)];
        arguments.extend(factors.steps());
        arguments.extend([
            Argument::read(self.pivots)?,
            Argument::read_write(&b.buffer)?,
            Argument::value(b.columns),
        ]);
        arguments.extend(b.steps());
        arguments.extend([Argument::write(&found.words)?, Argument::write(&found.values)?]);
        plan.launch(("batch", Batch::<T>::kernels(), "lu_solve"), b.count, THREADS, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(LU_SOLVE.0)
            .with("factors", self.factors.buffer)
            .with("pivots", self.pivots)
            .with("b", self.b.buffer)
    }

    fn home(&self) -> StreamKey {
        self.b.buffer.home()
    }
}
