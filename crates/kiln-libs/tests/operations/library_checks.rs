//! What the simulated device finds in library calls, and that it computes the same bytes each time.

use kiln::DeviceRuntime;
use kiln_libs::blas::{Activation, Blas, Matrix};
use kiln_libs::fft::Fft;

use crate::numbers::made_up;

#[test]
fn reading_what_was_never_written_is_found_in_a_library_call() {
    let wrong = |gpu: &DeviceRuntime| {
        let blas = Blas::new(gpu);
        let (x, y) = (gpu.allocate::<f32>(64)?, gpu.zeros::<f32>(64)?);
        blas.axpy(1.0, &x, &y).submit().map_err(kiln::Error::other)?;
        gpu.synchronize()
    };
    let failure = kiln::testing::check(0..1, wrong).unwrap_err().to_string();
    assert!(failure.contains("blas.axpy") && failure.contains("never written"), "{failure}");
}

#[test]
fn beta_reads_the_result_and_no_beta_does_not() {
    let product = |gpu: &DeviceRuntime, beta: Option<f64>| {
        let blas = Blas::new(gpu);
        let (x, result) = (gpu.zeros::<f32>(16)?, gpu.allocate::<f32>(16)?);
        let square = |buffer| Matrix::new(buffer, 4, 4);
        let call = blas.matmul(square(&x), square(&x), square(&result));
        let call = beta.into_iter().fold(call, |call, beta| call.beta(beta));
        call.submit().map_err(kiln::Error::other)?;
        gpu.synchronize()
    };
    kiln::testing::check(0..1, |gpu| product(gpu, None)).unwrap();
    let failure = kiln::testing::check(0..1, |gpu| product(gpu, Some(1.0))).unwrap_err().to_string();
    assert!(failure.contains("blas.matmul") && failure.contains("never written"), "{failure}");
}

/// The bytes of several results, as one number.
fn digest(gpu: &DeviceRuntime) -> u64 {
    let (blas, fft) = (Blas::new(gpu), Fft::new(gpu));
    let (a, b) =
        (gpu.upload(&made_up::<f32>(1, 40 * 50)).unwrap(), gpu.upload(&made_up::<f32>(2, 50 * 30)).unwrap());
    let c = gpu.allocate::<f32>(40 * 30).unwrap();
    let product = blas.matmul(Matrix::new(&a, 40, 50), Matrix::new(&b, 50, 30), Matrix::new(&c, 40, 30));
    product.activation(Activation::Gelu).submit().unwrap();
    let spectrum = gpu.allocate::<[f32; 2]>(501).unwrap();
    fft.transform(&[1000]).real_forward(&a.view(..1000).unwrap(), &spectrum).submit().unwrap();
    let numbers = c.download().unwrap().into_iter().chain(spectrum.download().unwrap().into_iter().flatten());
    numbers.fold(0xcbf2_9ce4_8422_2325, |hash, value| {
        (hash ^ u64::from(value.to_bits())).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn the_simulated_device_computes_the_same_bytes_everywhere() {
    let first = digest(&DeviceRuntime::simulated(1).unwrap());
    assert_eq!(digest(&DeviceRuntime::simulated(2).unwrap()), first);
    // Made on x86-64; every other machine must give the same.
    assert_eq!(first, DIGEST, "{first:#x}");
}

const DIGEST: u64 = 0xc302_a19b_6cc7_cba4;
