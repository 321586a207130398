//! Sizes that no call can have: too many elements for any memory, and none where a solver needs some. The operand is named as the caller did.

use kiln::DeviceRuntime;
use kiln_libs::Result;
use kiln_libs::blas::{Matrix, Side, Triangle};
use kiln_libs::dnn::{AttentionTensor, Tensor};

use crate::refusals_by_name::{ANY, Calls, KIND, told};

/// A call that was refused for one operand.
#[track_caller]
fn large(answer: Result<()>, call: &str, operand: &str) {
    told(answer, call, &format!("`{operand}` "), 4);
}

#[test]
fn dense_operands_of_too_many_elements_are_named() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let it = Calls::new(&gpu, 4);
    let (a, b, c) = (it.matrix(&it.a), it.matrix(&it.b), it.matrix(&it.c));
    let far = usize::MAX;
    for (x, y, z, operand) in [
        (a.leading(far), b, c, "a"),
        (a, b.leading(far), c, "b"),
        (a, b, c.leading(far), "c"),
        (a.transposed().leading(far), b.transposed(), c.transposed(), "a"),
        (a.transposed(), b.transposed().leading(far), c.transposed(), "b"),
    ] {
        large(it.blas.matmul(x, y, z).submit().map(drop), "blas.matmul", operand);
        large(it.blas.matmul(x, y, z).alpha(0.0).submit().map(drop), "blas.matmul", operand);
        large(it.blas.geam(1.0, x, Some((1.0, y)), z).submit().map(drop), "blas.geam", operand);
        let symm = it.blas.symm(Side::Left, 1.0, (x, Triangle::Lower), y, None, z).submit().map(drop);
        large(symm, "blas.symm", operand);
        large(it.blas.trmm(Side::Left, 1.0, x, KIND, y, z).submit().map(drop), "blas.trmm", operand);
        if operand == "a" {
            large(it.blas.transpose(x, z).submit().map(drop), "blas.transpose", operand);
            large(it.blas.gemv(1.0, x, &it.x, None, &it.y).submit().map(drop), "blas.gemv", operand);
            large(it.blas.ger(1.0, &it.x, &it.y, x).submit().map(drop), "blas.ger", operand);
            large(it.blas.syrk(1.0, x, None, Triangle::Lower, z).submit().map(drop), "blas.syrk", operand);
            large(it.blas.trsm(Side::Left, 1.0, x, KIND, y).submit().map(drop), "blas.trsm", operand);
            large(it.solve.cholesky(x, Triangle::Lower).submit().map(drop), "solve.cholesky", operand);
            large(it.solve.lu(x, &it.pivots).submit().map(drop), "solve.lu", operand);
            let eigen = it.solve.eigenvectors(x, Triangle::Lower, &it.x).submit().map(drop);
            large(eigen, "solve.eigenvectors", operand);
            large(it.solve.singular_values(x, &it.x).submit().map(drop), "solve.singular_values", operand);
            let batched = it.solve.cholesky_batched(x, Triangle::Lower).submit().map(drop);
            large(batched, "solve.cholesky_batched", operand);
        }
    }
    gpu.synchronize().unwrap();
}

#[test]
fn other_operands_of_too_many_elements_are_named() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let it = Calls::new(&gpu, 4);
    let (a, b, c) = (it.matrix(&it.a), it.matrix(&it.b), it.matrix(&it.c));
    let far = usize::MAX;
    let columns = it.columns(&it.a).leading(far);
    large(it.solve.qr(columns, &it.x).submit().map(drop), "solve.qr", "a");
    large(it.solve.form_q(columns, &it.x).submit().map(drop), "solve.form_q", "a");
    let least = it.solve.least_squares(columns, it.columns(&it.b)).submit().map(drop);
    large(least, "solve.least_squares", "a");
    let apply = it.solve.apply_q(Side::Left, columns, &it.x, it.columns(&it.b)).submit().map(drop);
    large(apply, "solve.apply_q", "factored");
    let solved = it.solve.cholesky_solve(a.leading(far), Triangle::Lower, b).submit().map(drop);
    large(solved, "solve.cholesky_solve", "factor");
    let solved = it.solve.lu_solve(a.leading(far), &it.pivots, it.columns(&it.b)).submit().map(drop);
    large(solved, "solve.lu_solve", "factors");
    let solved = it.solve.lu_solve(a, &it.pivots, it.columns(&it.b).leading(far)).submit().map(drop);
    large(solved, "solve.lu_solve", "b");
    let svd = it.solve.svd(a, &it.x, it.columns(&it.b).leading(far), c).submit().map(drop);
    large(svd, "solve.svd", "u");
    let svd = it.solve.svd(a, &it.x, it.columns(&it.b), c.leading(far)).submit().map(drop);
    large(svd, "solve.svd", "vt");
    let spmm = |b, c| it.sparse.spmm(ANY, 1.0, &it.csr[0], b, None, c).submit().map(drop);
    large(spmm(b.leading(far), c), "sparse.spmm", "b");
    large(spmm(b, c.leading(far)), "sparse.spmm", "c");
    large(it.sparse.to_dense(&it.csr[0], c.leading(far)).submit().map(drop), "sparse.to_dense", "dense");
    let transform = |extents: &[usize], batch| it.fft.transform(extents).batch(batch);
    for (extents, batch) in [(&[1 << 60][..], 1), (&[1 << 30, 1 << 30], 1), (&[8], 1 << 60)] {
        let (input, output) = (&it.complex[0], &it.complex[1]);
        large(transform(extents, batch).forward(input, output).submit().map(drop), "fft.forward", "input");
        let placed = transform(extents, batch).inverse_in_place(input).submit().map(drop);
        large(placed, "fft.inverse_in_place", "data");
        let real = transform(extents, batch).real_forward(&it.x, output).submit().map(drop);
        large(real, "fft.real_forward", "input");
    }
    let w = Tensor::new(&it.one, [1, 1, 1, 1]);
    let wide = |buffer| Tensor::new(buffer, [1 << 60, 1, 1, 1]);
    large(it.dnn.convolution(wide(&it.a), w, wide(&it.c)).submit().map(drop), "dnn.convolution", "x");
    let [q, k, v, o] = it.halves.each_ref().map(|half| AttentionTensor::new(half, [1 << 60, 1, 1, 64]));
    large(it.dnn.attention(q, k, v, o).submit().map(drop), "dnn.attention", "q");
    let pool = it.dnn.max_pool(wide(&it.x), [1, 1], wide(&it.y)).submit().map(drop);
    large(pool, "dnn.max_pool", "x");
    gpu.synchronize().unwrap();
}

/// Matrices without elements, where a call needs some: in the caller's words, not in those of LAPACK.
#[test]
fn solvers_name_the_matrix_that_has_no_elements() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let it = Calls::new(&gpu, 4);
    let none = |rows, columns| Matrix::new(&it.a, rows, columns);
    let empty = |answer: Result<()>, call: &str, operand: &str| {
        let text = told(answer, call, &format!("`{operand}` is "), 0).to_string();
        assert!(text.contains("0 x ") || text.contains(" x 0"), "{text}");
    };
    for (rows, columns) in [(0, 3), (3, 0), (0, 0)] {
        let a = none(rows, columns);
        empty(it.solve.lu(a, &it.pivots).submit().map(drop), "solve.lu", "a");
        empty(it.solve.qr(a.transposed(), &it.x).submit().map(drop), "solve.qr", "a");
        empty(it.solve.singular_values(a, &it.x).submit().map(drop), "solve.singular_values", "a");
    }
    let a = none(0, 0);
    empty(it.solve.cholesky(a, Triangle::Lower).submit().map(drop), "solve.cholesky", "a");
    empty(it.solve.eigenvalues(a, Triangle::Lower, &it.x).submit().map(drop), "solve.eigenvalues", "a");
    empty(it.solve.form_q(none(0, 3), &it.x).submit().map(drop), "solve.form_q", "a");
}
