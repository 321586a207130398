//! Shapes and layouts that solvers take.

use crate::Result;
use crate::blas::{Matrix, Real, check_single};
use crate::error::{LibraryError, method_name};

/// Refuses a matrix of another shape, and a batch.
pub(super) fn check_shape<T: Real>(
    operation: &'static str,
    name: &'static str,
    matrix: &Matrix<'_, T>,
    (rows, columns): (u64, u64),
) -> Result<()> {
    check_single(operation, matrix)?;
    if (matrix.rows, matrix.columns) == (rows, columns) {
        return Ok(());
    }
    let what = format!("`{name}` is {}, and must be {rows} x {columns}", matrix.shape_text());
    Err(LibraryError::argument(operation, what, "give matrices that fit each other"))
}

/// Refuses a matrix with more columns than rows, and says why that is wrong and what to do.
pub(super) fn check_tall<T: Real>(
    operation: &'static str,
    a: &Matrix<'_, T>,
    (why, hint): (&str, &'static str),
) -> Result<()> {
    if a.rows >= a.columns {
        return Ok(());
    }
    Err(LibraryError::argument(operation, format!("`a` is {}: {why}", a.shape_text()), hint))
}

/// Refuses a matrix that is not square or has no elements, and rows or columns that overlap. Returns its rows.
pub(super) fn check_square<T: Real>(
    operation: &'static str,
    name: &'static str,
    matrix: &Matrix<'_, T>,
) -> Result<u64> {
    if (matrix.rows, matrix.columns) == (0, 0) {
        check_single(operation, matrix)?;
        check_some(operation, name, matrix)?;
    }
    check_square_or_none(operation, name, matrix)
}

/// As [`check_square`], for factors of a system, which may have no unknowns.
pub(super) fn check_square_or_none<T: Real>(
    operation: &'static str,
    name: &'static str,
    matrix: &Matrix<'_, T>,
) -> Result<u64> {
    check_single(operation, matrix)?;
    if matrix.rows == matrix.columns {
        return matrix.check_leading(operation, name).map(|()| matrix.rows);
    }
    let what = format!("`{name}` is {}, and must be square", matrix.shape_text());
    let hint = match method_name(operation) {
        "solve.eigenvalues" | "solve.eigenvectors" => "use `singular_values` or `svd` for other shapes",
        _ => "use `least_squares` for other shapes",
    };
    Err(LibraryError::argument(operation, what, hint))
}

/// What cuSOLVER counts in 32 bits is less than this.
const COUNTED_LIMIT: u64 = 1 << 31;

/// Refuses a matrix without elements.
pub(super) fn check_some<T: Real>(
    operation: &'static str,
    name: &'static str,
    matrix: &Matrix<'_, T>,
) -> Result<()> {
    if matrix.rows > 0 && matrix.columns > 0 {
        return Ok(());
    }
    let what = format!("`{name}` is {}", matrix.shape_text());
    Err(LibraryError::argument(operation, what, "leave the call out where there are no elements"))
}

/// Refuses a matrix without elements, sizes that cuSOLVER does not count to, and rows or columns that overlap.
pub(super) fn check_counted<T: Real>(
    operation: &'static str,
    name: &'static str,
    matrix: &Matrix<'_, T>,
) -> Result<()> {
    check_some(operation, name, matrix)?;
    let leading = matrix.distance();
    if [matrix.rows, matrix.columns, leading].into_iter().all(|size| size < COUNTED_LIMIT) {
        return matrix.check_leading(operation, name);
    }
    let what = format!("`{name}` is {} with a leading dimension of {leading}", matrix.shape_text());
    Err(LibraryError::argument(operation, what, "use sizes below 2^31, which is what cuSOLVER counts to"))
}

/// The distance between columns of a matrix that must be stored column after column. One column without gaps is stored so in either layout.
pub(super) fn column_distance<T: Real>(
    operation: &'static str,
    name: &'static str,
    matrix: &Matrix<'_, T>,
) -> Result<u64> {
    if matrix.by_columns {
        return Ok(matrix.distance());
    }
    if matrix.columns == 1 && matrix.distance() == 1 {
        return Ok(matrix.rows);
    }
    let what = format!("`{name}` is stored row after row");
    let hint = "store it column after column, as `Matrix::new(&buffer, columns, rows).transposed()`";
    Err(LibraryError::argument(operation, what, hint))
}
