//! Factorisations in `f64`: Cholesky, LU with partial pivoting, Householder QR.

use super::dense_matrix::{Dense, length};

/// Replaces the lower triangle of a symmetric matrix by its Cholesky factor. Otherwise the order of the first leading minor that is not positive.
pub(super) fn cholesky(a: &mut Dense) -> Result<(), usize> {
    for column in 0..a.rows {
        for done in 0..column {
            let (done, current) = a.two_columns(done, column);
            let factor = done[column];
            current.iter_mut().zip(&*done).skip(column).for_each(|(value, done)| *value -= factor * done);
        }
        let current = &mut a.column_mut(column)[column..];
        let pivot = current[0];
        if !(pivot > 0.0 && pivot.is_finite()) {
            return Err(column + 1);
        }
        let root = pivot.sqrt();
        current[0] = root;
        current[1..].iter_mut().for_each(|value| *value /= root);
    }
    Ok(())
}

/// Solves `L Lᵀ x = b` for `x`, which replaces `b`. The factor is the lower triangle of a matrix.
pub(super) fn cholesky_solve(l: &Dense, x: &mut [f64]) {
    for column in 0..l.rows {
        x[column] /= l.at(column, column);
        let known = x[column];
        let below = &l.column(column)[column + 1..];
        x[column + 1..].iter_mut().zip(below).for_each(|(x, l)| *x -= l * known);
    }
    for column in (0..l.rows).rev() {
        let below = &l.column(column)[column + 1..];
        let sum = x[column + 1..].iter().zip(below).fold(x[column], |sum, (x, l)| sum - l * x);
        x[column] = sum / l.at(column, column);
    }
}

/// Replaces a matrix by its triangular factors. Returns the rows that were exchanged, and the place of the first pivot that is zero; both are
/// counted from 1.
pub(super) fn lu(a: &mut Dense) -> (Vec<i64>, usize) {
    let count = a.rows.min(a.columns);
    let (mut pivots, mut zero) = (Vec::with_capacity(count), 0);
    for step in 0..count {
        let column = a.column(step);
        // A NaN counts as infinite, so that it becomes a pivot and is found there.
        let size = |row: usize| if column[row].is_nan() { f64::INFINITY } else { column[row].abs() };
        let larger = |best: usize, row: usize| if size(row) > size(best) { row } else { best };
        let row = (step + 1..a.rows).fold(step, larger);
        pivots.push(row as i64 + 1);
        a.swap_rows(step, row);
        let pivot = a.at(step, step);
        if pivot == 0.0 {
            zero = if zero == 0 { step + 1 } else { zero };
            continue;
        }
        a.column_mut(step)[step + 1..].iter_mut().for_each(|value| *value /= pivot);
        for column in step + 1..a.columns {
            let (done, current) = a.two_columns(step, column);
            let factor = current[step];
            current.iter_mut().zip(&*done).skip(step + 1).for_each(|(value, l)| *value -= factor * l);
        }
    }
    (pivots, zero)
}

/// Solves `A x = b` or `Aᵀ x = b` for `x`, which replaces `b`. Pivots are rows, counted from 0.
pub(super) fn lu_solve(a: &Dense, pivots: &[usize], transposed: bool, x: &mut [f64]) {
    let order = a.rows;
    if transposed {
        // Uᵀ Lᵀ P x = b
        for row in 0..order {
            let sum = (0..row).fold(x[row], |sum, at| sum - a.at(at, row) * x[at]);
            x[row] = sum / a.at(row, row);
        }
        for row in (0..order).rev() {
            x[row] = (row + 1..order).fold(x[row], |sum, at| sum - a.at(at, row) * x[at]);
        }
        pivots.iter().enumerate().rev().for_each(|(row, other)| x.swap(row, *other));
        return;
    }
    pivots.iter().enumerate().for_each(|(row, other)| x.swap(row, *other));
    for column in 0..order {
        let known = x[column];
        let below = &a.column(column)[column + 1..];
        x[column + 1..].iter_mut().zip(below).for_each(|(x, l)| *x -= l * known);
    }
    for column in (0..order).rev() {
        x[column] /= a.at(column, column);
        let known = x[column];
        x[..column].iter_mut().zip(a.column(column)).for_each(|(x, u)| *x -= u * known);
    }
}

/// Replaces a matrix by `R` and the Householder vectors below it. Returns their factors.
pub(super) fn qr(a: &mut Dense) -> Vec<f64> {
    let count = a.rows.min(a.columns);
    let mut factors = Vec::with_capacity(count);
    for step in 0..count {
        let column = &mut a.column_mut(step)[step..];
        let (first, rest) = (column[0], length(&column[1..]));
        if rest == 0.0 {
            factors.push(0.0);
            continue;
        }
        let diagonal = -length(&[first, rest]).copysign(first);
        let factor = (diagonal - first) / diagonal;
        column[0] = diagonal;
        column[1..].iter_mut().for_each(|value| *value /= first - diagonal);
        factors.push(factor);
        for other in step + 1..a.columns {
            let (vector, current) = a.two_columns(step, other);
            reflect(&vector[step + 1..], factor, &mut current[step..]);
        }
    }
    factors
}

/// `Q C` or `Qᵀ C`, with the vectors and factors of [`qr`].
pub(super) fn apply_q(a: &Dense, factors: &[f64], transposed: bool, c: &mut Dense) {
    let count = factors.len();
    for at in 0..count {
        let step = if transposed { at } else { count - 1 - at };
        let vector = &a.column(step)[step + 1..];
        for column in 0..c.columns {
            reflect(vector, factors[step], &mut c.column_mut(column)[step..]);
        }
    }
}

/// `x - factor v (v · x)`, where the first element of `v` is 1 and the others are given.
fn reflect(vector: &[f64], factor: f64, x: &mut [f64]) {
    let sum = vector.iter().zip(&x[1..]).fold(x[0], |sum, (v, x)| sum + v * x);
    let scaled = factor * sum;
    x[0] -= scaled;
    x[1..].iter_mut().zip(vector).for_each(|(x, v)| *x -= scaled * v);
}
