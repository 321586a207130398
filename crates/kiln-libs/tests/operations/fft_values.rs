//! Fourier transforms, against the sum that they stand for.

use kiln::DeviceRuntime;
use kiln_libs::fft::{Fft, RealPart, Scale};
use kiln_libs::{LibraryCall, Tolerance};

use crate::numbers::{TestNumber, made_up};
use crate::rig::everywhere_and_in_workers;

type Pair = (f64, f64);

/// The transform of one array by its definition, over all axes.
fn sum_of_waves(input: &[Pair], shape: &[usize], sign: f64) -> Vec<Pair> {
    let mut values = input.to_vec();
    let mut step = 1;
    for &extent in shape.iter().rev() {
        let before = values.clone();
        for (place, value) in values.iter_mut().enumerate() {
            let at = place / step % extent;
            let start = place - at * step;
            *value = (0..extent).fold((0.0, 0.0), |(re, im), from| {
                let angle = sign * 2.0 * std::f64::consts::PI * ((at * from % extent) as f64) / extent as f64;
                let (x, y) = before[start + from * step];
                (re + x * angle.cos() - y * angle.sin(), im + x * angle.sin() + y * angle.cos())
            });
        }
        step *= extent;
    }
    values
}

fn length(values: &[Pair]) -> f64 {
    values.iter().map(|(re, im)| re * re + im * im).sum::<f64>().sqrt()
}

fn pairs<T: TestNumber>(values: &[[T; 2]]) -> Vec<Pair> {
    values.iter().map(|[re, im]| (re.number(), im.number())).collect()
}

/// Compares each array of a batch.
#[track_caller]
fn compare(what: &str, call_tolerance: Tolerance, found: &[Pair], exact: &[Pair], array: usize) {
    assert_eq!(found.len(), exact.len(), "{what}");
    for (found, exact) in found.chunks(array).zip(exact.chunks(array)) {
        let magnitude = length(exact);
        for (at, (one, other)) in found.iter().zip(exact).enumerate() {
            let error = (one.0 - other.0).hypot(one.1 - other.1);
            let bound = call_tolerance.bound(magnitude, length(&[*other]));
            assert!(error <= bound, "{what}, element {at}: {one:?} is not {other:?} within {bound:e}");
        }
    }
}

fn tolerance(call: &LibraryCall<'_>) -> Tolerance {
    Tolerance::of(&call.operation().unwrap())
}

fn complex<T: TestNumber + RealPart>(gpu: &DeviceRuntime, shape: &[usize], batch: usize) {
    let fft = Fft::new(gpu);
    let array: usize = shape.iter().product();
    let numbers: Vec<T> = made_up(5, 2 * array * batch);
    let input: Vec<[T; 2]> = numbers.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
    let (from, to) = (gpu.upload(&input).unwrap(), gpu.allocate::<[T; 2]>(input.len()).unwrap());
    for (sign, is_in_place) in [(-1.0, false), (-1.0, true), (1.0, false), (1.0, true)] {
        let exact: Vec<Pair> =
            pairs(&input).chunks(array).flat_map(|one| sum_of_waves(one, shape, sign)).collect();
        let transform = fft.transform(shape).batch(batch);
        let call = match (sign < 0.0, is_in_place) {
            (true, false) => transform.forward(&from, &to),
            (false, false) => transform.inverse(&from, &to),
            (true, true) => transform.forward_in_place(&to),
            (false, true) => transform.inverse_in_place(&to),
        };
        if is_in_place {
            to.copy_from(&from).unwrap();
        }
        let bound = tolerance(&call);
        call.submit().unwrap();
        let what = format!("{shape:?} x {batch}, sign {sign}, in place {is_in_place}");
        compare(&what, bound, &pairs(&to.download().unwrap()), &exact, array);
    }
    assert_eq!(pairs(&from.download().unwrap()), pairs(&input), "the input was changed");
}

#[test]
fn complex_transforms_are_sums_of_waves() {
    everywhere_and_in_workers("complex_transforms_are_sums_of_waves", |gpu| {
        let shapes: [(&[usize], usize); 10] = [
            (&[1], 1),
            (&[2], 3),
            (&[7], 2),
            (&[64], 2),
            (&[97], 1),
            (&[120], 3),
            (&[8, 8], 1),
            (&[5, 12], 2),
            (&[4, 3, 6], 1),
            (&[2, 8, 17], 2),
        ];
        for (shape, batch) in shapes {
            complex::<f32>(gpu, shape, batch);
            complex::<f64>(gpu, shape, batch);
        }
    });
}

fn real<T: TestNumber + RealPart>(gpu: &DeviceRuntime, shape: &[usize], batch: usize) {
    let fft = Fft::new(gpu);
    let array: usize = shape.iter().product();
    let last = *shape.last().unwrap();
    let half = last / 2 + 1;
    let input: Vec<T> = made_up(6, array * batch);
    let as_pairs: Vec<Pair> = input.iter().map(|value| (value.number(), 0.0)).collect();
    let whole: Vec<Pair> = as_pairs.chunks(array).flat_map(|one| sum_of_waves(one, shape, -1.0)).collect();
    let exact: Vec<Pair> = whole.chunks(last).flat_map(|row| row[..half].to_vec()).collect();
    let (from, to) = (gpu.upload(&input).unwrap(), gpu.allocate::<[T; 2]>(exact.len()).unwrap());
    let call = fft.transform(shape).batch(batch).real_forward(&from, &to);
    let bound = tolerance(&call);
    call.submit().unwrap();
    let spectrum = to.download().unwrap();
    compare(&format!("real {shape:?} x {batch}"), bound, &pairs(&spectrum), &exact, array / last * half);

    // In place, with room for the spectrum in each row.
    let mut rows = vec![T::from_number(0.0); 2 * exact.len()];
    for (row, values) in rows.chunks_mut(2 * half).zip(input.chunks(last)) {
        row[..last].copy_from_slice(values);
    }
    let padded: Vec<[T; 2]> = rows.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
    let data = gpu.upload(&padded).unwrap();
    fft.transform(shape).batch(batch).real_forward_in_place(&data).submit().unwrap();
    compare("real, in place", bound, &pairs(&data.download().unwrap()), &exact, array / last * half);

    // And back, scaled.
    let back = gpu.allocate::<T>(input.len()).unwrap();
    let call = fft.transform(shape).batch(batch).scale(Scale::ByLength).real_inverse(&to, &back);
    let bound = tolerance(&call);
    call.submit().unwrap();
    let found: Vec<Pair> = back.download().unwrap().into_iter().map(|value| (value.number(), 0.0)).collect();
    let twice = Tolerance { relative: 2.0 * bound.relative, ..bound };
    compare("real, and back", twice, &found, &as_pairs, array);
    fft.transform(shape).batch(batch).scale(Scale::ByLength).real_inverse_in_place(&data).submit().unwrap();
    let rows: Vec<f64> =
        data.download().unwrap().iter().flat_map(|[re, im]| [re.number(), im.number()]).collect();
    let found: Vec<Pair> =
        rows.chunks(2 * half).flat_map(|row| row[..last].iter().map(|re| (*re, 0.0))).collect();
    compare("real, in place and back", twice, &found, &as_pairs, array);
}

#[test]
fn real_transforms_are_half_of_the_complex_ones() {
    everywhere_and_in_workers("real_transforms_are_half_of_the_complex_ones", |gpu| {
        let shapes: [(&[usize], usize); 8] = [
            (&[2], 1),
            (&[8], 3),
            (&[9], 2),
            (&[100], 1),
            (&[6, 8], 2),
            (&[8, 7], 1),
            (&[3, 4, 6], 2),
            (&[4, 4, 5], 1),
        ];
        for (shape, batch) in shapes {
            real::<f32>(gpu, shape, batch);
            real::<f64>(gpu, shape, batch);
        }
    });
}

#[test]
fn scaling_multiplies_the_result_alone() {
    everywhere_and_in_workers("scaling_multiplies_the_result_alone", |gpu| {
        let fft = Fft::new(gpu);
        let input = [[1.0_f64, 0.0]; 16];
        let (from, to) = (gpu.upload(&input).unwrap(), gpu.upload(&[[7.0_f64, 7.0]; 20]).unwrap());
        for (scale, expected) in
            [(Scale::None, 16.0), (Scale::ByLength, 1.0), (Scale::Unitary, 4.0), (Scale::Factor(-0.5), -8.0)]
        {
            fft.transform(&[16]).scale(scale).forward(&from, &to).submit().unwrap();
            let found = to.download().unwrap();
            assert_eq!(found[0], [expected, 0.0], "{scale:?}");
            assert!(found[1..16].iter().all(|[re, im]| re.abs() < 1e-14 && im.abs() < 1e-14), "{scale:?}");
            assert_eq!(found[16..], [[7.0, 7.0]; 4], "what lies behind the result stays");
        }
    });
}
