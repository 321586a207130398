//! What can be known when a product is prepared is told then, and what changes later when it is queued.

use std::time::Duration;

use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::blas::{Blas, F8E4M3, Matrix};
use kiln_libs::{LibraryError, Result};

use crate::refusals_by_name::failing;

#[track_caller]
fn told<T>(answer: Result<T>, place: &str, reason: &str) {
    let Err(error) = answer else { panic!("taken in spite of {place}") };
    let text = error.to_string();
    assert!(matches!(error, LibraryError::Runtime(_)), "{text}");
    assert!(text.starts_with(&format!("blas.matmul: {place}")), "{text} is not of {place}");
    assert!(text.contains(reason) && text.contains("; "), "{text} does not say {reason}");
}

/// Rows, terms and the factor: a product, one without terms, one with a factor of 0, and one without elements.
const KINDS: [(usize, usize, f64); 4] = [(2, 2, 1.0), (2, 0, 1.0), (2, 2, 0.0), (0, 2, 1.0)];

#[test]
fn foreign_buffers_and_streams_are_told_when_a_product_is_prepared() {
    let (gpu, other) = (DeviceRuntime::simulated(1).unwrap(), DeviceRuntime::simulated(2).unwrap());
    let blas = Blas::new(&gpu);
    let four = |gpu: &DeviceRuntime| gpu.upload(&[1.0_f32; 4]).unwrap();
    let (a, b, c, far) = (four(&gpu), four(&gpu), four(&gpu), four(&other));
    let bias = far.view(..2).unwrap();
    let (own, stream) = (gpu.stream().unwrap(), other.stream().unwrap());
    for (rows, terms, alpha) in KINDS {
        for by_columns in [false, true] {
            let product = |a, b, c| {
                let shaped = |buffer, rows, columns| match by_columns {
                    true => Matrix::new(buffer, columns, rows).transposed(),
                    false => Matrix::new(buffer, rows, columns),
                };
                let (a, b, c) = (shaped(a, rows, terms), shaped(b, terms, 2), shaped(c, rows, 2));
                blas.matmul(a, b, c).alpha(alpha)
            };
            let foreign = "belongs to another runtime; ";
            told(product(&far, &b, &c).prepare(), "`a`: ", foreign);
            told(product(&a, &far, &c).prepare(), "`b`: ", foreign);
            told(product(&a, &b, &far).prepare(), "`c`: ", foreign);
            if !by_columns {
                told(product(&a, &b, &c).bias(&bias).prepare(), "`bias`: ", foreign);
            }
            told(product(&a, &b, &c).on(&stream).prepare(), "`stream`: ", foreign);
            told(product(&a, &b, &c).on(other.main_stream()).prepare(), "`stream`: ", foreign);
            let prepared = product(&a, &b, &c).on(&own).prepare().unwrap();
            told(prepared.submit_on(&stream, &a, &b, &c), "`stream`: ", foreign);
            told(prepared.submit(&far, &b, &c), "`a`: ", foreign);
        }
    }
    let (eights, wide) = (gpu.upload(&[F8E4M3(0x38); 256]).unwrap(), gpu.zeros::<f32>(256).unwrap());
    let (one, there) = (gpu.upload(&[1.0_f32]).unwrap(), other.upload(&[1.0_f32]).unwrap());
    let matrix = Matrix::new(&eights, 16, 16);
    let scaled = || blas.matmul(matrix, matrix.transposed(), Matrix::new(&wide, 16, 16));
    told(scaled().scales(&there, &one).prepare(), "`a_scale`: ", "belongs to another runtime; ");
    told(scaled().scales(&one, &there).prepare(), "`b_scale`: ", "belongs to another runtime; ");
    assert_eq!(c.download().unwrap(), [1.0; 4]);
}

fn product<'a>(
    blas: &'a Blas,
    (rows, terms, alpha): (usize, usize, f64),
    [a, b, c]: [&'a GpuRef<f32>; 3],
) -> kiln_libs::blas::MatmulCall<'a, f32, f32> {
    let (a, b, c) = (Matrix::new(a, rows, terms), Matrix::new(b, terms, 2), Matrix::new(c, rows, 2));
    blas.matmul(a, b, c).alpha(alpha)
}

#[test]
fn a_shutdown_is_told_when_a_product_is_prepared_and_when_it_is_queued() {
    for kind in KINDS {
        let gpu = DeviceRuntime::simulated(1).unwrap();
        let blas = Blas::new(&gpu);
        let [a, b, c] = [(); 3].map(|()| gpu.upload(&[1.0_f32; 4]).unwrap());
        let prepared = product(&blas, kind, [&a, &b, &c]).prepare().unwrap();
        prepared.submit(&a, &b, &c).unwrap();
        assert!(gpu.shutdown(Duration::from_secs(60)).unwrap());
        told(product(&blas, kind, [&a, &b, &c]).prepare(), "", "the device is shutting down");
        told(prepared.submit(&a, &b, &c), "", "the device is shutting down");
    }
}

#[test]
fn a_lost_device_is_told_when_a_product_is_prepared_and_when_it_is_queued() {
    for kind in KINDS {
        let (_machine, gpu) = failing();
        let blas = Blas::new(&gpu);
        let [a, b, c] = [(); 3].map(|()| gpu.upload(&[1.0_f32; 4]).unwrap());
        let prepared = product(&blas, kind, [&a, &b, &c]).prepare().unwrap();
        let lost = blas.scal(1.0, &a).submit().unwrap().wait().unwrap_err();
        assert!(lost.is_lost(), "{lost}");
        told(product(&blas, kind, [&a, &b, &c]).prepare(), "", "the device takes no more work; ");
        told(prepared.submit(&a, &b, &c), "", "the device takes no more work; ");
    }
}
