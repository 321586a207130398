//! F3: what it costs to sum memory, so that a block can be checked after a fault.

use std::sync::Arc;
use std::time::Instant;

use kiln_driver::{Driver, DriverExt, MemoryRequest, StreamRequest};
use kiln_isolate::{Checksum, ChecksumRequest};
use kiln_sim::{Machine, MachineConfig, PtxEngine};

use crate::Failure;
use crate::memory::Bench;
use crate::result_table::Table;
use crate::timing::Percentiles;

/// Sums for each repeat.
const SAMPLES: usize = 20;

/// F3.
pub(crate) fn summed(bench: &Bench, table: &mut Table) -> Result<(), Failure> {
    let (driver, sizes): (Arc<dyn Driver>, &[u64]) = if bench.is_cuda() {
        (kiln_cuda::CudaDevice::open(0)?, &[2 << 20, 64 << 20, 1 << 30, 8 << 30])
    } else {
        let config = MachineConfig::threaded().engine(Arc::new(PtxEngine::default()));
        (Machine::new(config).device(0)?, &[2 << 20])
    };
    let checksum = Checksum::load(&*driver)?;
    let stream = driver.create_stream(StreamRequest::New { priority: 0 })?;
    for bytes in sizes.iter().copied() {
        let memory = driver.allocate(MemoryRequest::Direct { bytes })?;
        let sums = driver.allocate(MemoryRequest::Direct { bytes: Checksum::chunks(bytes) * 8 })?;
        driver.fill(stream, memory.id.into(), 0x5A, bytes)?;
        driver.synchronize(stream)?;
        let it = ChecksumRequest {
            address: memory.address,
            bytes,
            sums: sums.id.into(),
            sums_address: sums.address,
        };
        let (mut rates, mut times) = (Vec::new(), Vec::new());
        for _ in 0..SAMPLES * bench.repeats {
            let begun = Instant::now();
            // SAFETY: both blocks are allocated with these sizes, freed below, and used by nothing else.
            unsafe { checksum.submit(&*driver, stream, &it) }?;
            driver.synchronize(stream)?;
            let spent_ns = begun.elapsed().as_nanos() as f64;
            rates.push(bytes as f64 / spent_ns);
            times.push(spent_ns / 1e3 / (bytes as f64 / f64::from(1 << 30)));
        }
        let size = format!("{} MiB", bytes >> 20);
        table.add_in(
            "GB/s",
            format!("f3 {size}"),
            "summed, launch and wait included",
            Percentiles::of(rates),
        );
        table.add_in(
            "us/GiB",
            format!("f3 {size} per GiB"),
            "summed, launch and wait included",
            Percentiles::of(times),
        );
        driver.free(memory.id, None)?;
        driver.free(sums.id, None)?;
    }
    Ok(())
}
