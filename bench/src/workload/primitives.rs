//! P1 to P3: reduce, scan and sort of `u32`, from the first call of a batch to the end of its work on the device.
//!
//! `bench/peers/cub.cu` measures CUB's device-wide algorithms in the same way, on values that are just as random.

use std::time::Instant;

use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::prims::{Primitives, ReduceOperator, ScanOperator};
use kiln_libs::rand::{Bits, Sampler};

use crate::Failure;
use crate::result_table::Table;
use crate::timing::Percentiles;
use crate::workload::launch::runtime;

/// Elements as a power of two, operations in a batch, and batches.
const SIZES: [(u32, usize, usize); 2] = [(20, 50, 40), (28, 5, 20)];

/// Random input, with room for as much output.
struct Stage {
    gpu: DeviceRuntime,
    primitives: Primitives,
    input: GpuRef<u32>,
    output: GpuRef<u32>,
    one: GpuRef<u32>,
}

impl Stage {
    fn new(power: u32) -> Result<Self, Failure> {
        let gpu = runtime()?;
        let (input, output) = (gpu.allocate::<u32>(1 << power)?, gpu.allocate::<u32>(1 << power)?);
        Sampler::new(&gpu).draw(7).fill(&input, Bits)?;
        let one = gpu.allocate(1)?;
        Ok(Self { primitives: Primitives::new(&gpu), gpu, input, output, one })
    }

    fn reduce(&self) -> Result<(), Failure> {
        self.primitives.reduce(&self.input, ReduceOperator::Sum, &self.one).submit()?;
        Ok(())
    }

    fn scan(&self) -> Result<(), Failure> {
        self.primitives.scan_exclusive(&self.input, ScanOperator::Sum, 0, &self.output).submit()?;
        Ok(())
    }

    fn sort(&self) -> Result<(), Failure> {
        self.primitives.sort(&self.input, &self.output).submit()?;
        Ok(())
    }
}

fn measured(
    table: &mut Table,
    workload: &str,
    operation: fn(&Stage) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for (power, batch, batches) in SIZES {
        let stage = Stage::new(power)?;
        // Kernels are loaded, and the heap has grown.
        operation(&stage)?;
        operation(&stage)?;
        stage.gpu.synchronize()?;
        let mut values = Vec::with_capacity(batches);
        for _ in 0..batches {
            let start = Instant::now();
            for _ in 0..batch {
                operation(&stage)?;
            }
            stage.gpu.synchronize()?;
            values.push(start.elapsed().as_nanos() as f64 / batch as f64);
        }
        table.add(format!("{workload}.{power}"), "kiln", Percentiles::of(values));
    }
    Ok(())
}

pub(crate) fn reduced(table: &mut Table, _: usize) -> Result<(), Failure> {
    measured(table, "p1", Stage::reduce)
}

pub(crate) fn scanned(table: &mut Table, _: usize) -> Result<(), Failure> {
    measured(table, "p2", Stage::scan)
}

pub(crate) fn sorted(table: &mut Table, _: usize) -> Result<(), Failure> {
    measured(table, "p3", Stage::sort)
}
