//! Symmetric products against sums in `f64`; triangular systems by what is left of them.

use kiln::DeviceRuntime;
use kiln_libs::Tolerance;
use kiln_libs::blas::{Blas, Diagonal, Matrix, Real, Side, Triangle};

use crate::numbers::{TestNumber, close, made_up};
use crate::rig::everywhere_and_in_workers;

fn belongs(triangle: Triangle, row: usize, column: usize) -> bool {
    match triangle {
        Triangle::Upper => column >= row,
        Triangle::Lower => row >= column,
    }
}

fn symmetric<T: TestNumber + Real>(
    gpu: &DeviceRuntime,
    is_transposed: bool,
    triangle: Triangle,
    beta: Option<f64>,
) {
    let (n, k) = (6, 9);
    let blas = Blas::new(gpu);
    let (a, c) = (made_up::<T>(1, n * k), made_up::<T>(2, n * (n + 2)));
    let (input, result) = (gpu.upload(&a).unwrap(), gpu.upload(&c).unwrap());
    let matrix = match is_transposed {
        false => Matrix::new(&input, n, k),
        true => Matrix::new(&input, k, n).transposed(),
    };
    let at = |row: usize, column: usize| {
        a[if is_transposed { column * n + row } else { row * k + column }].number()
    };
    let syrk = blas.syrk(2.0, matrix, beta, triangle, Matrix::new(&result, n, n).leading(n + 2));
    let bound = Tolerance::of(&syrk.operation().unwrap());
    syrk.submit().unwrap();
    for (place, found) in result.download().unwrap().into_iter().enumerate() {
        let (row, column) = (place / (n + 2), place % (n + 2));
        if column >= n || !belongs(triangle, row, column) {
            assert_eq!(found.number(), c[place].number(), "{row} {column} was written");
            continue;
        }
        let terms = || (0..k).map(|at_k| 2.0 * at(row, at_k) * at(column, at_k));
        let added = beta.unwrap_or(0.0) * c[place].number();
        let magnitude = terms().map(f64::abs).sum::<f64>() + added.abs();
        close("syrk", &bound, found.number(), terms().sum::<f64>() + added, magnitude);
    }
}

#[test]
fn one_triangle_of_a_symmetric_product_is_written() {
    everywhere_and_in_workers("one_triangle_of_a_symmetric_product_is_written", |gpu| {
        for triangle in [Triangle::Upper, Triangle::Lower] {
            for (is_transposed, beta) in [(false, None), (true, None), (false, Some(0.5)), (true, Some(-1.0))]
            {
                symmetric::<f32>(gpu, is_transposed, triangle, beta);
                symmetric::<f64>(gpu, is_transposed, triangle, beta);
            }
        }
    });
}

/// A system to solve: the side of `A`, its triangle and diagonal, and which matrices are stored by columns.
type System = (Side, Triangle, Diagonal, [bool; 2]);

fn solve<T: TestNumber + Real>(gpu: &DeviceRuntime, (side, triangle, diagonal, by_columns): System) {
    let (m, n) = (6, 4);
    let order = if side == Side::Left { m } else { n };
    let alpha = 0.5;
    // A diagonal that is not small; what must not be read is NaN.
    let mut a = made_up::<T>(1, order * order);
    for (place, value) in a.iter_mut().enumerate() {
        let (slow, fast) = (place / order, place % order);
        let (row, column) = if by_columns[0] { (fast, slow) } else { (slow, fast) };
        let is_read = belongs(triangle, row, column) && (row != column || diagonal == Diagonal::Stored);
        *value = match is_read {
            false => T::from_number(f64::NAN),
            true if row == column => T::from_number(4.0 + value.number()),
            true => *value,
        };
    }
    let entry = |row: usize, column: usize| match (
        row == column && diagonal == Diagonal::Unit,
        belongs(triangle, row, column),
    ) {
        (true, _) => 1.0,
        (_, false) => 0.0,
        (_, true) => a[if by_columns[0] { column * order + row } else { row * order + column }].number(),
    };
    let b = made_up::<T>(2, m * n);
    let (input, result) = (gpu.upload(&a).unwrap(), gpu.upload(&b).unwrap());
    let left = Matrix::new(&input, order, order);
    let left = if by_columns[0] { left.transposed() } else { left };
    let right =
        if by_columns[1] { Matrix::new(&result, n, m).transposed() } else { Matrix::new(&result, m, n) };
    let blas = Blas::new(gpu);
    let trsm = blas.trsm(side, alpha, left, (triangle, diagonal), right);
    let bound = Tolerance::of(&trsm.operation().unwrap());
    trsm.submit().unwrap();
    let found = result.download().unwrap();
    let place = |row: usize, column: usize| if by_columns[1] { column * m + row } else { row * n + column };
    for row in 0..m {
        for column in 0..n {
            let term = |at: usize| match side {
                Side::Left => entry(row, at) * found[place(at, column)].number(),
                Side::Right => found[place(row, at)].number() * entry(at, column),
            };
            let wanted = alpha * b[place(row, column)].number();
            let magnitude = (0..order).map(|at| term(at).abs()).sum::<f64>() + wanted.abs();
            let what = format!("trsm {side} {triangle} {diagonal} {by_columns:?}");
            close(&what, &bound, (0..order).map(term).sum(), wanted, magnitude);
        }
    }
}

#[test]
fn triangular_systems_are_solved_on_both_sides() {
    everywhere_and_in_workers("triangular_systems_are_solved_on_both_sides", |gpu| {
        for side in [Side::Left, Side::Right] {
            for triangle in [Triangle::Upper, Triangle::Lower] {
                for diagonal in [Diagonal::Stored, Diagonal::Unit] {
                    for by_columns in [[false, false], [true, false], [false, true], [true, true]] {
                        solve::<f32>(gpu, (side, triangle, diagonal, by_columns));
                        solve::<f64>(gpu, (side, triangle, diagonal, by_columns));
                    }
                }
            }
        }
    });
}
