//! Factorisations by the product of their factors, and systems of equations by what is left of them.

use kiln::DeviceRuntime;
use kiln_libs::Tolerance;
use kiln_libs::solve::{Real, Side, Solve, SolveCall, Triangle};

use crate::exact::{Exact, small};
use crate::numbers::TestNumber;
use crate::rig::everywhere_and_in_workers;
use crate::stored::Stored;

/// Columns of right-hand sides, whether they lie one after the other, and the gap behind each row or column.
const SIDES: [(usize, bool, usize); 5] =
    [(1, true, 1), (1, false, 0), (1, false, 2), (3, true, 0), (4, false, 1)];

fn relative(call: &SolveCall<'_>) -> f64 {
    Tolerance::of(&call.operation().unwrap()).relative
}

/// A symmetric positive definite matrix.
fn positive<T: TestNumber>(n: usize, by_columns: bool, gap: usize) -> Stored<T> {
    let half = Exact::of(&Stored::<f32>::new(3, (n, n), false, 0, 1));
    let product = half.times(&half.transposed());
    let exact =
        Exact::new(n, n, |row, column| product.at(row, column) + if row == column { n as f64 } else { 0.0 });
    Stored::new(4, (n, n), by_columns, gap, 1).filled(&exact)
}

fn is_inside(triangle: Triangle, row: usize, column: usize) -> bool {
    match triangle {
        Triangle::Upper => column >= row,
        Triangle::Lower => row >= column,
    }
}

fn cholesky<T: TestNumber + Real>(gpu: &DeviceRuntime, n: usize, triangle: Triangle, by_columns: bool) {
    let solve = Solve::new(gpu);
    let what = format!("{n} {triangle} {by_columns}");
    let whole = positive::<T>(n, by_columns, 2);
    let a = Exact::of(&whole);
    // The other triangle must be neither read nor written.
    let half = Exact::new(n, n, |row, column| match is_inside(triangle, row, column) {
        true => a.at(row, column),
        false => f64::NAN,
    });
    let given = positive::<T>(n, by_columns, 2).filled(&half);
    let buffer = given.upload(gpu);
    let call = solve.cholesky(given.matrix(&buffer, 1), triangle);
    let bound = relative(&call);
    call.submit().unwrap().wait().unwrap();
    let found = Exact::of(&given.downloaded(&buffer));
    let factor = Exact::new(n, n, |row, column| {
        assert_eq!(found.at(row, column).is_nan(), !is_inside(triangle, row, column), "{what}");
        if is_inside(triangle, row, column) { found.at(row, column) } else { 0.0 }
    });
    let product = match triangle {
        Triangle::Lower => factor.times(&factor.transposed()),
        Triangle::Upper => factor.transposed().times(&factor),
    };
    small(&what, product.minus(&a).norm(), bound, a.norm());

    for (columns, sides_by_columns, gap) in SIDES {
        let b = Stored::<T>::new(5, (n, columns), sides_by_columns, gap, 1);
        let right = b.upload(gpu);
        let call = solve.cholesky_solve(given.matrix(&buffer, 1), triangle, b.matrix(&right, 1));
        let bound = relative(&call);
        call.submit().unwrap().wait().unwrap();
        let x = Exact::of(&b.downloaded(&right));
        small(&what, a.times(&x).minus(&Exact::of(&b)).norm(), bound, a.norm() * x.norm());
    }
}

#[test]
fn cholesky_factors_give_the_matrix_again_and_solve_with_it() {
    everywhere_and_in_workers("cholesky_factors_give_the_matrix_again_and_solve_with_it", |gpu| {
        for n in [1, 2, 7, 33] {
            for triangle in [Triangle::Lower, Triangle::Upper] {
                for by_columns in [false, true] {
                    cholesky::<f32>(gpu, n, triangle, by_columns);
                    cholesky::<f64>(gpu, n, triangle, by_columns);
                }
            }
        }
    });
}

/// `L U` with the rows exchanged back.
fn lu_product(found: &Exact, pivots: &[i64]) -> Exact {
    let (m, n) = (found.rows, found.columns);
    let k = m.min(n);
    let lower = Exact::new(m, k, |row, column| match row.cmp(&column) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 1.0,
        std::cmp::Ordering::Greater => found.at(row, column),
    });
    let upper = Exact::new(k, n, |row, column| if column >= row { found.at(row, column) } else { 0.0 });
    let product = lower.times(&upper);
    let mut rows: Vec<usize> = (0..m).collect();
    for (row, pivot) in pivots.iter().enumerate() {
        assert!(*pivot > row as i64 && *pivot <= m as i64, "pivot {row} is {pivot}");
        rows.swap(row, *pivot as usize - 1);
    }
    let place = |row: usize| rows.iter().position(|from| *from == row).unwrap();
    Exact::new(m, n, |row, column| product.at(place(row), column))
}

fn lu<T: TestNumber + Real>(gpu: &DeviceRuntime, (m, n): (usize, usize), by_columns: bool) {
    let solve = Solve::new(gpu);
    let what = format!("{m} x {n} {by_columns}");
    let given = Stored::<T>::new(6, (m, n), by_columns, 1, 1);
    let a = Exact::of(&given);
    let (buffer, pivots) = (given.upload(gpu), gpu.allocate::<i64>(m.min(n)).unwrap());
    let call = solve.lu(given.matrix(&buffer, 1), &pivots);
    let bound = relative(&call);
    call.submit().unwrap().wait().unwrap();
    let found = Exact::of(&given.downloaded(&buffer));
    let rows = pivots.download().unwrap();
    // What is stored is factored: the transpose, where rows lie one after the other.
    let product = match by_columns {
        true => lu_product(&found, &rows),
        false => lu_product(&found.transposed(), &rows).transposed(),
    };
    small(&what, product.minus(&a).norm(), bound, a.norm());
    if m != n {
        return;
    }
    for (columns, sides_by_columns, gap) in SIDES {
        let b = Stored::<T>::new(7, (n, columns), sides_by_columns, gap, 1);
        let right = b.upload(gpu);
        let call = solve.lu_solve(given.matrix(&buffer, 1), &pivots, b.matrix(&right, 1));
        let bound = relative(&call);
        call.submit().unwrap().wait().unwrap();
        let x = Exact::of(&b.downloaded(&right));
        small(&what, a.times(&x).minus(&Exact::of(&b)).norm(), bound, a.norm() * x.norm());
    }
}

#[test]
fn lu_factors_give_the_matrix_again_and_solve_with_it() {
    everywhere_and_in_workers("lu_factors_give_the_matrix_again_and_solve_with_it", |gpu| {
        for shape in [(1, 1), (2, 2), (9, 9), (40, 40), (8, 5), (5, 8)] {
            for by_columns in [false, true] {
                lu::<f32>(gpu, shape, by_columns);
                lu::<f64>(gpu, shape, by_columns);
            }
        }
    });
}

fn qr<T: TestNumber + Real>(gpu: &DeviceRuntime, (m, n): (usize, usize)) {
    let solve = Solve::new(gpu);
    let what = format!("{m} x {n}");
    let given = Stored::<T>::new(8, (m, n), true, 2, 1);
    let a = Exact::of(&given);
    let (buffer, tau) = (given.upload(gpu), gpu.allocate::<T>(m.min(n)).unwrap());
    let call = solve.qr(given.matrix(&buffer, 1), &tau);
    let bound = relative(&call);
    call.submit().unwrap().wait().unwrap();
    let found = Exact::of(&given.downloaded(&buffer));
    let r = Exact::new(m, n, |row, column| if column >= row { found.at(row, column) } else { 0.0 });
    // Q and its transpose on both sides of the identity, in both layouts.
    let applied = |side: Side, transposed: bool, by_columns: bool| {
        let c = Stored::<T>::new(9, (m, m), by_columns, 1, 1).filled(&Exact::identity(m));
        let result = c.upload(gpu);
        let (factored, matrix) = (given.matrix(&buffer, 1), c.matrix(&result, 1));
        let call = match transposed {
            false => solve.apply_q(side, factored, &tau, matrix),
            true => solve.apply_q_transposed(side, factored, &tau, matrix),
        };
        call.submit().unwrap().wait().unwrap();
        Exact::of(&c.downloaded(&result))
    };
    let q = applied(Side::Left, false, true);
    small(&what, q.transposed().times(&q).minus(&Exact::identity(m)).norm(), bound, 1.0);
    small(&what, q.times(&r).minus(&a).norm(), bound, a.norm());
    for (side, by_columns) in [(Side::Left, false), (Side::Right, true), (Side::Right, false)] {
        small(&what, applied(side, false, by_columns).minus(&q).norm(), bound, 1.0);
        small(&what, applied(side, true, by_columns).minus(&q.transposed()).norm(), bound, 1.0);
    }
}

#[test]
fn qr_factors_give_the_matrix_again() {
    everywhere_and_in_workers("qr_factors_give_the_matrix_again", |gpu| {
        for shape in [(1, 1), (6, 6), (20, 7), (7, 12)] {
            qr::<f32>(gpu, shape);
            qr::<f64>(gpu, shape);
        }
    });
}

fn least_squares<T: TestNumber + Real>(gpu: &DeviceRuntime, (m, n): (usize, usize), columns: usize) {
    let solve = Solve::new(gpu);
    let given = Stored::<T>::new(10, (m, n), true, 1, 1);
    let b = Stored::<T>::new(11, (m, columns), true, 0, 1);
    let (a, right) = (Exact::of(&given), Exact::of(&b));
    let (buffer, result) = (given.upload(gpu), b.upload(gpu));
    let stream = gpu.stream().unwrap();
    solve
        .least_squares(given.matrix(&buffer, 1), b.matrix(&result, 1))
        .on(&stream)
        .submit()
        .unwrap()
        .wait()
        .unwrap();
    let found = Exact::of(&b.downloaded(&result));
    let x = found.top(n);
    let residual = a.times(&x).minus(&right);
    // The residual is orthogonal to all columns, and as long as the rest of what replaced b.
    let relative = 30.0 * m as f64 * T::TYPE.unit_roundoff();
    let magnitude = a.norm() * (a.norm() * x.norm() + right.norm());
    small("least squares", a.transposed().times(&residual).norm(), relative, magnitude);
    let length = |matrix: &Exact, rows: std::ops::Range<usize>| {
        rows.map(|row| matrix.at(row, 0).powi(2)).sum::<f64>().sqrt()
    };
    let difference = (length(&residual, 0..m) - length(&found, n..m)).abs();
    small("its length", difference, relative, a.norm() * x.norm() + right.norm());
}

#[test]
fn least_squares_leave_a_residual_that_is_orthogonal_to_the_columns() {
    everywhere_and_in_workers("least_squares_leave_a_residual_that_is_orthogonal_to_the_columns", |gpu| {
        for (shape, columns) in [((5, 5), 1), ((12, 4), 1), ((30, 8), 3), ((3, 1), 2)] {
            least_squares::<f32>(gpu, shape, columns);
            least_squares::<f64>(gpu, shape, columns);
        }
    });
}
