//! NaN, infinities and scalars at the ends of their range: one rule on every device.

use kiln::DeviceRuntime;
use kiln_libs::blas::{Blas, Diagonal, Matrix, Side, Triangle};
use kiln_libs::dnn::Dnn;
use kiln_libs::prims::{Primitives, ReduceOperator, ScanOperator};

use kiln_libs::sparse::{CsrMatrix, Determinism, Sparse};

use crate::rig::everywhere;

const OPERATORS: [(ReduceOperator, f64); 2] =
    [(ReduceOperator::Min, f64::INFINITY), (ReduceOperator::Max, f64::NEG_INFINITY)];

#[test]
fn minimum_and_maximum_of_nan_alone_are_nan() {
    everywhere("minimum_and_maximum_of_nan_alone_are_nan", |gpu| {
        let prims = Primitives::new(gpu);
        for (operator, of_nothing) in OPERATORS {
            for len in [1_usize, 31, 5000, 70_000] {
                let (input, output) = (vec![f32::NAN; len], gpu.zeros::<f32>(1).unwrap());
                prims.reduce(&gpu.upload(&input).unwrap(), operator, &output).submit().unwrap();
                assert!(output.download().unwrap()[0].is_nan(), "{operator:?} of {len}");
                // One number among them is the result.
                let mut some = vec![f64::NAN; len];
                some[len / 2] = 3.0;
                let output = gpu.zeros::<f64>(1).unwrap();
                prims.reduce(&gpu.upload(&some).unwrap(), operator, &output).submit().unwrap();
                assert_eq!(output.download().unwrap(), [3.0], "{operator:?} of {len}");
            }
            let (none, output) = (gpu.zeros::<f64>(0).unwrap(), gpu.zeros::<f64>(1).unwrap());
            prims.reduce(&none, operator, &output).submit().unwrap();
            assert_eq!(output.download().unwrap(), [of_nothing]);
        }
    });
}

#[test]
fn segments_and_scans_of_nan_alone_are_nan() {
    everywhere("segments_and_scans_of_nan_alone_are_nan", |gpu| {
        let prims = Primitives::new(gpu);
        for (operator, of_nothing) in OPERATORS {
            // Three numbers that are NaN, no numbers, a NaN with a 2; and segments that are long enough for a block each.
            for width in [1_usize, 4000] {
                let mut input = vec![f64::NAN; 5 * width];
                input[4 * width] = 2.0;
                let offsets = [0, 3 * width as u32, 3 * width as u32, 5 * width as u32];
                let (input, offsets) = (gpu.upload(&input).unwrap(), gpu.upload(&offsets).unwrap());
                let output = gpu.zeros::<f64>(3).unwrap();
                prims.reduce_segments(&input, &offsets, operator, &output).submit().unwrap();
                let found = output.download().unwrap();
                assert!(found[0].is_nan() && found[1..] == [of_nothing, 2.0], "{operator:?}: {found:?}");
            }
        }
        for operator in [ScanOperator::Min, ScanOperator::Max] {
            for len in [2_usize, 5000, 70_000] {
                let mut values = vec![f32::NAN; len];
                values[len - 1] = 2.0;
                let (input, output) = (gpu.upload(&values).unwrap(), gpu.zeros::<f32>(len).unwrap());
                prims.scan_inclusive(&input, operator, &output).submit().unwrap();
                let found = output.download().unwrap();
                assert!(found[..len - 1].iter().all(|value| value.is_nan()), "{operator:?} of {len}");
                assert_eq!(found[len - 1], 2.0);
                prims.scan_exclusive(&input, operator, 5.0, &output).submit().unwrap();
                assert_eq!(output.download().unwrap(), vec![5.0; len]);
            }
        }
    });
}

#[test]
fn a_row_with_infinity_has_no_softmax() {
    everywhere("a_row_with_infinity_has_no_softmax", |gpu| {
        let dnn = Dnn::new(gpu);
        for columns in [4_usize, 1500] {
            let mut x = vec![1.0_f32; 3 * columns];
            x[1] = f32::INFINITY;
            x[columns + 2] = f32::NEG_INFINITY;
            x[2 * columns + 3] = f32::NAN;
            let (input, output) = (gpu.upload(&x).unwrap(), gpu.zeros::<f32>(x.len()).unwrap());
            let is_number = |row: &[f32]| row.iter().filter(|value| !value.is_nan()).count();
            dnn.softmax(&input, columns, &output).submit().unwrap();
            let y = output.download().unwrap();
            assert_eq!((is_number(&y[..columns]), is_number(&y[2 * columns..])), (0, 0), "{columns}");
            assert_eq!((is_number(&y[columns..2 * columns]), y[columns + 2]), (columns, 0.0));
            dnn.softmax(&input, columns, &output).log().submit().unwrap();
            let y = output.download().unwrap();
            assert_eq!((is_number(&y[..columns]), is_number(&y[2 * columns..])), (0, 0), "{columns}");
            assert_eq!(y[columns + 2], f32::NEG_INFINITY);
        }
    });
}

#[test]
fn with_an_alpha_of_zero_a_matmul_does_not_read_its_factors() {
    everywhere("with_an_alpha_of_zero_a_matmul_does_not_read_its_factors", |gpu| {
        let blas = Blas::new(gpu);
        let nan = gpu.upload(&[f32::NAN; 16]).unwrap();
        let ones = gpu.upload(&[1.0_f32; 16]).unwrap();
        let c = gpu.allocate::<f32>(16).unwrap();
        let square = |buffer| Matrix::new(buffer, 4, 4);
        for (a, b) in [(&nan, &ones), (&ones, &nan), (&nan, &nan)] {
            // 1e-50 is 0 in the type that the library scales with.
            for alpha in [0.0, -0.0, 1e-50] {
                c.fill(3.0).unwrap();
                let call = blas.matmul(square(a), square(b), square(&c));
                call.alpha(alpha).beta(2.0).submit().unwrap();
                assert_eq!(c.download().unwrap(), [6.0; 16]);
                blas.matmul(square(a), square(b), square(&c)).alpha(alpha).submit().unwrap();
                assert_eq!(c.download().unwrap(), [0.0; 16]);
            }
        }
    });
}

#[test]
fn with_a_beta_of_zero_the_result_is_not_read() {
    everywhere("with_a_beta_of_zero_the_result_is_not_read", |gpu| {
        let (blas, sparse) = (Blas::new(gpu), Sparse::new(gpu));
        let ones = gpu.upload(&[1.0_f32; 16]).unwrap();
        let nan = |len| gpu.upload(&vec![f32::NAN; len]).unwrap();
        let square = |buffer| Matrix::new(buffer, 4, 4);
        let (c, y) = (nan(16), nan(4));
        // 1e-50 is 0 in the type that the library scales with.
        for beta in [0.0, -0.0, 1e-50] {
            blas.matmul(square(&ones), square(&ones), square(&c)).beta(beta).submit().unwrap();
            assert_eq!(c.download().unwrap(), [4.0; 16]);
            c.fill(f32::NAN).unwrap();
            let x = ones.view(..4).unwrap();
            blas.gemv(1.0, square(&ones), &x, Some(beta), &y).submit().unwrap();
            assert_eq!(y.download().unwrap(), [4.0; 4]);
            y.fill(f32::NAN).unwrap();
            blas.syrk(1.0, square(&ones), Some(beta), Triangle::Lower, square(&c)).submit().unwrap();
            assert_eq!(c.download().unwrap()[12..], [4.0; 4]);
            c.fill(f32::NAN).unwrap();
            let a: CsrMatrix<f32> = CsrMatrix::from_dense(gpu, (4, 4), &[1.0; 16]).unwrap();
            sparse.spmv(Determinism::Any, 1.0, &a, &x, Some(beta), &y).submit().unwrap();
            assert_eq!(y.download().unwrap(), [4.0; 4]);
            y.fill(f32::NAN).unwrap();
            sparse.spmm(Determinism::Any, 1.0, &a, square(&ones), Some(beta), square(&c)).submit().unwrap();
            assert_eq!(c.download().unwrap(), [4.0; 16]);
            c.fill(f32::NAN).unwrap();
            let product = sparse.product_structure(&a, &a).unwrap();
            product.values().fill(f32::NAN).unwrap();
            sparse.spgemm(1.0, &a, &a, Some(beta), &product).submit().unwrap();
            assert_eq!(product.values().download().unwrap(), [4.0; 16]);
        }
    });
}

#[test]
fn an_alpha_of_zero_solves_a_triangular_system_by_zero() {
    everywhere("an_alpha_of_zero_solves_a_triangular_system_by_zero", |gpu| {
        let (a, b) = (gpu.upload(&[3.0_f64; 4]).unwrap(), gpu.upload(&[5.0_f64; 4]).unwrap());
        let (a, x) = (Matrix::new(&a, 2, 2), Matrix::new(&b, 2, 2));
        let shape = (Triangle::Lower, Diagonal::Stored);
        for side in [Side::Left, Side::Right] {
            b.fill(5.0).unwrap();
            Blas::new(gpu).trsm(side, 0.0, a, shape, x).submit().unwrap();
            assert_eq!(b.download().unwrap(), [0.0; 4]);
        }
    });
}

#[test]
fn factors_have_the_type_that_the_library_scales_with() {
    everywhere("factors_have_the_type_that_the_library_scales_with", |gpu| {
        let ones = gpu.upload(&[1.0_f32; 16]).unwrap();
        let (c, square) = (gpu.zeros::<f32>(16).unwrap(), |buffer| Matrix::new(buffer, 4, 4));
        Blas::new(gpu).matmul(square(&ones), square(&ones), square(&c)).alpha(1.0 + 1e-12).submit().unwrap();
        assert_eq!(c.download().unwrap(), [4.0; 16]);
    });
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (ones, c) = (gpu.upload(&[1_i8; 16]).unwrap(), gpu.upload(&[7_i32; 16]).unwrap());
    let blas = Blas::new(&gpu);
    let product = || blas.matmul(Matrix::new(&ones, 4, 4), Matrix::new(&ones, 4, 4), Matrix::new(&c, 4, 4));
    for wrong in [0.5, f64::NAN, 1e10] {
        for call in [product().alpha(wrong), product().beta(wrong)] {
            let text = call.submit().unwrap_err().to_string();
            assert!(text.contains("use an integer of 32 bits"), "{text}");
        }
    }
    assert_eq!(c.download().unwrap(), [7; 16]);
    product().alpha(3.0).beta(2.0).submit().unwrap();
    assert_eq!(c.download().unwrap(), [26; 16]);
}
