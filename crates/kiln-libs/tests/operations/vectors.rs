//! Operations on vectors, and on a matrix and vectors, against plain sums in `f64`.

use kiln::DeviceRuntime;
use kiln_libs::blas::{Blas, Matrix, Real, Vector};
use kiln_libs::{LibraryCall, Tolerance};

use crate::numbers::{TestNumber, close, made_up};
use crate::rig::everywhere_and_in_workers;

fn tolerance(call: &LibraryCall<'_>) -> Tolerance {
    Tolerance::of(&call.operation().unwrap())
}

/// Every `step`-th number.
fn stepped<T: TestNumber>(values: &[T], step: usize) -> Vec<f64> {
    values.iter().step_by(step).map(|value| value.number()).collect()
}

fn vectors<T: TestNumber + Real>(gpu: &DeviceRuntime, len: usize, steps: (usize, usize)) {
    let blas = Blas::new(gpu);
    let what = format!("{} elements, steps {steps:?}", len);
    let (x, y) = (made_up::<T>(1, (len - 1) * steps.0 + 1), made_up::<T>(2, (len - 1) * steps.1 + 1));
    let (x_buffer, y_buffer) = (gpu.upload(&x).unwrap(), gpu.upload(&y).unwrap());
    let (xv, yv) = (Vector::new(&x_buffer).step(steps.0), Vector::new(&y_buffer).step(steps.1));
    let (xs, ys) = (stepped(&x, steps.0), stepped(&y, steps.1));
    let result = gpu.allocate::<T>(1).unwrap();

    let dot = blas.dot(xv, yv, &result);
    let bound = tolerance(&dot);
    dot.submit().unwrap();
    let terms = || xs.iter().zip(&ys).map(|(x, y)| x * y);
    let found = result.download().unwrap()[0].number();
    close(&format!("dot, {what}"), &bound, found, terms().sum(), terms().map(f64::abs).sum());

    let nrm2 = blas.nrm2(xv, &result);
    let bound = tolerance(&nrm2);
    nrm2.submit().unwrap();
    let length = xs.iter().map(|x| x * x).sum::<f64>().sqrt();
    close(&format!("nrm2, {what}"), &bound, result.download().unwrap()[0].number(), length, length);

    let axpy = blas.axpy(-1.5, xv, yv);
    let bound = tolerance(&axpy);
    axpy.submit().unwrap();
    let found = y_buffer.download().unwrap();
    for (at, (x, y)) in xs.iter().zip(&ys).enumerate() {
        let magnitude = (1.5 * x).abs() + y.abs();
        close(&format!("axpy, {what}"), &bound, found[at * steps.1].number(), y - 1.5 * x, magnitude);
    }
    for at in (0..y.len()).filter(|at| at % steps.1 != 0) {
        assert_eq!(found[at].number(), y[at].number(), "axpy, {what}: the gap at {at} was written");
    }

    let scal = blas.scal(0.3, xv);
    let bound = tolerance(&scal);
    scal.submit().unwrap();
    for (found, x) in stepped(&x_buffer.download().unwrap(), steps.0).into_iter().zip(&xs) {
        close(&format!("scal, {what}"), &bound, found, 0.3 * x, 0.3 * x);
    }
}

fn moves<T: TestNumber + Real>(gpu: &DeviceRuntime, len: usize, steps: (usize, usize)) {
    let blas = Blas::new(gpu);
    let what = format!("{} elements, steps {steps:?}", len);
    let (x, y) = (made_up::<T>(3, (len - 1) * steps.0 + 1), made_up::<T>(4, (len - 1) * steps.1 + 1));
    let (x_buffer, y_buffer) = (gpu.upload(&x).unwrap(), gpu.upload(&y).unwrap());
    let (xv, yv) = (Vector::new(&x_buffer).step(steps.0), Vector::new(&y_buffer).step(steps.1));
    let (xs, ys) = (stepped(&x, steps.0), stepped(&y, steps.1));
    let check_gaps = |found: &[T], before: &[T], step: usize| {
        for at in (0..before.len()).filter(|at| at % step != 0) {
            assert_eq!(found[at].number(), before[at].number(), "{what}: the gap at {at} was written");
        }
    };

    let result = gpu.allocate::<T>(1).unwrap();
    let asum = blas.asum(xv, &result);
    let bound = tolerance(&asum);
    asum.submit().unwrap();
    let sum = xs.iter().map(|x| x.abs()).sum();
    close(&format!("asum, {what}"), &bound, result.download().unwrap()[0].number(), sum, sum);

    let place = gpu.allocate::<i64>(1).unwrap();
    blas.iamax(xv, &place).submit().unwrap();
    let largest = xs.iter().map(|x| x.abs()).fold(0.0, f64::max);
    let first = xs.iter().position(|x| x.abs() == largest).unwrap();
    assert_eq!(place.download().unwrap(), [first as i64 + 1], "iamax, {what}");

    blas.swap(xv, yv).submit().unwrap();
    let (new_x, new_y) = (x_buffer.download().unwrap(), y_buffer.download().unwrap());
    assert_eq!((stepped(&new_x, steps.0), stepped(&new_y, steps.1)), (ys, xs.clone()), "swap, {what}");
    check_gaps(&new_x, &x, steps.0);
    check_gaps(&new_y, &y, steps.1);

    // Back again, so that `x` is what it was.
    blas.copy(yv, xv).submit().unwrap();
    let new_x = x_buffer.download().unwrap();
    assert_eq!(stepped(&new_x, steps.0), xs, "copy, {what}");
    check_gaps(&new_x, &x, steps.0);
}

#[test]
fn vectors_are_copied_exchanged_added_up_and_compared() {
    everywhere_and_in_workers("vectors_are_copied_exchanged_added_up_and_compared", |gpu| {
        for (len, steps) in [(1, (1, 1)), (7, (1, 1)), (1000, (1, 1)), (40, (2, 3)), (5, (7, 1))] {
            moves::<f32>(gpu, len, steps);
            moves::<f64>(gpu, len, steps);
        }
    });
}

#[test]
fn moves_of_vectors_are_checked_before_they_are_queued() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let blas = Blas::new(&gpu);
    let (x, y) = (gpu.upload(&[1.0_f32; 6]).unwrap(), gpu.upload(&[2.0_f32; 5]).unwrap());
    let (none, place) = (gpu.zeros::<f32>(0).unwrap(), gpu.zeros::<i64>(1).unwrap());
    let refused = |call: LibraryCall<'_>| call.submit().unwrap_err().to_string();
    assert!(refused(blas.copy(&x, &y)).contains("blas.copy: `x` has 6 elements and `y` has 5"));
    assert!(refused(blas.swap(&x, &y)).contains("blas.swap: `x` has 6 elements and `y` has 5"));
    assert!(refused(blas.swap(&x, &x)).contains("share memory"));
    assert!(refused(blas.iamax(&none, &place)).contains("a vector without elements has no largest"));
    assert!(refused(blas.asum(&x, &none)).contains("`result` has 0 elements and must have 1"));
    blas.copy(&none, &none).submit().unwrap();
    blas.swap(&none, &none).submit().unwrap();
    let sum = gpu.upload(&[7.0_f32]).unwrap();
    blas.asum(&none, &sum).submit().unwrap();
    assert_eq!((sum.download().unwrap(), x.download().unwrap()), (vec![0.0], vec![1.0; 6]));
}

#[test]
fn vectors_are_added_scaled_and_measured() {
    everywhere_and_in_workers("vectors_are_added_scaled_and_measured", |gpu| {
        for (len, steps) in [(1, (1, 1)), (7, (1, 1)), (1000, (1, 1)), (40, (2, 3)), (5, (7, 1))] {
            vectors::<f32>(gpu, len, steps);
            vectors::<f64>(gpu, len, steps);
        }
    });
}

#[test]
fn a_length_neither_overflows_nor_vanishes() {
    everywhere_and_in_workers("a_length_neither_overflows_nor_vanishes", |gpu| {
        let blas = Blas::new(gpu);
        for scale in [1e200_f64, 1e-200] {
            let (x, result) =
                (gpu.upload(&[3.0 * scale, 4.0 * scale]).unwrap(), gpu.allocate::<f64>(1).unwrap());
            blas.nrm2(&x, &result).submit().unwrap();
            let found = result.download().unwrap()[0];
            assert!((found / (5.0 * scale) - 1.0).abs() < 1e-15, "{found:e}");
        }
    });
}

fn matrix_and_vectors<T: TestNumber + Real>(gpu: &DeviceRuntime, is_transposed: bool, gap: usize) {
    let blas = Blas::new(gpu);
    let (rows, columns) = (5, 7);
    let (slow, fast) = if is_transposed { (columns, rows) } else { (rows, columns) };
    let leading = fast + gap;
    let a = made_up::<T>(1, slow * leading);
    let at = |row: usize, column: usize| match is_transposed {
        false => a[row * leading + column].number(),
        true => a[column * leading + row].number(),
    };
    let (x, y) = (made_up::<T>(2, columns), made_up::<T>(3, rows));
    let buffers = (gpu.upload(&a).unwrap(), gpu.upload(&x).unwrap());
    let matrix = match is_transposed {
        false => Matrix::new(&buffers.0, rows, columns).leading(leading),
        true => Matrix::new(&buffers.0, columns, rows).leading(leading).transposed(),
    };
    for beta in [None, Some(-2.0)] {
        let result = gpu.upload(&y).unwrap();
        let gemv = blas.gemv(0.5, matrix, &buffers.1, beta, &result);
        let bound = tolerance(&gemv);
        gemv.submit().unwrap();
        for (row, found) in result.download().unwrap().into_iter().enumerate() {
            let terms = || (0..columns).map(|column| 0.5 * at(row, column) * x[column].number());
            let added = beta.unwrap_or(0.0) * y[row].number();
            let magnitude = terms().map(f64::abs).sum::<f64>() + added.abs();
            close("gemv", &bound, found.number(), terms().sum::<f64>() + added, magnitude);
        }
    }
    let y_buffer = gpu.upload(&y).unwrap();
    let ger = blas.ger(0.25, &y_buffer, &buffers.1, matrix);
    let bound = tolerance(&ger);
    ger.submit().unwrap();
    let found = buffers.0.download().unwrap();
    for (row, y) in y.iter().enumerate() {
        for (column, x) in x.iter().enumerate() {
            let place = if is_transposed { column * leading + row } else { row * leading + column };
            let added = 0.25 * y.number() * x.number();
            let before = at(row, column);
            close("ger", &bound, found[place].number(), before + added, before.abs() + added.abs());
        }
    }
}

#[test]
fn a_matrix_meets_vectors_in_every_layout() {
    everywhere_and_in_workers("a_matrix_meets_vectors_in_every_layout", |gpu| {
        for (is_transposed, gap) in [(false, 0), (false, 2), (true, 0), (true, 3)] {
            matrix_and_vectors::<f32>(gpu, is_transposed, gap);
            matrix_and_vectors::<f64>(gpu, is_transposed, gap);
        }
    });
}
