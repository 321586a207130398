//! Matrices of `f64` on the host, with the few operations that residuals need.

use kiln::{DeviceRuntime, GpuRef};

use crate::numbers::TestNumber;
use crate::stored::Stored;

/// A matrix of `f64` on the host.
#[derive(Clone, Debug)]
pub(crate) struct Exact {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    values: Vec<f64>,
}

impl Exact {
    pub(crate) fn new(rows: usize, columns: usize, at: impl Fn(usize, usize) -> f64) -> Self {
        let values = (0..rows * columns).map(|place| at(place / columns, place % columns)).collect();
        Self { rows, columns, values }
    }

    pub(crate) fn identity(order: usize) -> Self {
        Self::new(order, order, |row, column| if row == column { 1.0 } else { 0.0 })
    }

    /// What a buffer holds, as the matrix that was stored there.
    pub(crate) fn of<T: TestNumber>(stored: &Stored<T>) -> Self {
        Self::new(stored.shape.0, stored.shape.1, |row, column| stored.at(0, row, column))
    }

    pub(crate) fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.columns + column]
    }

    pub(crate) fn transposed(&self) -> Self {
        Self::new(self.columns, self.rows, |row, column| self.at(column, row))
    }

    pub(crate) fn times(&self, other: &Self) -> Self {
        assert_eq!(self.columns, other.rows);
        let term = |row, column, k| self.at(row, k) * other.at(k, column);
        Self::new(self.rows, other.columns, |row, column| {
            (0..self.columns).map(|k| term(row, column, k)).sum()
        })
    }

    pub(crate) fn minus(&self, other: &Self) -> Self {
        Self::new(self.rows, self.columns, |row, column| self.at(row, column) - other.at(row, column))
    }

    /// The first so many rows.
    pub(crate) fn top(&self, rows: usize) -> Self {
        Self::new(rows, self.columns, |row, column| self.at(row, column))
    }

    /// The largest sum of the absolute values of a column.
    pub(crate) fn norm(&self) -> f64 {
        let sum = |column| (0..self.rows).map(|row| self.at(row, column).abs()).sum::<f64>();
        // A NaN must not vanish in a comparison.
        (0..self.columns).map(sum).fold(0.0, |largest, sum| if sum <= largest { largest } else { sum })
    }
}

impl<T: TestNumber> Stored<T> {
    /// Replaces the numbers at the places of the matrix.
    pub(crate) fn filled(mut self, exact: &Exact) -> Self {
        for row in 0..self.shape.0 {
            for column in 0..self.shape.1 {
                let place = self.place(0, row, column);
                self.values[place] = T::from_number(exact.at(row, column));
            }
        }
        self
    }

    pub(crate) fn upload(&self, gpu: &DeviceRuntime) -> GpuRef<T> {
        gpu.upload(&self.values).unwrap()
    }

    /// The same places with what a buffer holds now. Gaps must hold what they held.
    #[track_caller]
    pub(crate) fn downloaded(&self, buffer: &GpuRef<T>) -> Self {
        let found = Self { values: buffer.download().unwrap(), ..*self };
        let mut is_gap = vec![true; found.values.len()];
        for row in 0..self.shape.0 {
            (0..self.shape.1).for_each(|column| is_gap[self.place(0, row, column)] = false);
        }
        for at in (0..is_gap.len()).filter(|at| is_gap[*at]) {
            assert_eq!(found.values[at].number(), self.values[at].number(), "the gap at {at} was written");
        }
        found
    }
}

/// Compares a residual with what is allowed for a magnitude.
#[track_caller]
pub(crate) fn small(what: &str, residual: f64, relative: f64, magnitude: f64) {
    assert!(residual <= relative * magnitude, "{what}: {residual:e} is more than {relative:e} x {magnitude}");
}
