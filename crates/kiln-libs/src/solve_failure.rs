//! `SolveFailure`: why a matrix has no such factors, solution or values.

use std::fmt;

/// Why a matrix has no such factors, solution or values. The device finds it, and says it in the info word of the operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum SolveFailure {
    /// A leading minor is not positive, so that there is no Cholesky factor.
    NotPositiveDefinite {
        /// Rows and columns of the first such minor.
        order: u64,
    },
    /// A pivot is exactly zero: there are factors, but no system of equations can be solved with them.
    Singular {
        /// The row of the first such pivot, counted from 0.
        pivot: u64,
    },
    /// The factors have a NaN or an infinity: the matrix has one, or its elements overflow. Nothing that is computed with them has a meaning.
    NotFinite {
        /// Of a matrix with NaN or infinities the smaller of row and column of the first of them by that measure, counted from 0. Where elements overflow, or factors are
        /// given, the row of the first such pivot; the last pivot, where none is.
        pivot: u64,
    },
    /// A pivot that was given is no row of the matrix.
    PivotOutOfRange {
        /// The row whose pivot it is, counted from 0.
        row: u64,
        /// The pivot, which must be a row counted from 1.
        pivot: i64,
        /// Rows of the matrix.
        order: u64,
    },
    /// A triangular matrix has no element on its diagonal, or a zero there, so that a system of equations has no solution, or many.
    ZeroDiagonal {
        /// The first such row, counted from 0.
        row: u64,
    },
    /// The iteration for eigenvalues or singular values did not converge.
    NotConverged,
    /// The library refused an argument.
    Argument {
        /// Its place in the library's function, counted from 1.
        place: u64,
    },
}

impl SolveFailure {
    /// What to do.
    pub(crate) fn hint(self) -> &'static str {
        match self {
            Self::NotPositiveDefinite { .. } => {
                "look for NaN and infinities in the matrix, add a multiple of the identity, or use `lu`"
            }
            Self::Singular { .. } => {
                "use `svd` or `svd_batched`, and leave out singular values that are zero"
            }
            Self::NotFinite { .. } => {
                "look for NaN and infinities in the matrix; if it has none, its factors overflow: scale it"
            }
            Self::PivotOutOfRange { .. } => {
                "give the pivots that `lu` or `lu_batched` wrote with these factors"
            }
            Self::ZeroDiagonal { .. } => {
                "store a number that is not zero there, or use `Diagonal::Unit` where the diagonal is ones"
            }
            Self::NotConverged => "look for NaN and infinities in the matrix",
            Self::Argument { .. } => "report it as an error of kiln, which checks arguments before",
        }
    }
}

impl fmt::Display for SolveFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPositiveDefinite { order } => {
                write!(
                    f,
                    "the matrix is not positive definite: its leading minor of order {order} is not positive"
                )
            }
            Self::Singular { pivot } => {
                write!(f, "the matrix is singular: the pivot in row {pivot}, counted from 0, is zero")
            }
            Self::NotFinite { pivot } => {
                write!(
                    f,
                    "the factors have a NaN or an infinity, from the pivot in row {pivot} on, counted from 0"
                )
            }
            Self::PivotOutOfRange { row, pivot, order } => {
                write!(
                    f,
                    "the pivot of row {row}, counted from 0, is {pivot}, and must be a row from 1 to {order}"
                )
            }
            Self::ZeroDiagonal { row } => {
                write!(f, "the triangular matrix has a zero, or no element, on its diagonal in row {row}")
            }
            Self::NotConverged => f.write_str("the iteration did not converge"),
            Self::Argument { place } => write!(f, "the library refused its argument {place}"),
        }
    }
}
