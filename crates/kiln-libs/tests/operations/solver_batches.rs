//! Factors of batches of matrices and what they solve, against residuals in `f64`.

use kiln::DeviceRuntime;
use kiln_libs::solve::{Matrix, Real, Solve, SolveFailure, Triangle};
use kiln_libs::{LibraryError, Result};

use crate::exact::{Exact, small};
use crate::numbers::{TestNumber, made_up};
use crate::rig::everywhere_and_in_workers;
use crate::stored::Stored;

/// What LAPACK's tests allow: so many roundings for each row.
const RATIO: f64 = 30.0;

/// The matrix of a batch that a buffer holds.
fn matrix_of<T: TestNumber>(stored: &Stored<T>, which: usize) -> Exact {
    Exact::new(stored.shape.0, stored.shape.1, |row, column| stored.at(which, row, column))
}

/// Puts a symmetric positive definite matrix into each place of a batch.
fn definite<T: TestNumber>(seed: u64, n: usize, by_columns: bool, gap: usize, batch: usize) -> Stored<T> {
    let mut stored = Stored::<T>::new(seed, (n, n), by_columns, gap, batch);
    for which in 0..batch {
        let numbers = made_up::<T>(seed + which as u64, n * n);
        let half = Exact::new(n, n, |row, column| numbers[row * n + column].number());
        let product = half.times(&half.transposed());
        for row in 0..n {
            for column in 0..n {
                let more = if row == column { n as f64 } else { 0.0 };
                let place = stored.place(which, row, column);
                stored.values[place] = T::from_number(product.at(row, column) + more);
            }
        }
    }
    stored
}

#[track_caller]
fn check_residual(what: &str, a: &Exact, x: &Exact, b: &Exact, unit: f64) {
    let residual = a.times(x).minus(b).norm();
    small(what, residual, RATIO * a.rows as f64 * unit, a.norm() * x.norm() + b.norm());
}

fn cholesky<T: TestNumber + Real>(gpu: &DeviceRuntime, n: usize, batch: usize, by_columns: bool) {
    let (solve, unit) = (Solve::new(gpu), T::TYPE.unit_roundoff());
    for triangle in [Triangle::Lower, Triangle::Upper] {
        let a = definite::<T>(51, n, by_columns, 2, batch);
        let b = Stored::<T>::new(52, (n, 3), !by_columns, 1, batch);
        let (matrices, sides) = (a.upload(gpu), b.upload(gpu));
        let factors = a.matrix(&matrices, batch);
        solve.cholesky_batched(factors, triangle).submit().unwrap().wait().unwrap();
        let found = Stored { values: matrices.download().unwrap(), ..a };
        for which in 0..batch {
            let (exact, found) = (matrix_of(&a, which), matrix_of(&found, which));
            let is_inside =
                |row, column| if triangle == Triangle::Lower { row >= column } else { row <= column };
            let factor = Exact::new(
                n,
                n,
                |row, column| if is_inside(row, column) { found.at(row, column) } else { 0.0 },
            );
            let product = match triangle {
                Triangle::Lower => factor.times(&factor.transposed()),
                Triangle::Upper => factor.transposed().times(&factor),
            };
            let what = format!("{n} {which} {triangle}");
            small(&what, product.minus(&exact).norm(), RATIO * n as f64 * unit, exact.norm());
            for row in 0..n {
                let other = (0..n).filter(|column| !is_inside(row, *column));
                other.for_each(|column| {
                    assert_eq!(found.at(row, column), exact.at(row, column), "{what}: not touched")
                });
            }
        }
        solve.cholesky_solve_batched(factors, triangle, b.matrix(&sides, batch)).submit().unwrap();
        let solved = Stored { values: sides.download().unwrap(), ..b };
        for which in 0..batch {
            let what = format!("{n} {which} {triangle} solved");
            check_residual(
                &what,
                &matrix_of(&a, which),
                &matrix_of(&solved, which),
                &matrix_of(&b, which),
                unit,
            );
        }
    }
}

fn lu<T: TestNumber + Real>(gpu: &DeviceRuntime, n: usize, batch: usize, by_columns: bool) {
    let (solve, unit) = (Solve::new(gpu), T::TYPE.unit_roundoff());
    let a = Stored::<T>::new(53, (n, n), by_columns, 1, batch);
    let b = Stored::<T>::new(54, (n, 2), by_columns, 2, batch);
    let (matrices, sides) = (a.upload(gpu), b.upload(gpu));
    let pivots = gpu.allocate::<i64>(n * batch).unwrap();
    let factors = a.matrix(&matrices, batch);
    solve.lu_batched(factors, &pivots).submit().unwrap().wait().unwrap();
    let (found, rows) = (Stored { values: matrices.download().unwrap(), ..a }, pivots.download().unwrap());
    for which in 0..batch {
        let found = matrix_of(&found, which);
        let lower = Exact::new(n, n, |row, column| match row.cmp(&column) {
            std::cmp::Ordering::Greater => found.at(row, column),
            std::cmp::Ordering::Equal => 1.0,
            std::cmp::Ordering::Less => 0.0,
        });
        let upper = Exact::new(n, n, |row, column| if row <= column { found.at(row, column) } else { 0.0 });
        let mut order: Vec<usize> = (0..n).collect();
        for (row, other) in rows[which * n..][..n].iter().enumerate() {
            assert!((row + 1..=n).contains(&(*other as usize)), "pivot {other} of row {row}");
            order.swap(row, *other as usize - 1);
        }
        let exact = matrix_of(&a, which);
        let exchanged = Exact::new(n, n, |row, column| exact.at(order[row], column));
        assert!(
            (0..n).all(|row| (0..row).all(|column| lower.at(row, column).abs() <= 1.0)),
            "the largest is the pivot"
        );
        small(
            &format!("{n} {which}"),
            lower.times(&upper).minus(&exchanged).norm(),
            RATIO * n as f64 * unit,
            exact.norm(),
        );
    }
    solve.lu_solve_batched(factors, &pivots, b.matrix(&sides, batch)).submit().unwrap().wait().unwrap();
    let solved = Stored { values: sides.download().unwrap(), ..b };
    for which in 0..batch {
        let what = format!("{n} {which} {by_columns} solved");
        check_residual(&what, &matrix_of(&a, which), &matrix_of(&solved, which), &matrix_of(&b, which), unit);
    }
}

#[test]
fn batches_of_matrices_are_factored_and_solved() {
    everywhere_and_in_workers("batches_of_matrices_are_factored_and_solved", |gpu| {
        for by_columns in [false, true] {
            cholesky::<f32>(gpu, 1, 3, by_columns);
            cholesky::<f64>(gpu, 13, 5, by_columns);
            cholesky::<f32>(gpu, 33, 2, by_columns);
            lu::<f64>(gpu, 1, 3, by_columns);
            lu::<f32>(gpu, 12, 5, by_columns);
            lu::<f64>(gpu, 33, 2, by_columns);
        }
    });
}

#[test]
fn matrices_that_do_not_fit_shared_memory_are_factored() {
    everywhere_and_in_workers("matrices_that_do_not_fit_shared_memory_are_factored", |gpu| {
        cholesky::<f64>(gpu, 73, 1, true);
        lu::<f64>(gpu, 73, 1, false);
    });
}

#[test]
fn the_matrix_of_a_batch_that_has_no_factors_is_told() {
    everywhere_and_in_workers("the_matrix_of_a_batch_that_has_no_factors_is_told", |gpu| {
        let (solve, n, batch) = (Solve::new(gpu), 4, 6);
        // Identities, but for elements on the diagonals of two of them.
        let identities = |wrong: &[(usize, usize, f64)]| {
            let mut values = vec![0.0_f64; n * n * batch];
            (0..n * batch).for_each(|at| values[at / n * n * n + at % n * (n + 1)] = 1.0);
            wrong.iter().for_each(|(matrix, at, value)| values[matrix * n * n + at * (n + 1)] = *value);
            gpu.upload(&values).unwrap()
        };
        let a = identities(&[(3, 2, -1.0), (5, 0, f64::NAN)]);
        let ticket =
            solve.cholesky_batched(Matrix::new(&a, n, n).batch(batch), Triangle::Lower).submit().unwrap();
        let error = ticket.wait().unwrap_err();
        assert_eq!(error.solve_failure(), Some(SolveFailure::NotPositiveDefinite { order: 3 }));
        let text = "solve.cholesky_batched: matrix 3 of 6: the matrix is not positive definite: its leading minor of order 3 is not positive (2 failed); look for NaN and infinities in the matrix, add a multiple of the identity, or use `lu`";
        assert_eq!(error.to_string(), text);
        assert_eq!(ticket.info().words().download().unwrap(), [0, 0, 0, 3, 0, 1]);
        let (a, pivots) = (identities(&[(1, 2, 0.0)]), gpu.allocate::<i64>(n * batch).unwrap());
        let ticket = solve.lu_batched(Matrix::new(&a, n, n).batch(batch), &pivots).submit().unwrap();
        let error = ticket.wait().unwrap_err();
        assert!(
            matches!(
                error,
                LibraryError::SolveBatch {
                    matrix: 1,
                    count: 6,
                    failed: 1,
                    failure: SolveFailure::Singular { pivot: 2 },
                    ..
                }
            ),
            "{error}"
        );
    });
}

#[test]
fn a_batch_is_replayed_in_a_graph_and_one_factor_serves_all() {
    everywhere_and_in_workers("a_batch_is_replayed_in_a_graph_and_one_factor_serves_all", |gpu| {
        let solve = Solve::new(gpu);
        let template = gpu.upload(&[4.0_f32, 2.0, 2.0, 5.0]).unwrap();
        let (a, b) =
            (gpu.zeros::<f32>(4).unwrap(), gpu.upload(&[8.0_f32, 12.0, 4.0, 2.0, 2.0, 5.0]).unwrap());
        let (one, sides) = (Matrix::new(&a, 2, 2), Matrix::new(&b, 2, 1).batch(3));
        let mut graph = gpu.graph();
        graph.copy(&template, &a).unwrap();
        let (_, info) = solve.cholesky_batched(one, Triangle::Lower).record(&mut graph).unwrap();
        let shared = one.batch(3).stride(0);
        solve.cholesky_solve_batched(shared, Triangle::Lower, sides).record(&mut graph).unwrap();
        let graph = graph.build().unwrap();
        graph.replay().unwrap();
        info.check().unwrap();
        assert_eq!(b.download().unwrap(), [1.0, 2.0, 1.0, 0.0, 0.0, 1.0]);
        template.upload(&[-4.0_f32, 2.0, 2.0, 5.0]).unwrap();
        graph.replay().unwrap();
        assert_eq!(
            info.check().unwrap_err().solve_failure(),
            Some(SolveFailure::NotPositiveDefinite { order: 1 })
        );
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
fn batches_that_do_not_fit_are_refused() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let solve = Solve::new(&gpu);
    let (a, b) = (gpu.upload(&[2.0_f32; 12]).unwrap(), gpu.upload(&[3.0_f32; 12]).unwrap());
    let pivots = gpu.zeros::<i64>(6).unwrap();
    let before = gpu.bytes_outstanding();
    let lower = Triangle::Lower;
    let text = refused(solve.cholesky_batched(Matrix::new(&a, 2, 3).batch(2), lower).submit());
    assert_eq!(
        text,
        "solve.cholesky_batched: `a` is 2 x 3, and must be square; use `qr_batched` or `svd_batched` for other shapes"
    );
    let text = refused(solve.cholesky_batched(Matrix::new(&a, 2, 2).batch(4), lower).submit());
    assert!(text.contains("`a` has 12 elements and must have 16"), "{text}");
    let text = refused(solve.cholesky_batched(Matrix::new(&a, 2, 2).batch(3).stride(3), lower).submit());
    assert!(text.contains("matrices of `a` that are 3 elements apart and reach over 4"), "{text}");
    let text = refused(solve.cholesky_batched(Matrix::new(&a, 3, 3).leading(2), lower).submit());
    assert!(text.contains("`a` has a leading dimension of 2 for rows of 3 elements"), "{text}");
    let large = 1 << 31;
    let text = refused(solve.cholesky_batched(Matrix::new(&a, large, large), lower).submit());
    assert!(
        text.contains("and must have 4611686018427387904 for a matrix of 2147483648 x 2147483648"),
        "{text}"
    );
    let huge = Matrix::new(&a, large, large).batch(1 << 40).leading(large).stride(1 << 62);
    for text in [
        refused(solve.lu_batched(huge, &pivots).submit()),
        refused(solve.cholesky_batched(huge, lower).submit()),
    ] {
        let sizes = "1099511627776 matrices of 2147483648 x 2147483648 with a leading dimension of 2147483648 that are 4611686018427387904 elements apart";
        assert!(text.contains(sizes), "{text}");
    }
    // Pivots of one factorisation that stands for many.
    let (many, one) = (1 << 30, Matrix::new(&a, 2, 2).stride(0));
    let text =
        refused(solve.lu_solve_batched(one.batch(many), &pivots, Matrix::new(&b, 2, 1).batch(many)).submit());
    assert!(
        text.contains("`pivots` has 6 elements and must have 2147483648 for 1073741824 matrices of 2 rows"),
        "{text}"
    );
    let blas = kiln_libs::blas::Blas::new(&gpu);
    let (wide, c) = (Matrix::new(&a, 2, 2).batch(many), Matrix::new(&b, 2, 2).batch(many));
    let text = refused(blas.matmul(wide, wide, c).submit());
    assert!(
        text.contains("`a` has 48 bytes and must have 17179869184 for 1073741824 matrices of 2 x 2"),
        "{text}"
    );
    let text = refused(blas.matmul(huge, huge, huge).submit());
    assert!(
        text.contains("`a` has 2^59 elements or more: 1099511627776 matrices of 2147483648 x 2147483648"),
        "{text}"
    );
    let two = Matrix::new(&a, 2, 2).batch(3);
    let text = refused(solve.cholesky_solve_batched(two, lower, Matrix::new(&b, 3, 1).batch(3)).submit());
    assert!(text.contains("3 matrices of 2 x 2 and 3 right-hand sides of 3 x 1"), "{text}");
    let text = refused(solve.cholesky_solve_batched(two, lower, Matrix::new(&b, 2, 1).batch(2)).submit());
    assert!(text.contains("3 matrices of 2 x 2 and 2 right-hand sides"), "{text}");
    let text = refused(solve.cholesky_solve_batched(two, lower, Matrix::new(&a, 2, 1).batch(3)).submit());
    assert!(text.contains("`factor` and `b` share memory"), "{text}");
    let text = refused(solve.lu_batched(Matrix::new(&a, 2, 2).batch(2), &pivots).submit());
    assert!(text.contains("`pivots` has 6 elements and must have 4 for 2 matrices of 2 rows"), "{text}");
    assert_eq!((a.download().unwrap(), b.download().unwrap()), (vec![2.0; 12], vec![3.0; 12]));
    gpu.synchronize().unwrap();
    gpu.reap_pending().unwrap();
    assert_eq!(gpu.bytes_outstanding(), before, "nothing is held");
}
