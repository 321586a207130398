//! Types of offsets and of row and column indices.

use kiln_operation::{ElementType, IndexType};

use crate::blas::Real;
use crate::prims::Numeric;
use crate::prims::plan::Argument;

mod sealed {
    pub trait Sealed {}
    impl Sealed for i32 {}
    impl Sealed for i64 {}
}

/// What offsets, row indices and column indices of a sparse matrix are: `i32` or `i64`.
pub trait SparseIndex: Numeric + sealed::Sealed + std::fmt::Display {
    /// The type, as operations name it.
    const TYPE: IndexType;

    /// What to do where the type does not count to a size.
    const WIDER: &'static str;

    /// What to do where no type counts to a size.
    const FEWER: &'static str;

    /// The number, if it is not negative.
    fn to_place(self) -> Option<u64>;

    /// The index of a place, if it is not too large.
    fn from_place(place: u64) -> Option<Self>;
}

impl SparseIndex for i32 {
    const TYPE: IndexType = IndexType::I32;
    const WIDER: &'static str = "use indices of type i64";
    const FEWER: &'static str =
        "use fewer rows and columns: below 2^31, or below 2^63 with indices of type i64";

    fn to_place(self) -> Option<u64> {
        u64::try_from(self).ok()
    }

    fn from_place(place: u64) -> Option<Self> {
        Self::try_from(place).ok()
    }
}

impl SparseIndex for i64 {
    const TYPE: IndexType = IndexType::I64;
    const WIDER: &'static str = "use sizes below 2^63";
    const FEWER: &'static str = "use fewer rows and columns: below 2^63";

    fn to_place(self) -> Option<u64> {
        u64::try_from(self).ok()
    }

    fn from_place(place: u64) -> Option<Self> {
        Self::try_from(place).ok()
    }
}

/// The type that kernels for elements and indices are named by.
pub(super) fn matrix_name<T: Real, I: SparseIndex>() -> &'static str {
    match (T::TYPE, I::TYPE) {
        (ElementType::F64, IndexType::I32) => "f64_i32",
        (ElementType::F64, IndexType::I64) => "f64_i64",
        (_, IndexType::I32) => "f32_i32",
        (_, IndexType::I64) => "f32_i64",
    }
}

/// A scalar as a kernel for such elements takes it.
pub(super) fn number<T: Real>(value: f64) -> Argument {
    match T::TYPE {
        ElementType::F64 => Argument::value(value),
        _ => Argument::value(value as f32),
    }
}
