//! Selections, runs, histograms and the largest elements, against loops on the host.

use kiln::DeviceRuntime;
use kiln::buffer::Element;
use kiln_libs::prims::{Comparable, Predicate, Primitives};

use crate::prims_values::{bits, f32s, u32s, words};
use crate::rig::{everywhere, large};

const LENGTHS: [usize; 7] = [0, 1, 33, 1000, 4096, 4097, 15_000];

/// The elements that are kept, and their indices.
fn selected<T: Comparable>(gpu: &DeviceRuntime, values: &[T], predicate: Predicate<T>) -> (Vec<T>, Vec<u64>) {
    let (input, count) = (gpu.upload(values).unwrap(), gpu.allocate(1).unwrap());
    let (output, indices) = (gpu.allocate(values.len()).unwrap(), gpu.allocate(values.len()).unwrap());
    Primitives::new(gpu).select(&input, predicate, &output, &count).indices(&indices).submit().unwrap();
    let count = count.download().unwrap()[0] as usize;
    (output.view(..count).unwrap().download().unwrap(), indices.view(..count).unwrap().download().unwrap())
}

fn kept<T: Copy>(values: &[T], keep: impl Fn(T) -> bool) -> (Vec<T>, Vec<u64>) {
    (0..).zip(values).filter(|(_, value)| keep(**value)).map(|(at, value)| (*value, at)).unzip()
}

#[test]
fn elements_are_kept_by_their_value() {
    everywhere("elements_are_kept_by_their_value", |gpu| {
        for len in LENGTHS {
            let values = u32s(len as u64, len);
            let half = u32::MAX / 2;
            assert_eq!(
                selected(gpu, &values, Predicate::Less(half)),
                kept(&values, |value| value < half),
                "{len}"
            );
            let predicate = Predicate::Between { first: half, end: half + half / 4 };
            assert_eq!(
                selected(gpu, &values, predicate),
                kept(&values, |value| value >= half && value - half < half / 4)
            );
        }
        let values: Vec<i64> = words(1, 600).iter().map(|word| (word % 5) as i64 - 2).collect();
        assert_eq!(selected(gpu, &values, Predicate::Equal(-1)), kept(&values, |value| value == -1));
        assert_eq!(selected(gpu, &values, Predicate::AtMost(0)), kept(&values, |value| value <= 0));
        assert_eq!(selected(gpu, &values, Predicate::Greater(9)), (vec![], vec![]));
        let bytes: Vec<u8> = words(2, 5000).iter().map(|word| *word as u8).collect();
        assert_eq!(selected(gpu, &bytes, Predicate::AtLeast(200)), kept(&bytes, |value| value >= 200));
        let floats = f32s(3, 700);
        let (found, at) = selected(gpu, &floats, Predicate::NotEqual(0.0));
        let (expected, places) = kept(&floats, |value| value != 0.0);
        assert_eq!((bits(&found), at), (bits(&expected), places));
    });
}

fn flagged<T: Element + PartialEq + std::fmt::Debug>(gpu: &DeviceRuntime, values: &[T], flags: &[u8]) {
    let (input, marks, count) =
        (gpu.upload(values).unwrap(), gpu.upload(flags).unwrap(), gpu.allocate(1).unwrap());
    let output = gpu.allocate::<T>(values.len()).unwrap();
    Primitives::new(gpu).select_flagged(&input, &marks, &output, &count).submit().unwrap();
    let count = count.download().unwrap()[0] as usize;
    let expected: Vec<T> =
        values.iter().zip(flags).filter(|(_, flag)| **flag != 0).map(|(value, _)| *value).collect();
    assert_eq!(output.view(..count).unwrap().download().unwrap(), expected);
}

#[test]
fn elements_are_kept_by_flags() {
    everywhere("elements_are_kept_by_flags", |gpu| {
        for len in LENGTHS {
            let (wide, values) = (words(len as u64, len), u32s(4, len));
            let flags: Vec<u8> =
                words(5, len).iter().map(|word| if word % 3 == 0 { *word as u8 | 4 } else { 0 }).collect();
            flagged(gpu, &wide, &flags);
            flagged(gpu, &values, &vec![1; len]);
            flagged(gpu, &values, &vec![0; len]);
            let bytes: Vec<u8> = values.iter().map(|value| *value as u8).collect();
            flagged(gpu, &bytes, &flags);
            let halves: Vec<u16> = values.iter().map(|value| *value as u16).collect();
            flagged(gpu, &halves, &flags);
        }
    });
}

#[test]
fn runs_become_one_element_and_a_length() {
    everywhere("runs_become_one_element_and_a_length", |gpu| {
        let prims = Primitives::new(gpu);
        for len in LENGTHS {
            // Runs of one to many, across tiles.
            let values: Vec<u32> = words(len as u64, len)
                .iter()
                .scan(0, |run, word| {
                    *run += u32::from(word % 40 == 0);
                    Some(*run)
                })
                .collect();
            let (input, count) = (gpu.upload(&values).unwrap(), gpu.allocate::<u64>(1).unwrap());
            let (output, lengths) = (gpu.allocate::<u32>(len).unwrap(), gpu.allocate::<u64>(len).unwrap());
            prims.unique(&input, &output, &count).lengths(&lengths).submit().unwrap();
            let runs = count.download().unwrap()[0] as usize;
            let chunks: Vec<&[u32]> = values.chunk_by(|a, b| a == b).collect();
            assert_eq!(
                output.view(..runs).unwrap().download().unwrap(),
                chunks.iter().map(|run| run[0]).collect::<Vec<_>>()
            );
            let expected: Vec<u64> = chunks.iter().map(|run| run.len() as u64).collect();
            assert_eq!(lengths.view(..runs).unwrap().download().unwrap(), expected, "{len}");
        }
        let (input, output) =
            (gpu.upload(&[0.0_f64, -0.0, f64::NAN, f64::NAN]).unwrap(), gpu.allocate(4).unwrap());
        let count = gpu.allocate(1).unwrap();
        prims.unique(&input, &output, &count).submit().unwrap();
        assert_eq!(count.download().unwrap(), [3]);
    });
}

#[test]
fn elements_are_counted_in_bins() {
    everywhere("elements_are_counted_in_bins", |gpu| {
        let prims = Primitives::new(gpu);
        for (len, bins) in [(0, 3), (1000, 1), (10_000, 256), (5000, 9000)] {
            let output = gpu.allocate::<u64>(bins).unwrap();
            let bytes: Vec<u8> = words(1, len).iter().map(|word| *word as u8).collect();
            prims.histogram(&gpu.upload(&bytes).unwrap(), 10..200, &output).submit().unwrap();
            let mut expected = vec![0; bins];
            for value in bytes.iter().filter(|value| (10..200).contains(*value)) {
                expected[(usize::from(*value) - 10) * bins / 190] += 1;
            }
            assert_eq!(output.download().unwrap(), expected, "{len} {bins}");
            let floats = f32s(2, len);
            prims.histogram(&gpu.upload(&floats).unwrap(), -1.0e10..2.0e10, &output).submit().unwrap();
            let mut expected = vec![0; bins];
            for value in floats.iter().filter(|value| (-1.0e10..2.0e10).contains(*value)) {
                let scale = bins as f64 / (2.0e10 - f64::from(-1.0e10_f32));
                expected[(((f64::from(*value) + 1.0e10) * scale) as usize).min(bins - 1)] += 1;
            }
            assert_eq!(output.download().unwrap(), expected, "{len} {bins}");
            let wide: Vec<i64> = words(3, len).iter().map(|word| (*word as i64) >> 30).collect();
            prims.histogram(&gpu.upload(&wide).unwrap(), -(1 << 32)..1 << 33, &output).submit().unwrap();
            let mut expected = vec![0; bins];
            for value in wide.iter().filter(|value| (-(1 << 32)..1 << 33).contains(*value)) {
                expected[((value + (1 << 32)) as u128 * bins as u128 / (3 << 32)) as usize] += 1;
            }
            assert_eq!(output.download().unwrap(), expected, "{len} {bins}");
        }
    });
}

#[test]
fn the_first_elements_in_order_are_found() {
    everywhere("the_first_elements_in_order_are_found", |gpu| {
        let prims = Primitives::new(gpu);
        for (len, k) in [(1, 1), (1000, 0), (1000, 10), (5000, 4999), (9000, 300)] {
            let floats = f32s(len as u64, len);
            let (input, output) = (gpu.upload(&floats).unwrap(), gpu.allocate::<f32>(k).unwrap());
            let indices = gpu.allocate::<u64>(k).unwrap();
            prims.top(&input, &output).indices(&indices).submit().unwrap();
            let mut order: Vec<usize> = (0..len).collect();
            order.sort_by(|a, b| floats[*b].total_cmp(&floats[*a]));
            let expected: Vec<f32> = order[..k].iter().map(|at| floats[*at]).collect();
            assert_eq!(bits(&output.download().unwrap()), bits(&expected), "{len} {k}");
            let places: Vec<u64> = order[..k].iter().map(|at| *at as u64).collect();
            assert_eq!(indices.download().unwrap(), places, "{len} {k}");
            // Few values, so that the bound is among many equal ones.
            let few: Vec<i64> = words(2, len).iter().map(|word| (word % 4) as i64 - 2).collect();
            let (input, output) = (gpu.upload(&few).unwrap(), gpu.allocate::<i64>(k).unwrap());
            prims.top(&input, &output).smallest().indices(&indices).submit().unwrap();
            let mut order: Vec<usize> = (0..len).collect();
            order.sort_by_key(|at| few[*at]);
            let places: Vec<u64> = order[..k].iter().map(|at| *at as u64).collect();
            assert_eq!(indices.download().unwrap(), places, "{len} {k}");
            assert_eq!(output.download().unwrap(), order[..k].iter().map(|at| few[*at]).collect::<Vec<_>>());
        }
    });
}

#[test]
fn many_elements_are_selected() {
    large("many_elements_are_selected", |gpu, len| {
        let values = u32s(3, len);
        let (found, at) = selected(gpu, &values, Predicate::Greater(1 << 31));
        let (expected, places) = kept(&values, |value| value > 1 << 31);
        assert!(found == expected && at == places);
    });
}
