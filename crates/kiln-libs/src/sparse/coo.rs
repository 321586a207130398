//! A sparse matrix of coordinates.

use kiln_runtime::{DeviceRuntime, GpuRef};

use super::host_index_check::Words;
use super::index::SparseIndex;
use super::view::SparseView;
use crate::Result;
use crate::blas::Real;

const UPLOAD: Words = Words::by_rows("sparse.CooMatrix::upload");
const FROM_DENSE: Words = Words::by_rows("sparse.CooMatrix::from_dense");
const FROM_TRIPLETS: Words = Words::by_rows("sparse.CooMatrix::from_triplets");
const FROM_BUFFERS: Words = Words::by_rows("sparse.CooMatrix::from_buffers");
const ALLOCATE: Words = Words::by_rows("sparse.CooMatrix::allocate");

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
    #[track_caller]
    pub fn upload(
        gpu: &DeviceRuntime,
        (rows, columns): (usize, usize),
        row_indices: &[I],
        column_indices: &[I],
        values: &[T],
    ) -> Result<Self> {
        Self::upload_as(UPLOAD, gpu, (rows, columns), (row_indices, column_indices), values)
    }

    fn upload_as(
        words: Words,
        gpu: &DeviceRuntime,
        (rows, columns): (usize, usize),
        (row_indices, column_indices): (&[I], &[I]),
        values: &[T],
    ) -> Result<Self> {
        check_lengths::<I>(words, (rows, columns), row_indices.len(), column_indices.len(), values.len())?;
        words.check_range("row", row_indices, rows)?;
        words.check_range("column", column_indices, columns)?;
        let is_behind = |pair: &[I]| pair[0].to_place() > pair[1].to_place();
        if let Some(at) = row_indices.windows(2).position(is_behind) {
            let what = format!("row {} comes behind row {}", row_indices[at + 1], row_indices[at]);
            return Err(words.refuse(what, "sort the elements by rows, or use `from_triplets`, which does"));
        }
        words.check_device(gpu)?;
        let row_indices = words.upload(gpu, "row_indices", row_indices)?;
        let column_indices = words.upload(gpu, "column_indices", column_indices)?;
        let values = words.upload(gpu, "values", values)?;
        Ok(Self { rows: rows as u64, columns: columns as u64, row_indices, column_indices, values })
    }

    /// Uploads the elements of a dense matrix that are not zero. The matrix is given row after row.
    ///
    /// # Errors
    /// As for [`upload`](Self::upload); another number of elements than rows times columns.
    #[track_caller]
    pub fn from_dense(gpu: &DeviceRuntime, shape: (usize, usize), dense: &[T]) -> Result<Self> {
        FROM_DENSE.check_sizes::<I>(shape)?;
        Self::of_triplets(FROM_DENSE, gpu, shape, &FROM_DENSE.nonzeros(shape, dense)?)
    }

    /// Uploads elements that are given with row and column, in any order. Those of one place stay apart, and are added up by products.
    ///
    /// # Errors
    /// Rows and columns that are out of range, or too many for the type of index.
    #[track_caller]
    pub fn from_triplets(
        gpu: &DeviceRuntime,
        shape: (usize, usize),
        triplets: &[(usize, usize, T)],
    ) -> Result<Self> {
        Self::of_triplets(FROM_TRIPLETS, gpu, shape, triplets)
    }

    #[track_caller]
    fn of_triplets(
        words: Words,
        gpu: &DeviceRuntime,
        shape: (usize, usize),
        triplets: &[(usize, usize, T)],
    ) -> Result<Self> {
        let sorted = words.sorted(shape, triplets)?;
        let rows: Vec<I> = words.indices(sorted.iter().map(|(row, ..)| *row as u64))?;
        let columns: Vec<I> = words.indices(sorted.iter().map(|(_, column, _)| *column as u64))?;
        let values: Vec<T> = sorted.iter().map(|(.., value)| *value).collect();
        Self::upload_as(words, gpu, shape, (&rows, &columns), &values)
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
        let lengths = (row_indices.len(), column_indices.len());
        check_lengths::<I>(FROM_BUFFERS, (rows, columns), lengths.0, lengths.1, values.len())?;
        Ok(Self { rows: rows as u64, columns: columns as u64, row_indices, column_indices, values })
    }

    /// Memory for a matrix with so many elements, to be written by [`convert`](super::Sparse::convert) or by a kernel.
    ///
    /// # Errors
    /// As for [`from_buffers`](Self::from_buffers), and what the runtime answers.
    pub fn allocate(gpu: &DeviceRuntime, shape: (usize, usize), nonzeros: usize) -> Result<Self> {
        check_lengths::<I>(ALLOCATE, shape, nonzeros, nonzeros, nonzeros)?;
        ALLOCATE.check_device(gpu)?;
        let row_indices = ALLOCATE.allocate(gpu, "row_indices", nonzeros)?;
        let column_indices = ALLOCATE.allocate(gpu, "column_indices", nonzeros)?;
        let values = ALLOCATE.allocate(gpu, "values", nonzeros)?;
        Ok(Self { rows: shape.0 as u64, columns: shape.1 as u64, row_indices, column_indices, values })
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
    words: Words,
    shape: (usize, usize),
    rows: usize,
    columns: usize,
    values: usize,
) -> Result<()> {
    if rows != columns {
        let what = format!("{rows} row indices and {columns} column indices");
        return Err(words.refuse(what, "give a row and a column for each value"));
    }
    words.check_values::<I>(shape, columns, values)
}
