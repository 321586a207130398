//! A value for each row of a copy or a fill. Most have one row, which needs no memory of the heap.

use crate::boundary::Answer;

/// The values, in the order of the rows.
pub(crate) enum RowValues<T> {
    One(T),
    Several(Vec<T>),
}

impl<T> RowValues<T> {
    /// Those of so many rows; an error if there is one for any of them.
    pub(crate) fn new(rows: u64, mut of: impl FnMut(u64) -> Answer<T>) -> Answer<Self> {
        if rows == 1 {
            return Ok(Self::One(of(0)?));
        }
        Ok(Self::Several((0..rows).map(of).collect::<Answer<_>>()?))
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Several(values) => values,
        }
    }
}
