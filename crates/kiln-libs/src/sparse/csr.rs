//! A sparse matrix in compressed rows.

use kiln_runtime::{DeviceRuntime, GpuRef};

use super::host_index_check::CSR;
use super::index::SparseIndex;
use super::view::SparseView;
use crate::Result;
use crate::blas::Real;

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
    pub fn upload(
        gpu: &DeviceRuntime,
        (rows, columns): (usize, usize),
        offsets: &[I],
        indices: &[I],
        values: &[T],
    ) -> Result<Self> {
        CSR.check_compressed::<I>((rows, columns), offsets.len(), indices.len(), values.len())?;
        CSR.check_offsets(offsets, indices.len())?;
        CSR.check_range("column", indices, columns)?;
        let (offsets, indices) = (gpu.upload(offsets)?, gpu.upload(indices)?);
        Self::from_buffers((rows, columns), offsets, indices, gpu.upload(values)?)
    }

    /// Uploads the elements of a dense matrix that are not zero. The matrix is given row after row.
    ///
    /// # Errors
    /// As for [`upload`](Self::upload); another number of elements than rows times columns.
    pub fn from_dense(gpu: &DeviceRuntime, shape: (usize, usize), dense: &[T]) -> Result<Self> {
        Self::from_triplets(gpu, shape, &CSR.nonzeros(shape, dense)?)
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
        CSR.check_sizes::<I>((rows, columns))?;
        let sorted = CSR.sorted((rows, columns), triplets)?;
        // The device has less memory than the host can address: what does not fit is refused before the host allocates.
        let device_offsets = gpu.allocate(rows + 1)?;
        device_offsets.upload(&CSR.offsets(rows, sorted.iter().map(|(row, ..)| *row))?)?;
        let indices: Vec<I> = CSR.indices(sorted.iter().map(|(_, column, _)| *column as u64))?;
        let values: Vec<T> = sorted.iter().map(|(.., value)| *value).collect();
        Self::from_buffers((rows, columns), device_offsets, gpu.upload(&indices)?, gpu.upload(&values)?)
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
        CSR.check_compressed::<I>((rows, columns), offsets.len(), indices.len(), values.len())?;
        Ok(Self { rows: rows as u64, columns: columns as u64, offsets, indices, values })
    }

    /// Memory for a matrix with so many elements, to be written by [`convert`](super::Sparse::convert) or by a kernel.
    ///
    /// # Errors
    /// As for [`from_buffers`](Self::from_buffers), and what the runtime answers.
    pub fn allocate(gpu: &DeviceRuntime, shape: (usize, usize), nonzeros: usize) -> Result<Self> {
        CSR.check_compressed::<I>(shape, shape.0.saturating_add(1), nonzeros, nonzeros)?;
        let (offsets, indices) = (gpu.allocate(shape.0 + 1)?, gpu.allocate(nonzeros)?);
        Self::from_buffers(shape, offsets, indices, gpu.allocate(nonzeros)?)
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
