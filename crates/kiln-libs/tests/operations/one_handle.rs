//! A handle keeps the operations that it loaded. Calls that differ in one thing alone are different operations: each gives with one handle for all what it gives
//! with a separate one.

use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::blas::{Activation, Blas, Diagonal, Matrix, Side, Triangle, Vector};
use kiln_libs::fft::{Fft, Scale};
use kiln_libs::solve::Solve;
use kiln_libs::sparse::{CsrMatrix, Determinism, Sparse};

use crate::rig::everywhere;

/// Rows and columns.
const N: usize = 3;
/// Elements of each buffer: enough for two matrices with gaps.
const LEN: usize = 64;

struct Handles {
    blas: Blas,
    fft: Fft,
    solve: Solve,
    sparse: Sparse,
}

impl Handles {
    fn new(gpu: &DeviceRuntime) -> Self {
        Self { blas: Blas::new(gpu), fft: Fft::new(gpu), solve: Solve::new(gpu), sparse: Sparse::new(gpu) }
    }
}

struct Data {
    a: GpuRef<f64>,
    b: GpuRef<f64>,
    bias: GpuRef<f64>,
    signal: GpuRef<[f64; 2]>,
    csr: CsrMatrix<f64>,
    /// What the result is before each call, and the result.
    before: GpuRef<f64>,
    c: GpuRef<f64>,
    spectrum: GpuRef<[f64; 2]>,
}

impl Data {
    fn new(gpu: &DeviceRuntime) -> Self {
        let numbers = |first: usize, step: usize| -> Vec<f64> {
            (0..LEN).map(|at| ((first + at * step) % 23) as f64 - 9.0).collect()
        };
        let upload = |first, step| gpu.upload(&numbers(first, step)).unwrap();
        // Definite as a matrix of 3 x 3, with any of the distances and triangles that are used.
        let mut definite: Vec<f64> = (0..LEN).map(|at| ((at * 7) % 5) as f64).collect();
        for leading in [3, 4] {
            (0..N).for_each(|row| definite[row * (leading + 1)] = 20.0 + row as f64);
        }
        let signal: Vec<[f64; 2]> =
            numbers(2, 5).into_iter().zip(numbers(1, 9)).map(|(re, im)| [re, im]).collect();
        let csr = CsrMatrix::from_dense(gpu, (N, N), &[1.0, 2.0, 0.0, 0.0, 3.0, 4.0, 5.0, 0.0, 6.0]).unwrap();
        Self {
            a: upload(3, 5),
            b: upload(1, 7),
            bias: gpu.upload(&[1.0, -20.0, 300.0]).unwrap(),
            signal: gpu.upload(&signal).unwrap(),
            csr,
            before: gpu.upload(&definite).unwrap(),
            c: gpu.zeros(LEN).unwrap(),
            spectrum: gpu.zeros(LEN).unwrap(),
        }
    }
}

type Variant = (&'static str, fn(&Handles, &Data));

fn square(buffer: &GpuRef<f64>) -> Matrix<'_, f64> {
    Matrix::new(buffer, N, N)
}

macro_rules! variant {
    ($name:literal, |$with:ident, $of:ident| $call:expr) => {
        ($name, |$with, $of| {
            let _ticket = $call.submit().unwrap();
        })
    };
}

macro_rules! product {
    ($name:literal, |$a:ident, $b:ident, $c:ident| ($first:expr, $second:expr, $result:expr), |$call:ident, $of:ident| $changed:expr) => {
        ($name, |with, $of| {
            let ($a, $b, $c) = (square(&$of.a), square(&$of.b), square(&$of.c));
            let $call = with.blas.matmul($first, $second, $result);
            $changed.submit().unwrap();
        })
    };
    ($name:literal, |$a:ident, $b:ident, $c:ident| ($first:expr, $second:expr, $result:expr)) => {
        product!($name, |$a, $b, $c| ($first, $second, $result), |call, of| call)
    };
}

const PRODUCTS: &[Variant] = &[
    product!("a product", |a, b, c| (a, b, c)),
    product!("leading of `a`", |a, b, c| (a.leading(4), b, c)),
    product!("leading of `b`", |a, b, c| (a, b.leading(4), c)),
    product!("leading of `c`", |a, b, c| (a, b, c.leading(4))),
    product!("`a` transposed", |a, b, c| (a.transposed(), b, c)),
    product!("`b` transposed", |a, b, c| (a, b.transposed(), c)),
    product!("`c` transposed", |a, b, c| (a, b, c.transposed())),
    product!("a factor for `c`", |a, b, c| (a, b, c), |call, of| call.beta(0.5)),
    product!("a bias", |a, b, c| (a, b, c), |call, of| call.bias(&of.bias)),
    product!("relu", |a, b, c| (a, b, c), |call, of| call.activation(Activation::Relu)),
    product!("gelu", |a, b, c| (a, b, c), |call, of| call.activation(Activation::Gelu)),
    product!("a batch", |a, b, c| (a.batch(2), b.batch(2), c.batch(2))),
    product!("stride of `a`", |a, b, c| (a.batch(2).stride(11), b.batch(2), c.batch(2))),
    product!("stride of `b`", |a, b, c| (a.batch(2), b.batch(2).stride(0), c.batch(2))),
    product!("stride of `c`", |a, b, c| (a.batch(2), b.batch(2), c.batch(2).stride(13))),
];

const OTHERS: &[Variant] = &[
    variant!("gemv", |with, of| with.blas.gemv(
        1.0,
        square(&of.a),
        Vector::new(&of.bias),
        None,
        &of.c.view(..N).unwrap()
    )),
    variant!("gemv, leading", |with, of| with.blas.gemv(
        1.0,
        square(&of.a).leading(4),
        &of.bias,
        None,
        &of.c.view(..N).unwrap()
    )),
    variant!("gemv, transposed", |with, of| with.blas.gemv(
        1.0,
        square(&of.a).transposed(),
        &of.bias,
        None,
        &of.c.view(..N).unwrap()
    )),
    variant!("gemv, accumulated", |with, of| with.blas.gemv(
        1.0,
        square(&of.a),
        &of.bias,
        Some(2.0),
        &of.c.view(..N).unwrap()
    )),
    variant!("trsm", |with, of| with.blas.trsm(
        Side::Left,
        1.0,
        square(&of.before),
        (Triangle::Lower, Diagonal::Stored),
        square(&of.c)
    )),
    variant!("trsm, right", |with, of| with.blas.trsm(
        Side::Right,
        1.0,
        square(&of.before),
        (Triangle::Lower, Diagonal::Stored),
        square(&of.c)
    )),
    variant!("trsm, upper", |with, of| with.blas.trsm(
        Side::Left,
        1.0,
        square(&of.before),
        (Triangle::Upper, Diagonal::Stored),
        square(&of.c)
    )),
    variant!("trsm, unit", |with, of| with.blas.trsm(
        Side::Left,
        1.0,
        square(&of.before),
        (Triangle::Lower, Diagonal::Unit),
        square(&of.c)
    )),
    variant!("trsm, leading of `a`", |with, of| with.blas.trsm(
        Side::Left,
        1.0,
        square(&of.before).leading(4),
        (Triangle::Lower, Diagonal::Stored),
        square(&of.c)
    )),
    variant!("trsm, leading of `b`", |with, of| with.blas.trsm(
        Side::Left,
        1.0,
        square(&of.before),
        (Triangle::Lower, Diagonal::Stored),
        square(&of.c).leading(4)
    )),
    variant!("syrk", |with, of| with.blas.syrk(1.0, square(&of.a), None, Triangle::Lower, square(&of.c))),
    variant!("syrk, upper", |with, of| with.blas.syrk(
        1.0,
        square(&of.a),
        None,
        Triangle::Upper,
        square(&of.c)
    )),
    variant!("syrk, transposed", |with, of| with.blas.syrk(
        1.0,
        square(&of.a).transposed(),
        None,
        Triangle::Lower,
        square(&of.c)
    )),
    variant!("cholesky", |with, of| with.solve.cholesky(square(&of.c), Triangle::Lower)),
    variant!("cholesky, upper", |with, of| with.solve.cholesky(square(&of.c), Triangle::Upper)),
    variant!("cholesky, leading", |with, of| with.solve.cholesky(square(&of.c).leading(4), Triangle::Lower)),
    variant!("forward", |with, of| with.fft.transform(&[8]).forward(&of.signal, &of.spectrum)),
    variant!("inverse", |with, of| with.fft.transform(&[8]).inverse(&of.signal, &of.spectrum)),
    variant!("forward, scaled", |with, of| with
        .fft
        .transform(&[8])
        .scale(Scale::Factor(0.25))
        .forward(&of.signal, &of.spectrum)),
    variant!("forward, a batch", |with, of| with
        .fft
        .transform(&[8])
        .batch(2)
        .forward(&of.signal, &of.spectrum)),
    variant!("forward, two dimensions", |with, of| with
        .fft
        .transform(&[4, 2])
        .forward(&of.signal, &of.spectrum)),
    variant!("real", |with, of| with.fft.transform(&[8]).real_forward(&of.a, &of.spectrum)),
    variant!("spmv", |with, of| with.sparse.spmv(
        Determinism::Any,
        1.0,
        &of.csr,
        &of.bias,
        None,
        &of.c.view(..N).unwrap()
    )),
    variant!("spmv, accumulated", |with, of| with.sparse.spmv(
        Determinism::Any,
        1.0,
        &of.csr,
        &of.bias,
        Some(2.0),
        &of.c.view(..N).unwrap()
    )),
];

/// The bits of everything that a variant may have written.
fn run((_, submit): &Variant, with: &Handles, of: &Data) -> Vec<u64> {
    of.c.copy_from(&of.before).unwrap();
    of.spectrum.fill([7.0, 7.0]).unwrap();
    submit(with, of);
    let numbers =
        of.c.download().unwrap().into_iter().chain(of.spectrum.download().unwrap().into_iter().flatten());
    numbers.map(f64::to_bits).collect()
}

fn apart_with_one_handle(gpu: &DeviceRuntime, variants: &[Variant]) {
    let of = Data::new(gpu);
    let wanted: Vec<_> = variants.iter().map(|variant| run(variant, &Handles::new(gpu), &of)).collect();
    for (at, one) in wanted.iter().enumerate() {
        let same = wanted.iter().position(|other| other == one);
        assert_eq!(same, Some(at), "{} shows no difference", variants[at].0);
    }
    let with = Handles::new(gpu);
    // To and fro, so that each comes after those before it and after those behind it.
    let order = (0..variants.len()).chain((0..variants.len()).rev());
    for at in order {
        assert_eq!(run(&variants[at], &with, &of), wanted[at], "{}", variants[at].0);
    }
}

#[test]
fn products_that_differ_in_one_thing_are_apart_with_one_handle() {
    everywhere("products_that_differ_in_one_thing_are_apart_with_one_handle", |gpu| {
        apart_with_one_handle(gpu, PRODUCTS);
    });
}

#[test]
fn calls_that_differ_in_one_thing_are_apart_with_one_handle() {
    everywhere("calls_that_differ_in_one_thing_are_apart_with_one_handle", |gpu| {
        apart_with_one_handle(gpu, OTHERS);
    });
}
