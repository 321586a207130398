//! Softmax and normalisation of rows, against sums in `f64`.

use half::{bf16, f16};
use kiln::DeviceRuntime;
use kiln_libs::dnn::{Dnn, NetworkElement};
use kiln_libs::{LibraryError, Tolerance};

use crate::numbers::{self, TestNumber, made_up};
use crate::rig::{everywhere, everywhere_and_in_workers};

/// Rows and columns: rows of a warp and of a block, also longer than all of its threads at once.
const SHAPES: [(usize, usize); 6] = [(1, 1), (3, 5), (17, 100), (9, 1024), (5, 1025), (2, 5000)];

/// Compares with exact values and their magnitudes.
#[track_caller]
fn close<T: TestNumber>(what: &str, found: &[T], exact: &[(f64, f64)], tolerance: &Tolerance) {
    assert_eq!(found.len(), exact.len());
    for (at, (found, (exact, magnitude))) in found.iter().zip(exact).enumerate() {
        numbers::close(&format!("{what} at {at}"), tolerance, found.number(), *exact, *magnitude);
    }
}

fn numbers<T: TestNumber>(values: &[T]) -> Vec<f64> {
    values.iter().map(|value| value.number()).collect()
}

fn softmax<T: TestNumber + NetworkElement>(gpu: &DeviceRuntime, rows: usize, columns: usize) {
    let dnn = Dnn::new(gpu);
    let what = format!("{} {rows} x {columns}", T::TYPE);
    let (x, dy) = (made_up::<T>(50, rows * columns), made_up::<T>(51, rows * columns));
    let (input, gradient) = (gpu.upload(&x).unwrap(), gpu.upload(&dy).unwrap());
    for is_log in [false, true] {
        let (y, dx) = (gpu.allocate::<T>(x.len()).unwrap(), gpu.allocate::<T>(x.len()).unwrap());
        let call = dnn.softmax(&input, columns, &y);
        let call = if is_log { call.log() } else { call };
        let tolerance = Tolerance::of(&call.operation().unwrap());
        call.submit().unwrap();
        let mut exact = Vec::new();
        for row in numbers(&x).chunks(columns) {
            let greatest = row.iter().copied().fold(f64::MIN, f64::max);
            let total: f64 = row.iter().map(|value| (value - greatest).exp()).sum();
            exact.extend(row.iter().map(|value| match is_log {
                false => {
                    let share = (value - greatest).exp() / total;
                    (share, share * (1.0 + greatest - value))
                }
                true => (value - greatest - total.ln(), 1.0 + greatest - value + total.ln()),
            }));
        }
        let found = y.download().unwrap();
        close(&format!("{what}, log {is_log}"), &found, &exact, &tolerance);
        // The gradient is one of what was computed.
        let call = dnn.softmax_backward(&y, &gradient, columns, &dx);
        let call = if is_log { call.log() } else { call };
        let tolerance = Tolerance::of(&call.operation().unwrap());
        call.submit().unwrap();
        let mut exact = Vec::new();
        for (row, gradients) in numbers(&found).chunks(columns).zip(numbers(&dy).chunks(columns)) {
            let terms = || row.iter().zip(gradients).map(|(y, dy)| if is_log { *dy } else { y * dy });
            let (sum, size) = (terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>());
            exact.extend(row.iter().zip(gradients).map(|(y, dy)| match is_log {
                false => (y * (dy - sum), y * (dy.abs() + size)),
                true => (dy - y.exp() * sum, dy.abs() + y.exp() * (1.0 + y.abs()) * size),
            }));
        }
        close(&format!("{what}, gradient, log {is_log}"), &dx.download().unwrap(), &exact, &tolerance);
    }
}

#[test]
fn softmax_and_its_gradient_are_sums_over_rows() {
    everywhere_and_in_workers("softmax_and_its_gradient_are_sums_over_rows", |gpu| {
        for (rows, columns) in SHAPES {
            softmax::<f32>(gpu, rows, columns);
            softmax::<f16>(gpu, rows, columns);
            softmax::<bf16>(gpu, rows, columns);
        }
    });
}

#[test]
fn softmax_takes_infinities_and_works_in_place() {
    everywhere("softmax_takes_infinities_and_works_in_place", |gpu| {
        let dnn = Dnn::new(gpu);
        let hidden = f32::NEG_INFINITY;
        let x = gpu.upload(&[hidden, 1.0, hidden, 1.0, 80.0, hidden, hidden, hidden]).unwrap();
        dnn.softmax(&x, 4, &x).submit().unwrap();
        assert_eq!(x.download().unwrap(), [0.0, 0.5, 0.0, 0.5, 1.0, 0.0, 0.0, 0.0]);
        let x = gpu.upload(&[f32::NAN, 1.0, 2.0, 3.0, 1e30, -1e30]).unwrap();
        let y = gpu.allocate::<f32>(6).unwrap();
        dnn.softmax(&x, 2, &y).submit().unwrap();
        let found = y.download().unwrap();
        assert!(found[0].is_nan() && found[1].is_nan(), "{found:?}");
        assert_eq!(found[4..], [1.0, 0.0]);
    });
}

fn norm<T: TestNumber + NetworkElement>(gpu: &DeviceRuntime, rows: usize, columns: usize, is_centred: bool) {
    let dnn = Dnn::new(gpu);
    let what = format!("{} {rows} x {columns}, centred {is_centred}", T::TYPE);
    let (x, dy) = (made_up::<T>(52, rows * columns), made_up::<T>(53, rows * columns));
    let (weight, bias) = (made_up::<T>(54, columns), made_up::<T>(55, columns));
    let [input, gradient, w, b] = [&x, &dy, &weight, &bias].map(|values| gpu.upload(values).unwrap());
    let (y, dx) = (gpu.allocate::<T>(x.len()).unwrap(), gpu.allocate::<T>(x.len()).unwrap());
    let (means, scales) = (gpu.zeros::<f32>(rows).unwrap(), gpu.allocate::<f32>(rows).unwrap());
    let (dw, db) = (gpu.allocate::<T>(columns).unwrap(), gpu.allocate::<T>(columns).unwrap());
    let epsilon = 1e-3_f32;
    let call =
        if is_centred { dnn.layer_norm(&input, columns, &y) } else { dnn.rms_norm(&input, columns, &y) };
    let call = call.weight(&w).bias(&b).epsilon(epsilon).scales(&scales);
    let call = if is_centred { call.means(&means) } else { call };
    let forward = Tolerance::of(&call.operation().unwrap());
    call.submit().unwrap();
    let call = match is_centred {
        true => dnn.layer_norm_backward(&input, &gradient, (&means, &scales), columns, &dx),
        false => dnn.rms_norm_backward(&input, &gradient, &scales, columns, &dx),
    };
    let call = call.weight(&w).weight_gradient(&dw).bias_gradient(&db);
    let backward = Tolerance::of(&call.operation().unwrap());
    call.submit().unwrap();
    let (weight, bias) = (numbers(&weight), numbers(&bias));
    let (mut y_exact, mut dx_exact) = (Vec::new(), Vec::new());
    let (mut dw_exact, mut db_exact) = (vec![(0.0, 0.0); columns], vec![(0.0, 0.0); columns]);
    let count = columns as f64;
    let average = |values: &[f64]| values.iter().sum::<f64>() / count;
    let size = |values: &[f64]| values.iter().map(|value| value.abs()).sum::<f64>() / count;
    // The gradient is one of the means and scales that are given.
    let (given_means, given_scales) = (means.download().unwrap(), scales.download().unwrap());
    for (at, (row, gradients)) in numbers(&x).chunks(columns).zip(numbers(&dy).chunks(columns)).enumerate() {
        let mean = if is_centred { average(row) } else { 0.0 };
        let square = row.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        let scale = 1.0 / (square + f64::from(epsilon)).sqrt();
        y_exact.extend((0..columns).map(|c| {
            let normal = (row[c] - mean) * scale;
            let magnitude = (1.0 + normal.abs()) * (1.0 + scale * (row[c].abs() + size(row)));
            (normal * weight[c] + bias[c], magnitude * weight[c].abs() + bias[c].abs())
        }));
        let mean = if is_centred { f64::from(given_means[at]) } else { 0.0 };
        let scale = f64::from(given_scales[at]);
        let normal: Vec<f64> = row.iter().map(|value| (value - mean) * scale).collect();
        let weighted: Vec<f64> = (0..columns).map(|c| gradients[c] * weight[c]).collect();
        let products: Vec<f64> = weighted.iter().zip(&normal).map(|(g, n)| g * n).collect();
        let centre = if is_centred { average(&weighted) } else { 0.0 };
        dx_exact.extend((0..columns).map(|c| {
            let value = scale * (weighted[c] - centre - normal[c] * average(&products));
            (value, scale * (weighted[c].abs() + size(&weighted) + normal[c].abs() * size(&products)))
        }));
        for c in 0..columns {
            let (w, b) = (&mut dw_exact[c], &mut db_exact[c]);
            let product = gradients[c] * normal[c];
            (w.0, w.1) = (w.0 + product, w.1 + product.abs());
            (b.0, b.1) = (b.0 + gradients[c], b.1 + gradients[c].abs());
        }
    }
    close(&what, &y.download().unwrap(), &y_exact, &forward);
    close(&format!("{what}, dx"), &dx.download().unwrap(), &dx_exact, &backward);
    close(&format!("{what}, dw"), &dw.download().unwrap(), &dw_exact, &backward);
    close(&format!("{what}, db"), &db.download().unwrap(), &db_exact, &backward);
}

#[test]
fn norms_and_their_gradients_are_sums_over_rows() {
    everywhere_and_in_workers("norms_and_their_gradients_are_sums_over_rows", |gpu| {
        for (rows, columns) in [(1, 1), (3, 5), (70, 100), (200, 33), (4, 1500)] {
            for is_centred in [true, false] {
                norm::<f32>(gpu, rows, columns, is_centred);
                norm::<f16>(gpu, rows, columns, is_centred);
                norm::<bf16>(gpu, rows, columns, is_centred);
            }
        }
    });
}

#[test]
fn a_norm_and_a_softmax_are_replayed_in_a_graph() {
    everywhere("a_norm_and_a_softmax_are_replayed_in_a_graph", |gpu| {
        let dnn = Dnn::new(gpu);
        let x = gpu.upload(&[3.0_f32, 3.0, -2.0, -2.0]).unwrap();
        let (y, z) = (gpu.allocate::<f32>(4).unwrap(), gpu.allocate::<f32>(4).unwrap());
        let mut graph = gpu.graph();
        dnn.rms_norm(&x, 2, &y).epsilon(0.0).record(&mut graph).unwrap();
        dnn.softmax(&y, 4, &z).record(&mut graph).unwrap();
        let graph = graph.build().unwrap();
        for _ in 0..2 {
            graph.replay().unwrap();
        }
        assert_eq!(y.download().unwrap(), [1.0, 1.0, -1.0, -1.0]);
        let found = z.download().unwrap();
        assert!((found[0] / found[2] - 1.0_f32.exp().powi(2)).abs() < 1e-5, "{found:?}");
    });
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let dnn = Dnn::new(&gpu);
    let refused = |result: Result<_, LibraryError>| match result {
        Err(error @ LibraryError::Argument { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let [x, y, z] = [0; 3].map(|_: i32| gpu.upload(&[7.0_f32; 12]).unwrap());
    let numbers = gpu.upload(&[1.0_f32; 3]).unwrap();
    let text = refused(dnn.softmax(&x, 5, &y).submit());
    assert!(text.contains("dnn.softmax: `x` has 12 elements, which are no rows of 5"), "{text}");
    let text = refused(dnn.softmax(&x, 0, &y).submit());
    assert!(text.contains("`columns` is 0; use 1 or more"), "{text}");
    let text = refused(dnn.softmax(&x, 4, &y.view(..8).unwrap()).submit());
    assert!(text.contains("`y` has 8 elements and must have 12"), "{text}");
    let (first, second) = (x.view(..8).unwrap(), x.view(4..).unwrap());
    let text = refused(dnn.softmax(&first, 4, &second).submit());
    assert!(text.contains("share a part of their memory"), "{text}");
    let text = refused(dnn.softmax_backward(&y, &z, 4, &y).submit());
    assert!(text.contains("`y` and `dx` share memory"), "{text}");
    let text = refused(dnn.layer_norm(&x, 4, &y).weight(&numbers).submit());
    assert!(text.contains("dnn.layer_norm: `weight` has 3 elements and must have 4"), "{text}");
    let text = refused(dnn.rms_norm(&x, 4, &y).scales(&z).submit());
    assert!(text.contains("dnn.rms_norm: `scales` has 12 elements and must have 3"), "{text}");
    let text = refused(dnn.rms_norm(&x, 4, &y).epsilon(-1.0).submit());
    assert!(text.contains("an epsilon of -1"), "{text}");
    let text = refused(dnn.rms_norm(&x, 4, &y).means(&numbers).submit());
    assert!(text.contains("dnn.rms_norm: means, which this norm does not compute"), "{text}");
    let text = refused(dnn.rms_norm(&x, 4, &x).submit());
    assert!(text.contains("`x` and `y` share memory"), "{text}");
    let text = refused(
        dnn.rms_norm_backward(&x, &y, &numbers, 4, &z).weight_gradient(&z.view(..4).unwrap()).submit(),
    );
    assert!(text.contains("`dx` and `weight_gradient` share memory"), "{text}");
    assert_eq!(
        (y.download().unwrap(), z.download().unwrap()),
        (vec![7.0; 12], vec![7.0; 12]),
        "nothing was changed"
    );
}
