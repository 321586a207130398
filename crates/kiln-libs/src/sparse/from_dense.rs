//! Sparse matrices made of dense ones on the device.

use kiln_mem::StreamKey;
use kiln_operation::SparseFormat;
use kiln_runtime::GpuRef;

use super::conversion::check_index;
use super::handle::Sparse;
use super::index::{SparseIndex, matrix_name};
use super::view::{SparseNames, SparseView};
use crate::Result;
use crate::blas::{Matrix, Real, check_single};
use crate::operands::Operands;
use crate::prims::PrimitiveCall;
use crate::prims::check::Check;
use crate::prims::plan::{Argument, Plan};
use crate::prims::primitive_call::Operation;
use crate::prims::{Scan, ScanOperator};

/// Threads of a block, and rows that it works on, as the kernels are written.
pub(super) const ROW_THREADS: u32 = 256;
pub(super) const BLOCK_ROWS: u64 = 8;

const COUNT: Check = Check("sparse.count_nonzeros");
const COPY: Check = Check("sparse.copy_nonzeros");

/// A [`count_nonzeros`](Sparse::count_nonzeros).
#[derive(Debug)]
pub struct CountNonzeros<'a, T: Real, I: SparseIndex> {
    dense: Matrix<'a, T>,
    offsets: &'a GpuRef<I>,
}

/// A [`copy_nonzeros`](Sparse::copy_nonzeros).
#[derive(Debug)]
pub struct CopyNonzeros<'a, T: Real, I: SparseIndex> {
    dense: Matrix<'a, T>,
    to: SparseView<'a, T, I>,
}

impl Sparse {
    /// Where the rows of a dense matrix begin if only elements that are not zero are stored: one more number than there are rows, the last of which is
    /// the number of all such elements. Read it, allocate that many indices and values, and call [`copy_nonzeros`](Self::copy_nonzeros). Give the
    /// transpose of the dense matrix for compressed columns.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    /// use kiln_libs::sparse::{CsrMatrix, Matrix, Sparse};
    ///
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let sparse = Sparse::new(&gpu);
    /// let buffer = gpu.upload(&[0.0_f32, 2.0, 0.0, 1.0, 0.0, 3.0])?;
    /// let (dense, offsets) = (Matrix::new(&buffer, 2, 3), gpu.allocate::<i32>(3)?);
    /// sparse.count_nonzeros(dense, &offsets).submit()?;
    /// let nonzeros = offsets.view(2..)?.download()?[0] as usize;
    /// let a = CsrMatrix::from_buffers((2, 3), offsets, gpu.allocate(nonzeros)?, gpu.allocate(nonzeros)?)?;
    /// sparse.copy_nonzeros(dense, &a).submit()?;
    /// assert_eq!(a.values().download()?, [2.0, 1.0, 3.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn count_nonzeros<'a, T: Real, I: SparseIndex>(
        &'a self,
        dense: Matrix<'a, T>,
        offsets: &'a GpuRef<I>,
    ) -> PrimitiveCall<'a, CountNonzeros<'a, T, I>> {
        PrimitiveCall::new(&self.kernels, CountNonzeros { dense, offsets })
    }

    /// Writes the elements of a dense matrix that are not zero into a sparse one, whose offsets [`count_nonzeros`](Self::count_nonzeros) wrote for
    /// the same elements. `to` is [`CsrMatrix`](super::CsrMatrix), or [`CscMatrix`](super::CscMatrix) with the offsets of the transpose.
    pub fn copy_nonzeros<'a, T: Real, I: SparseIndex>(
        &'a self,
        dense: Matrix<'a, T>,
        to: impl Into<SparseView<'a, T, I>>,
    ) -> PrimitiveCall<'a, CopyNonzeros<'a, T, I>> {
        PrimitiveCall::new(&self.kernels, CopyNonzeros { dense, to: to.into() })
    }
}

/// Refuses a batch, and a matrix that its buffer is too short for.
pub(super) fn check_dense<T: Real>(check: Check, name: &str, dense: &Matrix<'_, T>) -> Result<()> {
    check_single(check.0, dense)?;
    let (length, lines) = dense.stored();
    dense.check_leading(check.0, name)?;
    let reach = match (length, lines) {
        (0, _) | (_, 0) => 0,
        _ => u128::from(lines - 1) * u128::from(dense.distance()) + u128::from(length),
    };
    if reach > dense.buffer.len() as u128 {
        let what = format!("`{name}` has {} elements and must have {reach}", dense.buffer.len());
        return check.refuse(what, "use a longer buffer, or smaller sizes");
    }
    Ok(())
}

/// Elements between rows, and between columns.
pub(super) fn steps<T: Real>(dense: &Matrix<'_, T>) -> [Argument; 2] {
    let (row, column) = if dense.by_columns { (1, dense.distance()) } else { (dense.distance(), 1) };
    [Argument::value(row), Argument::value(column)]
}

/// The part of a buffer that a dense matrix lies in.
pub(super) fn used<T: Real>(dense: &Matrix<'_, T>) -> Result<GpuRef<T>> {
    let (length, lines) = dense.stored();
    let reach = if length == 0 || lines == 0 { 0 } else { (lines - 1) * dense.distance() + length };
    Ok(dense.buffer.view(..reach as usize)?)
}

impl<T: Real, I: SparseIndex> Operation for CountNonzeros<'_, T, I> {
    fn check(&self) -> Result<()> {
        check_dense(COUNT, "dense", &self.dense)?;
        let elements = self.dense.rows.saturating_mul(self.dense.columns);
        check_index::<I>(COUNT, (self.dense.rows, self.dense.columns), elements)?;
        COUNT.length("offsets", self.offsets, self.dense.rows as usize + 1)?;
        COUNT.apart(("dense", self.dense.buffer), ("offsets", self.offsets))
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let (rows, columns) = (self.dense.rows, self.dense.columns);
        if rows == 0 || columns == 0 {
            return plan.zero(self.offsets);
        }
        let mut arguments =
            vec![Argument::read(&used(&self.dense)?)?, Argument::value(rows), Argument::value(columns)];
        arguments.extend(steps(&self.dense));
        arguments.push(Argument::write(self.offsets)?);
        let kernel = ("sparse_matrix", matrix_name::<T, I>(), "count_nonzeros");
        plan.launch(kernel, rows.div_ceil(BLOCK_ROWS), ROW_THREADS, arguments)?;
        Scan::new(self.offsets.clone(), ScanOperator::Sum, self.offsets.clone()).plan(plan)
    }

    fn operands(&self) -> Operands<'_> {
        Operands::of(COUNT.0).with("dense", self.dense.buffer).with("offsets", self.offsets)
    }

    fn home(&self) -> StreamKey {
        self.offsets.home()
    }
}

impl<T: Real, I: SparseIndex> Operation for CopyNonzeros<'_, T, I> {
    fn check(&self) -> Result<()> {
        check_dense(COPY, "dense", &self.dense)?;
        if (self.dense.rows, self.dense.columns) != self.to.shape() {
            let what = format!("{} into a matrix of {}", self.dense.shape_text(), self.to.shape_text());
            return COPY.refuse(what, "give two matrices of one shape");
        }
        if self.to.format != SparseFormat::Csr {
            let hint = "write compressed rows, and use `convert`";
            return COPY.refuse("a result in the coordinate format".to_owned(), hint);
        }
        check_index::<I>(COPY, self.to.stored, self.to.nonzeros())?;
        self.to.check_apart(COPY, SparseNames::TO, ("dense", self.dense.buffer))?;
        self.to.check_parts(COPY, SparseNames::TO)
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        // The rows of what is stored.
        let dense = if self.to.is_transposed { self.dense.transposed() } else { self.dense };
        let nonzeros = self.to.nonzeros();
        if nonzeros == 0 {
            return Ok(());
        }
        let mut arguments = vec![
            Argument::read(&used(&dense)?)?,
            Argument::value(dense.rows),
            Argument::value(dense.columns),
        ];
        arguments.extend(steps(&dense));
        arguments.extend([
            Argument::read(self.to.rows)?,
            Argument::value(nonzeros),
            Argument::write(self.to.columns)?,
            Argument::write(self.to.values)?,
        ]);
        let kernel = ("sparse_matrix", matrix_name::<T, I>(), "copy_nonzeros");
        plan.launch(kernel, dense.rows.div_ceil(BLOCK_ROWS), ROW_THREADS, arguments)
    }

    fn operands(&self) -> Operands<'_> {
        self.to.operands(Operands::of(COPY.0).with("dense", self.dense.buffer), SparseNames::TO)
    }

    fn home(&self) -> StreamKey {
        self.to.values.home()
    }
}
