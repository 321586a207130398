//! A matrix in a buffer.

use kiln_runtime::GpuRef;

use super::element::MatrixElement;
use crate::Result;
use crate::error::LibraryError;

/// No matrix reaches over so many elements.
const REACH_LIMIT: u128 = 1 << 59;

/// A matrix, or a batch of them, in a buffer. It is stored row after row, and dense unless something else is said. Factors of 8-bit elements begin at multiples
/// of the size of an element of the result.
#[derive(Debug)]
pub struct Matrix<'a, T: MatrixElement> {
    pub(crate) buffer: &'a GpuRef<T>,
    pub(crate) rows: u64,
    pub(crate) columns: u64,
    /// Whether it is stored column after column.
    pub(crate) by_columns: bool,
    pub(crate) leading: Option<u64>,
    pub(crate) batch: u64,
    pub(crate) stride: Option<u64>,
}

impl<T: MatrixElement> Clone for Matrix<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: MatrixElement> Copy for Matrix<'_, T> {}

impl<'a, T: MatrixElement> Matrix<'a, T> {
    /// A matrix at the start of a buffer, row after row.
    pub fn new(buffer: &'a GpuRef<T>, rows: usize, columns: usize) -> Self {
        let (rows, columns) = (rows as u64, columns as u64);
        Self { buffer, rows, columns, by_columns: false, leading: None, batch: 1, stride: None }
    }

    /// Elements from the start of one row to the start of the next, for rows that lie further apart than they are long. For a matrix that was
    /// transposed it is the distance between columns.
    #[must_use]
    pub fn leading(self, elements: usize) -> Self {
        Self { leading: Some(elements as u64), ..self }
    }

    /// A batch of matrices, one behind the other.
    #[must_use]
    pub fn batch(self, matrices: usize) -> Self {
        Self { batch: matrices as u64, ..self }
    }

    /// Elements from one matrix of a batch to the next. With 0 an input is the same for the whole batch.
    #[must_use]
    pub fn stride(self, elements: usize) -> Self {
        Self { stride: Some(elements as u64), ..self }
    }

    /// The transpose: the same memory, read column after column.
    #[must_use]
    pub fn transposed(self) -> Self {
        Self { rows: self.columns, columns: self.rows, by_columns: !self.by_columns, ..self }
    }

    /// Rows and columns of the matrix whose columns lie one after the other in memory: this one, or its transpose.
    pub(crate) fn stored(&self) -> (u64, u64) {
        if self.by_columns { (self.rows, self.columns) } else { (self.columns, self.rows) }
    }

    /// Distance between columns of what is stored.
    pub(crate) fn distance(&self) -> u64 {
        self.leading.unwrap_or(self.stored().0)
    }

    /// Distance between matrices.
    pub(crate) fn matrix_stride(&self) -> u64 {
        self.stride.unwrap_or_else(|| self.distance().saturating_mul(self.stored().1))
    }

    /// Refuses a leading dimension that does not hold a line, and sizes that fit no memory, in the numbers that the caller gave.
    pub(crate) fn check_leading(&self, operation: &'static str, name: &str) -> Result<()> {
        self.check_line(operation, name)?;
        if self.rows == 0 || self.columns == 0 || self.batch == 0 || self.reach() < REACH_LIMIT {
            return Ok(());
        }
        let what = format!("`{name}` has 2^59 elements or more: {}", self.sizes_text());
        Err(LibraryError::argument(operation, what, "use smaller sizes"))
    }

    /// Refuses a leading dimension that is less than a row, or than a column of a matrix that is stored by columns.
    pub(crate) fn check_line(&self, operation: &'static str, name: &str) -> Result<()> {
        let ((line, _), leading) = (self.stored(), self.distance());
        if leading >= line {
            return Ok(());
        }
        let (lines, hint) = match self.by_columns {
            true => ("columns", "use a leading dimension that holds a column"),
            false => ("rows", "use a leading dimension that holds a row"),
        };
        let what = format!("`{name}` has a leading dimension of {leading} for {lines} of {line} elements");
        Err(LibraryError::argument(operation, what, hint))
    }

    /// How many elements lie from the first to the last. It has some.
    pub(crate) fn reach(&self) -> u128 {
        let (line, lines) = self.stored();
        let last = |count: u64, step: u64| u128::from(count.saturating_sub(1)) * u128::from(step);
        let reach = last(lines, self.distance()).saturating_add(last(self.batch, self.matrix_stride()));
        reach.saturating_add(u128::from(line))
    }

    /// Refuses a matrix that its buffer is too short for, before memory is allocated for what its sizes say. One without elements fits.
    pub(crate) fn check_room(&self, operation: &'static str, name: &str) -> Result<()> {
        if self.rows == 0 || self.columns == 0 || self.batch == 0 {
            return Ok(());
        }
        self.check_leading(operation, name)?;
        let reach = self.reach();
        let bytes = |elements: u128| elements * u128::from(T::TYPE.bytes());
        let (given, wanted) = (bytes(self.buffer.len() as u128), bytes(reach));
        if given >= wanted {
            return Ok(());
        }
        // Of one matrix the shape is what the caller just gave; of many, the product hides it.
        let sizes = if self.batch > 1 { format!(" for {}", self.sizes_text()) } else { String::new() };
        let what = format!("`{name}` has {given} bytes and must have {wanted}{sizes}");
        Err(LibraryError::argument(operation, what, "use a longer buffer, or smaller sizes"))
    }

    /// All sizes that say how long its buffer must be, as the caller gave them.
    pub(crate) fn sizes_text(&self) -> String {
        let mut text = match self.batch {
            1 => format!("a matrix of {}", self.shape_text()),
            batch => format!("{batch} matrices of {}", self.shape_text()),
        };
        if let Some(leading) = self.leading {
            text += &format!(" with a leading dimension of {leading}");
        }
        if let Some(stride) = self.stride {
            text += &format!(" that are {stride} elements apart");
        }
        text
    }

    /// Its shape in words.
    pub(crate) fn shape_text(&self) -> String {
        format!("{} x {}", self.rows, self.columns)
    }
}
