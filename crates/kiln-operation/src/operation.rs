//! One operation of a library.

use std::fmt;
use std::str::FromStr;

use crate::error::OperationError;
use crate::fft::Fft;
use crate::level1::{Axpy, Dot, Nrm2, Scal};
use crate::level2::{Gemv, Ger};
use crate::level3::{Syrk, Trsm};
use crate::matmul::Matmul;
use crate::operand::Operand;

macro_rules! operations {
    ($($(#[$note:meta])* $variant:ident,)*) => {
        /// One operation of a library, without its buffers and scalars.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum Operation {
            $($(#[$note])* $variant($variant),)*
        }

        impl Operation {
            /// The names of all operations.
            pub const NAMES: &'static [&'static str] = &[$($variant::NAME,)*];

            /// Its name, which is also that of the one function of its module.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $variant::NAME,)* }
            }

            /// The arguments of a launch, in order.
            ///
            /// # Errors
            /// Sizes, leading dimensions and types that do not fit each other.
            pub fn checked_operands(&self) -> Result<Vec<Operand>, OperationError> {
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
                    $($variant::NAME => Self::$variant($variant::from_words(words)?),)*
                    _ => {
                        let known = Self::NAMES.join(", ");
                        return Err(OperationError::Name { name: name.to_owned(), known });
                    }
                };
                operation.check()?;
                Ok(operation)
            }
        }

        $(impl From<$variant> for Operation {
            fn from(operation: $variant) -> Self {
                Self::$variant(operation)
            }
        })*
    };
}

operations! {
    /// A matrix product.
    Matmul,
    /// A matrix and a vector.
    Gemv,
    /// An update of a matrix by two vectors.
    Ger,
    /// An inner product.
    Dot,
    /// A length.
    Nrm2,
    /// A sum of vectors.
    Axpy,
    /// A multiple of a vector.
    Scal,
    /// A product of a matrix and its transpose.
    Syrk,
    /// A triangular system of equations.
    Trsm,
    /// A Fourier transform.
    Fft,
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
    pub fn operands(&self) -> Vec<Operand> {
        self.checked_operands().unwrap_or_default()
    }
}
