//! `Sparse`: the entry point of products with sparse matrices.

use kiln_operation::{DenseLayout, Determinism, SparseToDense, Spmm, Spmv};
use kiln_runtime::{DeviceRuntime, GpuRef};

use super::csr::{CsrMatrix, CsrView};
use super::index::SparseIndex;
use crate::Result;
use crate::blas::{Matrix, Real, check_single};
use crate::error::LibraryError;
use crate::library_call::{Argument, Described, LibraryCall};
use crate::loaded_operations::LoadedOperations;

/// Sparse linear algebra on one device. It holds the operations that were used, and nothing else.
///
/// ```
/// use kiln::DeviceRuntime;
/// use kiln_libs::sparse::{CsrMatrix, Determinism, Sparse};
///
/// let gpu = DeviceRuntime::simulated(1)?;
/// let sparse = Sparse::new(&gpu);
/// let a: CsrMatrix<f32> = CsrMatrix::from_dense(&gpu, (2, 3), &[0.0, 2.0, 0.0, 1.0, 0.0, 3.0])?;
/// let (x, y) = (gpu.upload(&[1.0_f32, 10.0, 100.0])?, gpu.allocate::<f32>(2)?);
/// sparse.spmv(Determinism::RunToRun, 1.0, &a, &x, None, &y).submit()?;
/// assert_eq!(y.download()?, [20.0, 301.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Sparse {
    loaded: LoadedOperations,
}

impl Sparse {
    /// Sparse linear algebra on a device. Nothing is loaded yet.
    pub fn new(gpu: &DeviceRuntime) -> Self {
        Self { loaded: LoadedOperations::new(gpu) }
    }

    /// `y = alpha A x`, or `y = alpha A x + beta y` where a `beta` is given; without one `y` is not read. [`Determinism::RunToRun`] gives equal bits in each
    /// run, and is refused for a transpose.
    pub fn spmv<'a, T: Real, I: SparseIndex>(
        &'a self,
        order: Determinism,
        alpha: f64,
        a: impl Into<CsrView<'a, T, I>>,
        x: &'a GpuRef<T>,
        beta: Option<f64>,
        y: &'a GpuRef<T>,
    ) -> LibraryCall<'a> {
        LibraryCall::new(&self.loaded, spmv((order, alpha, beta), a.into(), x, y))
    }

    /// `C = alpha A B`, or `C = alpha A B + beta C` where a `beta` is given; without one `C` is not read. `B` and `C` are dense, and both stored row after
    /// row or both column after column. [`Determinism::RunToRun`] gives equal bits in each run, and is refused for a transpose.
    /// It is also refused unless rows or columns of both dense matrices begin at multiples of 16 bytes, which cuSPARSE's algorithm needs.
    pub fn spmm<'a, T: Real, I: SparseIndex>(
        &'a self,
        order: Determinism,
        alpha: f64,
        a: impl Into<CsrView<'a, T, I>>,
        b: Matrix<'a, T>,
        beta: Option<f64>,
        c: Matrix<'a, T>,
    ) -> LibraryCall<'a> {
        LibraryCall::new(&self.loaded, spmm((order, alpha, beta), a.into(), &b, &c))
    }

    /// Writes all elements of a sparse matrix, zeros included, into a dense one. Elements that are stored twice have no defined value.
    pub fn to_dense<'a, T: Real, I: SparseIndex>(
        &'a self,
        a: &'a CsrMatrix<T, I>,
        dense: Matrix<'a, T>,
    ) -> LibraryCall<'a> {
        LibraryCall::new(&self.loaded, to_dense(a, &dense))
    }
}

type Scaled = (Determinism, f64, Option<f64>);

fn scalars(alpha: f64, beta: Option<f64>) -> impl Iterator<Item = Result<Argument>> {
    [Some(alpha), beta].into_iter().flatten().map(|value| Ok(Argument::Scalar(value)))
}

fn compressed<T: Real, I: SparseIndex>(a: &CsrMatrix<T, I>) -> [Result<Argument>; 3] {
    [Argument::memory(&a.offsets), Argument::memory(&a.indices), Argument::memory(&a.values)]
}

fn layout<T: Real>(matrix: &Matrix<'_, T>) -> DenseLayout {
    if matrix.by_columns { DenseLayout::Columns } else { DenseLayout::Rows }
}

fn spmv<T: Real, I: SparseIndex>(
    (order, alpha, beta): Scaled,
    a: CsrView<'_, T, I>,
    x: &GpuRef<T>,
    y: &GpuRef<T>,
) -> Result<Described> {
    let (rows, columns) = a.shape();
    if (x.len() as u64, y.len() as u64) != (columns, rows) {
        let given = format!("x of {} and y of {} elements", x.len(), y.len());
        let what = format!("a matrix of {rows} x {columns} with {given}");
        let hint = "give vectors that are as long as the rows and columns";
        return Err(LibraryError::argument(Spmv::NAME, what, hint));
    }
    let operation = Spmv {
        element: T::TYPE,
        index: I::TYPE,
        rows: a.matrix.rows,
        columns: a.matrix.columns,
        nonzeros: a.matrix.nonzeros() as u64,
        transposed: a.transposed,
        accumulate: beta.is_some(),
        order,
    };
    let vectors = [Argument::memory(x), Argument::memory(y)];
    Described::new(operation, compressed(a.matrix).into_iter().chain(vectors).chain(scalars(alpha, beta)))
}

fn spmm<T: Real, I: SparseIndex>(
    (order, alpha, beta): Scaled,
    a: CsrView<'_, T, I>,
    b: &Matrix<'_, T>,
    c: &Matrix<'_, T>,
) -> Result<Described> {
    check_single(Spmm::NAME, b)?;
    check_single(Spmm::NAME, c)?;
    let (rows, columns) = a.shape();
    if b.rows != columns || c.rows != rows || b.columns != c.columns {
        let what = format!("{rows} x {columns} times {} into {}", b.shape_text(), c.shape_text());
        return Err(LibraryError::argument(Spmm::NAME, what, "give m x k, k x n and m x n"));
    }
    if b.by_columns != c.by_columns {
        let what = "`b` and `c` are stored in different orders";
        return Err(LibraryError::argument(
            Spmm::NAME,
            what,
            "store both row after row, or both column after column",
        ));
    }
    let operation = Spmm {
        element: T::TYPE,
        index: I::TYPE,
        rows: a.matrix.rows,
        columns: a.matrix.columns,
        nonzeros: a.matrix.nonzeros() as u64,
        n: b.columns,
        transposed: a.transposed,
        layout: layout(c),
        b_leading: b.distance(),
        c_leading: c.distance(),
        accumulate: beta.is_some(),
        order,
    };
    let dense = [Argument::memory(b.buffer), Argument::memory(c.buffer)];
    Described::new(operation, compressed(a.matrix).into_iter().chain(dense).chain(scalars(alpha, beta)))
}

fn to_dense<T: Real, I: SparseIndex>(a: &CsrMatrix<T, I>, dense: &Matrix<'_, T>) -> Result<Described> {
    check_single(SparseToDense::NAME, dense)?;
    if (dense.rows, dense.columns) != (a.rows, a.columns) {
        let what = format!("a matrix of {} x {} into {}", a.rows, a.columns, dense.shape_text());
        return Err(LibraryError::argument(
            SparseToDense::NAME,
            what,
            "give a dense matrix of the same shape",
        ));
    }
    let operation = SparseToDense {
        element: T::TYPE,
        index: I::TYPE,
        rows: a.rows,
        columns: a.columns,
        nonzeros: a.nonzeros() as u64,
        layout: layout(dense),
        leading: dense.distance(),
    };
    Described::new(operation, compressed(a).into_iter().chain([Argument::memory(dense.buffer)]))
}
