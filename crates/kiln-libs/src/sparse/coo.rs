//! A sparse matrix of coordinates.

use kiln_runtime::{DeviceRuntime, GpuRef};

use super::host_index_check::COO;
use super::index::SparseIndex;
use super::view::SparseView;
use crate::Result;
use crate::blas::Real;

/// A sparse matrix in the coordinate format: the elements that are stored, and the row and the column of each. Elements are sorted by rows.
///
/// Clones share the buffers.
#[derive(Clone, Debug)]
pub struct CooMatrix<T: Real, I: SparseIndex = i32> {
    pub(super) rows: u64,
    pub(super) columns: u64,
    pub(super) row_indices: GpuRef<I>,
    pub(super) column_indices: GpuRef<I>,
    pub(super) values: GpuRef<T>,
}

impl<T: Real, I: SparseIndex> CooMatrix<T, I> {
    /// Uploads a matrix, after all of its indices were checked.
    ///
    /// # Errors
    /// Lengths that do not fit, rows and columns that are out of range, rows that do not ascend.
    pub fn upload(
        gpu: &DeviceRuntime,
        (rows, columns): (usize, usize),
        row_indices: &[I],
        column_indices: &[I],
        values: &[T],
    ) -> Result<Self> {
        check_lengths::<I>((rows, columns), row_indices.len(), column_indices.len(), values.len())?;
        COO.check_range("row", row_indices, rows)?;
        COO.check_range("column", column_indices, columns)?;
        let is_behind = |pair: &[I]| pair[0].to_place() > pair[1].to_place();
        if let Some(at) = row_indices.windows(2).position(is_behind) {
            let what = format!("row {} comes behind row {}", row_indices[at + 1], row_indices[at]);
            return Err(COO.refuse(what, "sort the elements by rows, or use `from_triplets`, which does"));
        }
        let (row_indices, column_indices) = (gpu.upload(row_indices)?, gpu.upload(column_indices)?);
        Self::from_buffers((rows, columns), row_indices, column_indices, gpu.upload(values)?)
    }

    /// Uploads the elements of a dense matrix that are not zero. The matrix is given row after row.
    ///
    /// # Errors
    /// As for [`upload`](Self::upload); another number of elements than rows times columns.
    pub fn from_dense(gpu: &DeviceRuntime, shape: (usize, usize), dense: &[T]) -> Result<Self> {
        Self::from_triplets(gpu, shape, &COO.nonzeros(shape, dense)?)
    }

    /// Uploads elements that are given with row and column, in any order. Those of one place stay apart, and are added up by products.
    ///
    /// # Errors
    /// Rows and columns that are out of range, or too many for the type of index.
    pub fn from_triplets(
        gpu: &DeviceRuntime,
        shape: (usize, usize),
        triplets: &[(usize, usize, T)],
    ) -> Result<Self> {
        let sorted = COO.sorted(shape, triplets)?;
        let rows = COO.indices(sorted.iter().map(|(row, ..)| *row as u64))?;
        let columns = COO.indices(sorted.iter().map(|(_, column, _)| *column as u64))?;
        let values: Vec<T> = sorted.iter().map(|(.., value)| *value).collect();
        Self::upload(gpu, shape, &rows, &columns, &values)
    }

    /// A matrix in buffers that are there already. Lengths are checked; what the indices are, and whether they are sorted by rows, is not known to the
    /// host: see [`check_indices`](super::Sparse::check_indices) and [`sort_coordinates`](super::Sparse::sort_coordinates).
    ///
    /// # Errors
    /// Lengths that do not fit.
    pub fn from_buffers(
        (rows, columns): (usize, usize),
        row_indices: GpuRef<I>,
        column_indices: GpuRef<I>,
        values: GpuRef<T>,
    ) -> Result<Self> {
        check_lengths::<I>((rows, columns), row_indices.len(), column_indices.len(), values.len())?;
        Ok(Self { rows: rows as u64, columns: columns as u64, row_indices, column_indices, values })
    }

    /// Memory for a matrix with so many elements, to be written by [`convert`](super::Sparse::convert) or by a kernel.
    ///
    /// # Errors
    /// As for [`from_buffers`](Self::from_buffers), and what the runtime answers.
    pub fn allocate(gpu: &DeviceRuntime, shape: (usize, usize), nonzeros: usize) -> Result<Self> {
        check_lengths::<I>(shape, nonzeros, nonzeros, nonzeros)?;
        let (row_indices, column_indices) = (gpu.allocate(nonzeros)?, gpu.allocate(nonzeros)?);
        Self::from_buffers(shape, row_indices, column_indices, gpu.allocate(nonzeros)?)
    }

    /// The transpose, for an operation with it.
    pub fn transposed(&self) -> SparseView<'_, T, I> {
        SparseView::from(self).transposed()
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows as usize, self.columns as usize)
    }

    /// How many elements are stored.
    pub fn nonzeros(&self) -> usize {
        self.values.len()
    }

    /// The row of each element.
    pub fn row_indices(&self) -> &GpuRef<I> {
        &self.row_indices
    }

    /// The column of each element.
    pub fn column_indices(&self) -> &GpuRef<I> {
        &self.column_indices
    }

    /// The elements. Writing to them changes the matrix.
    pub fn values(&self) -> &GpuRef<T> {
        &self.values
    }
}

fn check_lengths<I: SparseIndex>(
    shape: (usize, usize),
    rows: usize,
    columns: usize,
    values: usize,
) -> Result<()> {
    if rows != columns {
        let what = format!("{rows} row indices and {columns} column indices");
        return Err(COO.refuse(what, "give a row and a column for each value"));
    }
    COO.check_values::<I>(shape, columns, values)
}
