//! Calls that cannot be: refused before anything is queued, with what to do.

use std::time::Duration;

use kiln::DeviceRuntime;
use kiln_libs::blas::{Activation, Blas, Diagonal, Math, Matrix, Side, Triangle, Vector};
use kiln_libs::fft::Fft;
use kiln_libs::{LibraryError, Result};

/// The words of a refusal that is about arguments.
#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T>) -> String {
    let error = answer.unwrap_err();
    assert!(matches!(error, LibraryError::Argument { .. }), "{error}");
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
    assert!(text.contains("a leading dimension of 3 for columns of 4 elements"), "{text}");
    let text = matmul(Matrix::new(&x, 0, 4), Matrix::new(&y, 4, 3), Matrix::new(&z, 0, 3));
    assert!(text.contains("is 0; leave out operations on nothing"), "{text}");
    let text = matmul(Matrix::new(&x, 3, 5), Matrix::new(&y, 5, 2), Matrix::new(&z, 3, 2));
    assert!(text.contains("`b` has 48 bytes and must have 60"), "{text}");
    let text = refused(
        blas.matmul(Matrix::new(&x, 3, 4), Matrix::new(&y, 4, 3), Matrix::new(&z, 3, 3)).bias(&x).submit(),
    );
    assert!(text.contains("a bias of 12 elements for 3 columns"), "{text}");
    let text = refused(blas.axpy(1.0, &x, &z.view(..5).unwrap()).submit());
    assert!(text.contains("vectors of 12 and 5 elements"), "{text}");
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
    assert!(text.contains("share memory, and one is written"), "{text}");
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
    assert!(refused(call.submit()).contains("2^59"));
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
    assert!(blas.scal(2.0, &foreign).submit().unwrap_err().runtime().is_some());
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
