//! QR, least squares, eigenvalues and singular values of batches, against residuals in `f64`.

use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::solve::{Matrix, Real, Side, Solve, SolveFailure, Triangle};
use kiln_libs::{LibraryError, Result};

use crate::exact::{Exact, small};
use crate::numbers::TestNumber;
use crate::rig::everywhere_and_in_workers;
use crate::stored::Stored;

/// What LAPACK's tests allow: so many roundings for each row.
const RATIO: f64 = 30.0;

/// The matrix of a batch that a buffer holds.
fn matrix_of<T: TestNumber>(stored: &Stored<T>, which: usize) -> Exact {
    Exact::new(stored.shape.0, stored.shape.1, |row, column| stored.at(which, row, column))
}

/// Refuses a matrix whose columns are not of length 1 and orthogonal.
#[track_caller]
fn check_orthogonal(what: &str, q: &Exact, unit: f64) {
    let rest = q.transposed().times(q).minus(&Exact::identity(q.columns)).norm();
    small(&format!("{what}: orthogonal"), rest, RATIO * q.rows as f64 * unit, 1.0);
}

fn qr<T: TestNumber + Real>(gpu: &DeviceRuntime, shape: (usize, usize), batch: usize, by_columns: bool) {
    let (solve, unit) = (Solve::new(gpu), T::TYPE.unit_roundoff());
    let (rows, columns) = shape;
    let k = rows.min(columns);
    let a = Stored::<T>::new(61, shape, by_columns, 1, batch);
    let (matrices, tau) = (a.upload(gpu), gpu.allocate::<T>(k * batch).unwrap());
    let factored = a.matrix(&matrices, batch);
    solve.qr_batched(factored, &tau).submit().unwrap().wait().unwrap();
    let found = Stored { values: matrices.download().unwrap(), ..a };
    // Q times the identity, and the identity times Qᵀ, in another layout.
    let mut q = Stored::<T>::new(62, (rows, rows), !by_columns, 0, batch);
    for which in 0..batch {
        for row in 0..rows {
            for column in 0..rows {
                let place = q.place(which, row, column);
                q.values[place] = T::from_number(if row == column { 1.0 } else { 0.0 });
            }
        }
    }
    let (left, right) = (q.upload(gpu), q.upload(gpu));
    solve.apply_q_batched(Side::Left, factored, &tau, q.matrix(&left, batch)).submit().unwrap();
    solve.apply_q_transposed_batched(Side::Right, factored, &tau, q.matrix(&right, batch)).submit().unwrap();
    let left = Stored { values: left.download().unwrap(), ..q };
    let right = Stored { values: right.download().unwrap(), ..left };
    for which in 0..batch {
        let what = format!("{rows} x {columns}, {which}, {by_columns}");
        let (exact, q) = (matrix_of(&a, which), matrix_of(&left, which));
        check_orthogonal(&what, &q, unit);
        let upper = |row, column| if row <= column { found.at(which, row, column) } else { 0.0 };
        let product = q.times(&Exact::new(rows, columns, upper));
        small(&what, product.minus(&exact).norm(), RATIO * rows as f64 * unit, exact.norm());
        let transposed = matrix_of(&right, which).transposed();
        small(&what, transposed.minus(&q).norm(), RATIO * rows as f64 * unit, 1.0);
    }
    // Qᵀ undoes Q.
    let sides = left.upload(gpu);
    solve
        .apply_q_transposed_batched(Side::Left, factored, &tau, left.matrix(&sides, batch))
        .submit()
        .unwrap();
    let undone = Stored { values: sides.download().unwrap(), ..left };
    for which in 0..batch {
        let rest = matrix_of(&undone, which).minus(&Exact::identity(rows)).norm();
        small("Qᵀ Q", rest, RATIO * rows as f64 * unit, 1.0);
    }
}

fn least_squares<T: TestNumber + Real>(gpu: &DeviceRuntime, shape: (usize, usize), by_columns: bool) {
    let (solve, unit, batch) = (Solve::new(gpu), T::TYPE.unit_roundoff(), 3);
    let (rows, columns) = shape;
    let a = Stored::<T>::new(63, shape, by_columns, 2, batch);
    let b = Stored::<T>::new(64, (rows, 2), !by_columns, 1, batch);
    let (matrices, sides) = (a.upload(gpu), b.upload(gpu));
    let call = solve.least_squares_batched(a.matrix(&matrices, batch), b.matrix(&sides, batch));
    call.submit().unwrap().wait().unwrap();
    let solved = Stored { values: sides.download().unwrap(), ..b };
    for which in 0..batch {
        let (a, b) = (matrix_of(&a, which), matrix_of(&b, which));
        let x = matrix_of(&solved, which).top(columns);
        // The residual is orthogonal to all columns.
        let residual = a.times(&x).minus(&b);
        let rest = a.transposed().times(&residual).norm();
        let scale = a.transposed().norm() * (a.norm() * x.norm() + b.norm());
        small(&format!("{rows} x {columns}, {which}"), rest, RATIO * rows as f64 * unit, scale);
        let below = Exact::new(rows - columns, 2, |row, column| solved.at(which, columns + row, column));
        let sum = |matrix: &Exact| matrix.transposed().times(matrix);
        let lost = sum(&below).at(0, 0) - sum(&residual).at(0, 0);
        small("sum of squares", lost.abs(), RATIO * rows as f64 * unit, sum(&b).at(0, 0) + scale);
    }
}

fn eigen<T: TestNumber + Real>(gpu: &DeviceRuntime, n: usize, batch: usize, by_columns: bool) {
    let (solve, unit) = (Solve::new(gpu), T::TYPE.unit_roundoff());
    for triangle in [Triangle::Lower, Triangle::Upper] {
        // The other triangle has other numbers, which do not count.
        let a = Stored::<T>::new(65, (n, n), by_columns, 1, batch);
        let symmetric = |which: usize| {
            Exact::new(n, n, |row, column| match (row >= column) == (triangle == Triangle::Lower) {
                true => a.at(which, row, column),
                false => a.at(which, column, row),
            })
        };
        let (matrices, values) = (a.upload(gpu), gpu.allocate::<T>(n * batch).unwrap());
        let alone = gpu.allocate::<T>(n * batch).unwrap();
        let matrix = a.matrix(&matrices, batch);
        solve.eigenvalues_batched(matrix, triangle, &alone).submit().unwrap().wait().unwrap();
        assert_eq!(bytes(&matrices.download().unwrap()), bytes(&a.values), "A is only read");
        solve.eigenvectors_batched(matrix, triangle, &values).submit().unwrap().wait().unwrap();
        let vectors = Stored { values: matrices.download().unwrap(), ..a };
        let (values, alone) = (values.download().unwrap(), alone.download().unwrap());
        for which in 0..batch {
            let what = format!("{n}, {which}, {by_columns}, {triangle}");
            // Each vector lies in one piece.
            let v = matrix_of(&vectors, which);
            let v = if by_columns { v } else { v.transposed() };
            let exact = symmetric(which);
            let value = |at: usize| values[which * n + at].number();
            assert!((1..n).all(|at| value(at - 1) <= value(at)), "{what}: in ascending order");
            check_orthogonal(&what, &v, unit);
            let scaled = Exact::new(n, n, |row, column| v.at(row, column) * value(column));
            let rest = exact.times(&v).minus(&scaled).norm();
            small(&what, rest, RATIO * n as f64 * unit, exact.norm());
            for at in 0..n {
                let other = alone[which * n + at].number();
                small("values alone", (other - value(at)).abs(), RATIO * n as f64 * unit, exact.norm());
            }
        }
    }
}

fn bytes<T: Real>(values: &[T]) -> &[u8] {
    bytemuck::cast_slice(values)
}

/// Of a batch with a matrix of rank 1 and a matrix of zeros.
fn svd<T: TestNumber + Real>(gpu: &DeviceRuntime, shape: (usize, usize), by_columns: bool) {
    let (solve, unit, batch) = (Solve::new(gpu), T::TYPE.unit_roundoff(), 4);
    let (rows, columns) = shape;
    let k = rows.min(columns);
    let mut a = Stored::<T>::new(66, shape, by_columns, 1, batch);
    for row in 0..rows {
        for column in 0..columns {
            let (one, none) = (a.place(1, row, column), a.place(3, row, column));
            a.values[one] = T::from_number((row as f64 + 1.0) * (column as f64 - 1.0) / 8.0);
            a.values[none] = T::from_number(0.0);
        }
    }
    let u = Stored::<T>::new(67, (rows, k), by_columns, 2, batch);
    let vt = Stored::<T>::new(68, (k, columns), by_columns, 0, batch);
    let (matrices, left, right) = (a.upload(gpu), u.upload(gpu), vt.upload(gpu));
    let (s, alone) = (gpu.allocate::<T>(k * batch).unwrap(), gpu.allocate::<T>(k * batch).unwrap());
    let matrix = a.matrix(&matrices, batch);
    let call = solve.svd_batched(matrix, &s, u.matrix(&left, batch), vt.matrix(&right, batch));
    call.submit().unwrap().wait().unwrap();
    solve.singular_values_batched(matrix, &alone).submit().unwrap().wait().unwrap();
    assert_eq!(bytes(&matrices.download().unwrap()), bytes(&a.values), "A is only read");
    let u = Stored { values: left.download().unwrap(), ..u };
    let vt = Stored { values: right.download().unwrap(), ..vt };
    let (s, alone) = (s.download().unwrap(), alone.download().unwrap());
    for which in 0..batch {
        let what = format!("{rows} x {columns}, {which}, {by_columns}");
        let (exact, u, vt) = (matrix_of(&a, which), matrix_of(&u, which), matrix_of(&vt, which));
        let value = |at: usize| s[which * k + at].number();
        assert!((1..k).all(|at| value(at - 1) >= value(at)) && value(k - 1) >= 0.0, "{what}: in order");
        check_orthogonal(&what, &u, unit);
        check_orthogonal(&what, &vt.transposed(), unit);
        let scaled = Exact::new(rows, k, |row, column| u.at(row, column) * value(column));
        let (longer, norm) = (rows.max(columns) as f64, exact.norm() + exact.transposed().norm());
        small(&what, scaled.times(&vt).minus(&exact).norm(), RATIO * longer * unit, norm);
        for at in 0..k {
            let other = alone[which * k + at].number();
            small("values alone", (other - value(at)).abs(), RATIO * longer * unit, norm);
        }
    }
}

#[test]
fn batches_have_orthogonal_factors_and_least_squares() {
    everywhere_and_in_workers("batches_have_orthogonal_factors_and_least_squares", |gpu| {
        for by_columns in [false, true] {
            qr::<f32>(gpu, (1, 1), 3, by_columns);
            qr::<f64>(gpu, (13, 5), 3, by_columns);
            qr::<f32>(gpu, (5, 9), 2, by_columns);
            qr::<f32>(gpu, (40, 34), 1, by_columns);
            least_squares::<f64>(gpu, (1, 1), by_columns);
            least_squares::<f32>(gpu, (12, 5), by_columns);
            least_squares::<f64>(gpu, (37, 33), by_columns);
        }
    });
}

#[test]
fn batches_have_eigenvalues_and_singular_values() {
    everywhere_and_in_workers("batches_have_eigenvalues_and_singular_values", |gpu| {
        for by_columns in [false, true] {
            eigen::<f64>(gpu, 1, 3, by_columns);
            eigen::<f32>(gpu, 7, 3, by_columns);
            eigen::<f64>(gpu, 18, 2, by_columns);
            svd::<f64>(gpu, (1, 1), by_columns);
            svd::<f32>(gpu, (3, 8), by_columns);
            svd::<f64>(gpu, (17, 6), by_columns);
            svd::<f32>(gpu, (2, 1), by_columns);
        }
    });
}

#[test]
fn spectra_and_factors_that_do_not_fit_shared_memory_are_computed() {
    everywhere_and_in_workers("spectra_and_factors_that_do_not_fit_shared_memory_are_computed", |gpu| {
        qr::<f64>(gpu, (74, 70), 1, true);
        least_squares::<f64>(gpu, (1300, 4), false);
        eigen::<f64>(gpu, 52, 2, false);
        svd::<f64>(gpu, (1300, 4), true);
    });
}

#[test]
fn numbers_near_the_limits_are_decomposed() {
    everywhere_and_in_workers("numbers_near_the_limits_are_decomposed", |gpu| {
        let solve = Solve::new(gpu);
        for scale in [1e37_f32, 1e-38] {
            let values = [3.0, 0.0, 4.0, 5.0_f32].map(|value| value * scale);
            let (a, s, tau) = (gpu.upload(&values).unwrap(), gpu.zeros(2).unwrap(), gpu.zeros(2).unwrap());
            let matrix = Matrix::new(&a, 2, 2);
            solve.singular_values_batched(matrix, &s).submit().unwrap().wait().unwrap();
            // The squares have the sum 50 and the product 225.
            for (found, wanted) in s.download().unwrap().iter().zip([45.0_f64.sqrt(), 5.0_f64.sqrt()]) {
                assert!((f64::from(*found / scale) - wanted).abs() < 1e-5, "{found:e} for {scale:e}");
            }
            solve.qr_batched(matrix, &tau).submit().unwrap().wait().unwrap();
            let length = f64::from(a.download().unwrap()[0].abs() / scale);
            assert!((length - 5.0).abs() < 1e-5, "{length:e} for {scale:e}");
        }
    });
}

/// Two matrices of order 2.
fn pairs<T: Real>(buffer: &GpuRef<T>) -> Matrix<'_, T> {
    Matrix::new(buffer, 2, 2).batch(2)
}

#[test]
fn the_matrix_of_a_batch_that_has_no_spectrum_or_solution_is_told() {
    everywhere_and_in_workers("the_matrix_of_a_batch_that_has_no_spectrum_or_solution_is_told", |gpu| {
        let (solve, lower) = (Solve::new(gpu), Triangle::Lower);
        let values = |wrong: f64| [[4.0_f64, 1.0, 1.0, 3.0], [2.0, wrong, wrong, wrong]].concat();
        for wrong in [f64::NAN, f64::INFINITY] {
            let (a, four) = (gpu.upload(&values(wrong)).unwrap(), gpu.zeros::<f64>(4).unwrap());
            let ticket = solve.eigenvalues_batched(pairs(&a), lower, &four).submit().unwrap();
            let text = ticket.wait().unwrap_err().to_string();
            assert_eq!(
                text,
                "solve.eigenvalues_batched: matrix 1 of 2: the iteration did not converge (1 failed); look for NaN and infinities in the matrix"
            );
            let found = four.download().unwrap();
            assert!((found[0] + found[1] - 7.0).abs() < 1e-14 && found[3].is_nan(), "{found:?}");
            let ticket = solve.singular_values_batched(pairs(&a), &four).submit().unwrap();
            assert_eq!(ticket.wait().unwrap_err().solve_failure(), Some(SolveFailure::NotConverged));
            let ticket = solve.qr_batched(pairs(&a), &four).submit().unwrap();
            let failure = ticket.wait().unwrap_err().solve_failure();
            assert_eq!(failure, Some(SolveFailure::NotFinite { pivot: 0 }));
            assert_eq!(ticket.info().words().download().unwrap(), [0, -1]);
        }
        let (a, b) = (gpu.upload(&values(0.0)).unwrap(), gpu.upload(&[1.0_f64; 4]).unwrap());
        let sides = Matrix::new(&b, 2, 1).batch(2);
        let error = solve.least_squares_batched(pairs(&a), sides).submit().unwrap().wait().unwrap_err();
        assert_eq!(error.solve_failure(), Some(SolveFailure::Singular { pivot: 1 }));
        assert!(error.to_string().starts_with("solve.least_squares_batched: matrix 1 of 2: "), "{error}");
    });
}

#[test]
fn spectra_and_least_squares_of_a_batch_are_replayed_in_a_graph() {
    everywhere_and_in_workers("spectra_and_least_squares_of_a_batch_are_replayed_in_a_graph", |gpu| {
        let solve = Solve::new(gpu);
        let template = gpu.upload(&[2.0_f64, 1.0, 1.0, 2.0, 3.0, 0.0, 0.0, 5.0]).unwrap();
        let [a, values, b] = [8, 4, 4].map(|len| gpu.zeros::<f64>(len).unwrap());
        let matrices = Matrix::new(&a, 2, 2).batch(2);
        let mut graph = gpu.graph();
        graph.copy(&template, &a).unwrap();
        let (_, info) =
            solve.eigenvalues_batched(matrices, Triangle::Lower, &values).record(&mut graph).unwrap();
        graph.fill(&b, 0.0).unwrap();
        let sides = Matrix::new(&b, 2, 1).batch(2);
        let (_, solved) = solve.least_squares_batched(matrices, sides).record(&mut graph).unwrap();
        let graph = graph.build().unwrap();
        for _ in 0..2 {
            graph.replay().unwrap();
            info.check().unwrap();
            solved.check().unwrap();
            for (found, wanted) in values.download().unwrap().into_iter().zip([1.0, 3.0, 3.0, 5.0]) {
                assert!((found - wanted).abs() < 1e-14, "{found} is not {wanted}");
            }
            assert_eq!(b.download().unwrap(), [0.0; 4]);
        }
        template.upload(&[f64::NAN, 1.0, 1.0, 2.0, 3.0, 0.0, 0.0, 5.0]).unwrap();
        graph.replay().unwrap();
        assert_eq!(info.check().unwrap_err().solve_failure(), Some(SolveFailure::NotConverged));
    });
}

/// The words of a refusal that is about arguments.
#[track_caller]
fn refused<T>(answer: Result<T>) -> String {
    let error = answer.map(drop).unwrap_err();
    assert!(matches!(error, LibraryError::Argument { .. }), "{error}");
    error.to_string()
}

#[test]
fn batches_without_such_factors_are_refused() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (solve, lower) = (Solve::new(&gpu), Triangle::Lower);
    let (a, b) = (gpu.upload(&[2.0_f32; 12]).unwrap(), gpu.upload(&[3.0_f32; 12]).unwrap());
    let (c, four) = (gpu.zeros::<f32>(12).unwrap(), gpu.zeros::<f32>(4).unwrap());
    let before = gpu.bytes_outstanding();
    let wide = |buffer| Matrix::new(buffer, 2, 3).batch(2);
    let told = [
        (
            refused(solve.eigenvalues_batched(wide(&a), lower, &four).submit()),
            "solve.eigenvalues_batched: `a` is 2 x 3, and must be square; use `qr_batched` or `svd_batched` for other shapes",
        ),
        (
            refused(solve.least_squares_batched(wide(&a), Matrix::new(&b, 2, 1).batch(2)).submit()),
            "solve.least_squares_batched: `a` is 2 x 3: there are more unknowns than equations; use `svd_batched`",
        ),
        (
            refused(solve.qr_batched(wide(&a), &b).submit()),
            "solve.qr_batched: `tau` has 12 elements and must have 4 for 2 matrices of 2 x 3; ",
        ),
        (
            refused(solve.singular_values_batched(wide(&a), &b).submit()),
            "solve.singular_values_batched: `s` has 12 elements and must have 4 for 2 matrices of 2 x 3; ",
        ),
        (
            refused(solve.svd_batched(wide(&a), &four, wide(&b), wide(&c)).submit()),
            "solve.svd_batched: `u` is 2 matrices of 2 x 3, and must be 2 matrices of 2 x 2; ",
        ),
        (
            refused(solve.svd_batched(wide(&a), &four, Matrix::new(&a, 2, 2).batch(2), wide(&c)).submit()),
            "solve.svd_batched: `a` and `u` share memory; ",
        ),
        (
            refused(solve.apply_q_batched(Side::Right, wide(&a), &four, wide(&b)).submit()),
            "solve.apply_q_batched: 2 factors of 2 x 3 and 2 matrices `c` of 2 x 3; ",
        ),
        (
            refused(solve.apply_q_transposed_batched(Side::Left, wide(&a), &four, wide(&a)).submit()),
            "solve.apply_q_transposed_batched: `factored` and `c` share memory; ",
        ),
    ];
    for (text, wanted) in told {
        assert!(text.starts_with(wanted), "{text} is not {wanted}");
    }
    assert_eq!((a.download().unwrap(), b.download().unwrap()), (vec![2.0; 12], vec![3.0; 12]));
    gpu.synchronize().unwrap();
    gpu.reap_pending().unwrap();
    assert_eq!(gpu.bytes_outstanding(), before, "nothing is held");
}

#[test]
fn refusals_of_batches_tell_the_shapes_that_were_given() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let solve = Solve::new(&gpu);
    let (a, b) = (gpu.zeros::<f64>(12).unwrap(), gpu.zeros::<f64>(12).unwrap());
    let tau = gpu.zeros::<f64>(2).unwrap();
    let (tall, side) = (Matrix::new(&a, 4, 2), Matrix::new(&b, 3, 1));
    let refused = |answer: Result<()>| answer.unwrap_err().to_string();
    let text = refused(solve.least_squares_batched(tall, side).submit().map(drop));
    assert!(text.contains("a matrix of 4 x 2 and a right-hand side of 3 x 1;"), "{text}");
    let many = Matrix::new(&a, 3, 2).batch(2);
    let text = refused(solve.least_squares_batched(many, side).submit().map(drop));
    assert!(text.contains("2 matrices of 3 x 2 and a right-hand side of 3 x 1;"), "{text}");
    let text = refused(solve.apply_q_batched(Side::Left, tall, &tau, side).submit().map(drop));
    assert!(text.contains("a factor of 4 x 2 and a matrix `c` of 3 x 1;"), "{text}");
    let text = refused(solve.qr_batched(tall, &a).submit().map(drop));
    assert!(text.contains("`tau` has 12 elements and must have 2 for a matrix of 4 x 2;"), "{text}");
    let text = refused(solve.svd_batched(tall, &tau, tall, side).submit().map(drop));
    assert!(text.contains("`vt` is a matrix of 3 x 1, and must be a matrix of 2 x 2;"), "{text}");
}
