//! Types of offsets and column indices.

use kiln_operation::IndexType;
use kiln_runtime::Element;

mod sealed {
    pub trait Sealed {}
    impl Sealed for i32 {}
    impl Sealed for i64 {}
}

/// What offsets and column indices of a sparse matrix are: `i32` or `i64`.
pub trait SparseIndex: Element + sealed::Sealed + std::fmt::Display {
    /// The type, as operations name it.
    const TYPE: IndexType;

    /// The number, if it is not negative.
    fn to_place(self) -> Option<u64>;

    /// The index of a place, if it is not too large.
    fn from_place(place: u64) -> Option<Self>;
}

impl SparseIndex for i32 {
    const TYPE: IndexType = IndexType::I32;

    fn to_place(self) -> Option<u64> {
        u64::try_from(self).ok()
    }

    fn from_place(place: u64) -> Option<Self> {
        Self::try_from(place).ok()
    }
}

impl SparseIndex for i64 {
    const TYPE: IndexType = IndexType::I64;

    fn to_place(self) -> Option<u64> {
        u64::try_from(self).ok()
    }

    fn from_place(place: u64) -> Option<Self> {
        Self::try_from(place).ok()
    }
}
