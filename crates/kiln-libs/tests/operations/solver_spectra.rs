//! Eigenvalues and singular values: known ones, and vectors by what is left of their equations.

use kiln::DeviceRuntime;
use kiln_libs::Tolerance;
use kiln_libs::solve::{Matrix, Real, Solve, SolveCall, Triangle};

use crate::exact::{Exact, small};
use crate::numbers::TestNumber;
use crate::rig::{everywhere_and_in_workers, is_simulated};
use crate::stored::Stored;

fn relative(call: &SolveCall<'_>) -> f64 {
    Tolerance::of(&call.operation().unwrap()).relative
}

fn numbers<T: TestNumber>(buffer: &kiln::GpuRef<T>) -> Vec<f64> {
    buffer.download().unwrap().into_iter().map(TestNumber::number).collect()
}

/// The second difference, whose eigenvalues are `2 - 2 cos(π i / (n + 1))`.
fn second_difference(n: usize) -> Exact {
    Exact::new(n, n, |row, column| match row.abs_diff(column) {
        0 => 2.0,
        1 => -1.0,
        _ => 0.0,
    })
}

fn known_values(n: usize) -> Vec<f64> {
    (1..=n).map(|at| 2.0 - 2.0 * (std::f64::consts::PI * at as f64 / (n + 1) as f64).cos()).collect()
}

fn symmetric<T: TestNumber>(n: usize) -> Exact {
    let half = Exact::of(&Stored::<T>::new(12, (n, n), false, 0, 1));
    Exact::new(n, n, |row, column| (half.at(row, column) + half.at(column, row)) / 2.0)
}

fn eigen<T: TestNumber + Real>(gpu: &DeviceRuntime, a: &Exact, triangle: Triangle, by_columns: bool) {
    let solve = Solve::new(gpu);
    let n = a.rows;
    let what = format!("{n} {triangle} {by_columns}");
    let given = Stored::<T>::new(13, (n, n), by_columns, 3, 1).filled(a);
    let (buffer, values) = (given.upload(gpu), gpu.allocate::<T>(n).unwrap());
    let call = solve.eigenvectors(given.matrix(&buffer, 1), triangle, &values);
    let bound = relative(&call);
    call.submit().unwrap().wait().unwrap();
    let found = Exact::of(&given.downloaded(&buffer));
    // Each vector lies in one piece.
    let vectors = if by_columns { found } else { found.transposed() };
    let lambda = numbers(&values);
    assert!(lambda.is_sorted(), "{what}: {lambda:?}");
    small(&what, vectors.transposed().times(&vectors).minus(&Exact::identity(n)).norm(), bound, 1.0);
    let scaled = Exact::new(n, n, |row, column| vectors.at(row, column) * lambda[column]);
    small(&what, a.times(&vectors).minus(&scaled).norm(), bound, a.norm());

    let again = given.upload(gpu);
    let alone = gpu.allocate::<T>(n).unwrap();
    solve.eigenvalues(given.matrix(&again, 1), triangle, &alone).submit().unwrap().wait().unwrap();
    for (one, other) in numbers(&alone).into_iter().zip(&lambda) {
        small(&what, (one - other).abs(), 2.0 * bound, a.norm());
    }
}

#[test]
fn eigenvectors_are_turned_into_multiples_of_themselves() {
    everywhere_and_in_workers("eigenvectors_are_turned_into_multiples_of_themselves", |gpu| {
        for n in [1, 2, 5, 24] {
            for (triangle, by_columns) in [
                (Triangle::Lower, true),
                (Triangle::Upper, true),
                (Triangle::Lower, false),
                (Triangle::Upper, false),
            ] {
                eigen::<f32>(gpu, &symmetric::<f32>(n), triangle, by_columns);
                eigen::<f64>(gpu, &symmetric::<f64>(n), triangle, by_columns);
            }
        }
        // Equal eigenvalues.
        eigen::<f64>(gpu, &Exact::identity(6), Triangle::Lower, true);
    });
}

#[test]
fn eigenvalues_and_singular_values_of_the_second_difference_are_known() {
    everywhere_and_in_workers("eigenvalues_and_singular_values_of_the_second_difference_are_known", |gpu| {
        let n = 20;
        let solve = Solve::new(gpu);
        let given = Stored::<f64>::new(0, (n, n), false, 0, 1).filled(&second_difference(n));
        let (a, values) = (given.upload(gpu), gpu.allocate::<f64>(n).unwrap());
        solve.eigenvalues(given.matrix(&a, 1), Triangle::Upper, &values).submit().unwrap().wait().unwrap();
        let (b, s) = (given.upload(gpu), gpu.allocate::<f64>(n).unwrap());
        solve.singular_values(given.matrix(&b, 1), &s).submit().unwrap().wait().unwrap();
        let (values, s) = (values.download().unwrap(), s.download().unwrap());
        for (at, known) in known_values(n).into_iter().enumerate() {
            assert!((values[at] - known).abs() < 3e-13, "{} is not {known}", values[at]);
            assert!((s[n - 1 - at] - known).abs() < 3e-13, "{} is not {known}", s[n - 1 - at]);
        }
    });
}

fn svd<T: TestNumber + Real>(gpu: &DeviceRuntime, a: &Exact, by_columns: bool) {
    let solve = Solve::new(gpu);
    let (m, n) = (a.rows, a.columns);
    let k = m.min(n);
    let what = format!("{m} x {n} {by_columns}");
    let given = Stored::<T>::new(14, (m, n), by_columns, 1, 1).filled(a);
    let exact = Exact::of(&given);
    let (buffer, s) = (given.upload(gpu), gpu.allocate::<T>(k).unwrap());
    let (u, vt) = (Stored::<T>::new(15, (m, k), true, 2, 1), Stored::<T>::new(16, (k, n), false, 1, 1));
    let (left, right) = (u.upload(gpu), vt.upload(gpu));
    let call = solve.svd(given.matrix(&buffer, 1), &s, u.matrix(&left, 1), vt.matrix(&right, 1));
    let bound = relative(&call);
    call.submit().unwrap().wait().unwrap();
    let (u, vt) = (Exact::of(&u.downloaded(&left)), Exact::of(&vt.downloaded(&right)));
    let values = numbers(&s);
    assert!(values.is_sorted_by(|one, other| one >= other) && values[k - 1] >= 0.0, "{what}: {values:?}");
    // cuSOLVER does not promise left vectors for singular values of zero.
    if is_simulated(gpu) || values[k - 1] > bound * exact.norm() {
        small(&what, u.transposed().times(&u).minus(&Exact::identity(k)).norm(), bound, 1.0);
    }
    small(&what, vt.times(&vt.transposed()).minus(&Exact::identity(k)).norm(), bound, 1.0);
    let scaled = Exact::new(m, k, |row, column| u.at(row, column) * values[column]);
    small(&what, scaled.times(&vt).minus(&exact).norm(), bound, exact.norm().max(1.0));

    let again = given.upload(gpu);
    let alone = gpu.allocate::<T>(k).unwrap();
    solve.singular_values(given.matrix(&again, 1), &alone).submit().unwrap().wait().unwrap();
    for (one, other) in numbers(&alone).into_iter().zip(&values) {
        small(&what, (one - other).abs(), 2.0 * bound, exact.norm().max(1.0));
    }
}

#[test]
fn singular_vectors_and_values_give_the_matrix_again() {
    everywhere_and_in_workers("singular_vectors_and_values_give_the_matrix_again", |gpu| {
        for (m, n) in [(1, 1), (4, 4), (17, 6), (6, 17)] {
            for by_columns in [false, true] {
                let a = Exact::of(&Stored::<f32>::new(17, (m, n), false, 0, 1));
                svd::<f32>(gpu, &a, by_columns);
                svd::<f64>(gpu, &a, by_columns);
            }
        }
        // Of rank 2, and of rank 0.
        let deficient = Exact::new(7, 5, |row, column| (row * column) as f64 - 3.0 * row as f64 + 1.0);
        svd::<f64>(gpu, &deficient, true);
        svd::<f32>(gpu, &deficient, false);
        svd::<f64>(gpu, &Exact::new(4, 3, |_, _| 0.0), true);
    });
}

#[test]
fn one_column_is_a_matrix_in_either_layout() {
    everywhere_and_in_workers("one_column_is_a_matrix_in_either_layout", |gpu| {
        let solve = Solve::new(gpu);
        let (a, s) = (gpu.upload(&[3.0_f64, 4.0]).unwrap(), gpu.allocate::<f64>(1).unwrap());
        let (u, vt) = (gpu.allocate::<f64>(2).unwrap(), gpu.allocate::<f64>(1).unwrap());
        let column = Matrix::new(&a, 2, 1);
        solve
            .svd(column, &s, Matrix::new(&u, 2, 1), Matrix::new(&vt, 1, 1))
            .submit()
            .unwrap()
            .wait()
            .unwrap();
        let (s, u, vt) = (s.download().unwrap(), u.download().unwrap(), vt.download().unwrap());
        assert!((s[0] - 5.0).abs() < 1e-14 && (u[0] * vt[0] - 0.6).abs() < 1e-15, "{s:?} {u:?} {vt:?}");
    });
}
