//! Matrix products, against a sum of products in `f64`.

use half::{bf16, f16};
use kiln::DeviceRuntime;
use kiln_libs::Tolerance;
use kiln_libs::blas::{Activation, Blas, Determinism, F8E4M3, Math, Matrix};

use crate::numbers::{TestNumber, close, made_up};
use crate::rig::{everywhere_and_in_workers, is_simulated};
use crate::stored::Stored;

/// A product to try.
#[derive(Clone, Copy, Debug)]
struct Case {
    sizes: [usize; 3],
    /// Whether `a`, `b` and `c` are stored column after column.
    by_columns: [bool; 3],
    /// Elements between rows.
    gap: usize,
    batch: usize,
    alpha: f64,
    beta: Option<f64>,
    bias: bool,
    activation: Activation,
    math: Math,
}

const PLAIN: Case = Case {
    sizes: [3, 4, 5],
    by_columns: [false; 3],
    gap: 0,
    batch: 1,
    alpha: 1.0,
    beta: None,
    bias: false,
    activation: Activation::None,
    math: Math::Ieee,
};

fn activated(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::None => x,
        Activation::Relu => x.max(0.0),
        Activation::Gelu => {
            x / 2.0 * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh())
        }
    }
}

fn product<T: TestNumber, O: TestNumber>(gpu: &DeviceRuntime, case: Case) {
    let Case { sizes: [m, n, k], by_columns, gap, batch, .. } = case;
    let a = Stored::<T>::new(1, (m, k), by_columns[0], gap, batch);
    let b = Stored::<T>::new(2, (k, n), by_columns[1], gap, batch);
    let c = Stored::<O>::new(3, (m, n), by_columns[2], gap, batch);
    let bias: Vec<O> = made_up(4, n);
    let buffers = (gpu.upload(&a.values).unwrap(), gpu.upload(&b.values).unwrap());
    let (result, bias_buffer) = (gpu.upload(&c.values).unwrap(), gpu.upload(&bias).unwrap());
    let blas = Blas::new(gpu);
    let describe = || {
        let (a, b) = (a.matrix(&buffers.0, batch), b.matrix(&buffers.1, batch));
        let mut call = blas.matmul(a, b, c.matrix(&result, batch)).alpha(case.alpha).math(case.math);
        if let Some(beta) = case.beta {
            call = call.beta(beta);
        }
        if case.bias {
            call = call.bias(&bias_buffer);
        }
        call.activation(case.activation).determinism(Determinism::RunToRun)
    };
    let tolerance = Tolerance::of(&describe().operation().unwrap());
    match describe().submit() {
        Ok(ticket) => ticket.wait().unwrap(),
        // A newer device has it.
        Err(error) if case.math == Math::Bf16x9 && !is_simulated(gpu) => {
            assert_eq!(error.library(), Some("cuBLASLt"), "{error}");
            return;
        }
        Err(error) => panic!("{case:?}: {error}"),
    }
    let found = Stored { values: result.download().unwrap(), ..c };
    let before = Stored::<O>::new(3, (m, n), by_columns[2], gap, batch);
    let mut expected_places = vec![false; found.values.len()];
    for which in 0..batch {
        for row in 0..m {
            for column in 0..n {
                let terms = || (0..k).map(|at| a.at(which, row, at) * b.at(which, at, column));
                let added = case.beta.unwrap_or(0.0) * before.at(which, row, column);
                let bias = if case.bias { bias[column].number() } else { 0.0 };
                let sum = case.alpha * terms().sum::<f64>() + added + bias;
                let magnitude =
                    (case.alpha * terms().map(f64::abs).sum::<f64>()).abs() + added.abs() + bias.abs();
                let what = format!("{case:?}, element {which} {row} {column}");
                let exact = activated(case.activation, sum);
                close(&what, &tolerance, found.at(which, row, column), exact, magnitude);
                expected_places[found.place(which, row, column)] = true;
            }
        }
    }
    for (at, is_result) in expected_places.iter().enumerate() {
        let same = found.values[at].number() == before.values[at].number();
        assert!(*is_result || same, "{case:?}: the gap at {at} was written");
    }
}

#[test]
fn products_of_every_layout_are_sums_of_products() {
    everywhere_and_in_workers("products_of_every_layout_are_sums_of_products", |gpu| {
        for bits in 0..8 {
            let by_columns = [bits & 1 != 0, bits & 2 != 0, bits & 4 != 0];
            for gap in [0, 3] {
                product::<f32, f32>(gpu, Case { by_columns, gap, ..PLAIN });
                product::<f64, f64>(
                    gpu,
                    Case { by_columns, gap, batch: 3, alpha: -0.5, beta: Some(2.0), ..PLAIN },
                );
            }
        }
    });
}

#[test]
fn products_of_every_type_are_within_their_tolerance() {
    everywhere_and_in_workers("products_of_every_type_are_within_their_tolerance", |gpu| {
        let large = Case { sizes: [32, 48, 64], ..PLAIN };
        product::<f64, f64>(gpu, large);
        product::<f32, f32>(gpu, large);
        product::<f32, f32>(gpu, Case { math: Math::Tf32, ..large });
        product::<f32, f32>(gpu, Case { math: Math::Bf16x9, ..large });
        product::<f16, f16>(gpu, large);
        product::<f16, f16>(gpu, Case { math: Math::F16, ..large });
        product::<f16, f32>(gpu, large);
        product::<bf16, bf16>(gpu, large);
        product::<bf16, f32>(gpu, large);
        // Libraries take small types with rows of both factors along `k`.
        let along_k = Case { by_columns: [false, true, false], ..large };
        product::<i8, i32>(gpu, along_k);
        if is_simulated(gpu) || gpu.info().capability >= (kiln_driver::Capability { major: 8, minor: 9 }) {
            product::<F8E4M3, bf16>(gpu, along_k);
            product::<F8E4M3, f32>(gpu, along_k);
        }
    });
}

#[test]
fn epilogues_are_applied_to_the_sum() {
    everywhere_and_in_workers("epilogues_are_applied_to_the_sum", |gpu| {
        for bias in [false, true] {
            for activation in [Activation::None, Activation::Relu, Activation::Gelu] {
                let case = Case { sizes: [16, 24, 32], bias, activation, ..PLAIN };
                product::<f32, f32>(gpu, case);
                product::<f16, f16>(gpu, case);
                product::<bf16, bf16>(gpu, Case { by_columns: [true, true, false], alpha: 0.25, ..case });
            }
        }
    });
}

#[test]
fn factors_of_8_bits_are_scaled_by_numbers_in_device_memory() {
    everywhere_and_in_workers("factors_of_8_bits_are_scaled_by_numbers_in_device_memory", |gpu| {
        if !is_simulated(gpu) && gpu.info().capability < (kiln_driver::Capability { major: 8, minor: 9 }) {
            return;
        }
        let (blas, n) = (Blas::new(gpu), 32);
        let (a, b) =
            (Stored::<F8E4M3>::new(61, (n, n), false, 0, 1), Stored::<F8E4M3>::new(62, (n, n), true, 0, 1));
        let (left, right, result) = (a.upload(gpu), b.upload(gpu), gpu.allocate::<f32>(n * n).unwrap());
        let (one, other) = (gpu.upload(&[0.125_f32]).unwrap(), gpu.upload(&[3.0_f32]).unwrap());
        let product =
            |c| blas.matmul(a.matrix(&left, 1), b.matrix(&right, 1), c).scales(&one, &other).alpha(2.0);
        for (first, by_columns) in [(0.125_f32, false), (0.5, true)] {
            one.upload(&[first]).unwrap();
            let c = Matrix::new(&result, n, n);
            let c = if by_columns { c.transposed() } else { c };
            let tolerance = Tolerance::of(&product(c).operation().unwrap());
            product(c).submit().unwrap();
            let found = result.download().unwrap();
            for (row, column) in (0..n * n).map(|at| (at / n, at % n)) {
                let terms = || (0..n).map(|k| f64::from(first) * 6.0 * a.at(0, row, k) * b.at(0, k, column));
                let at = if by_columns { column * n + row } else { row * n + column };
                let (exact, magnitude) = (terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>());
                close(
                    &format!("{row} {column} {by_columns}"),
                    &tolerance,
                    f64::from(found[at]),
                    exact,
                    magnitude,
                );
            }
        }
    });
}

#[test]
fn scale_factors_are_for_8_bits_and_are_one_number_each() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let blas = Blas::new(&gpu);
    let (a, c) = (gpu.zeros::<f32>(16).unwrap(), gpu.zeros::<f32>(16).unwrap());
    let scale = gpu.zeros::<f32>(1).unwrap();
    let call = blas.matmul(Matrix::new(&a, 4, 4), Matrix::new(&a, 4, 4), Matrix::new(&c, 4, 4));
    let text = call.scales(&scale, &scale).submit().unwrap_err().to_string();
    assert!(text.contains("scale factors for f32; use `alpha`; scale factors are for f8e4m3"), "{text}");
    let (small, none) = (gpu.upload(&[F8E4M3(0); 16]).unwrap(), scale.view(..0).unwrap());
    let call = blas.matmul(Matrix::new(&small, 4, 4), Matrix::new(&small, 4, 4), Matrix::new(&c, 4, 4));
    let text = call.scales(&scale, &none).submit().unwrap_err().to_string();
    assert!(text.contains("_scale` has 0 elements and must have 1"), "{text}");
}

#[test]
fn one_input_serves_a_whole_batch() {
    everywhere_and_in_workers("one_input_serves_a_whole_batch", |gpu| {
        let (a, b) = (made_up::<f32>(1, 4 * 6), made_up::<f32>(2, 3 * 6 * 5));
        let (x, y) = (gpu.upload(&a).unwrap(), gpu.upload(&b).unwrap());
        let c = gpu.allocate::<f32>(3 * 4 * 5).unwrap();
        let shared = Matrix::new(&x, 4, 6).batch(3).stride(0);
        let blas = Blas::new(gpu);
        let product = || blas.matmul(shared, Matrix::new(&y, 6, 5).batch(3), Matrix::new(&c, 4, 5).batch(3));
        let tolerance = Tolerance::of(&product().operation().unwrap());
        product().submit().unwrap();
        for (at, found) in c.download().unwrap().into_iter().enumerate() {
            let (which, row, column) = (at / 20, at / 5 % 4, at % 5);
            let term = |k: usize| f64::from(a[row * 6 + k]) * f64::from(b[which * 30 + k * 5 + column]);
            let magnitude = (0..6).map(|k| term(k).abs()).sum();
            close("shared", &tolerance, f64::from(found), (0..6).map(term).sum(), magnitude);
        }
    });
}

#[test]
fn integers_wrap_around_as_on_a_gpu_and_nan_stays_nan() {
    kiln::testing::check(0..1, |gpu| {
        let (a, b) = (gpu.upload(&[f32::NAN, 1.0])?, gpu.upload(&[0.0_f32, f32::INFINITY])?);
        let c = gpu.allocate::<f32>(4)?;
        let blas = Blas::new(gpu);
        let matrix = |rows, columns, buffer| Matrix::new(buffer, rows, columns);
        blas.matmul(matrix(2, 1, &a), matrix(1, 2, &b), matrix(2, 2, &c)).submit().unwrap();
        let found = c.download()?;
        assert!(found[0].is_nan() && found[1].is_nan() && found[2] == 0.0 && found[3] == f32::INFINITY);
        // Every NaN has the same bits.
        assert_eq!(found[0].to_bits(), found[1].to_bits());
        Ok(())
    })
    .unwrap();
}
