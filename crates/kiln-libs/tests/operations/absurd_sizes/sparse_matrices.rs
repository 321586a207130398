//! Sizes of sparse matrices and of their operations.

use kiln_libs::blas::Matrix;
use kiln_libs::sparse::{CooMatrix, CscMatrix, CsrMatrix};

use super::{N, NONE, Row, SIZES, row, square};
use crate::refusals_by_name::{ANY, KIND};

pub(super) fn sparse_rows() -> Vec<Row> {
    vec![
        row!("sparse.spmm", "columns", [0, 1], |it, s| {
            it.sparse.spmm(ANY, 1.0, &it.csr[0], Matrix::new(&it.b, N, s), None, Matrix::new(&it.c, N, s))
        }),
        row!("sparse.spmm", "leading of c", NONE, |it, s| {
            it.sparse.spmm(ANY, 1.0, &it.csr[0], square(&it.b), None, square(&it.c).leading(s))
        }),
        row!("sparse.spmm", "batch", [1], |it, s| {
            it.sparse.spmm(ANY, 1.0, &it.csr[0], square(&it.b).batch(s), None, square(&it.c).batch(s))
        }),
        row!("sparse.to_dense", "rows", NONE, |it, s| {
            it.sparse.to_dense(&it.csr[0], Matrix::new(&it.c, s, N))
        }),
        row!("sparse.to_dense", "leading", NONE, |it, s| {
            it.sparse.to_dense(&it.csr[0], square(&it.c).leading(s))
        }),
        row!("sparse.count_nonzeros", "rows", NONE, |it, s| {
            it.sparse.count_nonzeros(Matrix::new(&it.a, s, N), &it.offsets)
        }),
        row!("sparse.count_nonzeros", "columns", [0, 1], |it, s| {
            it.sparse.count_nonzeros(Matrix::new(&it.a, N, s), &it.offsets)
        }),
        row!("sparse.count_nonzeros", "leading", NONE, |it, s| {
            it.sparse.count_nonzeros(square(&it.a).leading(s), &it.offsets)
        }),
        row!("sparse.copy_nonzeros", "columns", NONE, |it, s| {
            it.sparse.copy_nonzeros(Matrix::new(&it.a, N, s), &it.csr[1])
        }),
        row!("sparse.triangular_solve", "sides", [0, 1], |it, s| {
            let (b, x) = (Matrix::new(&it.b, N, s), Matrix::new(&it.c, N, s));
            it.sparse.triangular_solve(KIND.0, KIND.1, 1.0, &it.csr[0], b, x)
        }),
        row!("sparse.triangular_solve", "leading", NONE, |it, s| {
            let (b, x) = (square(&it.b).leading(s), square(&it.c));
            it.sparse.triangular_solve(KIND.0, KIND.1, 1.0, &it.csr[0], b, x)
        }),
    ]
}

/// Makes and drops matrices: nothing is queued for those that are refused.
pub(super) fn constructor_rows() -> Vec<Row> {
    macro_rules! make {
        ($call:literal, $of:literal, $good:expr, |$it:ident, $size:ident| $made:expr) => {
            Row { call: $call, of: $of, good: &$good, submit: |$it, $size| $made.map(drop) }
        };
    }
    const ONE: [(usize, usize, f32); 1] = [(0, 0, 1.0)];
    vec![
        make!("sparse.CsrMatrix::allocate", "rows", [1], |it, s| {
            CsrMatrix::<f32>::allocate(&it.gpu, (s, N), 1)
        }),
        make!("sparse.CsrMatrix::allocate", "elements", [0, 1], |it, s| {
            CsrMatrix::<f32>::allocate(&it.gpu, (N, N), s)
        }),
        make!("sparse.CsrMatrix::allocate", "elements counted in 64 bits", [0, 1], |it, s| {
            CsrMatrix::<f32, i64>::allocate(&it.gpu, (N, N), s)
        }),
        make!("sparse.CscMatrix::allocate", "columns counted in 64 bits", [1], |it, s| {
            CscMatrix::<f32, i64>::allocate(&it.gpu, (N, s), 1)
        }),
        make!("sparse.CooMatrix::allocate", "elements", [0, 1], |it, s| {
            CooMatrix::<f32>::allocate(&it.gpu, (N, N), s)
        }),
        make!("sparse.CsrMatrix::from_triplets", "rows", [1], |it, s| {
            CsrMatrix::<f32, i64>::from_triplets(&it.gpu, (s, N), &ONE)
        }),
        make!("sparse.CsrMatrix::from_triplets", "row of a triplet", [0, 1], |it, s| {
            CsrMatrix::<f32, i64>::from_triplets(&it.gpu, (N, N), &[(s, 0, 1.0)])
        }),
        make!("sparse.CooMatrix::from_triplets", "column of a triplet", [0, 1], |it, s| {
            CooMatrix::<f32>::from_triplets(&it.gpu, (N, N), &[(0, s, 1.0)])
        }),
        make!("sparse.CsrMatrix::from_dense", "rows", NONE, |it, s| {
            CsrMatrix::<f32, i64>::from_dense(&it.gpu, (s, N), &[1.0])
        }),
        make!("sparse.CscMatrix::from_dense", "both", [1], |it, s| {
            CscMatrix::<f32, i64>::from_dense(&it.gpu, (s, s), &[1.0])
        }),
        make!("sparse.CsrMatrix::upload", "rows", NONE, |it, s| {
            CsrMatrix::<f32, i64>::upload(&it.gpu, (s, N), &[0, 1, 1], &[0], &[1.0])
        }),
        make!("sparse.CooMatrix::upload", "rows", SIZES[1..7], |it, s| {
            CooMatrix::<f32, i64>::upload(&it.gpu, (s, N), &[0], &[0], &[1.0])
        }),
        make!("sparse.CsrMatrix::from_buffers", "rows", NONE, |it, s| {
            CsrMatrix::from_buffers((s, N), it.offsets.view(..1).unwrap(), it.labels.clone(), it.x.clone())
        }),
        make!("sparse.CooMatrix::from_buffers", "rows", SIZES[1..3], |it, s| {
            CooMatrix::from_buffers((s, N), it.labels.clone(), it.labels.clone(), it.x.clone())
        }),
    ]
}
