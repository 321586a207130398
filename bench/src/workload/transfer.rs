//! T1, T2: copies between host and device, and pinned memory from the pool.

use std::time::Instant;

use kiln::DeviceRuntime;

use crate::Failure;
use crate::raw_driver::{self, Raw};
use crate::result_table::Table;
use crate::timing::{Percentiles, batches};
use crate::workload::launch::runtime;

const BYTES: usize = 256 << 20;

pub(crate) fn pageable_and_pinned(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    let raw = Raw::new()?;
    let (device, stream, pinned) = (raw.memory(BYTES)?, raw.stream()?, raw.pinned(BYTES)?);
    let mut pageable = vec![1_u8; BYTES];
    let gpu = runtime()?;
    let buffer = gpu.zeros::<u8>(BYTES)?;
    let mut own = gpu.pinned::<u8>(BYTES)?;
    own.write()?.fill(1);
    let mut rows = [const { Vec::new() }; 8];
    for _ in 0..repeats {
        rows[0].push(rate(|| {
            raw_driver::upload(device, pageable.as_ptr().cast(), BYTES, stream)
                .and_then(|()| raw_driver::synchronize(stream))
        })?);
        rows[1].push(rate(|| Ok(buffer.upload(&pageable)?.wait()?))?);
        rows[2].push(rate(|| {
            raw_driver::download(pageable.as_mut_ptr().cast(), device, BYTES, stream)
                .and_then(|()| raw_driver::synchronize(stream))
        })?);
        rows[3].push(rate(|| Ok(buffer.download_into(&mut pageable)?))?);
        rows[4].push(rate(|| {
            raw_driver::upload(device, pinned, BYTES, stream).and_then(|()| raw_driver::synchronize(stream))
        })?);
        rows[5].push(rate(|| Ok(own.copy_to(&buffer)?.wait()?))?);
        rows[6].push(rate(|| {
            raw_driver::download(pinned, device, BYTES, stream).and_then(|()| raw_driver::synchronize(stream))
        })?);
        rows[7].push(rate(|| Ok(own.copy_from(&buffer)?.wait()?))?);
    }
    let names = [
        ("t1 pageable up", "raw copy"),
        ("t1 pageable up", "kiln upload"),
        ("t1 pageable down", "raw copy"),
        ("t1 pageable down", "kiln download"),
        ("t1 pinned up", "raw copy"),
        ("t1 pinned up", "kiln pinned copy"),
        ("t1 pinned down", "raw copy"),
        ("t1 pinned down", "kiln pinned copy"),
    ];
    for ((workload, subject), values) in names.into_iter().zip(rows) {
        table.add_in("GB/s", workload, subject, Percentiles::of(values));
    }
    raw.free_pinned(pinned)
}

/// Pageable copies with chunks of several sizes and several threads, and a download into memory that is not there yet.
pub(crate) fn chunks(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    let mut pageable = vec![1_u8; BYTES];
    for transfer_threads in [4, 8, 12] {
        for mib in [1, 2, 4, 8] {
            let config = kiln::RuntimeConfig {
                transfer_threads,
                transfer_chunk_bytes: mib << 20,
                ..Default::default()
            };
            let gpu = DeviceRuntime::from_driver(kiln_cuda::CudaDevice::open(0)?, config)?;
            let buffer = gpu.zeros::<u8>(BYTES)?;
            // The first of each makes the pinned blocks.
            buffer.upload(&pageable)?.wait()?;
            buffer.download_into(&mut pageable)?;
            let (mut up, mut down, mut fresh) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..repeats {
                up.push(rate(|| Ok(buffer.upload(&pageable)?.wait()?))?);
                down.push(rate(|| Ok(buffer.download_into(&mut pageable)?))?);
                fresh.push(rate(|| {
                    buffer.download()?;
                    Ok(())
                })?);
            }
            let subject = format!("kiln, {transfer_threads} threads, chunks of {mib} MiB");
            table.add_in("GB/s", "chunks up", &subject, Percentiles::of(up));
            table.add_in("GB/s", "chunks down", &subject, Percentiles::of(down));
            table.add_in("GB/s", "chunks down, fresh vector", &subject, Percentiles::of(fresh));
        }
    }
    Ok(())
}

/// T2: a pinned block of 1 MiB.
pub(crate) fn pinned_block(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    const MIB: usize = 1 << 20;
    let raw = Raw::new()?;
    let gpu = runtime()?;
    let (mut raws, mut pooled) = (Vec::new(), Vec::new());
    for _ in 0..repeats {
        raws.push(batches(20, 1, || raw.pinned(MIB).and_then(|at| raw.free_pinned(at)), || Ok(()))?);
        pooled.push(batches(
            400,
            100,
            || {
                let _: () = drop(gpu.pinned_uninit::<u8>(MIB)?);
                Ok::<(), Failure>(())
            },
            || Ok(()),
        )?);
    }
    table.add("t2", "raw cuMemHostAlloc + free, 1 MiB", Percentiles::median(&raws));
    table.add("t2", "kiln, pinned block from the pool", Percentiles::median(&pooled));
    Ok(())
}

/// Gigabytes per second.
fn rate(copy: impl FnOnce() -> Result<(), Failure>) -> Result<f64, Failure> {
    let start = Instant::now();
    copy()?;
    Ok(BYTES as f64 / start.elapsed().as_nanos() as f64)
}
