//! Primitives in graphs, on streams, and with memory from the heap.

use kiln_libs::prims::{Predicate, Primitives, ReduceOperator, ScanOperator};

use crate::prims_values::u32s;
use crate::rig::{everywhere, everywhere_and_in_workers};

const LEN: usize = 9000;

#[test]
fn recorded_primitives_run_at_each_replay() {
    everywhere_and_in_workers("recorded_primitives_run_at_each_replay", |gpu| {
        let prims = Primitives::new(gpu);
        let (input, sorted, sums) =
            (gpu.zeros::<u32>(LEN).unwrap(), gpu.zeros::<u32>(LEN).unwrap(), gpu.zeros::<u32>(LEN).unwrap());
        let (least, count) = (gpu.zeros::<u32>(10).unwrap(), gpu.zeros::<u64>(1).unwrap());
        let (small, total) = (gpu.zeros::<u32>(LEN).unwrap(), gpu.zeros::<u32>(1).unwrap());
        let mut graph = gpu.graph();
        prims.sort(&input, &sorted).record(&mut graph).unwrap();
        prims.scan_exclusive(&sorted, ScanOperator::Sum, 5, &sums).record(&mut graph).unwrap();
        prims.top(&input, &least).smallest().record(&mut graph).unwrap();
        prims.select(&sorted, Predicate::Less(1 << 30), &small, &count).record(&mut graph).unwrap();
        prims.reduce(&sums, ReduceOperator::Max, &total).record(&mut graph).unwrap();
        // Of nothing, which is a node, too.
        let none = gpu.zeros::<u32>(0).unwrap();
        prims.sort(&none, &none).record(&mut graph).unwrap();
        let graph = graph.build().unwrap();
        for seed in 1..3 {
            let mut values = u32s(seed, LEN);
            input.upload(&values).unwrap();
            graph.replay().unwrap();
            values.sort_unstable();
            assert_eq!(sorted.download().unwrap(), values);
            let next = |sum: &mut u32, value: &u32| {
                let before = *sum;
                *sum = sum.wrapping_add(*value);
                Some(before)
            };
            let expected: Vec<u32> = values.iter().scan(5, next).collect();
            assert_eq!(sums.download().unwrap(), expected);
            assert_eq!(least.download().unwrap(), values[..10]);
            assert_eq!(
                count.download().unwrap()[0] as usize,
                values.partition_point(|value| *value < 1 << 30)
            );
            assert_eq!(total.download().unwrap()[0], expected.iter().copied().max().unwrap());
        }
    });
}

#[test]
fn streams_work_side_by_side() {
    everywhere("streams_work_side_by_side", |gpu| {
        let prims = Primitives::new(gpu);
        let streams = [gpu.stream().unwrap(), gpu.stream().unwrap()];
        let inputs: Vec<Vec<u32>> = (0..4).map(|seed| u32s(seed, LEN)).collect();
        let buffers: Vec<_> = inputs.iter().map(|values| gpu.upload(values).unwrap()).collect();
        for (at, buffer) in buffers.iter().enumerate() {
            prims.sort(buffer, buffer).on(&streams[at % 2]).submit().unwrap();
            prims
                .scan_inclusive(buffer, ScanOperator::Max, buffer)
                .on(&streams[(at + 1) % 2])
                .submit()
                .unwrap();
        }
        for (mut values, buffer) in inputs.into_iter().zip(&buffers) {
            values.sort_unstable();
            assert_eq!(buffer.download().unwrap(), values);
        }
    });
}
