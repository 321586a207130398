//! A call whose operation is loaded makes shorter checks than the first one: it refuses what the first one refuses, in the same words.

use kiln::telemetry::Count;
use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::Result;
use kiln_libs::blas::{Blas, F8E4M3, Matrix};
use kiln_libs::fft::Fft;

/// Rows and columns of a matrix.
const N: usize = 4;
/// Rows and columns of a matrix of 8-bit numbers, which libraries multiply in multiples of 16.
const NARROW: usize = 16;

/// What a call is told, or nothing where it is taken.
type Told = (&'static str, Option<String>);

fn told<T>(what: &'static str, answer: Result<T>) -> Told {
    (what, answer.err().map(|error| error.to_string()))
}

fn stored<T: kiln_libs::blas::MatrixElement>(by_columns: bool, buffer: &GpuRef<T>) -> Matrix<'_, T> {
    let matrix = Matrix::new(buffer, N, N);
    if by_columns { matrix.transposed() } else { matrix }
}

/// Products with buffers that do not fit, after one with buffers that do if that is wanted.
fn products(is_warm: bool, by_columns: bool) -> Vec<Told> {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let blas = Blas::new(&gpu);
    let data = gpu.zeros::<f32>(256).unwrap();
    let part = |start: usize, len: usize| data.view(start..start + len).unwrap();
    // At multiples of 16 bytes, and of no more, as all others: they are calls of one operation.
    let [a, b, c, bias] = [(4, 16), (36, 16), (68, 16), (100, 4)].map(|(start, len)| part(start, len));
    let product = |a, b, c| {
        let [a, b, c] = [a, b, c].map(|buffer| stored(by_columns, buffer));
        blas.matmul(a, b, c)
    };
    let biased = |a, b, c, bias| {
        blas.matmul(stored(by_columns, a), stored(by_columns, b), stored(false, c)).bias(bias)
    };
    let prepared = product(&a, &b, &c).prepare().unwrap();
    if is_warm {
        product(&a, &b, &c).submit().unwrap();
        biased(&a, &b, &c, &bias).submit().unwrap();
        prepared.submit(&a, &b, &c).unwrap();
    }
    gpu.synchronize().unwrap();
    let launches = || gpu.telemetry().snapshot().count(Count::Launches);
    let before = launches();
    let (short_a, short_b, short_c) = (part(4, 15), part(36, 15), part(68, 15));
    let (in_a, in_b, bias_in_c) = (part(16, 16), part(24, 16), part(80, 4));
    let mut all = vec![
        told("a short `a`", product(&short_a, &b, &c).submit()),
        told("a short `b`", product(&a, &short_b, &c).submit()),
        told("a short `c`", product(&a, &b, &short_c).submit()),
        told("`c` in `a`", product(&a, &b, &in_a).submit()),
        told("`c` in `b`", product(&a, &b, &in_b).submit()),
        told("`c` is `a`", product(&a, &b, &a).submit()),
        told("`c` is `b`", product(&a, &b, &b).submit()),
    ];
    all.extend([
        told("prepared, a short `a`", prepared.submit(&short_a, &b, &c)),
        told("prepared, a short `b`", prepared.submit(&a, &short_b, &c)),
        told("prepared, a short `c`", prepared.submit(&a, &b, &short_c)),
        told("prepared, `c` in `a`", prepared.submit(&a, &b, &in_a)),
        told("prepared, `c` in `b`", prepared.submit(&a, &b, &in_b)),
    ]);
    all.push(told("`bias` in `c`", biased(&a, &b, &c, &bias_in_c).submit()));
    all.push(told("`bias` in `c` of a short `a`", biased(&short_a, &b, &c, &bias).submit()));
    assert_eq!(launches(), before, "nothing is queued");
    all
}

/// Products of 8-bit numbers, whose scale factors lie in device memory.
fn scaled_products(is_warm: bool) -> Vec<Told> {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let blas = Blas::new(&gpu);
    let a = gpu.upload(&[F8E4M3(0x38); NARROW * NARROW]).unwrap();
    let (c, scales) = (gpu.zeros::<f32>(NARROW * NARROW).unwrap(), gpu.upload(&[1.0_f32; 4]).unwrap());
    let square = Matrix::new(&a, NARROW, NARROW);
    let product = |a_scale: &GpuRef<f32>, b_scale: &GpuRef<f32>| {
        let result = Matrix::new(&c, NARROW, NARROW);
        blas.matmul(square, square.transposed(), result).scales(a_scale, b_scale).submit()
    };
    let (one, two) = (scales.view(..1).unwrap(), scales.view(..2).unwrap());
    if is_warm {
        product(&one, &one).unwrap();
    }
    let in_c = c.view(8..9).unwrap();
    vec![
        told("`a_scale` in `c`", product(&in_c, &one)),
        told("`b_scale` in `c`", product(&one, &in_c)),
        told("two elements in `a_scale`", product(&two, &one)),
        told("two elements in `b_scale`", product(&one, &two)),
    ]
}

/// Calls of other operations.
fn others(is_warm: bool) -> Vec<Told> {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (blas, fft) = (Blas::new(&gpu), Fft::new(&gpu));
    let data = gpu.zeros::<f32>(256).unwrap();
    let part = |start: usize, len: usize| data.view(start..start + len).unwrap();
    let signal = |start: usize, len: usize| part(start, 2 * len).cast::<[f32; 2]>().unwrap();
    let (a, x, y) = (part(0, 16), part(32, N), part(64, N));
    if is_warm {
        blas.axpy(1.0, &x, &y).submit().unwrap();
        blas.gemv(1.0, Matrix::new(&a, N, N), &x, None, &y).submit().unwrap();
        blas.ger(1.0, &x, &y, Matrix::new(&a, N, N)).submit().unwrap();
        fft.transform(&[8]).forward_in_place(&signal(128, 8)).submit().unwrap();
        fft.transform(&[8]).forward(&signal(128, 8), &signal(160, 8)).submit().unwrap();
    }
    gpu.synchronize().unwrap();
    let launches = || gpu.telemetry().snapshot().count(Count::Launches);
    let before = launches();
    let all = vec![
        told("axpy, `y` in `x`", blas.axpy(1.0, &x, &part(34, N)).submit()),
        told("gemv, a short `a`", blas.gemv(1.0, Matrix::new(&part(0, 15), N, N), &x, None, &y).submit()),
        told("gemv, `y` in `a`", blas.gemv(1.0, Matrix::new(&a, N, N), &x, None, &part(14, N)).submit()),
        told("ger, `y` in `a`", blas.ger(1.0, &x, &part(14, N), Matrix::new(&a, N, N)).submit()),
        told("fft, a short signal", fft.transform(&[8]).forward_in_place(&signal(128, 7)).submit()),
        told("fft, an odd address", fft.transform(&[8]).forward_in_place(&signal(129, 8)).submit()),
        told(
            "fft, the result in the signal",
            fft.transform(&[8]).forward(&signal(128, 8), &signal(136, 8)).submit(),
        ),
    ];
    assert_eq!(launches(), before, "nothing is queued");
    all
}

#[track_caller]
fn same(first: &[Told], warm: &[Told]) {
    for ((what, first), (_, warm)) in first.iter().zip(warm) {
        assert!(first.is_some(), "{what} is taken");
        assert_eq!(warm, first, "{what}");
    }
}

#[test]
fn a_product_that_was_made_before_is_refused_as_the_first_is() {
    for by_columns in [false, true] {
        same(&products(false, by_columns), &products(true, by_columns));
    }
    same(&scaled_products(false), &scaled_products(true));
}

#[test]
fn a_call_that_was_made_before_is_refused_as_the_first_is() {
    same(&others(false), &others(true));
}
