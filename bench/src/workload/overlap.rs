//! M6: kernels of one thread that spin, on 1, 2 and 4 streams; each allocates, launches and frees.

use std::time::Instant;

use kiln::DeviceRuntime;

use crate::Failure;
use crate::row::Table;
use crate::timing::Spread;
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
            table.add_in(
                "us",
                "m6",
                format!("kiln, {state}, {streams} streams of {KERNELS_PER_STREAM} kernels"),
                Spread::of(values),
            );
        }
    }
    Ok(())
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
            launch.on(stream).write(&buffer).value(CLOCKS);
            // SAFETY: the kernel touches nothing when its last argument is not negative.
            unsafe { launch.submit() }?;
        }
    }
    gpu.synchronize()?;
    Ok(start.elapsed().as_nanos() as f64 / 1e3)
}
