//! Sizes of matrices, vectors and their products.

use kiln_libs::blas::{Matrix, Side, Triangle, Vector};

use super::{N, NONE, Row, SIZES, columns, row, square};
use crate::refusals_by_name::KIND;

pub(super) fn matmul_rows() -> Vec<Row> {
    vec![
        row!("blas.matmul", "rows of a and c", [0, 1], |it, s| {
            it.blas.matmul(Matrix::new(&it.a, s, N), square(&it.b), Matrix::new(&it.c, s, N))
        }),
        row!("blas.matmul", "columns of b and c", [0, 1], |it, s| {
            it.blas.matmul(square(&it.a), Matrix::new(&it.b, N, s), Matrix::new(&it.c, N, s))
        }),
        row!("blas.matmul", "terms", [0, 1], |it, s| {
            it.blas.matmul(Matrix::new(&it.a, N, s), Matrix::new(&it.b, s, N), square(&it.c))
        }),
        row!("blas.matmul", "rows of a alone", NONE, |it, s| {
            it.blas.matmul(Matrix::new(&it.a, s, N), square(&it.b), square(&it.c))
        }),
        row!("blas.matmul", "a and c without columns", [0, 1], |it, s| {
            it.blas.matmul(Matrix::new(&it.a, s, 0), Matrix::new(&it.b, 0, N), Matrix::new(&it.c, s, N))
        }),
        row!("blas.matmul", "everything", [0, 1], |it, s| {
            let all = |buffer| Matrix::new(buffer, s, s).leading(s).batch(s).stride(s);
            it.blas.matmul(all(&it.a), all(&it.b), all(&it.c))
        }),
        row!("blas.matmul", "leading of a", NONE, |it, s| {
            it.blas.matmul(square(&it.a).leading(s), square(&it.b), square(&it.c))
        }),
        row!("blas.matmul", "leading of b by columns", NONE, |it, s| {
            it.blas.matmul(square(&it.a), columns(&it.b).leading(s), square(&it.c))
        }),
        row!("blas.matmul", "leading of c", NONE, |it, s| {
            it.blas.matmul(square(&it.a), square(&it.b), square(&it.c).leading(s))
        }),
        row!("blas.matmul", "batch", [0, 1], |it, s| {
            let all = |buffer| square(buffer).batch(s);
            it.blas.matmul(all(&it.a), all(&it.b), all(&it.c))
        }),
        row!("blas.matmul", "batch at stride 0", [0, 1], |it, s| {
            let all = |buffer| square(buffer).batch(s).stride(0);
            it.blas.matmul(all(&it.a), all(&it.b), square(&it.c).batch(s))
        }),
        row!("blas.matmul", "batch of a alone", [1], |it, s| {
            it.blas.matmul(square(&it.a).batch(s), square(&it.b), square(&it.c))
        }),
        row!("blas.matmul", "stride of a", [0, 1], |it, s| {
            let all = |buffer| square(buffer).batch(2);
            it.blas.matmul(all(&it.a).stride(s), all(&it.b), all(&it.c))
        }),
        row!("blas.matmul", "stride of c", NONE, |it, s| {
            let all = |buffer| square(buffer).batch(2);
            it.blas.matmul(all(&it.a), all(&it.b), all(&it.c).stride(s))
        }),
        row!("blas.matmul", "workspace", SIZES, |it, s| {
            it.blas.matmul(square(&it.a), square(&it.b), square(&it.c)).workspace_limit_bytes(s as u64)
        }),
    ]
}

pub(super) fn matrix_rows() -> Vec<Row> {
    vec![
        row!("blas.gemv", "rows", NONE, |it, s| {
            it.blas.gemv(1.0, Matrix::new(&it.a, s, N), &it.x, None, &it.y)
        }),
        row!("blas.gemv", "columns", NONE, |it, s| {
            it.blas.gemv(1.0, Matrix::new(&it.a, N, s), &it.x, None, &it.y)
        }),
        row!("blas.gemv", "leading", NONE, |it, s| {
            it.blas.gemv(1.0, square(&it.a).leading(s), &it.x, None, &it.y)
        }),
        row!("blas.gemv", "batch", [1], |it, s| {
            it.blas.gemv(1.0, square(&it.a).batch(s), &it.x, None, &it.y)
        }),
        row!("blas.gemv", "steps", SIZES[1..], |it, s| {
            let a = Matrix::new(&it.a, 1, 1);
            it.blas.gemv(1.0, a, Vector::new(&it.one).step(s), None, Vector::new(&it.y).step(s.max(N)))
        }),
        row!("blas.ger", "leading", NONE, |it, s| it.blas.ger(1.0, &it.x, &it.y, square(&it.a).leading(s))),
        row!("blas.ger", "rows", NONE, |it, s| it.blas.ger(1.0, &it.x, &it.y, Matrix::new(&it.a, s, N))),
        row!("blas.geam", "rows", [0, 1], |it, s| {
            it.blas.geam(1.0, Matrix::new(&it.a, s, N), None, Matrix::new(&it.c, s, N))
        }),
        row!("blas.geam", "columns with a factor of 0", [0, 1], |it, s| {
            it.blas.geam(0.0, Matrix::new(&it.a, N, s), None, Matrix::new(&it.c, N, s))
        }),
        row!("blas.geam", "leading", NONE, |it, s| {
            it.blas.geam(1.0, square(&it.a).leading(s), Some((1.0, square(&it.b))), square(&it.c))
        }),
        row!("blas.transpose", "rows", [0, 1], |it, s| {
            it.blas.transpose(Matrix::new(&it.a, s, N), Matrix::new(&it.c, N, s))
        }),
        row!("blas.symm", "rows", [0, 1], |it, s| {
            let a = (Matrix::new(&it.a, s, s), Triangle::Lower);
            it.blas.symm(Side::Left, 1.0, a, Matrix::new(&it.b, s, N), None, Matrix::new(&it.c, s, N))
        }),
        row!("blas.trmm", "columns", [0, 1], |it, s| {
            let (b, c) = (Matrix::new(&it.b, N, s), Matrix::new(&it.c, N, s));
            it.blas.trmm(Side::Left, 1.0, square(&it.a), KIND, b, c)
        }),
        row!("blas.syrk", "terms", [0, 1], |it, s| {
            it.blas.syrk(1.0, Matrix::new(&it.a, N, s), None, Triangle::Lower, square(&it.c))
        }),
        row!("blas.syrk", "rows", [0, 1], |it, s| {
            it.blas.syrk(1.0, Matrix::new(&it.a, s, 1), None, Triangle::Lower, Matrix::new(&it.c, s, s))
        }),
        row!("blas.trsm", "columns", [0, 1], |it, s| {
            it.blas.trsm(Side::Left, 1.0, square(&it.a), KIND, Matrix::new(&it.b, N, s))
        }),
        row!("blas.trsm", "leading of b", NONE, |it, s| {
            it.blas.trsm(Side::Right, 1.0, square(&it.a), KIND, square(&it.b).leading(s))
        }),
    ]
}

pub(super) fn vector_rows() -> Vec<Row> {
    vec![
        row!("blas.dot", "steps", SIZES[1..], |it, s| {
            it.blas.dot(Vector::new(&it.x).step(s), Vector::new(&it.y).step(s), &it.one)
        }),
        row!("blas.nrm2", "step", SIZES[1..], |it, s| it.blas.nrm2(Vector::new(&it.x).step(s), &it.one)),
        row!("blas.asum", "step", SIZES[1..], |it, s| it.blas.asum(Vector::new(&it.x).step(s), &it.one)),
        row!("blas.iamax", "step", SIZES[1..], |it, s| {
            it.blas.iamax(Vector::new(&it.x).step(s), &it.place)
        }),
        row!("blas.axpy", "steps", SIZES[1..], |it, s| {
            it.blas.axpy(1.0, Vector::new(&it.x).step(s), Vector::new(&it.y).step(s))
        }),
        row!("blas.axpy", "step of x alone", [1], |it, s| {
            it.blas.axpy(1.0, Vector::new(&it.x).step(s), &it.y)
        }),
        row!("blas.scal", "step", SIZES[1..], |it, s| it.blas.scal(1.0, Vector::new(&it.x).step(s))),
        row!("blas.copy", "steps", SIZES[1..], |it, s| {
            it.blas.copy(Vector::new(&it.x).step(s), Vector::new(&it.y).step(s))
        }),
        row!("blas.swap", "steps", SIZES[1..], |it, s| {
            it.blas.swap(Vector::new(&it.x).step(s), Vector::new(&it.y).step(s))
        }),
    ]
}
