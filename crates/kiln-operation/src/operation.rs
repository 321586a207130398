//! One operation of a library.

use std::fmt;
use std::str::FromStr;

use crate::attention::Attention;
use crate::convolution::Convolution;
use crate::eigenvalues::{Gesvd, Syevd};
use crate::error::OperationError;
use crate::factor::{Geqrf, Getrf, Getrs, Orgqr, Ormqr, Potrf, Potrs};
use crate::fft::FftOperation;
use crate::level1::{Asum, Axpy, Dot, Iamax, Nrm2, Scal, Swap, VectorCopy};
use crate::level2::{Gemv, Ger};
use crate::level3::{Geam, Symm, Syrk, Trmm, Trsm};
use crate::matmul::Matmul;
use crate::operand::OperationOperand;
use crate::sparse::{SparseToDense, Spmm, Spmv};

macro_rules! operations {
    ($($(#[$note:meta])* $variant:ident($type:ident),)*) => {
        /// One operation of a library, without its buffers and scalars.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum Operation {
            $($(#[$note])* $variant($type),)*
        }

        impl Operation {
            /// The names of all operations.
            pub const NAMES: &'static [&'static str] = &[$($type::NAME,)*];

            /// Its name, which is also that of the one function of its module.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $type::NAME,)* }
            }

            /// The arguments of a launch, in order.
            ///
            /// # Errors
            /// Sizes, leading dimensions and types that do not fit each other.
            pub fn checked_operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
                match self { $(Self::$variant(operation) => operation.operands(),)* }
            }
        }

        impl fmt::Display for Operation {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Self::$variant(operation) => operation.fmt(f),)* }
            }
        }

        impl FromStr for Operation {
            type Err = OperationError;

            /// Parses an operation and checks it. Keys may stand in any order.
            fn from_str(text: &str) -> Result<Self, OperationError> {
                let mut words = text.split_ascii_whitespace();
                let name = words.next().unwrap_or("");
                let operation = match name {
                    $($type::NAME => Self::$variant($type::from_words(words)?),)*
                    _ => {
                        let known = Self::NAMES.join(", ");
                        return Err(OperationError::Name { name: name.to_owned(), known });
                    }
                };
                operation.check()?;
                Ok(operation)
            }
        }

        $(impl From<$type> for Operation {
            fn from(operation: $type) -> Self {
                Self::$variant(operation)
            }
        })*
    };
}

operations! {
    /// A matrix product.
    Matmul(Matmul),
    /// A matrix and a vector.
    Gemv(Gemv),
    /// An update of a matrix by two vectors.
    Ger(Ger),
    /// An inner product.
    Dot(Dot),
    /// A length.
    Nrm2(Nrm2),
    /// A sum of vectors.
    Axpy(Axpy),
    /// A multiple of a vector.
    Scal(Scal),
    /// A copy of a vector.
    VectorCopy(VectorCopy),
    /// An exchange of two vectors.
    Swap(Swap),
    /// A sum of absolute values.
    Asum(Asum),
    /// The place of the largest absolute value.
    Iamax(Iamax),
    /// A product of a matrix and its transpose.
    Syrk(Syrk),
    /// A triangular system of equations.
    Trsm(Trsm),
    /// A sum of two matrices, or a transpose.
    Geam(Geam),
    /// A product with a symmetric matrix.
    Symm(Symm),
    /// A product with a triangular matrix.
    Trmm(Trmm),
    /// A Fourier transform.
    Fft(FftOperation),
    /// A Cholesky factor.
    Potrf(Potrf),
    /// A system of equations with a Cholesky factor.
    Potrs(Potrs),
    /// Triangular factors with pivots.
    Getrf(Getrf),
    /// A system of equations with triangular factors.
    Getrs(Getrs),
    /// An orthogonal and a triangular factor.
    Geqrf(Geqrf),
    /// A product with an orthogonal factor.
    Ormqr(Ormqr),
    /// An orthogonal factor as a matrix.
    Orgqr(Orgqr),
    /// Eigenvalues and eigenvectors of a symmetric matrix.
    Syevd(Syevd),
    /// Singular values and vectors.
    Gesvd(Gesvd),
    /// A sparse matrix and a vector.
    Spmv(Spmv),
    /// A sparse and a dense matrix.
    Spmm(Spmm),
    /// A sparse matrix as a dense one.
    SparseToDense(SparseToDense),
    /// A convolution of images, or one of its gradients.
    Convolution(Convolution),
    /// Scaled dot-product attention.
    Attention(Attention),
}

impl Operation {
    /// Refuses sizes, leading dimensions and types that do not fit each other.
    ///
    /// # Errors
    /// What does not fit.
    pub fn check(&self) -> Result<(), OperationError> {
        self.checked_operands().map(drop)
    }

    /// The arguments of a launch, in order; none for an operation that [`check`](Self::check) refuses.
    pub fn operands(&self) -> Vec<OperationOperand> {
        self.checked_operands().unwrap_or_default()
    }

    /// Whether a library waits for the device while it queues the operation. No graph can hold such an operation.
    pub fn waits_for_device(&self) -> bool {
        matches!(self, Self::Syevd(_) | Self::Gesvd(_))
    }
}
