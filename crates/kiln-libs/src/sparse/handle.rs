//! `Sparse`: the entry point of operations on sparse matrices.

use kiln_driver::DeviceKind;
use kiln_operation::{DenseLayout, Determinism, Operation, SparseFormat, SparseToDense, Spmm, Spmv};
use kiln_runtime::{DeviceRuntime, GpuRef};

use super::embedded_ptx::SHIPPED;
use super::index::SparseIndex;
use super::view::{SparseNames, SparseView};
use crate::Result;
use crate::blas::{Matrix, Real, check_single, without_terms};
use crate::call_arguments::Argument;
use crate::called::Called;
use crate::described::{Described, check_given};
use crate::error::LibraryError;
use crate::library_call::LibraryCall;
use crate::loaded_operations::LoadedOperations;
use crate::operands::Operands;
use crate::prims::Primitives;
use crate::scalar_argument::{accumulated, checked};

/// Sparse linear algebra on one device. It holds the operations and kernels that were used, and nothing else.
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
    /// Kernels of this crate.
    pub(super) kernels: Primitives,
}

impl Sparse {
    /// Sparse linear algebra on a device. Nothing is loaded yet.
    pub fn new(gpu: &DeviceRuntime) -> Self {
        Self { loaded: LoadedOperations::new(gpu), kernels: Primitives::of(gpu, SHIPPED) }
    }

    /// Whether a simulated device looks at all offsets and indices before each operation that kiln's own kernels do, and fails where they are not those of a matrix. It does unless
    /// this says otherwise; it takes time. A GPU never does.
    #[must_use]
    pub fn index_assertions(mut self, are_made: bool) -> Self {
        self.kernels.has_assertions = are_made && self.kernels.gpu().info().kind == DeviceKind::Simulated;
        self
    }

    /// `y = alpha A x`, or `y = alpha A x + beta y` where a `beta` is given; without one, and with 0, `y` is not read. [`Determinism::RunToRun`] gives equal bits in each
    /// run, and is refused for the transpose of compressed rows or coordinates, and for compressed columns that are not transposed.
    pub fn spmv<'a, T: Real, I: SparseIndex>(
        &'a self,
        order: Determinism,
        alpha: f64,
        a: impl Into<SparseView<'a, T, I>>,
        x: &'a GpuRef<T>,
        beta: Option<f64>,
        y: &'a GpuRef<T>,
    ) -> LibraryCall<'a> {
        LibraryCall::new(&self.loaded, spmv(&self.loaded, (order, alpha, beta), a.into(), x, y))
    }

    /// `C = alpha A B`, or `C = alpha A B + beta C` where a `beta` is given; without one, and with 0, `C` is not read. `B` and `C` are dense, and both stored row after
    /// row or both column after column. [`Determinism::RunToRun`] gives equal bits in each run, and is refused as for [`spmv`](Self::spmv).
    /// For compressed rows it is also refused unless rows or columns of both dense matrices begin at multiples of 16 bytes, which cuSPARSE's algorithm
    /// needs.
    pub fn spmm<'a, T: Real, I: SparseIndex>(
        &'a self,
        order: Determinism,
        alpha: f64,
        a: impl Into<SparseView<'a, T, I>>,
        b: Matrix<'a, T>,
        beta: Option<f64>,
        c: Matrix<'a, T>,
    ) -> LibraryCall<'a> {
        LibraryCall::new(&self.loaded, spmm(&self.loaded, (order, alpha, beta), a.into(), &b, &c))
    }

    /// Writes all elements of a sparse matrix, zeros included, into a dense one. Elements that are stored twice have no defined value.
    pub fn to_dense<'a, T: Real, I: SparseIndex>(
        &'a self,
        a: impl Into<SparseView<'a, T, I>>,
        dense: Matrix<'a, T>,
    ) -> LibraryCall<'a> {
        LibraryCall::new(&self.loaded, to_dense(&self.loaded, a.into(), dense))
    }
}

type Scaled = (Determinism, f64, Option<f64>);

static SPMV: Called = Called { names: PARTS, ..Called::new(Spmv::NAME, "y") };
static SPMM: Called = Called { names: PARTS, ..Called::new(Spmm::NAME, "c") };
static TO_DENSE: Called = Called { names: PARTS, ..Called::new(SparseToDense::NAME, "dense") };

/// The buffers of a sparse factor, as the libraries and as messages name them.
const PARTS: &[(&str, &str)] = &[
    ("offsets", "a.offsets"),
    ("row_indices", "a.row_indices"),
    ("indices", "a.indices"),
    ("column_indices", "a.indices"),
    ("values", "a.values"),
];

/// Refuses operands that do not fit where they are not read, because the factor is 0 or the sparse matrix has no element. Of one without, `operation` is of one element.
fn check_unread<T: Real, I: SparseIndex>(
    operation: impl Into<Operation>,
    called: &'static Called,
    a: &SparseView<'_, T, I>,
    dense: &[&GpuRef<T>],
) -> Result<()> {
    let has_elements = a.nonzeros() > 0;
    let rows = (has_elements || a.format == SparseFormat::Csr).then(|| Argument::borrowed(a.rows));
    let columns = has_elements.then(|| Argument::borrowed(a.columns));
    let values = has_elements.then(|| Argument::borrowed(a.values));
    let dense = dense.iter().map(|buffer| Some(Argument::borrowed(*buffer)));
    check_given(operation, called, [rows, columns, values].into_iter().chain(dense))
}

fn scalars(alpha: f64, beta: Option<f64>) -> impl Iterator<Item = Result<Argument<'static>>> {
    [Some(alpha), beta].into_iter().flatten().map(|value| Ok(Argument::Scalar(value)))
}

fn layout<T: Real>(matrix: &Matrix<'_, T>) -> DenseLayout {
    if matrix.by_columns { DenseLayout::Columns } else { DenseLayout::Rows }
}

fn spmv<T: Real, I: SparseIndex>(
    loaded: &LoadedOperations,
    (order, alpha, beta): Scaled,
    a: SparseView<'_, T, I>,
    x: &GpuRef<T>,
    y: &GpuRef<T>,
) -> Result<Described<'static>> {
    let ((rows, columns), beta) = (a.shape(), accumulated(Spmv::NAME, T::TYPE, beta)?);
    if (x.len() as u64, y.len() as u64) != (columns, rows) {
        let given = format!("x of {} and y of {} elements", x.len(), y.len());
        let what = format!("a matrix of {rows} x {columns} with {given}");
        let hint = "give vectors that are as long as the rows and columns";
        return Err(LibraryError::argument(Spmv::NAME, what, hint));
    }
    let alpha = checked(Spmv::NAME, "alpha", T::TYPE, alpha)?;
    let operation = Spmv {
        format: a.format,
        element: T::TYPE,
        index: I::TYPE,
        rows: a.stored.0,
        columns: a.stored.1,
        nonzeros: a.nonzeros(),
        transposed: a.is_transposed,
        accumulate: beta.is_some(),
        order,
    };
    if a.nonzeros() == 0 || alpha == 0.0 {
        a.operands(Operands::of(Spmv::NAME), SparseNames::A).with("x", x).check(loaded.gpu())?;
        if rows > 0 && columns > 0 {
            let some = Spmv { nonzeros: a.nonzeros().max(1), ..operation };
            check_unread(some, &SPMV, &a, &[x, y])?;
        }
        return without_terms(loaded, &SPMV, Matrix::new(y, y.len(), 1), beta);
    }
    let vectors = [Argument::memory(x), Argument::memory(y)];
    let arguments = a.arguments().into_iter().chain(vectors).chain(scalars(alpha, beta));
    Ok(Described::new(operation, arguments)?.called(&SPMV))
}

fn spmm<T: Real, I: SparseIndex>(
    loaded: &LoadedOperations,
    (order, alpha, beta): Scaled,
    a: SparseView<'_, T, I>,
    b: &Matrix<'_, T>,
    c: &Matrix<'_, T>,
) -> Result<Described<'static>> {
    let beta = accumulated(Spmm::NAME, T::TYPE, beta)?;
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
    let alpha = checked(Spmm::NAME, "alpha", T::TYPE, alpha)?;
    b.check_leading(Spmm::NAME, "b")?;
    c.check_leading(Spmm::NAME, "c")?;
    let operation = Spmm {
        format: a.format,
        element: T::TYPE,
        index: I::TYPE,
        rows: a.stored.0,
        columns: a.stored.1,
        nonzeros: a.nonzeros(),
        n: b.columns,
        transposed: a.is_transposed,
        layout: layout(c),
        b_leading: b.distance(),
        c_leading: c.distance(),
        accumulate: beta.is_some(),
        order,
    };
    if a.nonzeros() == 0 || alpha == 0.0 || b.columns == 0 {
        a.operands(Operands::of(Spmm::NAME), SparseNames::A).with("b", b.buffer).check(loaded.gpu())?;
        if rows > 0 && columns > 0 && b.columns > 0 {
            let some = Spmm { nonzeros: a.nonzeros().max(1), ..operation };
            check_unread(some, &SPMM, &a, &[b.buffer, c.buffer])?;
        }
        return without_terms(loaded, &SPMM, *c, beta);
    }
    let dense = [Argument::memory(b.buffer), Argument::memory(c.buffer)];
    let arguments = a.arguments().into_iter().chain(dense).chain(scalars(alpha, beta));
    Ok(Described::new(operation, arguments)?.called(&SPMM))
}

fn to_dense<T: Real, I: SparseIndex>(
    loaded: &LoadedOperations,
    a: SparseView<'_, T, I>,
    dense: Matrix<'_, T>,
) -> Result<Described<'static>> {
    check_single(SparseToDense::NAME, &dense)?;
    if (dense.rows, dense.columns) != a.shape() {
        let what = format!("a matrix of {} into {}", a.shape_text(), dense.shape_text());
        return Err(LibraryError::argument(
            SparseToDense::NAME,
            what,
            "give a dense matrix of the same shape",
        ));
    }
    dense.check_leading(SparseToDense::NAME, "dense")?;
    let given = dense;
    let dense = if a.is_transposed { dense.transposed() } else { dense };
    let operation = SparseToDense {
        format: a.format,
        element: T::TYPE,
        index: I::TYPE,
        rows: a.stored.0,
        columns: a.stored.1,
        nonzeros: a.nonzeros(),
        layout: layout(&dense),
        leading: dense.distance(),
    };
    if a.nonzeros() == 0 {
        a.operands(Operands::of(SparseToDense::NAME), SparseNames::A).check(loaded.gpu())?;
        if given.rows > 0 && given.columns > 0 {
            check_unread(SparseToDense { nonzeros: 1, ..operation }, &TO_DENSE, &a, &[dense.buffer])?;
        }
        return without_terms(loaded, &TO_DENSE, given, None);
    }
    let arguments = a.arguments().into_iter().chain([Argument::memory(dense.buffer)]);
    Ok(Described::new(operation, arguments)?.called(&TO_DENSE))
}
