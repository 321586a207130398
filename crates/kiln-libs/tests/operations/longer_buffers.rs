//! One rule for the lengths of buffers: what is given with its sizes (a matrix, a tensor, the arrays of a transform) lies at the start of its buffer, which may be
//! longer; every other buffer has exactly the elements that the call uses.

use kiln::DeviceRuntime;
use kiln_libs::blas::{Diagonal, F8E4M3, Matrix, Side, Triangle};
use kiln_libs::dnn::{AttentionTensor, Tensor};
use kiln_libs::{LibraryError, Result};

use crate::refusals_by_name::Calls;

const N: usize = 4;

#[track_caller]
fn exact<T>(answer: Result<T>, call: &str, name: &str, wanted: usize) {
    let error = answer.map(drop).unwrap_err();
    assert!(matches!(error, LibraryError::Argument { .. }), "{error}");
    let text = format!("{call}: `{name}` has ");
    assert!(error.to_string().starts_with(&text), "{error}");
    let text = format!(" elements and must have {wanted}");
    assert!(error.to_string().contains(&text), "{error}");
    assert!(error.to_string().contains("a view of a longer one"), "{error}");
}

#[test]
fn matrices_tensors_and_transforms_lie_in_longer_buffers() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let it = Calls::new(&gpu, N);
    // The matrices have 16 elements in buffers of 256, whose elements are 0 and on the diagonal 1.
    let unit: Vec<f32> = (0..64 * N).map(|at| if at % (N + 1) == 0 { 1.0 } else { 0.0 }).collect();
    for buffer in [&it.a, &it.b, &it.c] {
        buffer.upload(&unit).unwrap();
    }
    let (a, b, c) = (it.matrix(&it.a), it.matrix(&it.b), it.matrix(&it.c));
    let (columns, lower) = (it.columns(&it.a), Triangle::Lower);
    let kind = (lower, Diagonal::Stored);
    it.blas.matmul(a, b, c).submit().unwrap();
    it.blas.gemv(1.0, a, &it.x, None, &it.y).submit().unwrap();
    it.blas.ger(1.0, &it.x, &it.y, a).submit().unwrap();
    it.blas.syrk(1.0, a, None, lower, c).submit().unwrap();
    it.blas.trsm(Side::Left, 1.0, a, kind, b).submit().unwrap();
    it.blas.geam(1.0, a, None, c).submit().unwrap();
    it.solve.cholesky(a, lower).submit().unwrap().wait().unwrap();
    it.solve.cholesky_solve(a, lower, b).submit().unwrap().wait().unwrap();
    it.solve.cholesky_batched(a, lower).submit().unwrap().wait().unwrap();
    it.solve.lu(a, &it.pivots).submit().unwrap().wait().unwrap();
    it.solve.lu_solve(a, &it.pivots, b).submit().unwrap().wait().unwrap();
    it.solve.lu_batched(a, &it.pivots).submit().unwrap().wait().unwrap();
    it.solve.lu_solve_batched(a, &it.pivots, b).submit().unwrap().wait().unwrap();
    it.solve.qr(columns, &it.x).submit().unwrap().wait().unwrap();
    it.solve.apply_q(Side::Left, columns, &it.x, b).submit().unwrap().wait().unwrap();
    it.solve.form_q(columns, &it.x).submit().unwrap().wait().unwrap();
    it.solve.eigenvalues(a, lower, &it.x).submit().unwrap().wait().unwrap();
    it.solve.singular_values(b, &it.x).submit().unwrap().wait().unwrap();
    it.sparse.to_dense(&it.csr[0], a).submit().unwrap();
    let tensor = |buffer| Tensor::new(buffer, [1, 1, 4, 4]);
    it.dnn.max_pool(tensor(&it.a), [1, 1], tensor(&it.b)).submit().unwrap();
    it.dnn.convolution(tensor(&it.a), Tensor::new(&it.b, [1, 1, 1, 1]), tensor(&it.c)).submit().unwrap();
    let heads = |buffer| AttentionTensor::new(buffer, [1, 1, 2, 8]);
    let [q, k, v, o] = it.halves.each_ref();
    it.dnn.attention(heads(q), heads(k), heads(v), heads(o)).submit().unwrap();
    let long = gpu.zeros::<[f32; 2]>(9).unwrap();
    it.fft.transform(&[N]).forward(&it.complex[0], &long).submit().unwrap();
    it.fft.transform(&[N]).forward_in_place(&long).submit().unwrap();
    gpu.synchronize().unwrap();
}

#[test]
fn buffers_without_sizes_are_not_longer_than_what_is_used() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let it = Calls::new(&gpu, N);
    let (a, b, c) = (it.matrix(&it.a), it.matrix(&it.b), it.matrix(&it.c));
    let (columns, lower) = (it.columns(&it.a), Triangle::Lower);
    for len in [N - 1, N + 1, 64 * N] {
        let (pivots, numbers) = (gpu.zeros::<i64>(len).unwrap(), gpu.zeros::<f32>(len).unwrap());
        exact(it.solve.lu(a, &pivots).submit(), "solve.lu", "pivots", N);
        exact(it.solve.lu(a, &pivots).record(&mut gpu.graph()), "solve.lu", "pivots", N);
        exact(it.solve.lu_solve(a, &pivots, b).submit(), "solve.lu_solve", "pivots", N);
        exact(it.solve.lu_batched(a, &pivots).submit(), "solve.lu_batched", "pivots", N);
        exact(it.solve.lu_solve_batched(a, &pivots, b).submit(), "solve.lu_solve_batched", "pivots", N);
        exact(it.solve.qr_batched(a, &numbers).submit(), "solve.qr_batched", "tau", N);
        let applied = it.solve.apply_q_batched(Side::Left, a, &numbers, b).submit();
        exact(applied, "solve.apply_q_batched", "tau", N);
        let values = it.solve.eigenvalues_batched(a, lower, &numbers).submit();
        exact(values, "solve.eigenvalues_batched", "values", N);
        let vectors = it.solve.eigenvectors_batched(a, lower, &numbers).submit();
        exact(vectors, "solve.eigenvectors_batched", "values", N);
        let values = it.solve.singular_values_batched(a, &numbers).submit();
        exact(values, "solve.singular_values_batched", "s", N);
        exact(it.solve.svd_batched(a, &numbers, b, c).submit(), "solve.svd_batched", "s", N);
        exact(it.solve.qr(columns, &numbers).submit(), "solve.qr", "tau", N);
        exact(it.solve.form_q(columns, &numbers).submit(), "solve.form_q", "tau", N);
        let applied = it.solve.apply_q(Side::Left, columns, &numbers, b).submit();
        exact(applied, "solve.apply_q", "tau", N);
        let applied = it.solve.apply_q_transposed(Side::Left, columns, &numbers, b).submit();
        exact(applied, "solve.apply_q_transposed", "tau", N);
        exact(it.solve.eigenvalues(a, lower, &numbers).submit(), "solve.eigenvalues", "values", N);
        exact(it.solve.eigenvectors(a, lower, &numbers).submit(), "solve.eigenvectors", "values", N);
        exact(it.solve.singular_values(a, &numbers).submit(), "solve.singular_values", "s", N);
        let svd = it.solve.svd(a, &numbers, it.columns(&it.b), c).submit();
        exact(svd, "solve.svd", "s", N);
        exact(it.dnn.softmax(&it.x, 2, &numbers).submit(), "dnn.softmax", "y", N);
        exact(it.prims.sort(&it.x, &numbers).submit(), "prims.sort", "output", N);
    }
    let tensor = |buffer| Tensor::new(buffer, [1, 1, 4, 4]);
    let long = gpu.zeros::<f32>(17).unwrap();
    let pooled = it.dnn.max_pool_backward(tensor(&it.a), tensor(&it.b), [1, 1], &long).submit();
    exact(pooled, "dnn.max_pool_backward", "dx", 16);
    let eights = gpu.upload(&[F8E4M3(0x38); 256]).unwrap();
    let (one, two) = (gpu.upload(&[1.0_f32]).unwrap(), gpu.upload(&[1.0_f32; 2]).unwrap());
    let (left, out) = (Matrix::new(&eights, 16, 16), gpu.zeros::<f32>(256).unwrap());
    for (first, second, name) in [(&two, &one, "a_scale"), (&one, &two, "b_scale")] {
        let product = || it.blas.matmul(left, left.transposed(), Matrix::new(&out, 16, 16));
        exact(product().scales(first, second).submit(), "blas.matmul", name, 1);
        product().scales(&one, &one).submit().unwrap();
        exact(product().scales(first, second).submit(), "blas.matmul", name, 1);
        exact(product().scales(first, second).prepare(), "blas.matmul", name, 1);
    }
    gpu.synchronize().unwrap();
}
