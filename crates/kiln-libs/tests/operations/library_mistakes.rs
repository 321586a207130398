//! Calls that cannot be: refused before anything is queued, with what to do.

use std::time::Duration;

use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::blas::{Activation, Blas, Diagonal, Math, Matrix, Side, Triangle, Vector};
use kiln_libs::dnn::{Dnn, Tensor};
use kiln_libs::fft::Fft;
use kiln_libs::prims::{Primitives, ScanOperator};
use kiln_libs::solve::Solve;
use kiln_libs::{LibraryError, Result};

/// The words of a refusal that is about arguments or their buffers.
#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T>) -> String {
    let error = answer.unwrap_err();
    assert!(matches!(error, LibraryError::Argument { .. } | LibraryError::Runtime(_)), "{error}");
    error.to_string()
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (blas, fft) = (Blas::new(&gpu), Fft::new(&gpu));
    let x = gpu.zeros::<f32>(12).unwrap();
    let y = gpu.zeros::<f32>(12).unwrap();
    let z = gpu.upload(&[5.0_f32; 12]).unwrap();
    let matmul = |a, b, c| refused(blas.matmul(a, b, c).submit());
    let text = matmul(Matrix::new(&x, 3, 4), Matrix::new(&y, 3, 4), Matrix::new(&z, 3, 3));
    assert_eq!(text, "blas.matmul: 3 x 4 times 3 x 4 into 3 x 3; give m x k, k x n and m x n");
    let text = matmul(Matrix::new(&x, 3, 4), Matrix::new(&y, 4, 3), Matrix::new(&z, 3, 4));
    assert!(text.contains("into 3 x 4"), "{text}");
    let text = matmul(Matrix::new(&x, 2, 2).batch(2), Matrix::new(&y, 2, 2), Matrix::new(&z, 2, 2).batch(2));
    assert!(text.contains("batches of 2, 1 and 2"), "{text}");
    let text = matmul(Matrix::new(&x, 3, 4).leading(3), Matrix::new(&y, 4, 3), Matrix::new(&z, 3, 3));
    assert!(text.contains("`a` has a leading dimension of 3 for rows of 4 elements; use a leading dimension that holds a row"), "{text}");
    let text = matmul(Matrix::new(&x, 3, 5), Matrix::new(&y, 5, 2), Matrix::new(&z, 3, 2));
    assert!(text.contains("`a` has 48 bytes and must have 60"), "{text}");
    let text = refused(
        blas.matmul(Matrix::new(&x, 3, 4), Matrix::new(&y, 4, 3), Matrix::new(&z, 3, 3)).bias(&x).submit(),
    );
    assert!(text.contains("a bias of 12 elements for 3 columns"), "{text}");
    let text = refused(blas.axpy(1.0, &x, &z.view(..5).unwrap()).submit());
    assert!(text.contains("`x` has 12 elements and `y` has 5"), "{text}");
    let text = refused(blas.scal(1.0, Vector::new(&z).step(0)).submit());
    assert!(text.contains("a step of 0"), "{text}");
    let text = refused(
        blas.gemv(1.0, Matrix::new(&x, 3, 4), &y.view(..3).unwrap(), None, &z.view(..3).unwrap()).submit(),
    );
    assert!(text.contains("a matrix of 3 x 4 with x of 3"), "{text}");
    let kind = (Triangle::Lower, Diagonal::Unit);
    let text =
        refused(blas.trsm(Side::Left, 1.0, Matrix::new(&x, 4, 3), kind, Matrix::new(&z, 4, 3)).submit());
    assert!(text.contains("a square `a`"), "{text}");
    for extents in [&[][..], &[2, 2, 2, 2]] {
        let text = refused(fft.transform(extents).forward_in_place(&z.cast::<[f32; 2]>().unwrap()).submit());
        assert!(text.contains("one to three extents"), "{text}");
    }
    let text = refused(fft.transform(&[7]).forward_in_place(&z.cast::<[f32; 2]>().unwrap()).submit());
    assert!(text.contains("`data` has 48 bytes and must have 56"), "{text}");
    assert_eq!(z.download().unwrap(), [5.0; 12], "nothing was changed");
    assert_eq!(
        gpu.bytes_outstanding(),
        3 * 48_u64.next_multiple_of(gpu.bytes_outstanding() / 3),
        "no workspace is held"
    );
}

#[test]
fn overlaps_and_alignments_are_refused() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (blas, fft) = (Blas::new(&gpu), Fft::new(&gpu));
    let data = gpu.zeros::<f32>(64).unwrap();
    let (first, second) = (data.view(0..16).unwrap(), data.view(8..24).unwrap());
    let square = |buffer| Matrix::new(buffer, 4, 4);
    let other = gpu.zeros::<f32>(16).unwrap();
    let text = refused(blas.matmul(square(&first), square(&other), square(&second)).submit());
    assert!(text.contains("`a` and `c` share memory, and one is written"), "{text}");
    // Two inputs may be the same.
    blas.matmul(square(&first), square(&first), square(&other)).submit().unwrap();
    let text = refused(blas.axpy(1.0, &first, &first).submit());
    assert!(text.contains("`x` and `y` share memory"), "{text}");
    let odd = data.view(1..33).unwrap();
    let numbers = odd.cast::<[f32; 2]>().unwrap();
    let text = refused(fft.transform(&[8]).forward_in_place(&numbers).submit());
    assert!(text.contains("does not begin at a multiple of 8 bytes"), "{text}");
    // A product takes what it gets, and a library chooses an algorithm for it.
    let matrix = data.view(33..49).unwrap();
    blas.matmul(square(&other), square(&other), square(&matrix)).submit().unwrap().wait().unwrap();
}

fn stored(by_columns: bool, buffer: &GpuRef<f32>, rows: usize, columns: usize) -> Matrix<'_, f32> {
    match by_columns {
        true => Matrix::new(buffer, columns, rows).transposed(),
        false => Matrix::new(buffer, rows, columns),
    }
}

/// Every mistake with one operand is told with the name that the caller gave it, whatever the layout of the result.
#[test]
fn operands_have_the_names_that_the_caller_knows() {
    let (gpu, other) = (DeviceRuntime::simulated(1).unwrap(), DeviceRuntime::simulated(2).unwrap());
    let blas = Blas::new(&gpu);
    let new = |gpu: &DeviceRuntime, len| gpu.zeros::<f32>(len).unwrap();
    for by_columns in [false, true] {
        // 2 x 3 times 3 x 4 into 2 x 4.
        let product = |a: &GpuRef<f32>, b: &GpuRef<f32>, c: &GpuRef<f32>| {
            let matrices =
                (stored(by_columns, a, 2, 3), stored(by_columns, b, 3, 4), stored(by_columns, c, 2, 4));
            refused(blas.matmul(matrices.0, matrices.1, matrices.2).submit())
        };
        let (a, b, c) = (new(&gpu, 6), new(&gpu, 12), new(&gpu, 8));
        let text = product(&new(&gpu, 5), &b, &c);
        assert!(text.contains("`a` has 20 bytes and must have 24"), "{text}");
        let text = product(&a, &new(&gpu, 11), &c);
        assert!(text.contains("`b` has 44 bytes and must have 48"), "{text}");
        let text = product(&a, &b, &new(&gpu, 7));
        assert!(text.contains("`c` has 28 bytes and must have 32"), "{text}");
        let text = product(&a, &b, &b);
        assert!(text.contains("`b` and `c` share memory"), "{text}");
        let text = product(&c, &b, &c);
        assert!(text.contains("`a` and `c` share memory"), "{text}");
        for (name, text) in [
            ("a", product(&new(&other, 6), &b, &c)),
            ("b", product(&a, &new(&other, 12), &c)),
            ("c", product(&a, &b, &new(&other, 8))),
        ] {
            let wanted = format!("blas.matmul: `{name}`: ");
            assert!(text.starts_with(&wanted) && text.contains("belongs to another runtime"), "{text}");
        }
        let leading = |at: usize| {
            let matrices =
                [stored(by_columns, &a, 2, 3), stored(by_columns, &b, 3, 4), stored(by_columns, &c, 2, 4)];
            let [a, b, c] = std::array::from_fn(|place| match place == at {
                true => matrices[place].leading(1),
                false => matrices[place],
            });
            refused(blas.matmul(a, b, c).submit())
        };
        let lines = if by_columns { "columns" } else { "rows" };
        for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
            let text = leading(at);
            assert!(text.contains(&format!("`{name}` has a leading dimension of 1 for {lines}")), "{text}");
        }
    }
}

#[test]
fn types_and_modes_that_do_not_go_together_are_refused() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let blas = Blas::new(&gpu);
    let (x, y) = (gpu.zeros::<f64>(4).unwrap(), gpu.zeros::<f64>(4).unwrap());
    let z = gpu.zeros::<f64>(4).unwrap();
    let call = || blas.matmul(Matrix::new(&x, 2, 2), Matrix::new(&y, 2, 2), Matrix::new(&z, 2, 2));
    assert!(refused(call().math(Math::Tf32).submit()).contains("math tf32 for f64 into f64; use ieee"));
    let narrow = gpu.zeros::<f32>(4).unwrap();
    let text = refused(
        blas.matmul(Matrix::new(&x, 2, 2), Matrix::new(&y, 2, 2), Matrix::new(&narrow, 2, 2)).submit(),
    );
    assert!(text.contains("a product of f64 and f64 into f32; use f64 into f64, "), "{text}");
    let (a, c) = (gpu.zeros::<i8>(4).unwrap(), gpu.zeros::<i32>(4).unwrap());
    let integers = blas.matmul(Matrix::new(&a, 2, 2), Matrix::new(&a, 2, 2), Matrix::new(&c, 2, 2));
    assert!(refused(integers.activation(Activation::Relu).submit()).contains("on integers"));
}

#[test]
fn sizes_of_two_billion_and_more_are_counted_right() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let blas = Blas::new(&gpu);
    let (x, y) = (gpu.zeros::<f32>(4).unwrap(), gpu.zeros::<f32>(4).unwrap());
    let large = (1_usize << 31) + 1;
    let call = blas.matmul(Matrix::new(&x, large, 1), Matrix::new(&y, 1, 1), Matrix::new(&x, large, 1));
    let text = refused(call.submit());
    assert!(text.contains("must have 8589934596"), "{text}");
    let call =
        blas.matmul(Matrix::new(&x, usize::MAX, 2), Matrix::new(&y, 2, 2), Matrix::new(&x, usize::MAX, 2));
    assert!(refused(call.submit()).contains("` has 2^59 elements or more"));
    let text = refused(blas.scal(1.0, Vector::new(&x).step(usize::MAX)).submit().and_then(|_| {
        blas.matmul(
            Matrix::new(&x, 1, 1).batch(large).stride(1),
            Matrix::new(&y, 1, 1).batch(large).stride(0),
            Matrix::new(&x, 1, 1).batch(large),
        )
        .submit()
    }));
    assert!(text.contains("must have"), "{text}");
}

#[test]
fn another_devices_buffer_and_a_device_that_is_shut_down_are_told() {
    let (gpu, other) = (DeviceRuntime::simulated(3).unwrap(), DeviceRuntime::simulated(4).unwrap());
    let (blas, foreign) = (Blas::new(&gpu), other.zeros::<f32>(4).unwrap());
    let text = refused(blas.scal(2.0, &foreign).submit());
    assert!(text.starts_with("blas.scal: `x`: ") && text.contains("belongs to another runtime"), "{text}");
    let ours = gpu.zeros::<f32>(4).unwrap();
    let text = refused(blas.scal(2.0, &ours).record(&mut other.graph()));
    assert!(text.contains("`graph` belongs to another runtime"), "{text}");
    let buffer = gpu.zeros::<f32>(4).unwrap();
    assert!(gpu.shutdown(Duration::from_secs(60)).unwrap());
    assert!(blas.scal(2.0, &buffer).submit().unwrap_err().runtime().is_some());
}

#[test]
fn a_library_error_passes_through_functions_that_answer_with_the_runtimes() {
    fn add(gpu: &DeviceRuntime, blas: &Blas, len: usize) -> kiln::Result<()> {
        let (x, y) = (gpu.zeros::<f32>(len)?, gpu.zeros::<f32>(4)?);
        blas.axpy(1.0, &x, &y).submit()?.wait()
    }
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let blas = Blas::new(&gpu);
    add(&gpu, &blas, 4).unwrap();
    let error = add(&gpu, &blas, 3).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(LibraryError::Argument { .. })), "{error}");
    // What the runtime answered is its own error again, with its kind.
    let (x, y) = (gpu.zeros::<f32>(4).unwrap(), gpu.zeros::<f32>(4).unwrap());
    gpu.shutdown(Duration::from_secs(10)).unwrap();
    let refused = blas.axpy(1.0, &x, &y).submit().unwrap_err();
    let wanted = refused.runtime().unwrap().to_string();
    let error = kiln::Error::from(refused);
    assert_eq!(error.to_string(), wanted);
    assert!(error.downcast_ref::<LibraryError>().is_none());
}

#[test]
fn mistakes_are_told_of_the_call_that_was_made() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (blas, solve, prims, dnn) =
        (Blas::new(&gpu), Solve::new(&gpu), Primitives::new(&gpu), Dnn::new(&gpu));
    let [a, b] = [(); 2].map(|()| gpu.zeros::<f64>(64).unwrap());
    let matrix = |rows, columns| Matrix::new(&a, rows, columns);
    let other = |rows, columns| Matrix::new(&b, rows, columns);
    assert_eq!(
        refused(blas.transpose(matrix(4, 8), other(4, 8)).submit()),
        "blas.transpose: the transpose of an `a` of 4 x 8 into a `c` of 4 x 8; give a `c` that has as many rows as `a` has columns, and as many columns as `a` has rows"
    );
    let text = refused(blas.transpose(matrix(9, 8), other(8, 9)).submit());
    assert_eq!(
        text,
        "blas.transpose: `a` has 512 bytes and must have 576; use a longer buffer, or smaller sizes"
    );
    let text = refused(blas.transpose(matrix(8, 8), matrix(8, 8)).submit());
    assert!(text.starts_with("blas.transpose: `a` and `c` share memory"), "{text}");
    let text = refused(blas.transpose(matrix(2, 2).batch(2), other(2, 2)).submit());
    assert!(text.starts_with("blas.transpose: a batch of 2 matrices"), "{text}");

    let wide = matrix(4, 2).transposed();
    let text = refused(solve.least_squares(wide, other(2, 1)).submit());
    assert!(text.starts_with("solve.least_squares: `a` is 2 x 4: "), "{text}");
    let tall = matrix(2, 4).transposed();
    let text = refused(solve.least_squares(tall, other(3, 1)).submit());
    assert!(text.starts_with("solve.least_squares: `b` is 3 x 1, and must be 4 x 1"), "{text}");
    let text = refused(solve.least_squares(matrix(4, 2), other(4, 1)).submit());
    assert!(text.starts_with("solve.least_squares: `a` is stored row after row"), "{text}");
    let short = b.view(..3).unwrap();
    let text = refused(solve.least_squares(tall, Matrix::new(&short, 4, 1)).submit());
    assert!(text.starts_with("solve.least_squares: `b` has 24 bytes and must have 32"), "{text}");
    let text = refused(solve.least_squares(Matrix::new(&short, 2, 4).transposed(), other(4, 1)).submit());
    assert!(text.starts_with("solve.least_squares: `a` has 24 bytes and must have 64"), "{text}");
    let values = gpu.zeros::<f64>(4).unwrap();
    let text = refused(solve.eigenvectors(matrix(2, 3), Triangle::Lower, &values).submit());
    assert!(text.starts_with("solve.eigenvectors: "), "{text}");
    let text = refused(solve.singular_values(matrix(2, 3), &values.view(..1).unwrap()).submit());
    assert!(text.starts_with("solve.singular_values: `s` has 1 elements and must have 2"), "{text}");
    let text = refused(solve.apply_q_transposed(Side::Left, tall, &values, other(3, 1)).submit());
    assert!(text.starts_with("solve.apply_q_transposed: "), "{text}");

    let (none, place) = (gpu.zeros::<f32>(0).unwrap(), gpu.zeros::<u64>(1).unwrap());
    let text = refused(prims.arg_min(&none, &place).submit());
    assert_eq!(text, "prims.arg_min: the input has no elements; give at least one");
    let text = refused(prims.arg_max(&none, &place).submit());
    assert!(text.starts_with("prims.arg_max: "), "{text}");
    let text = refused(prims.scan_inclusive(&none, ScanOperator::Sum, &gpu.zeros(1).unwrap()).submit());
    assert!(text.starts_with("prims.scan_inclusive: "), "{text}");
    let images = gpu.zeros::<f32>(64).unwrap();
    let tensor = |sizes| Tensor::new(&images, sizes);
    let text = refused(
        dnn.convolution_backward_data(tensor([1, 1, 1, 1]), tensor([1, 1, 2, 2]), tensor([1, 1, 3, 3]))
            .submit(),
    );
    assert!(text.starts_with("dnn.convolution_backward_data: `dy` is 1 x 1 x 1 x 1"), "{text}");
}
