//! A matrix of numbers with its place in a buffer.

use kiln_libs::blas::Matrix;

use crate::numbers::{TestNumber, made_up};

/// A matrix of numbers with its place in a buffer.
pub(crate) struct Stored<T> {
    pub(crate) values: Vec<T>,
    pub(crate) shape: (usize, usize),
    pub(crate) by_columns: bool,
    pub(crate) leading: usize,
    pub(crate) stride: usize,
}

impl<T: TestNumber> Stored<T> {
    pub(crate) fn new(seed: u64, shape: (usize, usize), by_columns: bool, gap: usize, batch: usize) -> Self {
        let (rows, columns) = if by_columns { (shape.1, shape.0) } else { shape };
        let leading = columns + gap;
        let stride = leading * rows;
        Self { values: made_up(seed, stride * batch), shape, by_columns, leading, stride }
    }

    pub(crate) fn place(&self, which: usize, row: usize, column: usize) -> usize {
        let (slow, fast) = if self.by_columns { (column, row) } else { (row, column) };
        which * self.stride + slow * self.leading + fast
    }

    pub(crate) fn at(&self, which: usize, row: usize, column: usize) -> f64 {
        self.values[self.place(which, row, column)].number()
    }

    pub(crate) fn matrix<'a>(&self, buffer: &'a kiln::GpuRef<T>, batch: usize) -> Matrix<'a, T> {
        let matrix = match self.by_columns {
            false => Matrix::new(buffer, self.shape.0, self.shape.1),
            true => Matrix::new(buffer, self.shape.1, self.shape.0).transposed(),
        };
        matrix.leading(self.leading).batch(batch).stride(self.stride)
    }
}
