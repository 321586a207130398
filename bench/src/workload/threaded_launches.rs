//! L4: eight threads that launch on separate streams and buffers.

use std::sync::Barrier;
use std::time::Instant;

use crate::Failure;
use crate::raw_driver::{self, Raw};
use crate::result_table::Table;
use crate::timing::Percentiles;
use crate::workload::launch::{kernel, runtime};

const THREADS: usize = 8;
const LAUNCHES: usize = 5_000;

pub(crate) fn eight(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    let raw = Raw::new()?;
    let gpu = runtime()?;
    let four = kernel(&gpu, "four")?;
    let (mut raws, mut tracked) = (Vec::new(), Vec::new());
    for _ in 0..repeats {
        raws.push(all_threads(|ready| {
            raw.enter()?;
            let (function, stream) = (raw.function("four")?, raw.stream()?);
            let mut packed = raw.memory(4096)?.to_ne_bytes().repeat(4);
            packed.extend(0_i32.to_ne_bytes());
            ready.wait();
            for _ in 0..LAUNCHES {
                raw_driver::launch(function, stream, &packed)?;
            }
            raw_driver::synchronize(stream)
        })?);
        tracked.push(all_threads(|ready| {
            let stream = gpu.stream()?;
            let [a, b, c, d] = [
                gpu.allocate_on::<f32>(&stream, 1024)?,
                gpu.allocate_on::<f32>(&stream, 1024)?,
                gpu.allocate_on::<f32>(&stream, 1024)?,
                gpu.allocate_on::<f32>(&stream, 1024)?,
            ];
            ready.wait();
            for _ in 0..LAUNCHES {
                let mut launch = gpu.launch(&four);
                launch.grid(1).block(1);
                launch.on(&stream).read_write(&a).read(&b).read(&c).read(&d).value(0_i32);
                // SAFETY: the kernel touches nothing when its last argument is not negative.
                unsafe { launch.submit() }?;
            }
            Ok(stream.synchronize()?)
        })?);
    }
    table.add("l4", "raw, 8 threads, per launch and thread", Percentiles::of(raws));
    table.add("l4", "kiln, 8 threads, per launch and thread", Percentiles::of(tracked));
    Ok(())
}

/// Nanoseconds from the moment all threads are ready until the last is done, per launch of one thread.
fn all_threads(work: impl Fn(&Barrier) -> Result<(), Failure> + Sync) -> Result<f64, Failure> {
    let ready = Barrier::new(THREADS + 1);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|_| scope.spawn(|| work(&ready).map_err(|failure| failure.to_string())))
            .collect();
        ready.wait();
        let start = Instant::now();
        for worker in workers {
            worker.join().map_err(|_| "a thread panicked")??;
        }
        Ok(start.elapsed().as_nanos() as f64 / LAUNCHES as f64)
    })
}
