//! A sparse matrix in compressed rows.

use kiln_runtime::{DeviceRuntime, GpuRef};

use super::host_index_check::Words;
use super::index::SparseIndex;
use super::view::SparseView;
use crate::Result;
use crate::blas::Real;

const UPLOAD: Words = Words::by_rows("sparse.CsrMatrix::upload");
const FROM_DENSE: Words = Words::by_rows("sparse.CsrMatrix::from_dense");
const FROM_TRIPLETS: Words = Words::by_rows("sparse.CsrMatrix::from_triplets");
const FROM_BUFFERS: Words = Words::by_rows("sparse.CsrMatrix::from_buffers");
const ALLOCATE: Words = Words::by_rows("sparse.CsrMatrix::allocate");

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

impl<T: Real, I: SparseIndex> CsrMatrix<T, I> {
    /// Uploads a matrix, after all of its indices were checked. Row `i` has the elements `offsets[i]..offsets[i + 1]`.
    ///
    /// # Errors
    /// Lengths that do not fit, offsets that do not ascend from 0 to the number of elements, columns that are out of range.
    #[track_caller]
    pub fn upload(
        gpu: &DeviceRuntime,
        (rows, columns): (usize, usize),
        offsets: &[I],
        indices: &[I],
        values: &[T],
    ) -> Result<Self> {
        UPLOAD.check_compressed::<I>((rows, columns), offsets.len(), indices.len(), values.len())?;
        UPLOAD.check_offsets(offsets, indices.len())?;
        UPLOAD.check_range("column", indices, columns)?;
        UPLOAD.check_device(gpu)?;
        let offsets = UPLOAD.upload(gpu, "offsets", offsets)?;
        let indices = UPLOAD.upload(gpu, "indices", indices)?;
        let values = UPLOAD.upload(gpu, "values", values)?;
        Ok(Self { rows: rows as u64, columns: columns as u64, offsets, indices, values })
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
        (rows, columns): (usize, usize),
        triplets: &[(usize, usize, T)],
    ) -> Result<Self> {
        Self::of_triplets(FROM_TRIPLETS, gpu, (rows, columns), triplets)
    }

    #[track_caller]
    fn of_triplets(
        words: Words,
        gpu: &DeviceRuntime,
        (rows, columns): (usize, usize),
        triplets: &[(usize, usize, T)],
    ) -> Result<Self> {
        words.check_sizes::<I>((rows, columns))?;
        let sorted = words.sorted((rows, columns), triplets)?;
        // The device has less memory than the host can address: what does not fit is refused before the host allocates.
        words.check_device(gpu)?;
        let offsets = words.allocate(gpu, "offsets", rows + 1)?;
        offsets.upload(&words.offsets(rows, sorted.iter().map(|(row, ..)| *row))?)?;
        let indices: Vec<I> = words.indices(sorted.iter().map(|(_, column, _)| *column as u64))?;
        let values: Vec<T> = sorted.iter().map(|(.., value)| *value).collect();
        let indices = words.upload(gpu, "indices", &indices)?;
        let values = words.upload(gpu, "values", &values)?;
        Ok(Self { rows: rows as u64, columns: columns as u64, offsets, indices, values })
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
        FROM_BUFFERS.check_compressed::<I>((rows, columns), offsets.len(), indices.len(), values.len())?;
        Ok(Self { rows: rows as u64, columns: columns as u64, offsets, indices, values })
    }

    /// Memory for a matrix with so many elements, to be written by [`convert`](super::Sparse::convert) or by a kernel.
    ///
    /// # Errors
    /// As for [`from_buffers`](Self::from_buffers), and what the runtime answers.
    pub fn allocate(gpu: &DeviceRuntime, shape: (usize, usize), nonzeros: usize) -> Result<Self> {
        ALLOCATE.check_compressed::<I>(shape, shape.0.saturating_add(1), nonzeros, nonzeros)?;
        ALLOCATE.check_device(gpu)?;
        let offsets = ALLOCATE.allocate(gpu, "offsets", shape.0 + 1)?;
        let indices = ALLOCATE.allocate(gpu, "indices", nonzeros)?;
        let values = ALLOCATE.allocate(gpu, "values", nonzeros)?;
        Ok(Self { rows: shape.0 as u64, columns: shape.1 as u64, offsets, indices, values })
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
