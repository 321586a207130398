//! Factorisations and spectra.

use kiln::DeviceRuntime;
use kiln_libs::Tolerance;
use kiln_libs::blas::{Matrix, Side, Triangle};
use kiln_libs::solve::Solve;
use kiln_operation::{ElementType, Geqrf, Getrf, Operation, Potrf, Syevd};

use super::{Case, Row, down, out, square, up};

/// The Cholesky factor of it is (2, 0; 1, 2).
const DEFINITE: [f32; 4] = [4.0, 2.0, 2.0, 5.0];

/// What a solver of order 2 may lose: the residual of `f32`, times the condition of the small matrices here.
fn solved(operation: impl Into<Operation>) -> f64 {
    10.0 * Tolerance::of(&operation.into()).bound(10.0, 10.0)
}

const F32: ElementType = ElementType::F32;
const LOWER: Triangle = Triangle::Lower;

fn potrf() -> Potrf {
    Potrf { element: F32, n: 2, triangle: LOWER, leading: 2 }
}

pub(super) fn solvers() -> Vec<Row> {
    [systems(), batches(), batched_factors(), batched_spectra(), batched_svd(), orthogonal(), spectra()]
        .into_iter()
        .flatten()
        .collect()
}

fn systems() -> Vec<Row> {
    vec![
        Row {
            call: "solve.cholesky",
            run: |gpu| {
                let a = up(gpu, &DEFINITE);
                Solve::new(gpu).cholesky(square(&a), LOWER).submit().unwrap().wait().unwrap();
                let found = down(&a);
                (vec![found[0], found[2], found[3]], vec![2.0, 1.0, 2.0], solved(potrf()))
            },
        },
        Row {
            call: "solve.cholesky_solve",
            run: |gpu| {
                let (a, b) = (up(gpu, &[2.0_f32, 0.0, 1.0, 2.0]), up(gpu, &[8.0_f32, 12.0]));
                Solve::new(gpu)
                    .cholesky_solve(square(&a), LOWER, Matrix::new(&b, 2, 1))
                    .submit()
                    .unwrap()
                    .wait()
                    .unwrap();
                (down(&b), vec![1.0, 2.0], solved(potrf()))
            },
        },
        Row {
            call: "solve.lu",
            run: |gpu| {
                let (a, pivots) = (up(gpu, &[0.0_f32, 1.0, 2.0, 1.0]), up(gpu, &[0_i64; 2]));
                let columns = square(&a).transposed();
                Solve::new(gpu).lu(columns, &pivots).submit().unwrap().wait().unwrap();
                let mut found = down(&a);
                found.extend(pivots.download().unwrap().into_iter().map(|row| row as f64));
                let operation = Getrf { element: F32, m: 2, n: 2, leading: 2 };
                (found, vec![1.0, 0.0, 1.0, 2.0, 2.0, 2.0], solved(operation))
            },
        },
        Row {
            call: "solve.lu_solve",
            run: |gpu| {
                let (a, pivots, b) =
                    (up(gpu, &[0.0_f32, 2.0, 1.0, 1.0]), up(gpu, &[0_i64; 2]), up(gpu, &[4.0_f32, 3.0]));
                let solve = Solve::new(gpu);
                let _ = solve.lu(square(&a), &pivots).submit().unwrap();
                solve.lu_solve(square(&a), &pivots, Matrix::new(&b, 2, 1)).submit().unwrap().wait().unwrap();
                (down(&b), vec![1.0, 2.0], solved(Getrf { element: F32, m: 2, n: 2, leading: 2 }))
            },
        },
        Row {
            call: "solve.cholesky_batched",
            run: |gpu| {
                let a = up(gpu, &[4.0_f32, 0.0, 2.0, 5.0, 9.0, 0.0, 3.0, 5.0]);
                Solve::new(gpu)
                    .cholesky_batched(square(&a).batch(2), LOWER)
                    .submit()
                    .unwrap()
                    .wait()
                    .unwrap();
                let found = down(&a);
                let lower = [0, 2, 3, 4, 6, 7].map(|at: usize| found[at]);
                (lower.to_vec(), vec![2.0, 1.0, 2.0, 3.0, 1.0, 2.0], solved(potrf()))
            },
        },
    ]
}

fn batches() -> Vec<Row> {
    vec![
        Row {
            call: "solve.cholesky_solve_batched",
            run: |gpu| {
                let (a, b) = (up(gpu, &[2.0_f32, 0.0, 1.0, 2.0]), up(gpu, &[8.0_f32, 12.0]));
                drop(
                    Solve::new(gpu)
                        .cholesky_solve_batched(square(&a), LOWER, Matrix::new(&b, 2, 1))
                        .submit()
                        .unwrap(),
                );
                (down(&b), vec![1.0, 2.0], solved(potrf()))
            },
        },
        Row {
            call: "solve.lu_batched",
            run: |gpu| {
                let (a, pivots) = (up(gpu, &[0.0_f32, 1.0, 2.0, 1.0]), up(gpu, &[0_i64; 2]));
                Solve::new(gpu)
                    .lu_batched(square(&a).transposed(), &pivots)
                    .submit()
                    .unwrap()
                    .wait()
                    .unwrap();
                (down(&a), vec![1.0, 0.0, 1.0, 2.0], solved(Getrf { element: F32, m: 2, n: 2, leading: 2 }))
            },
        },
        Row {
            call: "solve.lu_solve_batched",
            run: |gpu| {
                let (a, pivots, b) =
                    (up(gpu, &[0.0_f32, 2.0, 1.0, 1.0]), up(gpu, &[0_i64; 2]), up(gpu, &[4.0_f32, 3.0]));
                let solve = Solve::new(gpu);
                let _ = solve.lu_batched(square(&a), &pivots).submit().unwrap();
                solve
                    .lu_solve_batched(square(&a), &pivots, Matrix::new(&b, 2, 1))
                    .submit()
                    .unwrap()
                    .wait()
                    .unwrap();
                (down(&b), vec![1.0, 2.0], solved(Getrf { element: F32, m: 2, n: 2, leading: 2 }))
            },
        },
        Row {
            call: "solve.qr",
            run: |gpu| {
                let (a, tau) = (up(gpu, &[3.0_f32, 4.0]), out(gpu, 1));
                let column = Matrix::new(&a, 1, 2).transposed();
                Solve::new(gpu).qr(column, &tau).submit().unwrap().wait().unwrap();
                (vec![down(&a)[0].abs()], vec![5.0], solved(Geqrf { element: F32, m: 2, n: 1, leading: 2 }))
            },
        },
        Row { call: "solve.apply_q", run: |gpu| q_times(gpu, false) },
        Row { call: "solve.apply_q_transposed", run: |gpu| q_times(gpu, true) },
    ]
}

fn batched_factors() -> Vec<Row> {
    vec![
        Row {
            call: "solve.qr_batched",
            run: |gpu| {
                let (a, tau) = (up(gpu, &[3.0_f32, 4.0, 5.0, 12.0]), out(gpu, 2));
                let matrices = Matrix::new(&a, 2, 1).batch(2);
                Solve::new(gpu).qr_batched(matrices, &tau).submit().unwrap().wait().unwrap();
                let found = down(&a);
                let operation = Geqrf { element: F32, m: 2, n: 1, leading: 2 };
                (vec![found[0].abs(), found[2].abs()], vec![5.0, 13.0], solved(operation))
            },
        },
        Row { call: "solve.apply_q_batched", run: |gpu| q_times_each(gpu, false) },
        Row { call: "solve.apply_q_transposed_batched", run: |gpu| q_times_each(gpu, true) },
        Row {
            call: "solve.least_squares_batched",
            run: |gpu| {
                // The means of 1, 2 and 6, and of 3, 5 and 4.
                let (a, b) = (up(gpu, &[1.0_f32; 6]), up(gpu, &[1.0_f32, 2.0, 6.0, 3.0, 5.0, 4.0]));
                let (matrices, sides) = (Matrix::new(&a, 3, 1).batch(2), Matrix::new(&b, 3, 1).batch(2));
                Solve::new(gpu).least_squares_batched(matrices, sides).submit().unwrap().wait().unwrap();
                let found = down(&b);
                let operation = Geqrf { element: F32, m: 3, n: 1, leading: 3 };
                (vec![found[0], found[3]], vec![3.0, 4.0], solved(operation))
            },
        },
    ]
}

/// Two matrices with the singular values 3 and 2, and 4 and 1.
const EXCHANGES: [f32; 8] = [0.0, 3.0, 2.0, 0.0, 0.0, -1.0, 4.0, 0.0];

fn batched_spectra() -> Vec<Row> {
    /// Two symmetric matrices, with the eigenvalues 1 and 3, and -1 and 5.
    const SYMMETRIC: [f32; 8] = [2.0, f32::NAN, 1.0, 2.0, -1.0, f32::NAN, 0.0, 5.0];
    vec![
        Row {
            call: "solve.eigenvalues_batched",
            run: |gpu| {
                let (a, values) = (up(gpu, &SYMMETRIC), out(gpu, 4));
                let matrices = square(&a).batch(2);
                Solve::new(gpu)
                    .eigenvalues_batched(matrices, LOWER, &values)
                    .submit()
                    .unwrap()
                    .wait()
                    .unwrap();
                (down(&values), vec![1.0, 3.0, -1.0, 5.0], spectrum())
            },
        },
        Row {
            call: "solve.eigenvectors_batched",
            run: |gpu| {
                let (a, values) = (up(gpu, &SYMMETRIC), out(gpu, 4));
                let matrices = square(&a).batch(2);
                Solve::new(gpu)
                    .eigenvectors_batched(matrices, LOWER, &values)
                    .submit()
                    .unwrap()
                    .wait()
                    .unwrap();
                let found = down(&a).into_iter().map(f64::abs).collect();
                let half = 0.5_f64.sqrt();
                (found, vec![half, half, half, half, 1.0, 0.0, 0.0, 1.0], spectrum())
            },
        },
        Row {
            call: "solve.singular_values_batched",
            run: |gpu| {
                let (a, s) = (up(gpu, &EXCHANGES), out(gpu, 4));
                Solve::new(gpu)
                    .singular_values_batched(square(&a).batch(2), &s)
                    .submit()
                    .unwrap()
                    .wait()
                    .unwrap();
                (down(&s), vec![3.0, 2.0, 4.0, 1.0], spectrum())
            },
        },
    ]
}

fn batched_svd() -> Vec<Row> {
    vec![Row {
        call: "solve.svd_batched",
        run: |gpu| {
            let (a, s, u, vt) = (up(gpu, &EXCHANGES), out(gpu, 4), out(gpu, 8), out(gpu, 8));
            let [left, right] = [&u, &vt].map(|buffer| square(buffer).batch(2));
            Solve::new(gpu)
                .svd_batched(square(&a).batch(2), &s, left, right)
                .submit()
                .unwrap()
                .wait()
                .unwrap();
            let found = down(&s).into_iter().chain(down(&u)).chain(down(&vt)).map(f64::abs).collect();
            // A exchanges the axes, and the vectors are axes.
            let wanted = [
                [3.0, 2.0, 4.0, 1.0],
                [1.0, 0.0, 0.0, 1.0],
                [0.0, 1.0, 1.0, 0.0],
                [0.0, 1.0, 1.0, 0.0],
                [1.0, 0.0, 0.0, 1.0],
            ];
            (found, wanted.concat(), spectrum())
        },
    }]
}

fn orthogonal() -> Vec<Row> {
    vec![
        Row {
            call: "solve.form_q",
            run: |gpu| {
                let (a, tau) = (up(gpu, &[3.0_f32, 4.0]), out(gpu, 1));
                let (column, solve) = (Matrix::new(&a, 1, 2).transposed(), Solve::new(gpu));
                let _ = solve.qr(column, &tau).submit().unwrap();
                solve.form_q(column, &tau).submit().unwrap().wait().unwrap();
                let found = down(&a).into_iter().map(f64::abs).collect();
                (found, vec![0.6, 0.8], solved(Geqrf { element: F32, m: 2, n: 1, leading: 2 }))
            },
        },
        Row {
            call: "solve.least_squares",
            run: |gpu| {
                // The mean of 1, 2 and 6.
                let (a, b) = (up(gpu, &[1.0_f32; 3]), up(gpu, &[1.0_f32, 2.0, 6.0]));
                let column = Matrix::new(&a, 1, 3).transposed();
                Solve::new(gpu)
                    .least_squares(column, Matrix::new(&b, 3, 1))
                    .submit()
                    .unwrap()
                    .wait()
                    .unwrap();
                (vec![down(&b)[0]], vec![3.0], solved(Geqrf { element: F32, m: 3, n: 1, leading: 3 }))
            },
        },
        Row {
            call: "solve.eigenvalues",
            run: |gpu| {
                let (a, values) = (up(gpu, &[2.0_f32, 1.0, 1.0, 2.0]), out(gpu, 2));
                Solve::new(gpu).eigenvalues(square(&a), LOWER, &values).submit().unwrap().wait().unwrap();
                (down(&values), vec![1.0, 3.0], spectrum())
            },
        },
        Row {
            call: "solve.eigenvectors",
            run: |gpu| {
                let (a, values) = (up(gpu, &[2.0_f32, 1.0, 1.0, 2.0]), out(gpu, 2));
                Solve::new(gpu).eigenvectors(square(&a), LOWER, &values).submit().unwrap().wait().unwrap();
                let found = down(&a).into_iter().map(f64::abs).collect();
                (found, vec![0.5_f64.sqrt(); 4], spectrum())
            },
        },
        Row {
            call: "solve.singular_values",
            run: |gpu| {
                let (a, s) = (up(gpu, &[0.0_f32, 3.0, 2.0, 0.0]), out(gpu, 2));
                Solve::new(gpu).singular_values(square(&a), &s).submit().unwrap().wait().unwrap();
                (down(&s), vec![3.0, 2.0], spectrum())
            },
        },
    ]
}

fn spectra() -> Vec<Row> {
    vec![Row {
        call: "solve.svd",
        run: |gpu| {
            let (a, s, u, vt) = (up(gpu, &[0.0_f32, 3.0, 2.0, 0.0]), out(gpu, 2), out(gpu, 4), out(gpu, 4));
            let (left, right) = (square(&u).transposed(), square(&vt));
            Solve::new(gpu).svd(square(&a), &s, left, right).submit().unwrap().wait().unwrap();
            let found = down(&s).into_iter().chain(down(&u)).chain(down(&vt)).map(f64::abs).collect();
            // A exchanges the axes, and the vectors are axes.
            (found, vec![3.0, 2.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0], spectrum())
        },
    }]
}

fn spectrum() -> f64 {
    solved(Syevd { element: F32, n: 2, vectors: true, triangle: LOWER, leading: 2 })
}

/// The length of `Q` or `Qᵀ` times (3, 4), and for the transpose the vector itself, which is along the first axis.
fn q_times(gpu: &DeviceRuntime, is_transposed: bool) -> Case {
    let (a, tau, c) = (up(gpu, &[3.0_f32, 4.0]), out(gpu, 1), up(gpu, &[3.0_f32, 4.0]));
    let (factored, solve) = (Matrix::new(&a, 1, 2).transposed(), Solve::new(gpu));
    let _ = solve.qr(factored, &tau).submit().unwrap();
    let c_matrix = Matrix::new(&c, 1, 2).transposed();
    let call = match is_transposed {
        true => solve.apply_q_transposed(Side::Left, factored, &tau, c_matrix),
        false => solve.apply_q(Side::Left, factored, &tau, c_matrix),
    };
    call.submit().unwrap().wait().unwrap();
    let found = down(&c);
    let wanted = if is_transposed { vec![5.0, 0.0] } else { vec![5.0] };
    let found = if is_transposed { vec![found[0].abs(), found[1]] } else { vec![found[0].hypot(found[1])] };
    (found, wanted, solved(Geqrf { element: F32, m: 2, n: 1, leading: 2 }))
}

/// As [`q_times`], for two matrices.
fn q_times_each(gpu: &DeviceRuntime, is_transposed: bool) -> Case {
    const VECTORS: [f32; 4] = [3.0, 4.0, 5.0, 12.0];
    let (a, tau, c) = (up(gpu, &VECTORS), out(gpu, 2), up(gpu, &VECTORS));
    let [factored, product] = [&a, &c].map(|buffer| Matrix::new(buffer, 2, 1).batch(2));
    let solve = Solve::new(gpu);
    let _ = solve.qr_batched(factored, &tau).submit().unwrap();
    let call = match is_transposed {
        true => solve.apply_q_transposed_batched(Side::Left, factored, &tau, product),
        false => solve.apply_q_batched(Side::Left, factored, &tau, product),
    };
    drop(call.submit().unwrap());
    let found = down(&c);
    let operation = solved(Geqrf { element: F32, m: 2, n: 1, leading: 2 });
    match is_transposed {
        true => (found.into_iter().map(f64::abs).collect(), vec![5.0, 0.0, 13.0, 0.0], operation),
        false => (vec![found[0].hypot(found[1]), found[2].hypot(found[3])], vec![5.0, 13.0], operation),
    }
}
