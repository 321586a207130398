//! Eigenvalues and singular values in `f64`, by rotations of Jacobi.
//!
//! Rotations need square roots only, which every machine rounds in the same way.

use super::dense_matrix::{Dense, length};

/// Sweeps over all pairs of columns at most. Ten are enough for nearly every matrix.
const SWEEP_LIMIT: usize = 60;
/// What is below this part of the largest element is zero.
const NEGLIGIBLE: f64 = f64::EPSILON / 4.0;

/// The eigenvalues of a symmetric matrix in ascending order, and the eigenvectors as columns. None if it does not converge: there is a NaN
/// or an infinity.
pub(super) fn symmetric_eigen(mut a: Dense) -> Option<(Vec<f64>, Dense)> {
    let order = a.rows;
    let scale = scale_to_one(&mut a)?;
    let mut vectors = Dense::identity(order);
    for _ in 0..SWEEP_LIMIT {
        let mut is_diagonal = true;
        for p in 0..order {
            for q in p + 1..order {
                let between = a.at(p, q);
                if between.abs() > NEGLIGIBLE {
                    is_diagonal = false;
                    let rotation = Rotation::new(a.at(p, p), a.at(q, q), between);
                    rotate_symmetric(&mut a, (p, q), rotation);
                    rotation.apply(vectors.two_columns(p, q));
                }
            }
        }
        if is_diagonal {
            let values: Vec<f64> = (0..order).map(|at| a.at(at, at)).collect();
            let mut places: Vec<usize> = (0..order).collect();
            places.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
            return Some((places.iter().map(|at| values[*at] * scale).collect(), ordered(&vectors, &places)));
        }
    }
    None
}

/// `A = U diag(s) Vᵀ`.
pub(super) struct SingularValues {
    /// In descending order.
    pub(super) s: Vec<f64>,
    pub(super) u: Dense,
    pub(super) v: Dense,
}

impl SingularValues {
    /// Those of a matrix. None if it does not converge: there is a NaN or an infinity.
    pub(super) fn of(a: Dense) -> Option<Self> {
        if a.rows >= a.columns {
            return Self::of_tall(a);
        }
        let Self { s, u, v } = Self::of_tall(a.transposed())?;
        Some(Self { s, u: v, v: u })
    }

    /// Rotates columns until they are orthogonal.
    fn of_tall(mut w: Dense) -> Option<Self> {
        let scale = scale_to_one(&mut w)?;
        let negligible = f64::EPSILON * length(&w.values);
        let mut v = Dense::identity(w.columns);
        for _ in 0..SWEEP_LIMIT {
            let mut is_orthogonal = true;
            for p in 0..w.columns {
                for q in p + 1..w.columns {
                    let (first, second) = (w.column(p), w.column(q));
                    let (one, other) = (product(first, first), product(second, second));
                    let between = product(first, second);
                    let is_zero = one.min(other) <= negligible * negligible;
                    if is_zero || between.abs() <= f64::EPSILON * (one * other).sqrt() {
                        continue;
                    }
                    is_orthogonal = false;
                    let rotation = Rotation::new(one, other, between);
                    rotation.apply(w.two_columns(p, q));
                    rotation.apply(v.two_columns(p, q));
                }
            }
            if is_orthogonal {
                return Some(Self::sorted(&w, &v, scale, negligible));
            }
        }
        None
    }

    fn sorted(w: &Dense, v: &Dense, scale: f64, negligible: f64) -> Self {
        let lengths: Vec<f64> = (0..w.columns).map(|column| length(w.column(column))).collect();
        let mut places: Vec<usize> = (0..w.columns).collect();
        places.sort_by(|one, other| lengths[*other].total_cmp(&lengths[*one]));
        let mut u = ordered(w, &places);
        for (column, place) in places.iter().enumerate() {
            match lengths[*place] > negligible {
                true => u.column_mut(column).iter_mut().for_each(|value| *value /= lengths[*place]),
                false => complete(&mut u, column),
            }
        }
        Self { s: places.iter().map(|at| lengths[*at] * scale).collect(), u, v: ordered(v, &places) }
    }
}

/// Divides a matrix by its largest element, which is returned. None if there is a NaN or an infinity.
fn scale_to_one(a: &mut Dense) -> Option<f64> {
    let scale = a.largest().map(|largest| if largest > 0.0 { largest } else { 1.0 })?;
    a.values.iter_mut().for_each(|value| *value /= scale);
    Some(scale)
}

/// A rotation in the plane of two columns.
#[derive(Clone, Copy)]
struct Rotation {
    cosine: f64,
    sine: f64,
    tangent: f64,
}

impl Rotation {
    /// The rotation that makes `[[one, between], [between, other]]` diagonal.
    fn new(one: f64, other: f64, between: f64) -> Self {
        let cotangent = (other - one) / (2.0 * between);
        let tangent = (cotangent.abs() + (1.0 + cotangent * cotangent).sqrt()).recip().copysign(cotangent);
        let cosine = (1.0 + tangent * tangent).sqrt().recip();
        Self { cosine, sine: tangent * cosine, tangent }
    }

    fn turn(self, one: f64, other: f64) -> (f64, f64) {
        (self.cosine * one - self.sine * other, self.sine * one + self.cosine * other)
    }

    fn apply(self, (first, second): (&mut [f64], &mut [f64])) {
        first.iter_mut().zip(second).for_each(|(one, other)| (*one, *other) = self.turn(*one, *other));
    }
}

/// `Jᵀ A J`, on both sides of the diagonal.
fn rotate_symmetric(a: &mut Dense, (p, q): (usize, usize), rotation: Rotation) {
    let between = a.at(p, q);
    for row in (0..a.rows).filter(|row| *row != p && *row != q) {
        let (one, other) = rotation.turn(a.at(row, p), a.at(row, q));
        a.set(row, p, one);
        a.set(p, row, one);
        a.set(row, q, other);
        a.set(q, row, other);
    }
    a.set(p, p, a.at(p, p) - rotation.tangent * between);
    a.set(q, q, a.at(q, q) + rotation.tangent * between);
    a.set(p, q, 0.0);
    a.set(q, p, 0.0);
}

fn product(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).fold(0.0, |sum, (one, other)| sum + one * other)
}

/// The columns in another order.
fn ordered(a: &Dense, places: &[usize]) -> Dense {
    let values = places.iter().flat_map(|place| a.column(*place)).copied().collect();
    Dense { rows: a.rows, columns: places.len(), values }
}

/// Replaces a column by a vector of length 1 that is orthogonal to all columns before it.
fn complete(u: &mut Dense, column: usize) {
    for unit in 0..u.rows {
        let mut candidate = vec![0.0; u.rows];
        candidate[unit] = 1.0;
        // The second pass removes what rounding left in the first.
        for before in (0..column).chain(0..column) {
            let part = product(u.column(before), &candidate);
            candidate.iter_mut().zip(u.column(before)).for_each(|(value, other)| *value -= part * other);
        }
        let rest = length(&candidate);
        // The squares of what is left of all unit vectors add up to the number of columns that are missing, so that one is as large.
        if rest * rest * 2.0 * u.rows as f64 >= 1.0 {
            u.column_mut(column).iter_mut().zip(&candidate).for_each(|(value, new)| *value = new / rest);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_up(rows: usize, columns: usize) -> Dense {
        let value = |at: usize| ((at * 7919 + 13) % 257) as f64 / 64.0 - 2.0;
        Dense { rows, columns, values: (0..rows * columns).map(value).collect() }
    }

    fn check_orthogonal(q: &Dense) {
        for one in 0..q.columns {
            for other in 0..q.columns {
                let wanted = if one == other { 1.0 } else { 0.0 };
                assert!((product(q.column(one), q.column(other)) - wanted).abs() < 1e-13, "{one} {other}");
            }
        }
    }

    #[test]
    fn eigenvectors_are_turned_into_multiples_of_themselves() {
        for order in [1, 2, 3, 8, 31] {
            let half = made_up(order, order);
            let mut a = half.transposed();
            a.values.iter_mut().zip(&half.values).for_each(|(value, other)| *value += other);
            let (values, vectors) = symmetric_eigen(a.clone()).unwrap();
            assert!(values.is_sorted());
            check_orthogonal(&vectors);
            for (column, value) in values.iter().enumerate() {
                for row in 0..order {
                    let image = product(a.column(row), vectors.column(column));
                    let wanted = value * vectors.at(row, column);
                    assert!((image - wanted).abs() < 1e-12, "{order}: {image} is not {wanted}");
                }
            }
        }
    }

    #[test]
    fn singular_vectors_and_values_give_the_matrix_again() {
        let mut rank_one = made_up(6, 4);
        for column in 0..4 {
            let values: Vec<f64> = (0..6).map(|row| (row + 1) as f64 * (column as f64 - 1.0)).collect();
            rank_one.column_mut(column).copy_from_slice(&values);
        }
        let cases =
            [made_up(1, 1), made_up(5, 3), made_up(3, 5), made_up(40, 17), rank_one, Dense::zeros(4, 3)];
        for a in cases {
            let SingularValues { s, u, v } = SingularValues::of(a.clone()).unwrap();
            assert!(
                s.is_sorted_by(|one, other| one >= other) && s.iter().all(|value| *value >= 0.0),
                "{s:?}"
            );
            check_orthogonal(&u);
            check_orthogonal(&v);
            for row in 0..a.rows {
                for column in 0..a.columns {
                    let terms = s.iter().enumerate().map(|(at, s)| u.at(row, at) * s * v.at(column, at));
                    assert!((terms.sum::<f64>() - a.at(row, column)).abs() < 1e-13 * 40.0, "{row} {column}");
                }
            }
        }
    }

    #[test]
    fn numbers_that_are_not_finite_do_not_converge() {
        for value in [f64::NAN, f64::INFINITY] {
            let mut a = made_up(3, 3);
            a.set(1, 1, value);
            assert!(symmetric_eigen(a.clone()).is_none() && SingularValues::of(a).is_none());
        }
    }
}
