//! Eigenvalues and singular values.

use kiln_operation::{Gesvd, Syevd, Triangle};
use kiln_runtime::GpuRef;

use super::call::SolveCall;
use super::handle::Solve;
use super::layout::{check_counted, check_shape, check_square, column_distance};
use crate::Result;
use crate::blas::{Matrix, Real, check_single, stored_triangle};
use crate::call_arguments::Argument;
use crate::called::Called;
use crate::described::Described;
use crate::error::LibraryError;

static EIGENVECTORS: Called = Called::new("solve.eigenvectors", "a");
static SINGULAR_VALUES: Called = Called::new("solve.singular_values", "a");
/// Where columns of the matrix lie one after the other.
static SVD: Called = Called { names: &[("v", "vt")], ..Called::new("solve.svd", "a") };
/// Where rows do, so that the transpose is decomposed.
static SVD_OF_ROWS: Called = Called { names: &[("u", "vt"), ("v", "u")], ..Called::new("solve.svd", "a") };

impl Solve {
    /// The eigenvalues of a symmetric matrix, in ascending order. One triangle is read. What `A` holds afterwards is not defined. On a GPU `submit`
    /// returns when it is done.
    pub fn eigenvalues<'a, T: Real>(
        &'a self,
        a: Matrix<'a, T>,
        triangle: Triangle,
        values: &'a GpuRef<T>,
    ) -> SolveCall<'a> {
        SolveCall::new(&self.loaded, eigen(&a, triangle, false, values))
    }

    /// The eigenvalues of a symmetric matrix, in ascending order, and its eigenvectors, which have length 1 and replace `A`. Each lies in one piece:
    /// vector `i` is row `i` of a matrix that is stored row after row, and column `i` of one that is stored column after column.
    pub fn eigenvectors<'a, T: Real>(
        &'a self,
        a: Matrix<'a, T>,
        triangle: Triangle,
        values: &'a GpuRef<T>,
    ) -> SolveCall<'a> {
        SolveCall::new(&self.loaded, eigen(&a, triangle, true, values))
    }

    /// The singular values of a matrix, in descending order. What `A` holds afterwards is not defined. On a GPU `submit` returns when it is done.
    pub fn singular_values<'a, T: Real>(&'a self, a: Matrix<'a, T>, s: &'a GpuRef<T>) -> SolveCall<'a> {
        SolveCall::new(&self.loaded, svd(&a, s, None))
    }

    /// `A = U diag(s) Vᵀ`, with singular values in descending order. With `k` the shorter side of `A`, `s` has `k` elements, `u` is rows x k and stored
    /// column after column, `vt` is k x columns and stored row after row: each vector lies in one piece. What `A` holds afterwards is not
    /// defined.
    pub fn svd<'a, T: Real>(
        &'a self,
        a: Matrix<'a, T>,
        s: &'a GpuRef<T>,
        u: Matrix<'a, T>,
        vt: Matrix<'a, T>,
    ) -> SolveCall<'a> {
        SolveCall::new(&self.loaded, svd(&a, s, Some((&u, &vt))))
    }
}

fn eigen<T: Real>(
    a: &Matrix<'_, T>,
    triangle: Triangle,
    vectors: bool,
    values: &GpuRef<T>,
) -> Result<Described<'static>> {
    let n = check_square(if vectors { EIGENVECTORS.call } else { Syevd::NAME }, "a", a)?;
    let triangle = stored_triangle(a, triangle);
    let operation = Syevd { element: T::TYPE, n, triangle, vectors, leading: a.distance() };
    let described = Described::new(operation, [Argument::memory(a.buffer), Argument::memory(values)])?;
    Ok(if vectors { described.called(&EIGENVECTORS) } else { described })
}

fn svd<T: Real>(
    a: &Matrix<'_, T>,
    s: &GpuRef<T>,
    vectors: Option<(&Matrix<'_, T>, &Matrix<'_, T>)>,
) -> Result<Described<'static>> {
    let called = match (vectors.is_some(), a.by_columns) {
        (false, _) => &SINGULAR_VALUES,
        (true, true) => &SVD,
        (true, false) => &SVD_OF_ROWS,
    };
    check_single(called.call, a)?;
    check_counted(called.call, "a", a)?;
    let (m, n) = a.stored();
    let mut operation = Gesvd {
        element: T::TYPE,
        m,
        n,
        vectors: vectors.is_some(),
        a_leading: a.distance(),
        u_leading: 0,
        v_leading: 0,
    };
    let mut buffers = vec![Argument::memory(a.buffer), Argument::memory(s)];
    if let Some((u, vt)) = vectors {
        let k = a.rows.min(a.columns);
        check_shape(Gesvd::NAME, "u", u, (a.rows, k))?;
        check_shape(Gesvd::NAME, "vt", vt, (k, a.columns))?;
        check_counted(Gesvd::NAME, "u", u)?;
        check_counted(Gesvd::NAME, "vt", vt)?;
        let left = (column_distance(Gesvd::NAME, "u", u)?, u.buffer);
        let right = (row_distance(vt)?, vt.buffer);
        // Where rows of A lie one after the other, its transpose is stored: Aᵀ = V diag(s) Uᵀ.
        let (first, second) = if a.by_columns { (left, right) } else { (right, left) };
        (operation.u_leading, operation.v_leading) = (first.0, second.0);
        buffers.extend([Argument::memory(first.1), Argument::memory(second.1)]);
    }
    Ok(Described::new(operation, buffers)?.called(called))
}

/// The distance between rows of `vt`, which must be stored row after row.
fn row_distance<T: Real>(vt: &Matrix<'_, T>) -> Result<u64> {
    match vt.by_columns {
        false => Ok(vt.distance()),
        true if vt.rows == 1 && vt.distance() == 1 => Ok(vt.columns),
        true => Err(LibraryError::argument(
            Gesvd::NAME,
            "`vt` is stored column after column",
            "store it row after row, as `Matrix::new(&buffer, rows, columns)`",
        )),
    }
}
