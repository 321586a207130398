//! When to record the event another stream waits for: on demand, after every submission, or as the stream's consumers suggest.
//!
//! Three programs show the two prices. Work that stays on its stream pays for every event that is not needed. A result that is consumed at once
//! needs its event either way. A result that is consumed while its stream already runs something long pays, on demand, with a wait for
//! that too, because the event is recorded behind it.

use std::time::Instant;

use kiln::order::Recording;
use kiln::{DeviceRuntime, GpuRef, Kernel, RuntimeConfig, Stream, Ticket};

use crate::Failure;
use crate::result_table::Table;
use crate::timing::{Percentiles, batches};
use crate::workload::launch::kernel;

const BATCH: usize = 100;
const BATCHES: usize = 200;
/// What the producer runs behind its result, in clocks of the device: about half a millisecond.
const LONG: i64 = 1_000_000;
/// Rounds before measuring, so that a stream that adapts has done so.
const WARM_UP: usize = 32;
const ROUNDS: usize = 50;

const MODES: [(&str, Recording); 3] =
    [("on demand", Recording::OnDemand), ("at once", Recording::AtOnce), ("adaptive", Recording::Adaptive)];

pub(crate) fn on_demand_and_at_once(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    let mut benches = Vec::new();
    for (name, recording) in MODES {
        benches.push((name, Bench::new(recording)?));
    }
    for (name, bench) in &benches {
        let spreads: Vec<_> = (0..repeats).map(|_| bench.staying()).collect::<Result<_, _>>()?;
        table.add("rec1", format!("kiln, {name}: work stays on its stream"), Percentiles::median(&spreads));
    }
    for (name, bench) in &benches {
        let spreads: Vec<_> = (0..repeats).map(|_| bench.turns()).collect::<Result<_, _>>()?;
        table.add("rec2", format!("kiln, {name}: two streams in turn"), Percentiles::median(&spreads));
    }
    for (name, bench) in &benches {
        let spreads: Vec<_> = (0..repeats).map(|_| bench.early()).collect::<Result<_, _>>()?;
        let what = format!("kiln, {name}: result consumed before long work");
        table.add_in("us", "rec3", what, Percentiles::median(&spreads));
    }
    Ok(())
}

struct Bench {
    gpu: DeviceRuntime,
    one: Kernel,
    spin: Kernel,
    result: GpuRef<f32>,
    scratch: GpuRef<f32>,
    streams: [Stream; 2],
}

impl Bench {
    fn new(recording: Recording) -> Result<Self, Failure> {
        let driver = kiln_cuda::CudaDevice::open(0)?;
        let gpu =
            DeviceRuntime::from_driver(driver, RuntimeConfig { recording, ..RuntimeConfig::default() })?;
        let (one, spin) = (kernel(&gpu, "one")?, kernel(&gpu, "spin")?);
        let (result, scratch) = (gpu.zeros(1024)?, gpu.zeros(1024)?);
        let streams = [gpu.stream()?, gpu.stream()?];
        gpu.synchronize()?;
        Ok(Self { gpu, one, spin, result, scratch, streams })
    }

    fn launch(&self, stream: &Stream) -> Result<Ticket, Failure> {
        let mut launch = self.gpu.launch(&self.one);
        launch.grid(1).block(1);
        launch.on(stream).read_write(&self.result).value(0_i32);
        // SAFETY: the kernel touches nothing when its last argument is not negative.
        Ok(unsafe { launch.submit() }?)
    }

    fn staying(&self) -> Result<Percentiles, Failure> {
        let [only, _] = &self.streams;
        batches(BATCHES, BATCH, || self.launch(only).map(drop), || Ok(self.gpu.synchronize()?))
    }

    fn turns(&self) -> Result<Percentiles, Failure> {
        let mut turn = 0;
        let step = || {
            turn ^= 1;
            self.launch(&self.streams[turn]).map(drop)
        };
        batches(BATCHES, BATCH, step, || Ok(self.gpu.synchronize()?))
    }

    /// Microseconds from the consumer's launch to its end, with long work behind what it consumes.
    fn early(&self) -> Result<Percentiles, Failure> {
        let [producer, consumer] = &self.streams;
        let mut values = Vec::with_capacity(ROUNDS);
        for round in 0..WARM_UP + ROUNDS {
            self.launch(producer)?;
            let mut long = self.gpu.launch(&self.spin);
            long.grid(1).block(1);
            long.on(producer).write(&self.scratch).value(LONG);
            // SAFETY: the kernel touches nothing when its last argument is not negative.
            unsafe { long.submit() }?;
            let start = Instant::now();
            self.launch(consumer)?.wait()?;
            if round >= WARM_UP {
                values.push(start.elapsed().as_nanos() as f64 / 1e3);
            }
            self.gpu.synchronize()?;
        }
        Ok(Percentiles::of(values))
    }
}
