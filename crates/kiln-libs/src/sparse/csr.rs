//! A sparse matrix in buffers.

use kiln_runtime::{DeviceRuntime, GpuRef};

use super::index::SparseIndex;
use crate::Result;
use crate::blas::Real;
use crate::error::LibraryError;

/// What messages name, before there is an operation.
const NAME: &str = "sparse.csr";

/// A sparse matrix in the compressed row format: the elements that are stored, row after row, the column of each, and where each row begins.
///
/// Clones share the buffers.
#[derive(Clone, Debug)]
pub struct CsrMatrix<T: Real, I: SparseIndex = i32> {
    pub(super) rows: u64,
    pub(super) columns: u64,
    pub(super) offsets: GpuRef<I>,
    pub(super) indices: GpuRef<I>,
    pub(super) values: GpuRef<T>,
}

/// A sparse matrix, or its transpose.
#[derive(Debug)]
pub struct CsrView<'a, T: Real, I: SparseIndex> {
    pub(super) matrix: &'a CsrMatrix<T, I>,
    pub(super) transposed: bool,
}

impl<T: Real, I: SparseIndex> Clone for CsrView<'_, T, I> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Real, I: SparseIndex> Copy for CsrView<'_, T, I> {}

impl<'a, T: Real, I: SparseIndex> From<&'a CsrMatrix<T, I>> for CsrView<'a, T, I> {
    fn from(matrix: &'a CsrMatrix<T, I>) -> Self {
        Self { matrix, transposed: false }
    }
}

impl<T: Real, I: SparseIndex> CsrView<'_, T, I> {
    /// Rows and columns.
    pub(super) fn shape(&self) -> (u64, u64) {
        let CsrMatrix { rows, columns, .. } = *self.matrix;
        if self.transposed { (columns, rows) } else { (rows, columns) }
    }
}

impl<T: Real, I: SparseIndex> CsrMatrix<T, I> {
    /// Uploads a matrix, after all of its indices were checked. Row `i` has the elements `offsets[i]..offsets[i + 1]`.
    ///
    /// # Errors
    /// Lengths that do not fit, offsets that do not ascend from 0 to the number of elements, columns that are out of range.
    pub fn upload(
        gpu: &DeviceRuntime,
        (rows, columns): (usize, usize),
        offsets: &[I],
        indices: &[I],
        values: &[T],
    ) -> Result<Self> {
        check_indices((rows, columns), offsets, indices)?;
        let (offsets, indices) = (gpu.upload(offsets)?, gpu.upload(indices)?);
        Self::from_buffers((rows, columns), offsets, indices, gpu.upload(values)?)
    }

    /// Uploads the elements of a dense matrix that are not zero. The matrix is given row after row.
    ///
    /// # Errors
    /// As for [`upload`](Self::upload); another number of elements than rows times columns.
    pub fn from_dense(gpu: &DeviceRuntime, (rows, columns): (usize, usize), dense: &[T]) -> Result<Self> {
        if rows.checked_mul(columns) != Some(dense.len()) {
            let what = format!("{} elements for a matrix of {rows} x {columns}", dense.len());
            return Err(LibraryError::argument(NAME, what, "give all elements, row after row"));
        }
        let place = |at: usize| (at / columns, at % columns);
        let stored = dense.iter().enumerate().filter(|(_, value)| **value != T::default());
        let triplets: Vec<(usize, usize, T)> =
            stored.map(|(at, value)| (place(at).0, place(at).1, *value)).collect();
        Self::from_triplets(gpu, (rows, columns), &triplets)
    }

    /// Uploads elements that are given with row and column, in any order. Those of one place stay apart, and are added up by products.
    ///
    /// # Errors
    /// Rows and columns that are out of range, or too many for the type of index.
    pub fn from_triplets(
        gpu: &DeviceRuntime,
        (rows, columns): (usize, usize),
        triplets: &[(usize, usize, T)],
    ) -> Result<Self> {
        if let Some((row, column, _)) =
            triplets.iter().find(|(row, column, _)| *row >= rows || *column >= columns)
        {
            let what = format!("an element at row {row}, column {column} of a matrix of {rows} x {columns}");
            return Err(LibraryError::argument(NAME, what, "count rows and columns from 0"));
        }
        let mut sorted: Vec<&(usize, usize, T)> = triplets.iter().collect();
        sorted.sort_by_key(|(row, column, _)| (*row, *column));
        let mut ends = vec![0_u64; rows + 1];
        triplets.iter().for_each(|(row, ..)| ends[row + 1] += 1);
        (0..rows).for_each(|row| ends[row + 1] += ends[row]);
        let indices = places(sorted.iter().map(|(_, column, _)| *column as u64))?;
        let values: Vec<T> = sorted.iter().map(|(.., value)| *value).collect();
        Self::upload(gpu, (rows, columns), &places(ends)?, &indices, &values)
    }

    /// A matrix in buffers that are there already. Lengths are checked; what the indices are is not known to the host.
    ///
    /// # Errors
    /// Lengths that do not fit.
    pub fn from_buffers(
        (rows, columns): (usize, usize),
        offsets: GpuRef<I>,
        indices: GpuRef<I>,
        values: GpuRef<T>,
    ) -> Result<Self> {
        check_lengths(rows, offsets.len(), indices.len(), values.len())?;
        Ok(Self { rows: rows as u64, columns: columns as u64, offsets, indices, values })
    }

    /// The transpose, for a product with it.
    pub fn transposed(&self) -> CsrView<'_, T, I> {
        CsrView { matrix: self, transposed: true }
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows as usize, self.columns as usize)
    }

    /// How many elements are stored.
    pub fn nonzeros(&self) -> usize {
        self.values.len()
    }

    /// Where each row begins, and where the last one ends.
    pub fn offsets(&self) -> &GpuRef<I> {
        &self.offsets
    }

    /// The column of each element.
    pub fn indices(&self) -> &GpuRef<I> {
        &self.indices
    }

    /// The elements. Writing to them changes the matrix.
    pub fn values(&self) -> &GpuRef<T> {
        &self.values
    }
}

/// Places as indices.
fn places<I: SparseIndex>(places: impl IntoIterator<Item = u64>) -> Result<Vec<I>> {
    let index = |place| {
        I::from_place(place).ok_or_else(|| {
            let what = format!("{place} as an index of type {}", I::TYPE);
            LibraryError::argument(NAME, what, "use indices of type i64")
        })
    };
    places.into_iter().map(index).collect()
}

fn check_lengths(rows: usize, offsets: usize, indices: usize, values: usize) -> Result<()> {
    if rows.checked_add(1) != Some(offsets) {
        let what = format!("{offsets} offsets for {rows} rows");
        return Err(LibraryError::argument(NAME, what, "give one more offset than there are rows"));
    }
    if indices != values {
        let what = format!("{indices} column indices for {values} values");
        return Err(LibraryError::argument(NAME, what, "give a column for each value"));
    }
    Ok(())
}

fn check_indices<I: SparseIndex>(
    (rows, columns): (usize, usize),
    offsets: &[I],
    indices: &[I],
) -> Result<()> {
    check_lengths(rows, offsets.len(), indices.len(), indices.len())?;
    let (mut before, count) = (0, indices.len() as u64);
    for (row, offset) in offsets.iter().enumerate() {
        let (least, most) = (if row == rows { count } else { before }, if row == 0 { 0 } else { count });
        match offset.to_place() {
            Some(place) if (least..=most).contains(&place) => before = place,
            _ => {
                let what = format!("offset {row} is {offset}, where {least} to {most} is possible");
                let hint = "let offsets ascend from 0 to the number of elements";
                return Err(LibraryError::argument(NAME, what, hint));
            }
        }
    }
    let is_outside = |index: &&I| index.to_place().is_none_or(|place| place >= columns as u64);
    match indices.iter().find(is_outside) {
        None => Ok(()),
        Some(index) => {
            let what = format!("column {index} in a matrix of {columns} columns");
            Err(LibraryError::argument(NAME, what, "count columns from 0"))
        }
    }
}
