//! How far a result may lie from the exact one: the bounds as the documentation states them, so that none is so wide that it lets a wrong result pass.

use half::f16;
use kiln::DeviceRuntime;
use kiln_libs::Tolerance;
use kiln_libs::blas::{Activation, Blas, Math, Matrix, MatrixElement};
use kiln_libs::fft::Fft;
use kiln_libs::operation::Operation;
use kiln_libs::solve::{Solve, Triangle};
use kiln_libs::sparse::{CsrMatrix, Determinism, Sparse};

/// Half of the distance between two numbers near 1.
const F64: f64 = 1.0 / (1_u64 << 53) as f64;
const F32: f64 = 1.0 / (1 << 24) as f64;
const F16: f64 = 1.0 / (1 << 11) as f64;

/// Terms of each sum, and two roundings more.
const TERMS: f64 = 10.0 + 2.0;

fn product<T: MatrixElement, O: MatrixElement>(math: Math, activation: Activation) -> Operation {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let blas = Blas::new(&gpu);
    let (a, b) = (gpu.zeros::<T>(40).unwrap(), gpu.zeros::<T>(40).unwrap());
    let c = gpu.zeros::<O>(16).unwrap();
    let call = blas.matmul(Matrix::new(&a, 4, 10), Matrix::new(&b, 10, 4), Matrix::new(&c, 4, 4));
    call.math(math).activation(activation).operation().unwrap()
}

#[track_caller]
fn is(operation: &Operation, relative: f64, rounding: f64) {
    let found = Tolerance::of(operation);
    assert_eq!((found.relative, found.rounding), (relative, rounding), "{operation}");
    assert!(found.absolute < 1e-4 && found.absolute >= 0.0, "{operation}");
    let bound = relative * 3.0 + rounding * 5.0 + found.absolute;
    assert_eq!(found.bound(-3.0, -5.0), bound, "{operation}");
}

#[test]
fn bounds_of_products_grow_with_their_terms_and_roundings() {
    let none = Activation::None;
    is(&product::<f32, f32>(Math::Ieee, none), TERMS * F32, F32);
    is(&product::<f32, f32>(Math::Ieee, Activation::Relu), TERMS * F32, F32);
    is(&product::<f32, f32>(Math::Bf16x9, none), TERMS * F32, F32);
    // Both factors lose bits.
    is(&product::<f32, f32>(Math::Tf32, none), TERMS * F32 + 2.0 * F16, F32);
    is(&product::<f64, f64>(Math::Ieee, none), TERMS * F64, F64);
    is(&product::<f16, f32>(Math::Ieee, none), TERMS * F32, F32);
    is(&product::<f16, f16>(Math::Ieee, none), TERMS * F32, F16);
    is(&product::<f16, f16>(Math::F16, none), TERMS * F16, F16);
    // Integers are exact.
    assert_eq!(Tolerance::of(&product::<i8, i32>(Math::Ieee, none)).relative, 0.0);
    let gelu = Tolerance::of(&product::<f32, f32>(Math::Ieee, Activation::Gelu)).relative;
    assert!(gelu > TERMS * F32 && gelu < 1.0 / 1000.0, "{gelu}");
}

#[test]
fn bounds_of_other_operations_are_those_of_their_sums() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (blas, fft, solve, sparse) = (Blas::new(&gpu), Fft::new(&gpu), Solve::new(&gpu), Sparse::new(&gpu));
    let [x, y] = [(); 2].map(|()| gpu.zeros::<f32>(10).unwrap());
    is(&blas.dot(&x, &y, &gpu.zeros(1).unwrap()).operation().unwrap(), TERMS * F32, F32);
    is(&blas.axpy(1.0, &x, &y).operation().unwrap(), 3.0 * F32, F32);
    is(&blas.copy(&x, &y).operation().unwrap(), 0.0, F32);
    // Five roundings for each halving of a row, in all dimensions.
    let [signal, spectrum] = [(); 2].map(|()| gpu.zeros::<[f32; 2]>(16).unwrap());
    is(&fft.transform(&[16]).forward(&signal, &spectrum).operation().unwrap(), 5.0 * 4.0 * F32, F32);
    is(&fft.transform(&[8, 2]).forward(&signal, &spectrum).operation().unwrap(), 5.0 * 4.0 * F32, F32);
    let wide = gpu.zeros::<[f64; 2]>(16).unwrap();
    is(&fft.transform(&[16]).forward_in_place(&wide).operation().unwrap(), 5.0 * 4.0 * F64, F64);
    // As the tests of LAPACK: 30 for each row.
    let matrix = gpu.zeros::<f64>(9).unwrap();
    let factor = solve.cholesky(Matrix::new(&matrix, 3, 3), Triangle::Lower).operation().unwrap();
    is(&factor, 30.0 * 3.0 * F64, F64);
    // No more terms than there are elements.
    let csr = CsrMatrix::<f32>::from_dense(&gpu, (10, 10), &{
        let mut dense = [0.0; 100];
        dense[..4].fill(1.0);
        dense
    });
    let spmv = sparse.spmv(Determinism::Any, 1.0, &csr.unwrap(), &x, None, &y).operation().unwrap();
    is(&spmv, 6.0 * F32, F32);
}
