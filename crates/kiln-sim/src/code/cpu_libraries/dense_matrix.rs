//! A matrix of `f64`, column after column.

/// A matrix of `f64`, column after column.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Dense {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) values: Vec<f64>,
}

impl Dense {
    /// A matrix of zeros.
    pub(super) fn zeros(rows: usize, columns: usize) -> Self {
        Self { rows, columns, values: vec![0.0; rows * columns] }
    }

    pub(super) fn identity(order: usize) -> Self {
        let mut identity = Self::zeros(order, order);
        (0..order).for_each(|at| identity.set(at, at, 1.0));
        identity
    }

    pub(super) fn at(&self, row: usize, column: usize) -> f64 {
        self.values[column * self.rows + row]
    }

    pub(super) fn set(&mut self, row: usize, column: usize, value: f64) {
        self.values[column * self.rows + row] = value;
    }

    pub(super) fn column(&self, column: usize) -> &[f64] {
        &self.values[column * self.rows..][..self.rows]
    }

    pub(super) fn column_mut(&mut self, column: usize) -> &mut [f64] {
        &mut self.values[column * self.rows..][..self.rows]
    }

    /// Two columns, of which the first comes first.
    pub(super) fn two_columns(&mut self, first: usize, second: usize) -> (&mut [f64], &mut [f64]) {
        let (low, high) = self.values.split_at_mut(second * self.rows);
        (&mut low[first * self.rows..][..self.rows], &mut high[..self.rows])
    }

    pub(super) fn swap_rows(&mut self, one: usize, other: usize) {
        for column in 0..self.columns {
            self.column_mut(column).swap(one, other);
        }
    }

    pub(super) fn transposed(&self) -> Self {
        let mut transposed = Self::zeros(self.columns, self.rows);
        for column in 0..self.columns {
            for (row, value) in self.column(column).iter().enumerate() {
                transposed.set(column, row, *value);
            }
        }
        transposed
    }

    /// The largest absolute value; none if there is a NaN or an infinity.
    pub(super) fn largest(&self) -> Option<f64> {
        let largest = self.values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
        self.values.iter().all(|value| value.is_finite()).then_some(largest)
    }
}

/// The length of a vector. Elements are divided by the largest first, so that no square overflows.
pub(super) fn length(values: &[f64]) -> f64 {
    let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    let scale = if largest > 0.0 && largest.is_finite() { largest } else { 1.0 };
    scale * values.iter().fold(0.0, |sum, value| sum + (value / scale) * (value / scale)).sqrt()
}
