//! Reductions, against loops on the host.

use kiln::DeviceRuntime;
use kiln_libs::prims::{Numeric, Primitives, ReduceOperator};

use crate::prims_values::{f32s, f64s, plain_f32s, u32s, words};
use crate::rig::{everywhere, large};

/// None, one, parts of a warp and of a tile, some tiles and a part.
const LENGTHS: [usize; 9] = [0, 1, 2, 31, 33, 257, 4096, 4097, 20_011];

fn reduced<T: Numeric>(gpu: &DeviceRuntime, values: &[T], operator: ReduceOperator) -> T {
    let (input, output) = (gpu.upload(values).unwrap(), gpu.allocate(1).unwrap());
    Primitives::new(gpu).reduce(&input, operator, &output).submit().unwrap();
    output.download().unwrap()[0]
}

#[test]
fn integers_are_combined_exactly() {
    everywhere("integers_are_combined_exactly", |gpu| {
        for len in LENGTHS {
            let values = u32s(len as u64, len);
            let sum = values.iter().fold(0, |sum: u32, value| sum.wrapping_add(*value));
            assert_eq!(reduced(gpu, &values, ReduceOperator::Sum), sum, "{len}");
            assert_eq!(
                reduced(gpu, &values, ReduceOperator::Min),
                values.iter().copied().min().unwrap_or(u32::MAX)
            );
            let signed: Vec<i32> = values.iter().map(|value| *value as i32).collect();
            assert_eq!(
                reduced(gpu, &signed, ReduceOperator::Max),
                signed.iter().copied().max().unwrap_or(i32::MIN)
            );
            let wide = words(len as u64, len);
            let product = wide.iter().fold(1, |product: u64, value| product.wrapping_mul(value | 1));
            let odd: Vec<u64> = wide.iter().map(|value| value | 1).collect();
            assert_eq!(reduced(gpu, &odd, ReduceOperator::Product), product, "{len}");
            let signed: Vec<i64> = wide.iter().map(|value| *value as i64).collect();
            assert_eq!(
                reduced(gpu, &signed, ReduceOperator::Min),
                signed.iter().copied().min().unwrap_or(i64::MAX)
            );
        }
    });
}

#[test]
fn sums_of_floats_are_near_and_always_the_same() {
    everywhere("sums_of_floats_are_near_and_always_the_same", |gpu| {
        for len in LENGTHS {
            let values = plain_f32s(len as u64, len);
            let exact: f64 = values.iter().map(|value| f64::from(*value)).sum();
            let sizes: f64 = values.iter().map(|value| f64::from(value.abs())).sum();
            let sum = reduced(gpu, &values, ReduceOperator::Sum);
            assert!(
                (f64::from(sum) - exact).abs() <= sizes * 64.0 * f64::from(f32::EPSILON),
                "{len}: {sum} {exact}"
            );
            // The same at an odd place in memory.
            let shifted = gpu.upload(&[&[0.0], &values[..]].concat()).unwrap();
            let output = gpu.allocate(1).unwrap();
            let view = shifted.view(1..).unwrap();
            Primitives::new(gpu).reduce(&view, ReduceOperator::Sum, &output).submit().unwrap();
            assert_eq!(output.download().unwrap()[0].to_bits(), sum.to_bits(), "{len}");
            let wide: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
            let sum = reduced(gpu, &wide, ReduceOperator::Sum);
            assert!((sum - exact).abs() <= sizes * 64.0 * f64::EPSILON, "{len}: {sum} {exact}");
        }
    });
}

#[test]
fn minima_and_maxima_of_floats_leave_nan_out() {
    everywhere("minima_and_maxima_of_floats_leave_nan_out", |gpu| {
        for len in LENGTHS {
            let (values, wide) = (f32s(len as u64, len), f64s(len as u64, len));
            let (min, max) = (
                values.iter().copied().fold(f32::INFINITY, f32::min),
                wide.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            );
            assert_eq!(reduced(gpu, &values, ReduceOperator::Min), min, "{len}");
            assert_eq!(reduced(gpu, &wide, ReduceOperator::Max), max, "{len}");
        }
    });
}

#[test]
fn the_first_of_the_least_and_of_the_greatest_is_found() {
    everywhere("the_first_of_the_least_and_of_the_greatest_is_found", |gpu| {
        let prims = Primitives::new(gpu);
        let output = gpu.allocate::<u64>(1).unwrap();
        for len in [1, 2, 33, 700, 9000] {
            let floats = f32s(len as u64, len);
            let input = gpu.upload(&floats).unwrap();
            prims.arg_min(&input, &output).submit().unwrap();
            let first = output.download().unwrap()[0] as usize;
            prims.arg_max(&input, &output).submit().unwrap();
            let last = output.download().unwrap()[0] as usize;
            let least = (0..len).min_by(|a, b| floats[*a].total_cmp(&floats[*b])).unwrap();
            let greatest = (0..len).rev().max_by(|a, b| floats[*a].total_cmp(&floats[*b])).unwrap();
            assert_eq!((first, last), (least, greatest), "{len}");
            // Many equal ones.
            let few: Vec<i64> = words(7, len).iter().map(|word| (word % 3) as i64 - 1).collect();
            let input = gpu.upload(&few).unwrap();
            prims.arg_max(&input, &output).submit().unwrap();
            let greatest = (0..len).rev().max_by_key(|at| few[*at]).unwrap();
            assert_eq!(output.download().unwrap()[0] as usize, greatest, "{len}");
        }
    });
}

#[test]
fn segments_are_reduced_one_by_one() {
    everywhere("segments_are_reduced_one_by_one", |gpu| {
        let prims = Primitives::new(gpu);
        // Short segments, of which some are empty, and long ones.
        for (len, segments) in [(1000, 130), (1000, 1), (20_000, 3), (0, 5)] {
            let values = u32s(3, len);
            let mut cuts: Vec<u64> =
                words(5, segments + 1).into_iter().map(|word| word % (len as u64 + 1)).collect();
            cuts.sort_unstable();
            let (input, offsets) = (gpu.upload(&values).unwrap(), gpu.upload(&cuts).unwrap());
            let output = gpu.allocate::<u32>(segments).unwrap();
            prims.reduce_segments(&input, &offsets, ReduceOperator::Sum, &output).submit().unwrap();
            let sum = |range: &[u64]| {
                let elements = &values[range[0] as usize..range[1] as usize];
                elements.iter().fold(0, |sum: u32, value| sum.wrapping_add(*value))
            };
            assert_eq!(
                output.download().unwrap(),
                cuts.windows(2).map(sum).collect::<Vec<_>>(),
                "{len} {segments}"
            );
            let narrow: Vec<u32> = cuts.iter().map(|cut| *cut as u32).collect();
            let offsets = gpu.upload(&narrow).unwrap();
            prims.reduce_segments(&input, &offsets, ReduceOperator::Max, &output).submit().unwrap();
            let max = |range: &[u64]| {
                values[range[0] as usize..range[1] as usize].iter().copied().max().unwrap_or(0)
            };
            assert_eq!(
                output.download().unwrap(),
                cuts.windows(2).map(max).collect::<Vec<_>>(),
                "{len} {segments}"
            );
        }
    });
}

#[test]
fn offsets_outside_of_the_input_are_cut() {
    everywhere("offsets_outside_of_the_input_are_cut", |gpu| {
        let (input, offsets) =
            (gpu.upload(&[1_i64, 2, 4, 8]).unwrap(), gpu.upload(&[1_u64, 99, 3, u64::MAX, 0]).unwrap());
        let output = gpu.allocate::<i64>(4).unwrap();
        Primitives::new(gpu)
            .reduce_segments(&input, &offsets, ReduceOperator::Sum, &output)
            .submit()
            .unwrap();
        assert_eq!(output.download().unwrap(), [14, 0, 8, 0]);
    });
}

#[test]
fn many_elements_are_summed() {
    large("many_elements_are_summed", |gpu, len| {
        let values = words(9, len);
        let sum = values.iter().fold(0, |sum: u64, value| sum.wrapping_add(*value));
        assert_eq!(reduced(gpu, &values, ReduceOperator::Sum), sum);
    });
}
