//! Sizes of factorisations, spectra and systems of equations.

use kiln_libs::blas::{Matrix, Side, Triangle};

use super::{N, NONE, Row, columns, row, square};

const LOWER: Triangle = Triangle::Lower;

pub(super) fn system_rows() -> Vec<Row> {
    vec![
        row!("solve.cholesky", "a", [1], |it, s| it.solve.cholesky(Matrix::new(&it.a, s, s), LOWER)),
        row!("solve.cholesky", "leading", NONE, |it, s| it.solve.cholesky(square(&it.a).leading(s), LOWER)),
        row!("solve.cholesky", "batch", [1], |it, s| it.solve.cholesky(square(&it.a).batch(s), LOWER)),
        row!("solve.cholesky_solve", "sides", [0, 1], |it, s| {
            it.solve.cholesky_solve(square(&it.a), LOWER, Matrix::new(&it.b, N, s))
        }),
        row!("solve.cholesky_solve", "unknowns", [0, 1], |it, s| {
            it.solve.cholesky_solve(Matrix::new(&it.a, s, s), LOWER, Matrix::new(&it.b, s, 1))
        }),
        row!("solve.lu", "rows", NONE, |it, s| it.solve.lu(Matrix::new(&it.a, s, N), &it.pivots)),
        row!("solve.lu", "columns", NONE, |it, s| it.solve.lu(Matrix::new(&it.a, N, s), &it.pivots)),
        row!("solve.lu_solve", "sides", [0, 1], |it, s| {
            it.solve.lu_solve(square(&it.a), &it.pivots, Matrix::new(&it.b, N, s))
        }),
        row!("solve.lu_solve", "unknowns", NONE, |it, s| {
            it.solve.lu_solve(Matrix::new(&it.a, s, s), &it.pivots, Matrix::new(&it.b, s, 1))
        }),
        row!("solve.lu_solve", "leading of b", NONE, |it, s| {
            it.solve.lu_solve(square(&it.a), &it.pivots, square(&it.b).leading(s))
        }),
    ]
}

pub(super) fn orthogonal_rows() -> Vec<Row> {
    vec![
        row!("solve.qr", "rows", NONE, |it, s| it.solve.qr(Matrix::new(&it.a, N, s).transposed(), &it.x)),
        row!("solve.qr", "columns", NONE, |it, s| it.solve.qr(Matrix::new(&it.a, s, N).transposed(), &it.x)),
        row!("solve.form_q", "rows", NONE, |it, s| {
            it.solve.form_q(Matrix::new(&it.a, N, s).transposed(), &it.x)
        }),
        row!("solve.apply_q", "columns of c", [0, 1], |it, s| {
            it.solve.apply_q(Side::Left, columns(&it.a), &it.x, Matrix::new(&it.b, s, N).transposed())
        }),
        row!("solve.apply_q", "rows of factored", NONE, |it, s| {
            let factored = Matrix::new(&it.a, N, s).transposed();
            it.solve.apply_q(Side::Left, factored, &it.x, Matrix::new(&it.b, N, s).transposed())
        }),
        row!("solve.apply_q_transposed", "no reflections", [0, 1], |it, s| {
            let factored = Matrix::new(&it.a, 0, s).transposed();
            let c = Matrix::new(&it.b, N, s).transposed();
            it.solve.apply_q_transposed(Side::Left, factored, &it.none, c)
        }),
        row!("solve.least_squares", "sides", [0, 1], |it, s| {
            it.solve.least_squares(columns(&it.a), Matrix::new(&it.b, s, N).transposed())
        }),
        row!("solve.least_squares", "equations", NONE, |it, s| {
            it.solve
                .least_squares(Matrix::new(&it.a, N, s).transposed(), Matrix::new(&it.b, 1, s).transposed())
        }),
        row!("solve.eigenvalues", "a", NONE, |it, s| {
            it.solve.eigenvalues(Matrix::new(&it.a, s, s), LOWER, &it.x)
        }),
        row!("solve.eigenvectors", "leading", NONE, |it, s| {
            it.solve.eigenvectors(square(&it.a).leading(s), LOWER, &it.x)
        }),
        row!("solve.singular_values", "rows", NONE, |it, s| {
            it.solve.singular_values(Matrix::new(&it.a, s, N), &it.x)
        }),
        row!("solve.svd", "rows", NONE, |it, s| {
            it.solve.svd(Matrix::new(&it.a, s, N), &it.x, columns(&it.b), square(&it.c))
        }),
        row!("solve.svd", "u and vt", NONE, |it, s| {
            let u = Matrix::new(&it.b, s, s).transposed();
            it.solve.svd(square(&it.a), &it.x, u, Matrix::new(&it.c, s, s))
        }),
    ]
}

pub(super) fn batched_rows() -> Vec<Row> {
    vec![
        row!("solve.cholesky_batched", "batch", [0, 1], |it, s| {
            it.solve.cholesky_batched(square(&it.a).batch(s), LOWER)
        }),
        row!("solve.cholesky_batched", "stride", NONE, |it, s| {
            it.solve.cholesky_batched(square(&it.a).batch(2).stride(s), LOWER)
        }),
        row!("solve.cholesky_batched", "order", [0, 1], |it, s| {
            it.solve.cholesky_batched(Matrix::new(&it.a, s, s), LOWER)
        }),
        row!("solve.cholesky_solve_batched", "sides", [0, 1], |it, s| {
            it.solve.cholesky_solve_batched(square(&it.a), LOWER, Matrix::new(&it.b, N, s))
        }),
        row!("solve.cholesky_solve_batched", "batch", [0, 1], |it, s| {
            it.solve.cholesky_solve_batched(square(&it.a).batch(s), LOWER, square(&it.b).batch(s))
        }),
        row!("solve.lu_batched", "batch", [1], |it, s| {
            it.solve.lu_batched(square(&it.a).batch(s), &it.pivots)
        }),
        row!("solve.lu_batched", "order", NONE, |it, s| {
            it.solve.lu_batched(Matrix::new(&it.a, s, s), &it.pivots)
        }),
        row!("solve.lu_solve_batched", "unknowns", NONE, |it, s| {
            it.solve.lu_solve_batched(Matrix::new(&it.a, s, s), &it.pivots, Matrix::new(&it.b, s, 1))
        }),
        row!("solve.qr_batched", "rows", NONE, |it, s| {
            it.solve.qr_batched(Matrix::new(&it.a, s, N), &it.x)
        }),
        row!("solve.apply_q_batched", "columns", [0, 1], |it, s| {
            it.solve.apply_q_batched(Side::Left, square(&it.a), &it.x, Matrix::new(&it.b, N, s))
        }),
        row!("solve.least_squares_batched", "sides", [0, 1], |it, s| {
            it.solve.least_squares_batched(square(&it.a), Matrix::new(&it.b, N, s))
        }),
        row!("solve.eigenvalues_batched", "order", NONE, |it, s| {
            it.solve.eigenvalues_batched(Matrix::new(&it.a, s, s), LOWER, &it.x)
        }),
        row!("solve.eigenvectors_batched", "stride", NONE, |it, s| {
            it.solve.eigenvectors_batched(square(&it.a).batch(2).stride(s), LOWER, &it.x)
        }),
        row!("solve.singular_values_batched", "batch", [1], |it, s| {
            it.solve.singular_values_batched(square(&it.a).batch(s), &it.x)
        }),
        row!("solve.svd_batched", "rows", NONE, |it, s| {
            it.solve.svd_batched(Matrix::new(&it.a, s, N), &it.x, square(&it.b), square(&it.c))
        }),
    ]
}
