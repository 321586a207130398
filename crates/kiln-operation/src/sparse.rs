//! Operations on sparse matrices in the compressed row format (CSR) and in the coordinate format (COO), for `f32` and `f64`.

use crate::element_type::ElementType;
use crate::error::OperationError;
use crate::extent::{Extent, OperandPlace, check_sizes};
use crate::field::{operation, words};
use crate::level1::check_element;
use crate::matmul::Determinism;
use crate::operand::{OperandEffect, OperationOperand};

words! {
    /// How a sparse matrix lies in memory. The compressed column format (CSC) is CSR of the transpose.
    SparseFormat {
        /// Compressed rows: where each row begins, and the column of each element.
        Csr = "csr",
        /// Coordinates: the row and the column of each element, sorted by rows.
        Coo = "coo",
    }
}

words! {
    /// The type of the offsets and column indices of a sparse matrix.
    IndexType {
        /// Signed integers of 32 bits.
        I32 = "i32",
        /// Signed integers of 64 bits.
        I64 = "i64",
    }
}

words! {
    /// How a dense matrix lies in memory.
    DenseLayout {
        /// Row after row.
        Rows = "rows",
        /// Column after column.
        Columns = "columns",
    }
}

operation! {
    /// `y = alpha op(A) x`, or `y = alpha op(A) x + beta y`, with a sparse `A`.
    Spmv = "sparse.spmv" {
        /// How `A` lies in memory.
        format: SparseFormat,
        /// Of the values and the vectors.
        element: ElementType,
        /// Of offsets and column indices.
        index: IndexType,
        /// Rows of `A` as it is stored.
        rows: u64,
        /// Columns of `A` as it is stored.
        columns: u64,
        /// How many elements of `A` are stored.
        nonzeros: u64,
        /// Whether `op(A)` is the transpose.
        transposed: bool,
        /// Whether `beta y` is added.
        accumulate: bool,
        /// Whether equal calls give equal bits.
        order: Determinism,
    }
}

operation! {
    /// `C = alpha op(A) B`, or `C = alpha op(A) B + beta C`, with a sparse `A` and dense `B` and `C`.
    Spmm = "sparse.spmm" {
        /// How `A` lies in memory.
        format: SparseFormat,
        /// Of all values.
        element: ElementType,
        /// Of offsets and column indices.
        index: IndexType,
        /// Rows of `A` as it is stored.
        rows: u64,
        /// Columns of `A` as it is stored.
        columns: u64,
        /// How many elements of `A` are stored.
        nonzeros: u64,
        /// Columns of `B` and `C`.
        n: u64,
        /// Whether `op(A)` is the transpose.
        transposed: bool,
        /// How `B` and `C` lie in memory.
        layout: DenseLayout,
        /// Distance between rows or columns of `B`.
        b_leading: u64,
        /// Distance between rows or columns of `C`.
        c_leading: u64,
        /// Whether `beta C` is added.
        accumulate: bool,
        /// Whether equal calls give equal bits.
        order: Determinism,
    }
}

operation! {
    /// All elements of a sparse matrix, zeros included, as a dense one.
    SparseToDense = "sparse.to_dense" {
        /// How the sparse matrix lies in memory.
        format: SparseFormat,
        /// Of the values and of the dense matrix.
        element: ElementType,
        /// Of offsets and column indices.
        index: IndexType,
        /// Rows.
        rows: u64,
        /// Columns.
        columns: u64,
        /// How many elements are stored.
        nonzeros: u64,
        /// How the dense matrix lies in memory.
        layout: DenseLayout,
        /// Distance between its rows or columns.
        leading: u64,
    }
}

impl IndexType {
    /// Bytes of an index.
    pub fn bytes(self) -> u64 {
        match self {
            Self::I32 => 4,
            Self::I64 => 8,
        }
    }
}

impl DenseLayout {
    /// The extent of a dense matrix.
    fn extent(
        self,
        operand: OperandPlace,
        (rows, columns): (u64, u64),
        leading: u64,
    ) -> Result<Extent, OperationError> {
        let shape = if self == Self::Columns { (rows, columns) } else { (columns, rows) };
        Extent::matrices(operand, shape, leading, (1, 0))
    }
}

/// A sparse matrix.
struct SparseOperand {
    operation: &'static str,
    format: SparseFormat,
    element: ElementType,
    index: IndexType,
    rows: u64,
    columns: u64,
    nonzeros: u64,
}

impl SparseOperand {
    /// Offsets or row indices, column indices, and values.
    fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        let sizes = [("rows", self.rows), ("columns", self.columns), ("nonzeros", self.nonzeros)];
        check_element(self.operation, self.element)?;
        check_sizes(self.operation, &sizes)?;
        if let (IndexType::I32, Some((name, size))) =
            (self.index, sizes.iter().find(|(_, size)| *size >= 1 << 31))
        {
            let what = format!("`{name}` is {size} with indices of 32 bits");
            return Err(OperationError::shape(self.operation, what, "use indices of 64 bits"));
        }
        let numbers = |name, count: u64| {
            let extent = Extent::dense((self.operation, name), &[count])?;
            let bytes = extent.reach * self.index.bytes();
            let alignment = self.index.bytes();
            Ok(OperationOperand { name, effect: OperandEffect::Reads, bytes, alignment })
        };
        let (rows, columns) = match self.format {
            SparseFormat::Csr => (numbers("offsets", self.rows.saturating_add(1))?, "indices"),
            SparseFormat::Coo => (numbers("row_indices", self.nonzeros)?, "column_indices"),
        };
        Ok(vec![
            rows,
            numbers(columns, self.nonzeros)?,
            Extent::dense((self.operation, "values"), &[self.nonzeros])?.read("values", self.element),
        ])
    }
}

/// Refuses equal bits where a library has no algorithm for them.
fn check_order(operation: &'static str, transposed: bool, order: Determinism) -> Result<(), OperationError> {
    if !transposed || order == Determinism::Any {
        return Ok(());
    }
    let what = "equal bits in each run for the transpose of a `CsrMatrix` or `CooMatrix`, or for a `CscMatrix` (`Determinism::RunToRun`)";
    let hint = "let `sparse.convert` write what is multiplied, such as `a.transposed()`, as a `CsrMatrix` and multiply with that, or use `Determinism::Any`";
    Err(OperationError::shape(operation, what, hint))
}

impl Spmv {
    /// Elements of `x` and of `y`.
    pub fn lengths(&self) -> (u64, u64) {
        if self.transposed { (self.rows, self.columns) } else { (self.columns, self.rows) }
    }

    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        let Self { format, element, index, rows, columns, nonzeros, .. } = *self;
        let matrix = SparseOperand { operation: Self::NAME, format, element, index, rows, columns, nonzeros };
        let mut operands = matrix.operands()?;
        check_order(Self::NAME, self.transposed, self.order)?;
        let (x, y) = self.lengths();
        operands.push(Extent::dense((Self::NAME, "x"), &[x])?.read("x", element));
        operands.push(Extent::dense((Self::NAME, "y"), &[y])?.written("y", element, self.accumulate));
        operands.push(OperationOperand::scalar("alpha"));
        operands.extend(self.accumulate.then(|| OperationOperand::scalar("beta")));
        Ok(operands)
    }
}

impl Spmm {
    /// Rows of `B` and of `C`.
    pub fn dense_rows(&self) -> (u64, u64) {
        if self.transposed { (self.rows, self.columns) } else { (self.columns, self.rows) }
    }

    /// What each row or column of `B` and `C` begins at a multiple of, in bytes, where equal calls with CSR give equal bits: cuSPARSE's algorithm for
    /// that (`CSR_ALG3`) reads up to 16 bytes at once without a look at the address.
    pub const LINE_ALIGNMENT: u64 = 16;

    fn check_lines(&self) -> Result<(), OperationError> {
        for (name, leading) in [("b", self.b_leading), ("c", self.c_leading)] {
            if !leading.saturating_mul(self.element.bytes()).is_multiple_of(Self::LINE_ALIGNMENT) {
                let lines = if self.layout == DenseLayout::Columns { "columns" } else { "rows" };
                let what = format!(
                    "`Determinism::RunToRun` with {lines} of `{name}` that are {leading} elements of {} apart",
                    self.element
                );
                let hint =
                    "let them begin at multiples of 16 bytes with `.leading(…)`, or use `Determinism::Any`";
                return Err(OperationError::shape(Self::NAME, what, hint));
            }
        }
        Ok(())
    }

    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        let Self { format, element, index, rows, columns, nonzeros, n, .. } = *self;
        let matrix = SparseOperand { operation: Self::NAME, format, element, index, rows, columns, nonzeros };
        let mut operands = matrix.operands()?;
        check_sizes(Self::NAME, &[("n", n)])?;
        check_order(Self::NAME, self.transposed, self.order)?;
        let (b, c) = self.dense_rows();
        let b = self.layout.extent((Self::NAME, "b"), (b, n), self.b_leading)?;
        let c = self.layout.extent((Self::NAME, "c"), (c, n), self.c_leading)?;
        let (mut b, mut c) = (b.read("b", element), c.written("c", element, self.accumulate));
        if self.order == Determinism::RunToRun && self.format == SparseFormat::Csr {
            self.check_lines()?;
            (b.alignment, c.alignment) = (Self::LINE_ALIGNMENT, Self::LINE_ALIGNMENT);
        }
        operands.extend([b, c]);
        operands.push(OperationOperand::scalar("alpha"));
        operands.extend(self.accumulate.then(|| OperationOperand::scalar("beta")));
        Ok(operands)
    }
}

impl SparseToDense {
    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        let Self { format, element, index, rows, columns, nonzeros, .. } = *self;
        let matrix = SparseOperand { operation: Self::NAME, format, element, index, rows, columns, nonzeros };
        let mut operands = matrix.operands()?;
        let dense = self.layout.extent((Self::NAME, "dense"), (rows, columns), self.leading)?;
        operands.push(dense.written("dense", element, false));
        Ok(operands)
    }
}
