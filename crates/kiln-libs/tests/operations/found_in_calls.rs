//! What the simulated device finds in the work of a call names the call, the operand under the name that the caller gave it, and the line of the call.

use half::f16;
use kiln::buffer::Element;
use kiln::checking::FindingRule;
use kiln::recovery::DeviceSpec;
use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::Result;
use kiln_libs::blas::{Blas, Diagonal, Matrix, Side, Triangle};
use kiln_libs::dnn::{AttentionTensor, Dnn, Tensor};
use kiln_libs::fft::Fft;
use kiln_libs::solve::Solve;
use kiln_libs::sparse::{CsrMatrix, Determinism, Sparse};

use crate::rig::{in_worker, process};

/// A buffer of ones, or memory that was never written.
fn filled<T: Element>(gpu: &DeviceRuntime, len: usize, is_written: bool, one: T) -> GpuRef<T> {
    let buffer = gpu.allocate::<T>(len).unwrap();
    if is_written {
        buffer.fill(one).unwrap();
    }
    buffer
}

/// The first finding of work that was queued.
#[track_caller]
fn finding<T>(gpu: &DeviceRuntime, queued: Result<T>) -> String {
    drop(queued.unwrap());
    let error = gpu.synchronize().unwrap_err();
    let finding = error.finding().unwrap_or_else(|| panic!("{error}"));
    assert_eq!(finding.rule, FindingRule::Uninitialised, "{finding}");
    finding.text.clone()
}

/// Leaves each operand of a call unwritten in turn. The call gets the device and the operand that is not written; it answers the line and what was queued.
#[track_caller]
fn each(operands: &[&str], call: &str, run: impl Fn(&DeviceRuntime, &str) -> (u32, String)) {
    for operand in operands {
        let gpu = DeviceRuntime::simulated(1).unwrap();
        let (line, text) = run(&gpu, operand);
        let wanted = format!("This is work of {call}, called at {}:{line}, ", file!());
        assert!(text.contains(&wanted), "{text}\ndoes not say\n{wanted}");
        // Threads of a kernel run in any order, so that another byte may be read first.
        let wanted = format!(" of its operand `{operand}`.");
        assert!(text.contains(&wanted), "{text}\ndoes not say\n{wanted}");
    }
}

#[test]
fn a_product_names_the_factor_that_was_never_written_in_every_layout() {
    for by_columns in [false, true] {
        each(&["a", "b", "c", "bias"], "blas.matmul", |gpu, operand| {
            let ones = |name: &str, len| filled(gpu, len, name != operand, 1.0_f32);
            let (a, b, c, bias) = (ones("a", 6), ones("b", 12), ones("c", 8), ones("bias", 4));
            let blas = Blas::new(gpu);
            let stored = |buffer, rows, columns| match by_columns {
                true => Matrix::new(buffer, columns, rows).transposed(),
                false => Matrix::new(buffer, rows, columns),
            };
            // A bias is added to rows alone.
            let result = if operand == "bias" { Matrix::new(&c, 2, 4) } else { stored(&c, 2, 4) };
            let product = blas.matmul(stored(&a, 2, 3), stored(&b, 3, 4), result).beta(1.0);
            let product = if operand == "bias" { product.bias(&bias) } else { product };
            (line!(), finding(gpu, product.submit()))
        });
    }
}

#[test]
fn a_product_that_is_loaded_or_prepared_names_its_operands_too() {
    for by_columns in [false, true] {
        each(&["a", "b"], "blas.matmul", |gpu, operand| {
            let ones = |name: &str| filled(gpu, 4, name != operand, 1.0_f32);
            let (a, b, c) = (ones("a"), ones("b"), ones("c"));
            let (blas, good) = (Blas::new(gpu), gpu.upload(&[1.0_f32; 4]).unwrap());
            let square = |buffer| match by_columns {
                true => Matrix::new(buffer, 2, 2).transposed(),
                false => Matrix::new(buffer, 2, 2),
            };
            blas.matmul(square(&good), square(&good), square(&c)).submit().unwrap();
            let product = blas.matmul(square(&a), square(&b), square(&c));
            (line!(), finding(gpu, product.submit()))
        });
        each(&["a", "b"], "blas.matmul", |gpu, operand| {
            let ones = |name: &str| filled(gpu, 4, name != operand, 1.0_f32);
            let (a, b, c) = (ones("a"), ones("b"), ones("c"));
            let (blas, good) = (Blas::new(gpu), gpu.upload(&[1.0_f32; 4]).unwrap());
            let square = |buffer| match by_columns {
                true => Matrix::new(buffer, 2, 2).transposed(),
                false => Matrix::new(buffer, 2, 2),
            };
            let step = blas.matmul(square(&good), square(&good), square(&c)).prepare().unwrap();
            (line!(), finding(gpu, step.submit(&a, &b, &c)))
        });
    }
}

#[test]
fn vectors_and_matrices_are_named() {
    each(&["a", "x"], "blas.gemv", |gpu, operand| {
        let ones = |name: &str, len| filled(gpu, len, name != operand, 1.0_f64);
        let (a, x, y, blas) = (ones("a", 6), ones("x", 3), ones("y", 2), Blas::new(gpu));
        let call = blas.gemv(1.0, Matrix::new(&a, 2, 3), &x, None, &y);
        (line!(), finding(gpu, call.submit()))
    });
    for by_columns in [false, true] {
        each(&["x", "y", "a"], "blas.ger", |gpu, operand| {
            let ones = |name: &str, len| filled(gpu, len, name != operand, 1.0_f64);
            let (x, y, a, blas) = (ones("x", 2), ones("y", 3), ones("a", 6), Blas::new(gpu));
            let matrix = match by_columns {
                true => Matrix::new(&a, 3, 2).transposed(),
                false => Matrix::new(&a, 2, 3),
            };
            let call = blas.ger(1.0, &x, &y, matrix);
            (line!(), finding(gpu, call.submit()))
        });
    }
    each(&["x", "y"], "blas.axpy", |gpu, operand| {
        let ones = |name: &str| filled(gpu, 3, name != operand, 1.0_f32);
        let (x, y, blas) = (ones("x"), ones("y"), Blas::new(gpu));
        let call = blas.axpy(1.0, &x, &y);
        (line!(), finding(gpu, call.submit()))
    });
    each(&["a", "b"], "blas.trsm", |gpu, operand| {
        let ones = |name: &str| filled(gpu, 4, name != operand, 1.0_f32);
        let (a, b, blas) = (ones("a"), ones("b"), Blas::new(gpu));
        let kind = (Triangle::Lower, Diagonal::Stored);
        let call = blas.trsm(Side::Left, 1.0, Matrix::new(&a, 2, 2), kind, Matrix::new(&b, 2, 2));
        (line!(), finding(gpu, call.submit()))
    });
    each(&["input"], "fft.forward", |gpu, _| {
        let (input, output) = (filled(gpu, 8, false, [0.0_f32; 2]), filled(gpu, 8, true, [0.0_f32; 2]));
        let fft = Fft::new(gpu);
        let call = fft.transform(&[8]).forward(&input, &output);
        (line!(), finding(gpu, call.submit()))
    });
}

#[test]
fn solvers_and_sparse_matrices_are_named() {
    each(&["a"], "solve.cholesky", |gpu, _| {
        let (a, solve) = (filled(gpu, 4, false, 1.0_f32), Solve::new(gpu));
        let call = solve.cholesky(Matrix::new(&a, 2, 2), Triangle::Lower);
        (line!(), finding(gpu, call.submit()))
    });
    each(&["a"], "solve.lu", |gpu, _| {
        let (a, pivots) = (filled(gpu, 4, false, 1.0_f32), gpu.allocate::<i64>(2).unwrap());
        let solve = Solve::new(gpu);
        let call = solve.lu(Matrix::new(&a, 2, 2), &pivots);
        (line!(), finding(gpu, call.submit()))
    });
    each(&["factor", "b"], "solve.cholesky_solve", |gpu, operand| {
        let ones = |name: &str| filled(gpu, 4, name != operand, 1.0_f32);
        let (factor, b, solve) = (ones("factor"), ones("b"), Solve::new(gpu));
        // Rows of `b` would be copied into columns before.
        let (factor, b) = (Matrix::new(&factor, 2, 2), Matrix::new(&b, 2, 2).transposed());
        let call = solve.cholesky_solve(factor, Triangle::Lower, b);
        (line!(), finding(gpu, call.submit()))
    });
    each(&["a"], "solve.least_squares", |gpu, operand| {
        let ones = |name: &str, len| filled(gpu, len, name != operand, 1.0_f32);
        let (a, b, solve) = (ones("a", 6), ones("b", 3), Solve::new(gpu));
        let call = solve.least_squares(Matrix::new(&a, 2, 3).transposed(), Matrix::new(&b, 3, 1));
        (line!(), finding(gpu, call.submit()))
    });
    each(&["x"], "sparse.spmv", |gpu, _| {
        let a = CsrMatrix::<f32>::from_dense(gpu, (2, 2), &[1.0, 0.0, 0.0, 1.0]).unwrap();
        let (x, y) = (filled(gpu, 2, false, 1.0_f32), filled(gpu, 2, true, 1.0_f32));
        let sparse = Sparse::new(gpu);
        let call = sparse.spmv(Determinism::Any, 1.0, &a, &x, None, &y);
        (line!(), finding(gpu, call.submit()))
    });
    each(&["a.values"], "sparse.spmv", |gpu, _| {
        let (offsets, indices) = (gpu.upload(&[0, 1, 2]).unwrap(), gpu.upload(&[0, 1]).unwrap());
        let values = filled(gpu, 2, false, 1.0_f32);
        let a = CsrMatrix::from_buffers((2, 2), offsets, indices, values).unwrap();
        let (x, y) = (filled(gpu, 2, true, 1.0_f32), filled(gpu, 2, true, 1.0_f32));
        let sparse = Sparse::new(gpu);
        let call = sparse.spmv(Determinism::Any, 1.0, &a, &x, None, &y);
        (line!(), finding(gpu, call.submit()))
    });
}

#[test]
fn networks_are_named_in_libraries_and_in_kernels_of_kiln() {
    each(&["x", "w"], "dnn.convolution", |gpu, operand| {
        let ones = |name: &str, len| filled(gpu, len, name != operand, 1.0_f32);
        let (x, w, y, dnn) = (ones("x", 9), ones("w", 4), ones("y", 4), Dnn::new(gpu));
        let (x, w) = (Tensor::new(&x, [1, 1, 3, 3]), Tensor::new(&w, [1, 1, 2, 2]));
        let call = dnn.convolution(x, w, Tensor::new(&y, [1, 1, 2, 2]));
        (line!(), finding(gpu, call.submit()))
    });
    each(&["q", "k", "v"], "dnn.attention", |gpu, operand| {
        let ones = |name: &str| filled(gpu, 128, name != operand, f16::ONE);
        let [q, k, v, o] = ["q", "k", "v", "o"].map(ones);
        let [q, k, v, o] = [&q, &k, &v, &o].map(|buffer| AttentionTensor::new(buffer, [1, 1, 2, 64]));
        let dnn = Dnn::new(gpu);
        let call = dnn.attention(q, k, v, o);
        (line!(), finding(gpu, call.submit()))
    });
    each(&["x"], "dnn.softmax", |gpu, _| {
        let (x, y) = (filled(gpu, 8, false, 1.0_f32), filled(gpu, 8, true, 1.0_f32));
        let dnn = Dnn::new(gpu);
        let call = dnn.softmax(&x, 4, &y);
        (line!(), finding(gpu, call.submit()))
    });
}

#[test]
fn a_place_in_the_middle_of_an_operand_is_told() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (x, y) = (gpu.allocate::<f32>(100).unwrap(), gpu.zeros::<f32>(100).unwrap());
    x.view(..50).unwrap().fill(1.0).unwrap();
    let blas = Blas::new(&gpu);
    let text = finding(&gpu, blas.axpy(1.0, &x, &y).submit());
    assert!(text.contains("the first byte is byte 200 of its operand `x`."), "{text}");
    // What comes after the call is not its work.
    let error = gpu.allocate::<f32>(4).unwrap().download().unwrap_err();
    let text = error.finding().unwrap().text.clone();
    assert!(!text.contains("This is work of"), "{text}");
}

#[test]
fn a_call_in_a_worker_is_named() {
    let gpu = in_worker(&DeviceSpec::simulated(7), process());
    let (x, y) = (gpu.allocate::<f32>(4).unwrap(), gpu.zeros::<f32>(4).unwrap());
    let blas = Blas::new(&gpu);
    let call = blas.axpy(1.0, &x, &y);
    let (line, text) = (line!(), finding(&gpu, call.submit()));
    let wanted = format!("This is work of blas.axpy, called at {}:{line}, ", file!());
    assert!(text.contains(&wanted) && text.contains("byte 0 of its operand `x`."), "{text}");
}
