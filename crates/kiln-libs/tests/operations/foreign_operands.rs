//! Buffers that work of the runtime cannot use: every call refuses them by its own name and that of the operand, also where there is nothing to do.

use half::f16;
use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::blas::{Blas, Diagonal, Matrix, Side, Triangle};
use kiln_libs::dnn::{AttentionTensor, Dnn, Tensor};
use kiln_libs::elementwise::{Combination, ElementFunction, Elementwise};
use kiln_libs::fft::Fft;
use kiln_libs::prims::{Predicate, Primitives, ReduceOperator, ScanOperator};
use kiln_libs::rand::{Bernoulli, Bits, Integers, Normal, Permutation, Sampler, Uniform};
use kiln_libs::solve::Solve;
use kiln_libs::sparse::{CsrMatrix, Determinism, Sparse};
use kiln_libs::{LibraryError, Result};
use kiln_runtime::Element;

fn two() -> (DeviceRuntime, DeviceRuntime) {
    (DeviceRuntime::simulated(1).unwrap(), DeviceRuntime::simulated(2).unwrap())
}

fn some<T: Element>(gpu: &DeviceRuntime, len: usize) -> GpuRef<T> {
    gpu.zeros::<T>(len).unwrap()
}

/// A call that was refused because of one operand.
#[track_caller]
fn foreign<T>(answer: Result<T>, call: &str, operand: &str) {
    let Err(error) = answer else { panic!("{call} took a foreign `{operand}`") };
    let text = error.to_string();
    assert!(matches!(error, LibraryError::Runtime(_)), "{text}");
    assert!(text.starts_with(&format!("{call}: `{operand}`: ")), "{text} is not of {call} and `{operand}`");
    assert!(text.contains("belongs to another runtime; "), "{text}");
}

#[test]
fn dense_products_without_elements_refuse_foreign_buffers() {
    let (gpu, other) = two();
    let (blas, own, theirs) = (Blas::new(&gpu), some::<f32>(&gpu, 16), some::<f32>(&other, 16));
    // No rows; no terms; a factor of zero; and a product.
    for (rows, terms, alpha) in [(0, 2, 1.0), (2, 0, 1.0), (2, 2, 0.0), (2, 2, 1.0)] {
        let (one, c) = (some::<f32>(&gpu, 16), some::<f32>(&gpu, 16));
        let product = |a, b, c| {
            let (a, b, c) = (Matrix::new(a, rows, terms), Matrix::new(b, terms, 2), Matrix::new(c, rows, 2));
            blas.matmul(a, b, c).alpha(alpha)
        };
        product(&own, &one, &c).submit().unwrap();
        foreign(product(&theirs, &one, &c).submit(), "blas.matmul", "a");
        foreign(product(&own, &theirs, &c).submit(), "blas.matmul", "b");
        foreign(product(&own, &one, &theirs).submit(), "blas.matmul", "c");
        foreign(product(&own, &theirs, &c).record(&mut gpu.graph()), "blas.matmul", "b");
        let short = theirs.view(..2).unwrap();
        foreign(product(&own, &one, &c).bias(&short).submit(), "blas.matmul", "bias");
        if rows == 0 {
            foreign(product(&own, &theirs, &c).tune(), "blas.matmul", "b");
            foreign(product(&own, &theirs, &c).load(), "blas.matmul", "b");
        }
    }
    for (rows, columns) in [(0, 3), (3, 0), (3, 3)] {
        let (x, y) = (some::<f32>(&gpu, columns), some::<f32>(&gpu, rows));
        let matrix = |buffer| Matrix::new(buffer, rows, columns);
        foreign(blas.gemv(1.0, matrix(&theirs), &x, None, &y).submit(), "blas.gemv", "a");
        foreign(
            blas.gemv(1.0, matrix(&own), &some::<f32>(&other, columns), None, &y).submit(),
            "blas.gemv",
            "x",
        );
        foreign(
            blas.gemv(1.0, matrix(&own), &x, None, &some::<f32>(&other, rows)).submit(),
            "blas.gemv",
            "y",
        );
        let c = some::<f32>(&gpu, 16);
        foreign(blas.geam(1.0, matrix(&theirs), None, matrix(&c)).submit(), "blas.geam", "a");
        let with = |beta, b| blas.geam(1.0, matrix(&own), Some((beta, matrix(b))), matrix(&c)).submit();
        foreign(with(0.0, &theirs), "blas.geam", "b");
        foreign(with(1.0, &theirs), "blas.geam", "b");
        foreign(blas.geam(0.0, matrix(&own), None, matrix(&theirs)).submit(), "blas.geam", "c");
        foreign(blas.transpose(matrix(&theirs), matrix(&c).transposed()).submit(), "blas.transpose", "a");
        foreign(blas.transpose(matrix(&own), matrix(&theirs).transposed()).submit(), "blas.transpose", "c");
    }
    let (none, three) = (some::<f32>(&gpu, 0), some::<f32>(&other, 3));
    foreign(blas.ger(1.0, &none, &three, Matrix::new(&own, 0, 3)).submit(), "blas.ger", "y");
    let b = some::<f32>(&gpu, 16);
    let square = |buffer, order| Matrix::new(buffer, order, order);
    for order in [0, 2] {
        let (a, c) = (square(&theirs, order), square(&own, order));
        foreign(blas.syrk(1.0, a, None, Triangle::Lower, c).submit(), "blas.syrk", "a");
        let kind = (Triangle::Lower, Diagonal::Stored);
        foreign(blas.trsm(Side::Left, 1.0, a, kind, c).submit(), "blas.trsm", "a");
        for alpha in [0.0, 1.0] {
            let symm = blas.symm(Side::Left, alpha, (a, Triangle::Lower), square(&b, order), None, c);
            foreign(symm.submit(), "blas.symm", "a");
            foreign(blas.trmm(Side::Left, alpha, a, kind, square(&b, order), c).submit(), "blas.trmm", "a");
        }
    }
    let thin = Matrix::new(&theirs, 2, 0);
    foreign(blas.syrk(1.0, thin, None, Triangle::Lower, square(&own, 2)).submit(), "blas.syrk", "a");
}

#[test]
fn vectors_without_elements_refuse_foreign_buffers() {
    let (gpu, other) = two();
    let blas = Blas::new(&gpu);
    let (one, there) = (some::<f32>(&gpu, 1), some::<f32>(&other, 1));
    for len in [0, 3] {
        let (own, theirs) = (some::<f32>(&gpu, len), some::<f32>(&other, len));
        foreign(blas.dot(&theirs, &own, &one).submit(), "blas.dot", "x");
        foreign(blas.dot(&own, &own, &there).submit(), "blas.dot", "result");
        foreign(blas.nrm2(&theirs, &one).submit(), "blas.nrm2", "x");
        foreign(blas.nrm2(&own, &there).submit(), "blas.nrm2", "result");
        foreign(blas.asum(&theirs, &one).submit(), "blas.asum", "x");
        foreign(blas.axpy(1.0, &own, &theirs).submit(), "blas.axpy", "y");
        foreign(blas.scal(1.0, &theirs).submit(), "blas.scal", "x");
        foreign(blas.copy(&theirs, &own).submit(), "blas.copy", "x");
        foreign(blas.swap(&own, &theirs).submit(), "blas.swap", "y");
    }
}

#[test]
fn transforms_networks_and_solvers_refuse_foreign_buffers() {
    let (gpu, other) = two();
    let (fft, dnn) = (Fft::new(&gpu), Dnn::new(&gpu));
    let (own, theirs) = (some::<[f32; 2]>(&gpu, 8), some::<[f32; 2]>(&other, 8));
    for (extents, batch) in [(&[8][..], 0), (&[0], 1), (&[0, 4], 1), (&[8], 1)] {
        let transform = || fft.transform(extents).batch(batch);
        foreign(transform().forward(&theirs, &own).submit(), "fft.forward", "input");
        foreign(transform().inverse(&own, &theirs).submit(), "fft.inverse", "output");
        foreign(transform().forward_in_place(&theirs).submit(), "fft.forward_in_place", "data");
    }
    foreign(
        fft.transform(&[0]).real_forward(&some::<f32>(&gpu, 0), &theirs).submit(),
        "fft.real_forward",
        "output",
    );
    let (own, theirs) = (some::<f32>(&gpu, 64), some::<f32>(&other, 64));
    for [images, channels, filters] in [[0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 1, 1]] {
        let (x, w) = (Tensor::new(&own, [images, channels, 3, 3]), [filters, channels, 2, 2]);
        let y = some::<f32>(&gpu, 64);
        let y = Tensor::new(&y, [images, filters, 2, 2]);
        foreign(dnn.convolution(x, Tensor::new(&theirs, w), y).submit(), "dnn.convolution", "w");
        let data = dnn.convolution_backward_data(y, Tensor::new(&theirs, w), x).submit();
        foreign(data, "dnn.convolution_backward_data", "w");
        let filter = dnn.convolution_backward_filter(x, y, Tensor::new(&theirs, w)).submit();
        foreign(filter, "dnn.convolution_backward_filter", "dw");
    }
    let (halves, there) = (some::<f16>(&gpu, 128), some::<f16>(&other, 128));
    for sequences in [0, 1] {
        let tensor = |buffer| AttentionTensor::new(buffer, [sequences, 1, 2, 64]);
        let o = some::<f16>(&gpu, 128);
        let call = dnn.attention(tensor(&halves), tensor(&there), tensor(&halves), tensor(&o));
        foreign(call.submit(), "dnn.attention", "k");
    }
    for rows in [0, 2] {
        let (x, y, far) = (some::<f32>(&gpu, 4 * rows), some::<f32>(&gpu, 4 * rows), some(&other, 4 * rows));
        foreign(dnn.softmax(&far, 4, &y).submit(), "dnn.softmax", "x");
        foreign(dnn.softmax_backward(&x, &far, 4, &y).submit(), "dnn.softmax_backward", "dy");
        foreign(dnn.layer_norm(&x, 4, &far).submit(), "dnn.layer_norm", "y");
        let weight = some::<f32>(&other, 4);
        foreign(dnn.rms_norm(&x, 4, &y).weight(&weight).submit(), "dnn.rms_norm", "weight");
        let (labels, losses) = (some::<i32>(&other, rows), some::<f32>(&gpu, rows));
        foreign(dnn.cross_entropy(&x, 4, &labels, &losses).submit(), "dnn.cross_entropy", "labels");
        foreign(dnn.embedding(&far, 4, &some::<i64>(&gpu, rows), &y).submit(), "dnn.embedding", "table");
        let (image, result) = ([rows, 1, 2, 2], [rows, 1, 1, 1]);
        let pool = dnn.max_pool(Tensor::new(&far, image), [2, 2], Tensor::new(&y, result));
        foreign(pool.submit(), "dnn.max_pool", "x");
    }
    let solve = Solve::new(&gpu);
    let (a, b) = (some::<f64>(&gpu, 4), some::<f64>(&other, 2));
    let columns = Matrix::new(&a, 2, 2).transposed();
    foreign(solve.least_squares(columns, Matrix::new(&b, 2, 1)).submit(), "solve.least_squares", "b");
    let pivots = some::<i64>(&other, 2);
    foreign(solve.lu_batched(columns, &pivots).submit(), "solve.lu_batched", "pivots");
}

#[test]
fn elements_primitives_and_draws_refuse_foreign_buffers() {
    let (gpu, other) = two();
    let (elements, prims, random) = (Elementwise::new(&gpu), Primitives::new(&gpu), Sampler::new(&gpu));
    for len in [0, 5] {
        let (x, y, far) = (some::<f32>(&gpu, len), some::<f32>(&gpu, len), some::<f32>(&other, len));
        foreign(elements.apply(ElementFunction::Relu, &far, &y).submit(), "elementwise.apply", "x");
        let backward = elements.apply_backward(ElementFunction::Relu, &x, &far, &y).submit();
        foreign(backward, "elementwise.apply_backward", "dy");
        foreign(elements.combine(Combination::Add, &x, &far, &y).submit(), "elementwise.combine", "b");
        foreign(elements.affine(1.0, &x, 0.0, &far).submit(), "elementwise.affine", "y");
        foreign(elements.cast(&far, &some::<f64>(&gpu, len)).submit(), "elementwise.cast", "x");
        foreign(elements.affine(1.0, &x, 0.0, &far).record(&mut gpu.graph()), "elementwise.affine", "y");
        let (one, count) = (some::<u64>(&gpu, 1), some::<u64>(&other, 1));
        foreign(prims.reduce(&far, ReduceOperator::Sum, &some(&gpu, 1)).submit(), "prims.reduce", "input");
        foreign(prims.scan_inclusive(&far, ScanOperator::Sum, &y).submit(), "prims.scan_inclusive", "input");
        let scan = prims.scan_exclusive(&x, ScanOperator::Sum, 0.0, &far).submit();
        foreign(scan, "prims.scan_exclusive", "output");
        foreign(prims.sort(&far, &y).submit(), "prims.sort", "input");
        let sort = prims.sort_by_key(&x, &far, &y, &some::<f32>(&gpu, len)).submit();
        foreign(sort, "prims.sort_by_key", "values");
        foreign(prims.select(&x, Predicate::Less(1.0), &y, &count).submit(), "prims.select", "count");
        foreign(prims.unique(&far, &y, &one).submit(), "prims.unique", "input");
        foreign(prims.histogram(&far, 0.0..1.0, &one).submit(), "prims.histogram", "input");
        foreign(prims.top(&far, &y).submit(), "prims.top", "input");
        foreign(random.draw(1).fill(&far, Uniform), "rand.uniform", "buffer");
        foreign(random.draw(1).fill(&some::<u32>(&other, len), Bits), "rand.bits", "buffer");
        let normal = Normal { mean: 0.0, deviation: 1.0_f32 };
        foreign(random.draw(1).record(&mut gpu.graph(), &far, normal), "rand.normal", "buffer");
        let integers = Integers { first: 0_u32, last: 9 };
        foreign(random.draw(1).fill(&some(&other, len), integers), "rand.integers", "buffer");
        let coin = Bernoulli { probability: 0.5 };
        foreign(random.draw(1).fill(&some(&other, len), coin), "rand.bernoulli", "buffer");
        foreign(random.draw(1).fill(&some::<u32>(&other, len), Permutation), "rand.permutation", "buffer");
    }
}

#[test]
fn sparse_matrices_without_elements_refuse_foreign_buffers() {
    let (gpu, other) = two();
    let sparse = Sparse::new(&gpu);
    for dense in [[0.0_f64; 4], [1.0, 0.0, 0.0, 2.0]] {
        let own: CsrMatrix<f64> = CsrMatrix::from_dense(&gpu, (2, 2), &dense).unwrap();
        let theirs: CsrMatrix<f64> = CsrMatrix::from_dense(&other, (2, 2), &dense).unwrap();
        let (x, y, far) = (some::<f64>(&gpu, 2), some::<f64>(&gpu, 2), some::<f64>(&other, 2));
        foreign(sparse.spmv(Determinism::Any, 1.0, &own, &far, None, &y).submit(), "sparse.spmv", "x");
        foreign(sparse.spmv(Determinism::Any, 1.0, &own, &x, None, &far).submit(), "sparse.spmv", "y");
        let to = CsrMatrix::allocate(&gpu, (2, 2), own.nonzeros()).unwrap();
        foreign(sparse.convert(&theirs, &to).submit(), "sparse.convert", "from.offsets");
        foreign(sparse.spgemm(1.0, &own, &theirs, None, &to).submit(), "sparse.spgemm", "b.offsets");
        foreign(sparse.product_structure(&theirs, &own), "sparse.product_structure", "a.offsets");
        foreign(sparse.check_indices(&theirs), "sparse.check_indices", "a.offsets");
    }
    let (offsets, theirs) = (some::<i32>(&gpu, 1), some::<f64>(&other, 0));
    let count = sparse.count_nonzeros(Matrix::new(&theirs, 0, 3), &offsets).submit();
    foreign(count, "sparse.count_nonzeros", "dense");
}

#[test]
fn buffers_of_a_runtime_that_is_gone_are_refused_by_name() {
    let (gpu, other) = two();
    let gone = some::<f32>(&other, 0);
    drop(other);
    let error = Blas::new(&gpu).scal(1.0, &gone).submit().unwrap_err();
    assert!(error.to_string().starts_with("blas.scal: `x`: "), "{error}");
    let error = Primitives::new(&gpu).sort(&gone, &some(&gpu, 0)).submit().unwrap_err();
    assert!(error.to_string().starts_with("prims.sort: `input`: "), "{error}");
}
