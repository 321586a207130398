//! A sparse matrix of any format, or its transpose.

use kiln_operation::SparseFormat;
use kiln_runtime::GpuRef;

use super::coo::CooMatrix;
use super::csc::CscMatrix;
use super::csr::CsrMatrix;
use super::index::SparseIndex;
use crate::Result;
use crate::blas::Real;
use crate::call_arguments::Argument;
use crate::operands::Operands;
use crate::prims::check::Check;

/// A sparse matrix of any format, or its transpose: what operations take. It is made of `&CsrMatrix`, `&CscMatrix` and `&CooMatrix`.
#[derive(Debug)]
pub struct SparseView<'a, T: Real, I: SparseIndex> {
    pub(super) format: SparseFormat,
    /// Rows and columns of what is stored.
    pub(super) stored: (u64, u64),
    /// Whether the matrix is the transpose of what is stored.
    pub(super) is_transposed: bool,
    /// Offsets of rows, or the row of each element.
    pub(super) rows: &'a GpuRef<I>,
    /// The column of each element.
    pub(super) columns: &'a GpuRef<I>,
    pub(super) values: &'a GpuRef<T>,
}

/// How messages name the buffers of a sparse matrix that a call was given.
#[derive(Clone, Copy, Debug)]
pub(super) struct SparseNames {
    offsets: &'static str,
    row_indices: &'static str,
    pub(super) indices: &'static str,
    pub(super) values: &'static str,
}

macro_rules! names {
    ($($constant:ident $name:literal,)*) => {
        impl SparseNames {
            $(pub(super) const $constant: Self = Self {
                offsets: concat!($name, ".offsets"),
                row_indices: concat!($name, ".row_indices"),
                indices: concat!($name, ".indices"),
                values: concat!($name, ".values"),
            };)*
        }
    };
}

impl SparseNames {
    /// Offsets of rows, or the row of each element.
    pub(super) fn rows(self, format: SparseFormat) -> &'static str {
        match format {
            SparseFormat::Csr => self.offsets,
            SparseFormat::Coo => self.row_indices,
        }
    }
}

names! {
    A "a",
    B "b",
    C "c",
    FROM "from",
    TO "to",
}

impl<T: Real, I: SparseIndex> Clone for SparseView<'_, T, I> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Real, I: SparseIndex> Copy for SparseView<'_, T, I> {}

impl<'a, T: Real, I: SparseIndex> From<&'a CsrMatrix<T, I>> for SparseView<'a, T, I> {
    fn from(matrix: &'a CsrMatrix<T, I>) -> Self {
        let CsrMatrix { rows, columns, offsets, indices, values } = matrix;
        Self {
            format: SparseFormat::Csr,
            stored: (*rows, *columns),
            is_transposed: false,
            rows: offsets,
            columns: indices,
            values,
        }
    }
}

impl<'a, T: Real, I: SparseIndex> From<&'a CscMatrix<T, I>> for SparseView<'a, T, I> {
    /// Compressed columns are the compressed rows of the transpose.
    fn from(matrix: &'a CscMatrix<T, I>) -> Self {
        let CscMatrix { rows, columns, offsets, indices, values } = matrix;
        Self {
            format: SparseFormat::Csr,
            stored: (*columns, *rows),
            is_transposed: true,
            rows: offsets,
            columns: indices,
            values,
        }
    }
}

impl<'a, T: Real, I: SparseIndex> From<&'a CooMatrix<T, I>> for SparseView<'a, T, I> {
    fn from(matrix: &'a CooMatrix<T, I>) -> Self {
        let CooMatrix { rows, columns, row_indices, column_indices, values } = matrix;
        Self {
            format: SparseFormat::Coo,
            stored: (*rows, *columns),
            is_transposed: false,
            rows: row_indices,
            columns: column_indices,
            values,
        }
    }
}

impl<'a, T: Real, I: SparseIndex> SparseView<'a, T, I> {
    /// Its buffers, as operands of a call.
    pub(super) fn operands(self, operands: Operands<'a>, names: SparseNames) -> Operands<'a> {
        operands
            .with(names.rows(self.format), self.rows)
            .with(names.indices, self.columns)
            .with(names.values, self.values)
    }
}

impl<T: Real, I: SparseIndex> SparseView<'_, T, I> {
    /// The transpose.
    #[must_use]
    pub fn transposed(self) -> Self {
        Self { is_transposed: !self.is_transposed, ..self }
    }

    /// Rows and columns.
    pub(super) fn shape(&self) -> (u64, u64) {
        let (rows, columns) = self.stored;
        if self.is_transposed { (columns, rows) } else { (rows, columns) }
    }

    /// Its shape in words.
    pub(super) fn shape_text(&self) -> String {
        let (rows, columns) = self.shape();
        format!("{rows} x {columns}")
    }

    pub(super) fn nonzeros(&self) -> u64 {
        self.values.len() as u64
    }

    /// The arguments that it is in a call of a library.
    pub(super) fn arguments(&self) -> [Result<Argument<'static>>; 3] {
        [Argument::memory(self.rows), Argument::memory(self.columns), Argument::memory(self.values)]
    }

    /// Refuses a result whose offsets, indices and values share memory.
    pub(super) fn check_parts(&self, check: Check, names: SparseNames) -> Result<()> {
        let (rows, columns, values) = (names.rows(self.format), names.indices, names.values);
        check.apart((rows, self.rows), (columns, self.columns))?;
        check.apart((rows, self.rows), (values, self.values))?;
        check.apart((columns, self.columns), (values, self.values))
    }

    /// Refuses a buffer that shares memory with the matrix.
    pub(super) fn check_apart<E: kiln_runtime::Element>(
        &self,
        check: Check,
        names: SparseNames,
        (name, buffer): (&str, &GpuRef<E>),
    ) -> Result<()> {
        check.apart((names.rows(self.format), self.rows), (name, buffer))?;
        check.apart((names.indices, self.columns), (name, buffer))?;
        check.apart((names.values, self.values), (name, buffer))
    }
}
