//! Streams of another runtime: every call refuses them by its own name and the name `stream`, whether it is queued or recorded, also where there is nothing to do.

use half::f16;
use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::Result;
use kiln_libs::blas::{Blas, Diagonal, Matrix, Side, Triangle};
use kiln_libs::dnn::{AttentionTensor, Dnn, Tensor};
use kiln_libs::elementwise::{Combination, ElementFunction, Elementwise};
use kiln_libs::fft::Fft;
use kiln_libs::prims::{Predicate, Primitives, ReduceOperator, ScanOperator};
use kiln_libs::rand::{Bits, Sampler, Uniform};
use kiln_libs::solve::Solve;
use kiln_libs::sparse::{CscMatrix, CsrMatrix, Determinism, Sparse};

const LOWER: Triangle = Triangle::Lower;

fn two() -> (DeviceRuntime, DeviceRuntime) {
    (DeviceRuntime::simulated(1).unwrap(), DeviceRuntime::simulated(2).unwrap())
}

#[track_caller]
fn refused<T>(answer: Result<T>, call: &str) -> String {
    let Err(error) = answer else { panic!("{call} took a foreign stream") };
    let text = error.to_string();
    assert!(text.starts_with(&format!("{call}: `stream`: ")), "{text} is not of {call} and `stream`");
    assert!(text.contains("belongs to another runtime; "), "{text}");
    text
}

/// Each call on a stream of another runtime, queued and recorded.
macro_rules! refuse {
    ($gpu:expr, $other:expr, $($name:literal: $call:expr,)*) => {{
        let stream = $other.stream().unwrap();
        $(
            let queued = refused($call.on(&stream).submit(), $name);
            let mut graph = $gpu.graph();
            assert_eq!(refused($call.on(&stream).record(&mut graph), $name), queued);
            assert_eq!(graph.len(), 0, "{} added a node", $name);
        )*
    }};
}

#[test]
fn dense_calls_refuse_streams_of_another_runtime() {
    let (gpu, other) = two();
    let blas = Blas::new(&gpu);
    let [a, b, c] = [4.0, 1.0, 3.0].map(|value| gpu.upload(&[value; 4]).unwrap());
    let [x, y] = [&b, &c].map(|buffer: &GpuRef<f64>| buffer.view(..2).unwrap());
    let (one, none, place) = (c.view(..1).unwrap(), c.view(..0).unwrap(), gpu.zeros::<i64>(1).unwrap());
    let (m, kind) = (|buffer| Matrix::new(buffer, 2, 2), (LOWER, Diagonal::Stored));
    refuse! {
        gpu, other,
        "blas.matmul": blas.matmul(m(&a), m(&b), m(&c)),
        "blas.matmul": blas.matmul(m(&a), m(&b), m(&c)).alpha(0.0).beta(1.0),
        "blas.matmul": blas.matmul(Matrix::new(&a, 2, 0), Matrix::new(&b, 0, 2), m(&c)),
        "blas.matmul": blas.matmul(Matrix::new(&a, 0, 2), m(&b), Matrix::new(&c, 0, 2)),
        "blas.gemv": blas.gemv(1.0, m(&a), &x, None, &y),
        "blas.gemv": blas.gemv(1.0, Matrix::new(&a, 2, 0), &none, None, &y),
        "blas.ger": blas.ger(1.0, &x, &x, m(&a)),
        "blas.dot": blas.dot(&a, &b, &one),
        "blas.nrm2": blas.nrm2(&a, &one),
        "blas.asum": blas.asum(&a, &one),
        "blas.asum": blas.asum(&none, &one),
        "blas.iamax": blas.iamax(&a, &place),
        "blas.axpy": blas.axpy(2.0, &a, &c),
        "blas.scal": blas.scal(1.0, &c),
        "blas.copy": blas.copy(&a, &c),
        "blas.swap": blas.swap(&a, &c),
        "blas.syrk": blas.syrk(1.0, m(&a), None, LOWER, m(&c)),
        "blas.syrk": blas.syrk(0.0, m(&a), None, LOWER, m(&c)),
        "blas.symm": blas.symm(Side::Left, 1.0, (m(&a), LOWER), m(&b), None, m(&c)),
        "blas.symm": blas.symm(Side::Left, 0.0, (m(&a), LOWER), m(&b), Some(2.0), m(&c)),
        "blas.trmm": blas.trmm(Side::Left, 1.0, m(&a), kind, m(&b), m(&c)),
        "blas.trsm": blas.trsm(Side::Left, 1.0, m(&a), kind, m(&c)),
        "blas.trsm": blas.trsm(Side::Right, 0.0, m(&a), kind, m(&c)),
        "blas.geam": blas.geam(1.0, m(&a), Some((1.0, m(&b))), m(&c)),
        "blas.geam": blas.geam(0.0, m(&a), Some((0.0, m(&b))), m(&c)),
        "blas.transpose": blas.transpose(m(&a), m(&c)),
    }
}

#[test]
fn solvers_refuse_streams_of_another_runtime() {
    let (gpu, other) = two();
    let solve = Solve::new(&gpu);
    let [a, b, c] = [4.0, 1.0, 3.0].map(|value| gpu.upload(&[value; 4]).unwrap());
    let (pivots, s) = (gpu.upload(&[1_i64, 2]).unwrap(), b.view(..2).unwrap());
    let m = |buffer| Matrix::<f64>::new(buffer, 2, 2);
    refuse! {
        gpu, other,
        "solve.lu": solve.lu(m(&a), &pivots),
        "solve.lu_solve": solve.lu_solve(m(&a), &pivots, m(&b)),
        "solve.lu_solve": solve.lu_solve(m(&a), &pivots, m(&b).transposed()),
        "solve.cholesky": solve.cholesky(m(&c), LOWER),
        "solve.cholesky_solve": solve.cholesky_solve(m(&c), LOWER, m(&b)),
        "solve.lu_batched": solve.lu_batched(m(&a).batch(1), &pivots),
        "solve.lu_solve_batched": solve.lu_solve_batched(m(&a).batch(1), &pivots, m(&b).batch(1)),
        "solve.cholesky_batched": solve.cholesky_batched(m(&c).batch(1), LOWER),
        "solve.cholesky_solve_batched": solve.cholesky_solve_batched(m(&c).batch(1), LOWER, m(&b).batch(1)),
        "solve.qr_batched": solve.qr_batched(m(&a).batch(1), &s),
        "solve.apply_q_batched": solve.apply_q_batched(Side::Left, m(&a), &s, m(&c)),
        "solve.apply_q_transposed_batched": solve.apply_q_transposed_batched(Side::Left, m(&a), &s, m(&c)),
        "solve.least_squares_batched": solve.least_squares_batched(m(&a), m(&b)),
        "solve.eigenvalues_batched": solve.eigenvalues_batched(m(&a), LOWER, &s),
        "solve.eigenvectors_batched": solve.eigenvectors_batched(m(&a), LOWER, &s),
        "solve.singular_values_batched": solve.singular_values_batched(m(&a), &s),
        "solve.qr": solve.qr(m(&a).transposed(), &s),
        "solve.form_q": solve.form_q(m(&a).transposed(), &s),
        "solve.apply_q": solve.apply_q(Side::Left, m(&a).transposed(), &s, m(&c).transposed()),
        "solve.least_squares": solve.least_squares(m(&a).transposed(), m(&b).transposed()),
        "solve.eigenvalues": solve.eigenvalues(m(&a), LOWER, &s),
        "solve.eigenvectors": solve.eigenvectors(m(&a), LOWER, &s),
        "solve.singular_values": solve.singular_values(m(&a).transposed(), &s),
    }
}

#[test]
fn sparse_calls_and_transforms_refuse_streams_of_another_runtime() {
    let (gpu, other) = two();
    let (sparse, fft) = (Sparse::new(&gpu), Fft::new(&gpu));
    let [a, b, c] = [4.0, 1.0, 3.0].map(|value| gpu.upload(&[value; 4]).unwrap());
    let [x, y] = [&a, &c].map(|buffer: &GpuRef<f64>| buffer.view(..2).unwrap());
    let triplets = [(0, 0, 1.0), (1, 1, 2.0)];
    let csr: CsrMatrix<f64> = CsrMatrix::from_triplets(&gpu, (2, 2), &triplets).unwrap();
    let csc: CscMatrix<f64> = CscMatrix::from_triplets(&gpu, (2, 2), &triplets).unwrap();
    let product: CsrMatrix<f64> = CsrMatrix::from_triplets(&gpu, (2, 2), &triplets).unwrap();
    let [from, to] = [0, 1].map(|_| gpu.zeros::<[f64; 2]>(4).unwrap());
    let (m, any) = (|buffer| Matrix::new(buffer, 2, 2), Determinism::Any);
    refuse! {
        gpu, other,
        "sparse.spmv": sparse.spmv(any, 1.0, &csr, &x, None, &y),
        "sparse.spmv": sparse.spmv(any, 0.0, &csr, &x, None, &y),
        "sparse.spmm": sparse.spmm(any, 1.0, &csc, m(&a), None, m(&c)),
        "sparse.spmm": sparse.spmm(any, 0.0, &csc, m(&a), Some(1.0), m(&c)),
        "sparse.to_dense": sparse.to_dense(&csr, m(&c)),
        "sparse.convert": sparse.convert(&csr, &csc),
        "sparse.triangular_solve":
            sparse.triangular_solve(LOWER, Diagonal::Stored, 1.0, &csr, m(&b), m(&c)),
        "sparse.spgemm": sparse.spgemm(1.0, &csr, &csr, None, &product),
        "fft.forward": fft.transform(&[4]).forward(&from, &to),
        "fft.forward": fft.transform(&[4]).batch(0).forward(&from, &to),
        "fft.forward": fft.transform(&[0]).forward(&from, &to),
        "fft.forward_in_place": fft.transform(&[4]).forward_in_place(&from),
        "fft.real_forward": fft.transform(&[4]).real_forward(&a, &to),
        "fft.real_forward": fft.transform(&[0]).real_forward(&a, &to),
    }
}

#[test]
fn networks_elements_and_primitives_refuse_streams_of_another_runtime() {
    let (gpu, other) = two();
    let (dnn, elements, prims) = (Dnn::new(&gpu), Elementwise::new(&gpu), Primitives::new(&gpu));
    let [a, b, c] = [4.0_f32, 1.0, 3.0].map(|value| gpu.upload(&[value; 4]).unwrap());
    let [halves, result] = [0, 1].map(|_| gpu.zeros::<f16>(16).unwrap());
    let (u, v, labels) =
        (gpu.zeros::<u32>(4).unwrap(), gpu.zeros::<u32>(4).unwrap(), gpu.zeros::<i32>(2).unwrap());
    let (count, half, none) = (gpu.zeros::<u64>(1).unwrap(), c.view(..2).unwrap(), c.view(..0).unwrap());
    let at = |buffer| AttentionTensor::new(buffer, [1, 1, 2, 8]);
    let [x, dy, y] = [&a, &b, &c].map(|buffer| Tensor::new(buffer, [1, 1, 2, 2]));
    let [w, dw] = [&b, &c].map(|buffer| Tensor::new(buffer, [1, 1, 1, 1]));
    refuse! {
        gpu, other,
        "dnn.convolution": dnn.convolution(x, w, y),
        "dnn.convolution":
            dnn.convolution(Tensor::new(&a, [1, 0, 2, 2]), Tensor::new(&b, [1, 0, 1, 1]), y),
        "dnn.convolution_backward_data": dnn.convolution_backward_data(x, w, y),
        "dnn.convolution_backward_filter": dnn.convolution_backward_filter(x, dy, dw),
        "dnn.attention": dnn.attention(at(&halves), at(&halves), at(&halves), at(&result)),
        "dnn.softmax": dnn.softmax(&a, 2, &c),
        "dnn.softmax": dnn.softmax(&none, 2, &a.view(..0).unwrap()),
        "dnn.softmax_backward": dnn.softmax_backward(&a, &b, 2, &c),
        "dnn.layer_norm": dnn.layer_norm(&a, 2, &c),
        "dnn.rms_norm": dnn.rms_norm(&a, 2, &c),
        "dnn.max_pool": dnn.max_pool(x, [1, 1], y),
        "dnn.cross_entropy": dnn.cross_entropy(&a, 2, &labels, &half),
        "dnn.embedding": dnn.embedding(&a, 2, &labels, &c),
        "dnn.embedding_backward": dnn.embedding_backward(&labels, 2, &a, &c),
        "elementwise.apply": elements.apply(ElementFunction::Relu, &a, &c),
        "elementwise.combine": elements.combine(Combination::Add, &a, &b, &c),
        "elementwise.affine": elements.affine(1.0, &a, 0.0, &c),
        "elementwise.cast": elements.cast(&a, &u),
        "prims.sort": prims.sort(&u, &v),
        "prims.sort_by_key": prims.sort_by_key(&u, &a, &v, &c),
        "prims.scan_inclusive": prims.scan_inclusive(&u, ScanOperator::Sum, &v),
        "prims.reduce": prims.reduce(&u, ReduceOperator::Sum, &v.view(..1).unwrap()),
        "prims.select": prims.select(&u, Predicate::Less(2), &v, &count),
        "prims.unique": prims.unique(&u, &v, &count),
        "prims.histogram": prims.histogram(&u, 0..4, &count),
        "prims.top": prims.top(&u, &v),
        "prims.arg_max": prims.arg_max(&u, &count),
    }
}

#[test]
fn draws_refuse_streams_of_another_runtime() {
    let (gpu, other) = two();
    let (random, stream) = (Sampler::new(&gpu), other.stream().unwrap());
    let (numbers, words) = (gpu.zeros::<f32>(4).unwrap(), gpu.zeros::<u32>(4).unwrap());
    refused(random.draw(1).on(&stream).fill(&numbers, Uniform), "rand.uniform");
    refused(random.draw(1).on(&stream).record(&mut gpu.graph(), &numbers, Uniform), "rand.uniform");
    refused(random.draw(1).on(&stream).fill(&words, Bits), "rand.bits");
    refused(random.draw(1).on(&stream).record(&mut gpu.graph(), &words, Bits), "rand.bits");
}
