//! M6: kernels of one thread that spin, on 1, 2 and 4 streams; each allocates, launches and frees.

use std::time::Instant;

use kiln::DeviceRuntime;
use kiln_mem::workload::Allocator;

use crate::Failure;
use crate::memory::RawPool;
use crate::raw_driver::{self, Raw};
use crate::result_table::Table;
use crate::timing::Percentiles;
use crate::workload::launch::{kernel, runtime};

const KERNELS_PER_STREAM: usize = 4;
const CLOCKS: i64 = 1_000_000;

pub(crate) fn spinning(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    for state in ["cold", "warm"] {
        for streams in [1, 2, 4] {
            let mut values = Vec::new();
            let shared = runtime()?;
            if state == "warm" {
                once(&shared, streams)?;
            }
            for _ in 0..repeats {
                let fresh = runtime()?;
                let gpu = if state == "cold" { &fresh } else { &shared };
                values.push(once(gpu, streams)?);
            }
            table.add_in("us", format!("m6 {streams} streams {state}"), "kiln", Percentiles::of(values));
        }
    }
    for streams in [1, 2, 4] {
        let raw = RawSpin::new(streams)?;
        raw.once()?;
        let values = (0..repeats).map(|_| raw.once()).collect::<Result<_, _>>()?;
        table.add_in(
            "us",
            format!("m6 {streams} streams warm"),
            "raw cuMemAllocAsync",
            Percentiles::of(values),
        );
    }
    Ok(())
}

/// The same in raw calls.
struct RawSpin {
    function: cudarc::driver::sys::CUfunction,
    /// The pool on each stream, and the stream.
    pools: Vec<RawPool>,
}

impl RawSpin {
    fn new(streams: usize) -> Result<Self, Failure> {
        let pool = RawPool::new(0)?;
        let function = Raw::new()?.function("spin")?;
        let pools = (0..streams).map(|_| pool.on_new_stream()).collect::<Result<_, _>>()?;
        Ok(Self { function, pools })
    }

    fn once(&self) -> Result<f64, Failure> {
        let start = Instant::now();
        for _ in 0..KERNELS_PER_STREAM {
            for pool in &self.pools {
                let mut pool = pool.clone();
                let block = pool.allocate(8)?.ok_or("8 bytes were refused")?;
                let arguments = [block.to_ne_bytes(), CLOCKS.to_ne_bytes()].concat();
                raw_driver::launch(self.function, pool.stream(), &arguments)?;
                pool.free(block)?;
            }
        }
        self.pools.iter().try_for_each(|pool| raw_driver::synchronize(pool.stream()))?;
        Ok(start.elapsed().as_nanos() as f64 / 1e3)
    }
}

/// Microseconds for all kernels.
fn once(gpu: &DeviceRuntime, streams: usize) -> Result<f64, Failure> {
    let spin = kernel(gpu, "spin")?;
    let leases: Vec<_> = (0..streams).map(|_| gpu.stream()).collect::<Result<_, _>>()?;
    let start = Instant::now();
    for _ in 0..KERNELS_PER_STREAM {
        for stream in &leases {
            let buffer = gpu.allocate_on::<f32>(stream, 2)?;
            let mut launch = gpu.launch(&spin);
            launch.grid(1).block(1);
            launch.on(stream).write(&buffer).value(CLOCKS);
            // SAFETY: the kernel touches nothing when its last argument is not negative.
            unsafe { launch.submit() }?;
        }
    }
    gpu.synchronize()?;
    Ok(start.elapsed().as_nanos() as f64 / 1e3)
}
