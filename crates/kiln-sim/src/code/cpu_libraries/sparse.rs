//! Operations on sparse matrices: only elements that are stored are read, and an index that is no column is found.

use kiln_driver::Code;
use kiln_operation::{DenseLayout, ElementType, IndexType, SparseFormat, SparseToDense, Spmm, Spmv};

use super::arguments::{OperationArguments, Run};
use crate::code::kernel::KernelFault;

type Work = Result<u64, KernelFault>;

/// A sparse matrix in the first three operands.
struct SparseOperand {
    name: &'static str,
    format: SparseFormat,
    element: ElementType,
    index: IndexType,
    rows: u64,
    columns: u64,
    nonzeros: u64,
}

impl SparseOperand {
    /// The elements that are stored: row, column and value, row after row.
    fn elements(&self, arguments: &OperationArguments<'_>) -> Result<Vec<(usize, usize, f64)>, KernelFault> {
        match self.format {
            SparseFormat::Csr => self.compressed_elements(arguments),
            SparseFormat::Coo => self.coordinate_elements(arguments),
        }
    }

    fn compressed_elements(
        &self,
        arguments: &OperationArguments<'_>,
    ) -> Result<Vec<(usize, usize, f64)>, KernelFault> {
        let bytes = self.index.bytes();
        let offsets = arguments.read_integers(0, bytes, 0, self.rows + 1)?;
        let mut elements = Vec::with_capacity(self.nonzeros as usize);
        for (row, ends) in offsets.windows(2).enumerate() {
            let (first, last) = (ends[0] as u64, ends[1] as u64);
            // A negative offset is a very large one.
            if first > last || last > self.nonzeros {
                let what =
                    format!("row {row} goes from {} to {} of {} elements", ends[0], ends[1], self.nonzeros);
                return Err(self.out_of_range(
                    "`a.offsets`",
                    &what,
                    "let offsets ascend from 0 to the number of elements",
                ));
            }
            if first == last {
                continue;
            }
            let columns = arguments.read_integers(1, bytes, first, last - first)?;
            let values = arguments.read(2, self.element, Run::dense(first, last - first))?;
            for ((at, column), value) in (first..).zip(columns).zip(values) {
                elements.push((row, self.column("`a.indices`", at, column)?, value));
            }
        }
        Ok(elements)
    }

    fn coordinate_elements(
        &self,
        arguments: &OperationArguments<'_>,
    ) -> Result<Vec<(usize, usize, f64)>, KernelFault> {
        let bytes = self.index.bytes();
        let rows = arguments.read_integers(0, bytes, 0, self.nonzeros)?;
        let columns = arguments.read_integers(1, bytes, 0, self.nonzeros)?;
        let values = arguments.read(2, self.element, Run::dense(0, self.nonzeros))?;
        let mut elements = Vec::with_capacity(self.nonzeros as usize);
        let mut before = 0;
        for (at, ((row, column), value)) in (0..).zip(rows.into_iter().zip(columns).zip(values)) {
            if row as u64 >= self.rows {
                let what = format!("element {at} is in row {row} of {}", self.rows);
                return Err(self.out_of_range("`a.row_indices`", &what, "count rows from 0"));
            }
            if row < before {
                let what = format!("element {at} in row {row} comes behind one in row {before}");
                return Err(self.out_of_range(
                    "`a.row_indices`",
                    &what,
                    "sort the elements with `sort_coordinates`",
                ));
            }
            before = row;
            elements.push((row as usize, self.column("`a.indices`", at, column)?, value));
        }
        Ok(elements)
    }

    /// The column of an element, which is inside of the matrix.
    fn column(&self, argument: &str, at: u64, column: i64) -> Result<usize, KernelFault> {
        if (column as u64) < self.columns {
            return Ok(column as usize);
        }
        let what = format!("element {at} is in column {column} of {}", self.columns);
        Err(self.out_of_range(argument, &what, "count columns from 0"))
    }

    /// What is wrong with an argument of the operation, and what to do.
    fn out_of_range(&self, argument: &str, what: &str, hint: &str) -> KernelFault {
        let detail =
            format!("{}: {argument}: {what}; {hint}, and look at the matrix with `check_indices`", self.name);
        KernelFault::Stopped { code: Code::ILLEGAL_ADDRESS, detail }
    }
}

/// Where a row or a column of a dense matrix lies.
fn line(layout: DenseLayout, row: u64, columns: u64, leading: u64) -> Run {
    match layout {
        DenseLayout::Rows => Run::dense(row * leading, columns),
        DenseLayout::Columns => Run { start: row, len: columns, step: leading },
    }
}

pub(super) fn spmv(arguments: &OperationArguments<'_>, operation: &Spmv) -> Work {
    let Spmv { format, element, index, rows, columns, nonzeros, transposed, accumulate, .. } = *operation;
    let matrix = SparseOperand { name: Spmv::NAME, format, element, index, rows, columns, nonzeros };
    let (x_len, y_len) = operation.lengths();
    let alpha = arguments.scalar(5)?;
    let mut x: Vec<Option<f64>> = vec![None; x_len as usize];
    let mut sums = vec![0.0; y_len as usize];
    // With a factor of 0 neither the matrix nor `x` is read.
    let elements = if alpha == 0.0 { Vec::new() } else { matrix.elements(arguments)? };
    for (row, column, value) in elements {
        let (from, to) = if transposed { (row, column) } else { (column, row) };
        let known = match x[from] {
            Some(known) => known,
            None => arguments.read(3, element, Run::dense(from as u64, 1))?[0],
        };
        x[from] = Some(known);
        sums[to] += value * known;
    }
    sums.iter_mut().for_each(|sum| *sum *= alpha);
    let run = Run::dense(0, y_len);
    if accumulate {
        let (beta, y) = (arguments.scalar(6)?, arguments.read(4, element, run)?);
        sums.iter_mut().zip(&y).for_each(|(sum, y)| *sum += beta * y);
    }
    arguments.write(4, element, run, &sums)?;
    Ok(nonzeros)
}

pub(super) fn spmm(arguments: &OperationArguments<'_>, operation: &Spmm) -> Work {
    let Spmm { format, element, index, rows, columns, nonzeros, n, transposed, layout, .. } = *operation;
    let matrix = SparseOperand { name: Spmm::NAME, format, element, index, rows, columns, nonzeros };
    let (b_rows, c_rows) = operation.dense_rows();
    let alpha = arguments.scalar(5)?;
    let mut b: Vec<Option<Vec<f64>>> = vec![None; b_rows as usize];
    let mut sums = vec![vec![0.0; n as usize]; c_rows as usize];
    let elements = if alpha == 0.0 { Vec::new() } else { matrix.elements(arguments)? };
    for (row, column, value) in elements {
        let (from, to) = if transposed { (row, column) } else { (column, row) };
        let known = match b[from].take() {
            Some(known) => known,
            None => arguments.read(3, element, line(layout, from as u64, n, operation.b_leading))?,
        };
        sums[to].iter_mut().zip(&known).for_each(|(sum, b)| *sum += value * b);
        b[from] = Some(known);
    }
    for (row, mut sums) in (0..).zip(sums) {
        let run = line(layout, row, n, operation.c_leading);
        sums.iter_mut().for_each(|sum| *sum *= alpha);
        if operation.accumulate {
            let (beta, c) = (arguments.scalar(6)?, arguments.read(4, element, run)?);
            sums.iter_mut().zip(&c).for_each(|(sum, c)| *sum += beta * c);
        }
        arguments.write(4, element, run, &sums)?;
    }
    Ok(nonzeros.saturating_mul(n))
}

pub(super) fn to_dense(arguments: &OperationArguments<'_>, operation: &SparseToDense) -> Work {
    let SparseToDense { format, element, index, rows, columns, nonzeros, layout, leading } = *operation;
    let matrix = SparseOperand { name: SparseToDense::NAME, format, element, index, rows, columns, nonzeros };
    let mut lines = vec![vec![0.0; columns as usize]; rows as usize];
    for (row, column, value) in matrix.elements(arguments)? {
        lines[row][column] = value;
    }
    for (row, values) in (0..).zip(lines) {
        arguments.write(3, element, line(layout, row, columns, leading), &values)?;
    }
    Ok(rows.saturating_mul(columns))
}
