//! Numbers that calls are given by value, and ranges: one rule for all of them.

use half::f16;
use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::blas::{Blas, Diagonal, Matrix, Side, Triangle};
use kiln_libs::dnn::{AttentionTensor, Dnn};
use kiln_libs::elementwise::Elementwise;
use kiln_libs::fft::{Fft, Scale};
use kiln_libs::prims::{Predicate, Primitives};
use kiln_libs::rand::{Integers, Sampler};
use kiln_libs::sparse::{CsrMatrix, Determinism, Sparse};
use kiln_libs::{LibraryError, Result};

const BEYOND: [f64; 3] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];

#[track_caller]
fn refused<T>(answer: Result<T>, call: &str, name: &str, value: f64) {
    let Err(error) = answer else { panic!("{call} took a `{name}` of {value}") };
    let text = error.to_string();
    assert!(matches!(error, LibraryError::Argument { .. }), "{text}");
    assert!(text.starts_with(&format!("{call}: `{name}` is {value:?}")), "{text}");
    assert!(text.ends_with("; use a finite number"), "{text}");
}

fn buffers(gpu: &DeviceRuntime) -> [GpuRef<f32>; 3] {
    [(); 3].map(|()| gpu.zeros::<f32>(4).unwrap())
}

#[test]
fn factors_that_are_not_finite_are_refused_by_all_calls() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (blas, [x, y, z]) = (Blas::new(&gpu), buffers(&gpu));
    let square = |buffer| Matrix::new(buffer, 2, 2);
    let (a, b, c) = (square(&x), square(&y), square(&z));
    let kind = (Triangle::Lower, Diagonal::Stored);
    // 1e300 is no number of `f32`.
    for value in BEYOND.into_iter().chain([1e300]) {
        refused(blas.matmul(a, b, c).alpha(value).submit(), "blas.matmul", "alpha", value);
        refused(blas.matmul(a, b, c).beta(value).submit(), "blas.matmul", "beta", value);
        let nothing = Matrix::new(&x, 0, 2);
        refused(
            blas.matmul(nothing, b, Matrix::new(&z, 0, 2)).alpha(value).submit(),
            "blas.matmul",
            "alpha",
            value,
        );
        let (short, other) = (x.view(..2).unwrap(), y.view(..2).unwrap());
        refused(blas.gemv(value, c, &short, None, &other).submit(), "blas.gemv", "alpha", value);
        refused(blas.gemv(1.0, c, &short, Some(value), &other).submit(), "blas.gemv", "beta", value);
        refused(blas.ger(value, &short, &other, c).submit(), "blas.ger", "alpha", value);
        refused(blas.axpy(value, &x, &y).submit(), "blas.axpy", "alpha", value);
        refused(blas.scal(value, &x).submit(), "blas.scal", "alpha", value);
        refused(blas.syrk(value, a, None, Triangle::Lower, c).submit(), "blas.syrk", "alpha", value);
        refused(blas.trsm(Side::Left, value, a, kind, c).submit(), "blas.trsm", "alpha", value);
        refused(blas.trmm(Side::Left, value, a, kind, b, c).submit(), "blas.trmm", "alpha", value);
        let symm = blas.symm(Side::Left, 1.0, (a, Triangle::Lower), b, Some(value), c);
        refused(symm.submit(), "blas.symm", "beta", value);
        refused(blas.geam(1.0, a, Some((value, b)), c).submit(), "blas.geam", "beta", value);
        let elements = Elementwise::new(&gpu);
        refused(elements.affine(value, &x, 0.0, &y).submit(), "elementwise.affine", "scale", value);
        refused(elements.affine(1.0, &x, value, &y).submit(), "elementwise.affine", "shift", value);
        let pairs = x.cast::<[f32; 2]>().unwrap();
        let fft = Fft::new(&gpu);
        let scaled = fft.transform(&[2]).scale(Scale::Factor(value)).forward_in_place(&pairs);
        refused(scaled.submit(), "fft.forward_in_place", "scale", value);
        let sparse = Sparse::new(&gpu);
        let matrix: CsrMatrix<f32> = CsrMatrix::from_dense(&gpu, (2, 2), &[1.0, 0.0, 0.0, 1.0]).unwrap();
        let spmv = sparse.spmv(Determinism::Any, value, &matrix, &short, None, &other);
        refused(spmv.submit(), "sparse.spmv", "alpha", value);
        let result = sparse.product_structure(&matrix, &matrix).unwrap();
        refused(
            sparse.spgemm(1.0, &matrix, &matrix, Some(value), &result).submit(),
            "sparse.spgemm",
            "beta",
            value,
        );
        let side = Matrix::new(&short, 2, 1);
        let solve = sparse.triangular_solve(Triangle::Lower, Diagonal::Stored, value, &matrix, side, side);
        refused(solve.submit(), "sparse.triangular_solve", "alpha", value);
        let (dnn, halves) = (Dnn::new(&gpu), gpu.zeros::<f16>(64).unwrap());
        let result = gpu.zeros::<f16>(64).unwrap();
        let [q, o] = [&halves, &result].map(|buffer| AttentionTensor::new(buffer, [1, 1, 1, 64]));
        refused(dnn.attention(q, q, q, o).scale(value).submit(), "dnn.attention", "scale", value);
    }
    // In `f64` it is one, and a number that rounds to 0 is 0.
    let wide = gpu.upload(&[1e-300_f64, 0.0]).unwrap();
    blas.scal(1e300, &wide).submit().unwrap();
    assert_eq!(wide.download().unwrap(), [1.0, 0.0]);
    blas.scal(1e-300, &x).submit().unwrap();
}

#[test]
fn ranges_have_their_lower_end_first_and_bounds_are_numbers() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let prims = Primitives::new(&gpu);
    let input = gpu.upload(&[1.0_f32, 5.0, f32::INFINITY, f32::NAN]).unwrap();
    let (output, count) = (gpu.zeros::<f32>(4).unwrap(), gpu.zeros::<u64>(1).unwrap());
    let select = |predicate| prims.select(&input, predicate, &output, &count).submit();
    let text = |predicate| select(predicate).unwrap_err().to_string();
    assert_eq!(
        text(Predicate::Between { first: 9.0, end: 3.0 }),
        "prims.select: elements from 9.0 to 3.0; give the lower bound first"
    );
    let nan = f32::NAN;
    for predicate in [
        Predicate::Equal(nan),
        Predicate::NotEqual(nan),
        Predicate::Less(nan),
        Predicate::AtMost(nan),
        Predicate::Greater(nan),
        Predicate::AtLeast(nan),
        Predicate::Between { first: nan, end: 1.0 },
        Predicate::Between { first: 0.0, end: nan },
    ] {
        assert!(text(predicate).starts_with("prims.select: a comparison with NaN"), "{predicate:?}");
    }
    // An empty range keeps nothing, and an infinity is a bound.
    for (predicate, kept) in
        [(Predicate::Between { first: 5.0, end: 5.0 }, 0), (Predicate::Less(f32::INFINITY), 2)]
    {
        select(predicate).unwrap();
        assert_eq!(count.download().unwrap(), [kept], "{predicate:?}");
    }
    let bins = gpu.zeros::<u64>(2).unwrap();
    let error = prims.histogram(&input, 9.0..3.0, &bins).submit().unwrap_err();
    assert!(error.to_string().contains("the lower one first"), "{error}");
    let keys = gpu.zeros::<u32>(4).unwrap();
    let error = prims.sort(&keys, &keys).bits(std::ops::Range { start: 9, end: 3 }).submit().unwrap_err();
    assert!(error.to_string().contains("the lower end first"), "{error}");
    let error = Sampler::new(&gpu).draw(1).fill(&keys, Integers { first: 9, last: 3 }).unwrap_err();
    assert!(error.to_string().contains("the smaller one first"), "{error}");
}
