//! Scans, against loops on the host.

use kiln::DeviceRuntime;
use kiln_libs::prims::{Numeric, Primitives, ScanOperator};

use crate::prims_values::{bits, f32s, plain_f32s, u32s, words};
use crate::rig::{everywhere, large};

/// None, one, parts of a row and of a tile, whole tiles, more than a group of 32 tiles of eight bytes.
const LENGTHS: [usize; 8] = [0, 1, 3, 129, 8191, 8192, 8193, 20_001];

fn inclusive<T: Numeric>(gpu: &DeviceRuntime, values: &[T], operator: ScanOperator) -> Vec<T> {
    let (input, output) = (gpu.upload(values).unwrap(), gpu.allocate(values.len()).unwrap());
    Primitives::new(gpu).scan_inclusive(&input, operator, &output).submit().unwrap();
    output.download().unwrap()
}

fn running<T: Copy>(values: &[T], first: T, of: impl Fn(T, T) -> T) -> Vec<T> {
    let mut sum = first;
    let step = |value: &T| {
        sum = of(sum, *value);
        sum
    };
    values.iter().map(step).collect()
}

#[test]
fn prefixes_of_integers_are_exact() {
    everywhere("prefixes_of_integers_are_exact", |gpu| {
        for len in LENGTHS {
            let values = u32s(len as u64, len);
            assert_eq!(
                inclusive(gpu, &values, ScanOperator::Sum),
                running(&values, 0, u32::wrapping_add),
                "{len}"
            );
            let signed: Vec<i64> = words(1, len).iter().map(|word| *word as i64).collect();
            assert_eq!(
                inclusive(gpu, &signed, ScanOperator::Max),
                running(&signed, i64::MIN, i64::max),
                "{len}"
            );
            let signed: Vec<i32> = values.iter().map(|value| *value as i32).collect();
            assert_eq!(
                inclusive(gpu, &signed, ScanOperator::Min),
                running(&signed, i32::MAX, i32::min),
                "{len}"
            );
        }
    });
}

#[test]
fn an_exclusive_scan_begins_with_the_first_value_and_can_be_in_place() {
    everywhere("an_exclusive_scan_begins_with_the_first_value_and_can_be_in_place", |gpu| {
        for len in LENGTHS {
            let values = words(2, len);
            let buffer = gpu.upload(&values).unwrap();
            Primitives::new(gpu).scan_exclusive(&buffer, ScanOperator::Sum, 100, &buffer).submit().unwrap();
            let expected = [&[100], &running(&values, 100, u64::wrapping_add)[..]].concat();
            assert_eq!(buffer.download().unwrap(), expected[..len], "{len}");
        }
    });
}

#[test]
fn sums_of_floats_are_near_and_the_same_at_odd_addresses() {
    everywhere("sums_of_floats_are_near_and_the_same_at_odd_addresses", |gpu| {
        for len in LENGTHS {
            let values = plain_f32s(len as u64, len);
            let found = inclusive(gpu, &values, ScanOperator::Sum);
            let wide: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
            let (exact, sizes) = (running(&wide, 0.0, |a, b| a + b), running(&wide, 0.0, |a, b| a + b.abs()));
            for at in 0..len {
                let error = (f64::from(found[at]) - exact[at]).abs();
                assert!(
                    error <= sizes[at] * 64.0 * f64::from(f32::EPSILON),
                    "{len} {at}: {} {}",
                    found[at],
                    exact[at]
                );
            }
            let shifted = gpu.upload(&[&[0.0], &values[..]].concat()).unwrap().view(1..).unwrap();
            let output = gpu.allocate::<f32>(len + 3).unwrap().view(3..).unwrap();
            Primitives::new(gpu).scan_inclusive(&shifted, ScanOperator::Sum, &output).submit().unwrap();
            assert_eq!(bits(&output.download().unwrap()), bits(&found), "{len}");
        }
        let values = f32s(4, 3000);
        assert_eq!(inclusive(gpu, &values, ScanOperator::Max), running(&values, f32::NEG_INFINITY, f32::max));
    });
}

#[test]
fn many_tiles_wait_for_each_other() {
    large("many_tiles_wait_for_each_other", |gpu, len| {
        let values = words(3, len);
        assert!(inclusive(gpu, &values, ScanOperator::Sum) == running(&values, 0, u64::wrapping_add));
    });
}
