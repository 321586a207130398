//! Of several things that are wrong with a call one is told, and the same one whichever way the call is made: the first operand, in the order of the caller, that
//! work of the runtime cannot use; and before that a stream of another runtime, and before that shapes.

use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::blas::{Blas, Diagonal, MatmulCall, Matrix, Side, Triangle};
use kiln_libs::dnn::{Dnn, Tensor};
use kiln_libs::fft::Fft;
use kiln_libs::solve::Solve;
use kiln_libs::sparse::{CsrMatrix, Determinism, Sparse};
use kiln_libs::{LibraryCall, Result};

fn two() -> (DeviceRuntime, DeviceRuntime) {
    (DeviceRuntime::simulated(1).unwrap(), DeviceRuntime::simulated(2).unwrap())
}

#[track_caller]
fn told<T>(answer: Result<T>, wanted: &str, way: &str) {
    let Err(error) = answer else { panic!("{way} took it") };
    let text = error.to_string();
    assert!(text.starts_with(wanted), "{way}: {text}\ndoes not begin with\n{wanted}");
}

/// Every way to make a product, each of which refuses it with the same words.
#[track_caller]
fn told_by_every_way<'a>(gpu: &DeviceRuntime, product: impl Fn() -> MatmulCall<'a, f32, f32>, wanted: &str) {
    told(product().submit(), wanted, "submit");
    told(product().prepare(), wanted, "prepare");
    told(product().load(), wanted, "load");
    told(product().tune(), wanted, "tune");
    told(product().record(&mut gpu.graph()), wanted, "record");
}

fn stored(by_columns: bool, buffer: &GpuRef<f32>) -> Matrix<'_, f32> {
    let matrix = Matrix::new(buffer, 2, 2);
    if by_columns { matrix.transposed() } else { matrix }
}

#[test]
fn a_product_names_the_first_foreign_factor_in_the_order_of_the_caller() {
    let (gpu, other) = two();
    let (blas, theirs) = (Blas::new(&gpu), other.zeros::<f32>(4).unwrap());
    let [own, c] = [(); 2].map(|()| gpu.zeros::<f32>(4).unwrap());
    for by_columns in [false, true] {
        for is_loaded in [false, true] {
            let square = |buffer| stored(by_columns, buffer);
            let product = |a, b| blas.matmul(square(a), square(b), square(&c));
            if is_loaded {
                product(&own, &own).submit().unwrap();
            }
            let both = || product(&theirs, &theirs);
            told_by_every_way(&gpu, both, "blas.matmul: `a`: ");
            told_by_every_way(&gpu, || product(&own, &theirs), "blas.matmul: `b`: ");
            let all = || blas.matmul(square(&own), square(&own), square(&theirs));
            told_by_every_way(&gpu, all, "blas.matmul: `c`: ");
            told_by_every_way(&gpu, || both().alpha(0.0), "blas.matmul: `a`: ");
            let step = product(&own, &own).prepare().unwrap();
            told(step.submit(&theirs, &theirs, &c), "blas.matmul: `a`: ", "a prepared product");
            told(
                step.submit(&own, &theirs, &other.zeros(4).unwrap()),
                "blas.matmul: `b`: ",
                "a prepared product",
            );
        }
    }
}

#[test]
fn every_way_tells_shapes_before_streams_before_lengths_before_foreign_buffers() {
    let (gpu, other) = two();
    let (blas, theirs) = (Blas::new(&gpu), other.zeros::<f32>(4).unwrap());
    let (own, c, short) = (gpu.zeros(4).unwrap(), gpu.zeros(4).unwrap(), gpu.zeros::<f32>(3).unwrap());
    let stream = other.stream().unwrap();
    for by_columns in [false, true] {
        let square = |buffer| stored(by_columns, buffer);
        let wide = || blas.matmul(Matrix::new(&theirs, 2, 1), square(&own), square(&c));
        told_by_every_way(&gpu, wide, "blas.matmul: 2 x 1 times 2 x 2 into 2 x 2");
        let lengths = || blas.matmul(square(&theirs), square(&short), square(&c));
        told_by_every_way(&gpu, lengths, "blas.matmul: `b` has 12 bytes and must have 16");
        for b in [&short, &theirs] {
            let streamed = || blas.matmul(square(&own), square(b), square(&c)).on(&stream);
            told(streamed().submit(), "blas.matmul: `stream`: ", "submit");
            told(streamed().prepare(), "blas.matmul: `stream`: ", "prepare");
            told(streamed().load(), "blas.matmul: `stream`: ", "load");
            told(streamed().tune(), "blas.matmul: `stream`: ", "tune");
        }
    }
    let vectors = || blas.axpy(1.0, &theirs, &own);
    told(vectors().on(&stream).submit(), "blas.axpy: `stream`: ", "submit");
    told(vectors().on(&stream).load(), "blas.axpy: `stream`: ", "load");
    // Where lengths do not fit either.
    let (x, y) = (gpu.zeros::<f32>(2).unwrap(), gpu.zeros::<f32>(2).unwrap());
    for is_loaded in [false, true] {
        if is_loaded {
            blas.gemv(1.0, Matrix::new(&own, 2, 2), &x, None, &y).submit().unwrap();
        }
        let product = || blas.gemv(1.0, Matrix::new(&short, 2, 2), &x, None, &y);
        told(product().submit(), "blas.gemv: `a` has 12 bytes and must have 16", "submit");
        told(product().on(&stream).submit(), "blas.gemv: `stream`: ", "submit");
        told(product().on(&stream).load(), "blas.gemv: `stream`: ", "load");
    }
}

/// A call whose operands are all foreign.
#[track_caller]
fn foreign<'a>(gpu: &DeviceRuntime, call: impl Fn() -> LibraryCall<'a>, wanted: &str) {
    told(call().submit(), wanted, "submit");
    told(call().load(), wanted, "load");
    told(call().record(&mut gpu.graph()), wanted, "record");
}

#[test]
fn every_operation_names_its_first_foreign_operand() {
    let (gpu, other) = two();
    let new = || other.zeros::<f32>(64).unwrap();
    let (a, b, c) = (new(), new(), new());
    let (x, y) = (other.zeros::<f32>(2).unwrap(), other.zeros::<f32>(2).unwrap());
    let (blas, fft, solve) = (Blas::new(&gpu), Fft::new(&gpu), Solve::new(&gpu));
    let (sparse, dnn) = (Sparse::new(&gpu), Dnn::new(&gpu));
    let kind = (Triangle::Lower, Diagonal::Stored);
    for by_columns in [false, true] {
        let square = |buffer| stored(by_columns, buffer);
        foreign(&gpu, || blas.gemv(1.0, square(&a), &x, None, &y), "blas.gemv: `a`: ");
        foreign(&gpu, || blas.ger(1.0, &x, &y, square(&a)), "blas.ger: `x`: ");
        foreign(&gpu, || blas.syrk(1.0, square(&a), None, kind.0, square(&c)), "blas.syrk: `a`: ");
        foreign(&gpu, || blas.trsm(Side::Left, 1.0, square(&a), kind, square(&b)), "blas.trsm: `a`: ");
        let sides = (square(&a), Triangle::Lower);
        foreign(&gpu, || blas.symm(Side::Left, 1.0, sides, square(&b), None, square(&c)), "blas.symm: `a`: ");
        let trmm = || blas.trmm(Side::Left, 1.0, square(&a), kind, square(&b), square(&c));
        foreign(&gpu, trmm, "blas.trmm: `a`: ");
        let sum = || blas.geam(1.0, square(&a), Some((1.0, square(&b))), square(&c));
        foreign(&gpu, sum, "blas.geam: `a`: ");
        let (u, vt) = (Matrix::new(&b, 2, 2).transposed(), Matrix::new(&c, 2, 2));
        told(solve.svd(square(&a), &x, u, vt).submit(), "solve.svd: `a`: ", "submit");
        let own = gpu.zeros::<f32>(4).unwrap();
        let singular = gpu.zeros::<f32>(2).unwrap();
        told(solve.svd(square(&own), &singular, u, vt).submit(), "solve.svd: `u`: ", "submit");
        let solved = solve.cholesky_solve(square(&a), Triangle::Lower, square(&b));
        told(solved.submit(), "solve.cholesky_solve: `factor`: ", "submit");
    }
    let (input, output) = (other.zeros::<[f32; 2]>(8).unwrap(), other.zeros::<[f32; 2]>(8).unwrap());
    told(fft.transform(&[8]).forward(&input, &output).submit(), "fft.forward: `input`: ", "submit");
    let csr = CsrMatrix::<f32>::from_dense(&other, (2, 2), &[1.0; 4]).unwrap();
    let product = || sparse.spmv(Determinism::Any, 1.0, &csr, &x, None, &y);
    foreign(&gpu, product, "sparse.spmv: `a.offsets`: ");
    let (image, filter) = (Tensor::new(&a, [1, 1, 3, 3]), Tensor::new(&b, [1, 1, 2, 2]));
    let convolved = || dnn.convolution(image, filter, Tensor::new(&c, [1, 1, 2, 2]));
    told(convolved().submit(), "dnn.convolution: `x`: ", "submit");
    told(convolved().load(), "dnn.convolution: `x`: ", "load");
}
