//! Eigenvalues and singular values of many small matrices.
//!
//! cuSOLVER waits while it computes them, decomposes batches of at most 32 x 32, and keeps the matrices of a batch side by side. The kernels of this crate are queued, take any
//! size, stride and layout, and are the same on every device.

use kiln_mem::StreamKey;
use kiln_operation::Triangle;
use kiln_runtime::GpuRef;

use super::batch::{Batch, counted_shapes};
use super::batched::{SHARED_BYTES, THREADS, lower};
use super::batched_call::{BatchOperation, BatchedCall, FailureKind, FoundWords};
use super::handle::Solve;
use crate::Result;
use crate::blas::{Matrix, Real};
use crate::operands::Operands;
use crate::prims::check::Check;
use crate::prims::plan::{Argument, Plan};

/// The family of the kernels.
const FAMILY: &str = "batch_spectra";

const EIGENVALUES: Check = Check("solve.eigenvalues_batched");
const EIGENVECTORS: Check = Check("solve.eigenvectors_batched");
const SINGULAR_VALUES: Check = Check("solve.singular_values_batched");
const SVD: Check = Check("solve.svd_batched");

/// An [`eigenvalues_batched`](Solve::eigenvalues_batched).
#[derive(Debug)]
pub struct EigenvaluesBatched<'a, T: Real> {
    a: Matrix<'a, T>,
    triangle: Triangle,
    values: &'a GpuRef<T>,
}

/// An [`eigenvectors_batched`](Solve::eigenvectors_batched).
#[derive(Debug)]
pub struct EigenvectorsBatched<'a, T: Real> {
    a: Matrix<'a, T>,
    triangle: Triangle,
    values: &'a GpuRef<T>,
}

/// A [`singular_values_batched`](Solve::singular_values_batched).
#[derive(Debug)]
pub struct SingularValuesBatched<'a, T: Real> {
    a: Matrix<'a, T>,
    s: &'a GpuRef<T>,
}

/// An [`svd_batched`](Solve::svd_batched).
#[derive(Debug)]
pub struct SvdBatched<'a, T: Real> {
    a: Matrix<'a, T>,
    s: &'a GpuRef<T>,
    u: Matrix<'a, T>,
    vt: Matrix<'a, T>,
}

impl Solve {
    /// The eigenvalues of each symmetric matrix of a batch, in ascending order, one matrix after the other. One triangle of each is read, and nothing of `A` is written. A block
    /// of threads works on each matrix, in shared memory if what it needs takes at most 40 KiB.
    ///
    /// [`BatchedTicket::wait`](super::BatchedTicket::wait) says which matrix has NaN or infinities, so that the iteration does not converge. Its values are NaN; those of the
    /// others are there.
    pub fn eigenvalues_batched<'a, T: Real>(
        &'a self,
        a: Matrix<'a, T>,
        triangle: Triangle,
        values: &'a GpuRef<T>,
    ) -> BatchedCall<'a, EigenvaluesBatched<'a, T>> {
        BatchedCall::new(&self.kernels, EigenvaluesBatched { a, triangle, values })
    }

    /// The same with eigenvectors, which have length 1 and replace `A`. Each lies in one piece: vector `i` is row `i` of a matrix that is stored row after row, and column `i`
    /// of one that is stored column after column.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    /// use kiln_libs::solve::{Matrix, Solve, Triangle};
    ///
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let solve = Solve::new(&gpu);
    /// let a = gpu.upload(&[2.0_f64, 0.0, 1.0, 2.0, 5.0, 0.0, 0.0, 4.0])?;
    /// let values = gpu.allocate::<f64>(4)?;
    /// solve.eigenvectors_batched(Matrix::new(&a, 2, 2).batch(2), Triangle::Lower, &values).submit()?.wait()?;
    /// for (found, wanted) in values.download()?.into_iter().zip([1.0, 3.0, 4.0, 5.0]) {
    ///     assert!((found - wanted).abs() < 1e-14);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn eigenvectors_batched<'a, T: Real>(
        &'a self,
        a: Matrix<'a, T>,
        triangle: Triangle,
        values: &'a GpuRef<T>,
    ) -> BatchedCall<'a, EigenvectorsBatched<'a, T>> {
        BatchedCall::new(&self.kernels, EigenvectorsBatched { a, triangle, values })
    }

    /// The singular values of each matrix of a batch, in descending order: as many as the shorter side has, one matrix after the other. `A` is only read. The matrices may have
    /// any shape. [`BatchedTicket::wait`](super::BatchedTicket::wait) says what [`eigenvalues_batched`](Self::eigenvalues_batched) says.
    pub fn singular_values_batched<'a, T: Real>(
        &'a self,
        a: Matrix<'a, T>,
        s: &'a GpuRef<T>,
    ) -> BatchedCall<'a, SingularValuesBatched<'a, T>> {
        BatchedCall::new(&self.kernels, SingularValuesBatched { a, s })
    }

    /// `A = U diag(s) Vᵀ` for each matrix of a batch, with singular values in descending order. With `k` the shorter side of `A`, `s` has `k` elements for each matrix, the `u`
    /// are rows x k, and the `vt` k x columns, in any layout. `A` is only read.
    pub fn svd_batched<'a, T: Real>(
        &'a self,
        a: Matrix<'a, T>,
        s: &'a GpuRef<T>,
        u: Matrix<'a, T>,
        vt: Matrix<'a, T>,
    ) -> BatchedCall<'a, SvdBatched<'a, T>> {
        BatchedCall::new(&self.kernels, SvdBatched { a, s, u, vt })
    }
}

/// Where a matrix is worked on.
struct WorkMemory {
    /// Shared memory for it, or none.
    shared_bytes: u32,
    /// Global memory, and how much of it each matrix has.
    global: Argument,
    stride: u64,
}

impl WorkMemory {
    /// So many elements for each matrix.
    fn new<T: Real>(plan: &mut Plan<'_>, elements: u128, count: u64) -> Result<Self> {
        if elements * u128::from(T::TYPE.bytes()) <= u128::from(SHARED_BYTES) {
            let shared_bytes = elements as u32 * T::TYPE.bytes() as u32;
            return Ok(Self { shared_bytes, global: Argument::Null, stride: 0 });
        }
        // What fits no number fits no memory.
        let stride = u64::try_from(elements).unwrap_or(u64::MAX);
        let scratch = plan.scratch::<T>(stride.saturating_mul(count))?;
        Ok(Self { shared_bytes: 0, global: Argument::write(&scratch)?, stride })
    }
}

/// Elements that the eigenvalues of a matrix are computed in: the matrix and its rotations, and the vectors.
fn eigen_elements(n: u64, has_vectors: bool) -> u128 {
    let n = u128::from(n);
    n * n + n + 1 + if has_vectors { n * n } else { 0 }
}

impl<T: Real> EigenvaluesBatched<'_, T> {
    fn batch(&self) -> Result<Batch<T>> {
        let a = Batch::read(EIGENVALUES, "a", &self.a)?.square()?.with_list("values", self.values)?;
        Ok(lower(a, self.triangle))
    }
}

impl<T: Real> BatchOperation for EigenvaluesBatched<'_, T> {
    const NAME: &'static str = EIGENVALUES.0;
    const FAILURE: FailureKind = FailureKind::NotConverged;

    fn checked_sizes(&self) -> Result<(u64, u64)> {
        Ok(self.batch()?.sizes())
    }

    fn plan(&self, plan: &mut Plan<'_>, found: &FoundWords) -> Result<()> {
        let a = self.batch()?;
        if a.is_empty() {
            return found.nothing(plan);
        }
        let work = WorkMemory::new::<T>(plan, eigen_elements(a.rows, false), a.count)?;
        let mut arguments = vec![Argument::read(&a.buffer)?, Argument::value(a.rows)];
        arguments.extend(a.steps());
        arguments.extend([work.global, Argument::value(work.stride)]);
        arguments.extend([Argument::write(self.values)?, Argument::write(&found.words)?]);
        let kernel = (FAMILY, Batch::<T>::kernels(), "eigenvalues");
        plan.launch_shared(kernel, a.count, THREADS, work.shared_bytes, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(EIGENVALUES.0).with("a", self.a.buffer).with("values", self.values)
    }

    fn home(&self) -> StreamKey {
        self.values.home()
    }
}

impl<T: Real> EigenvectorsBatched<'_, T> {
    /// The matrices, and how far apart the elements and the beginnings of vectors lie.
    fn batch(&self) -> Result<(Batch<T>, [u64; 2])> {
        let a = Batch::written(EIGENVECTORS, "a", &self.a)?.square()?.with_list("values", self.values)?;
        let steps = [a.row_step.min(a.column_step), a.row_step.max(a.column_step)];
        Ok((lower(a, self.triangle), steps))
    }
}

impl<T: Real> BatchOperation for EigenvectorsBatched<'_, T> {
    const NAME: &'static str = EIGENVECTORS.0;
    const FAILURE: FailureKind = FailureKind::NotConverged;

    fn checked_sizes(&self) -> Result<(u64, u64)> {
        let (a, _) = self.batch()?;
        Ok(a.sizes())
    }

    fn plan(&self, plan: &mut Plan<'_>, found: &FoundWords) -> Result<()> {
        let (a, vector_steps) = self.batch()?;
        if a.is_empty() {
            return found.nothing(plan);
        }
        let work = WorkMemory::new::<T>(plan, eigen_elements(a.rows, true), a.count)?;
        let mut arguments = vec![Argument::read_write(&a.buffer)?, Argument::value(a.rows)];
        arguments.extend(a.steps());
        arguments.extend(vector_steps.map(Argument::value));
        arguments.extend([work.global, Argument::value(work.stride)]);
        arguments.extend([Argument::write(self.values)?, Argument::write(&found.words)?]);
        let kernel = (FAMILY, Batch::<T>::kernels(), "eigenvectors");
        plan.launch_shared(kernel, a.count, THREADS, work.shared_bytes, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(EIGENVECTORS.0).with("a", self.a.buffer).with("values", self.values)
    }

    fn home(&self) -> StreamKey {
        self.a.buffer.home()
    }
}

/// A batch of matrices with at least as many rows as columns: the matrices themselves, or their transposes. Returns also which.
fn tall<T: Real>(a: Batch<T>) -> (Batch<T>, bool) {
    if a.rows < a.columns { (a.transposed(), true) } else { (a, false) }
}

/// Elements that singular values are computed in: the matrix and the lengths of its columns, and the vectors.
fn svd_elements<T: Real>(a: &Batch<T>, has_vectors: bool) -> u128 {
    let (rows, columns) = (u128::from(a.rows), u128::from(a.columns));
    rows * columns + columns + if has_vectors { columns * columns } else { 0 }
}

impl<T: Real> SingularValuesBatched<'_, T> {
    fn batch(&self) -> Result<Batch<T>> {
        Batch::read(SINGULAR_VALUES, "a", &self.a)?.counted()?.with_list("s", self.s)
    }
}

impl<T: Real> BatchOperation for SingularValuesBatched<'_, T> {
    const NAME: &'static str = SINGULAR_VALUES.0;
    const FAILURE: FailureKind = FailureKind::NotConverged;

    fn checked_sizes(&self) -> Result<(u64, u64)> {
        Ok(self.batch()?.sizes())
    }

    fn plan(&self, plan: &mut Plan<'_>, found: &FoundWords) -> Result<()> {
        let (a, _) = tall(self.batch()?);
        if a.is_empty() {
            return found.nothing(plan);
        }
        let work = WorkMemory::new::<T>(plan, svd_elements(&a, false), a.count)?;
        let mut arguments = vec![Argument::read(&a.buffer)?];
        arguments.extend([a.rows, a.columns].map(Argument::value));
        arguments.extend(a.steps());
        arguments.extend([work.global, Argument::value(work.stride)]);
        arguments.extend([Argument::write(self.s)?, Argument::write(&found.words)?]);
        let kernel = (FAMILY, Batch::<T>::kernels(), "singular_values");
        plan.launch_shared(kernel, a.count, THREADS, work.shared_bytes, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(SINGULAR_VALUES.0).with("a", self.a.buffer).with("s", self.s)
    }

    fn home(&self) -> StreamKey {
        self.s.home()
    }
}

impl<T: Real> SvdBatched<'_, T> {
    /// `A`, `U` and `Vᵀ`.
    fn batches(&self) -> Result<[Batch<T>; 3]> {
        let a = Batch::read(SVD, "a", &self.a)?.counted()?.with_list("s", self.s)?;
        let (k, count) = (a.shorter_side(), a.count);
        let vectors = |name, matrix: &Matrix<'_, T>, shape: (u64, u64)| {
            let found = Batch::written(SVD, name, matrix)?;
            if (found.rows, found.columns, found.count) == (shape.0, shape.1, count) {
                return Ok(found);
            }
            let wanted =
                counted_shapes(count, ("a matrix", "matrices"), format!("{} x {}", shape.0, shape.1));
            let what = format!("`{name}` is {}, and must be {wanted}", matrix.sizes_text());
            Err(SVD.refusal(what, "give matrices that fit each other"))
        };
        let (u, vt) = (vectors("u", &self.u, (a.rows, k))?, vectors("vt", &self.vt, (k, a.columns))?);
        a.apart(u.named())?;
        a.apart(vt.named())?;
        u.apart(vt.named())?;
        u.apart(("s", self.s))?;
        vt.apart(("s", self.s))?;
        Ok([a, u, vt])
    }
}

impl<T: Real> BatchOperation for SvdBatched<'_, T> {
    const NAME: &'static str = SVD.0;
    const FAILURE: FailureKind = FailureKind::NotConverged;

    fn checked_sizes(&self) -> Result<(u64, u64)> {
        let [a, ..] = self.batches()?;
        Ok(a.sizes())
    }

    fn plan(&self, plan: &mut Plan<'_>, found: &FoundWords) -> Result<()> {
        let [a, u, vt] = self.batches()?;
        if a.is_empty() {
            return found.nothing(plan);
        }
        let (a, is_transposed) = tall(a);
        // Aᵀ = V diag(s) Uᵀ.
        let (left, right) = if is_transposed { (vt.transposed(), u) } else { (u, vt.transposed()) };
        let work = WorkMemory::new::<T>(plan, svd_elements(&a, true), a.count)?;
        let mut arguments = vec![Argument::read(&a.buffer)?];
        arguments.extend([a.rows, a.columns].map(Argument::value));
        arguments.extend(a.steps());
        arguments.extend([work.global, Argument::value(work.stride), Argument::write(self.s)?]);
        arguments.push(Argument::read_write(&left.buffer)?);
        arguments.extend(left.steps());
        arguments.push(Argument::write(&right.buffer)?);
        arguments.extend(right.steps());
        arguments.push(Argument::write(&found.words)?);
        let kernel = (FAMILY, Batch::<T>::kernels(), "svd");
        plan.launch_shared(kernel, a.count, THREADS, work.shared_bytes, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(SVD.0)
            .with("a", self.a.buffer)
            .with("s", self.s)
            .with("u", self.u.buffer)
            .with("vt", self.vt.buffer)
    }

    fn home(&self) -> StreamKey {
        self.u.buffer.home()
    }
}
