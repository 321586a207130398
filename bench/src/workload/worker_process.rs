//! F2, and the launch, copy and wait workloads, with the device in this process and in a worker, side by side.

use std::sync::Arc;
use std::time::Instant;

use kiln::{DeviceRuntime, RuntimeConfig};
use kiln_driver::{
    Command, Driver, DriverExt, Function, Image, LaunchCommand, MemoryRequest, StreamRequest, Vouched,
};
use kiln_isolate::{DeviceSpec, IsolatedDevice, IsolationConfig};
use kiln_sim::{Machine, MachineConfig, PtxEngine};

use crate::Failure;
use crate::memory::Bench;
use crate::raw_driver::KERNELS;
use crate::result_table::Table;
use crate::timing::{Percentiles, batches};
use crate::workload::awaited_launch::awaited_on;
use crate::workload::launch::Four;

const BATCH: usize = 100;
const BATCHES: usize = 400;
/// Bytes of a copy; less where no hardware moves them.
const COPY_BYTES: usize = 256 << 20;
const SIMULATED_COPY_BYTES: usize = 8 << 20;

/// Where the device's driver runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    InProcess,
    InWorker,
}

impl Side {
    const BOTH: [Self; 2] = [Self::InProcess, Self::InWorker];

    fn name(self) -> &'static str {
        match self {
            Self::InProcess => "in process",
            Self::InWorker => "in a worker",
        }
    }

    fn open(self, bench: &Bench) -> Result<Arc<dyn Driver>, Failure> {
        Ok(match self {
            Self::InWorker => IsolatedDevice::open(IsolationConfig::new(backend(bench)))?,
            Self::InProcess if bench.is_cuda() => kiln_cuda::CudaDevice::open(0)?,
            Self::InProcess => {
                Machine::new(MachineConfig::threaded().engine(Arc::new(PtxEngine::default()))).device(0)?
            }
        })
    }

    fn runtime(self, bench: &Bench) -> Result<DeviceRuntime, Failure> {
        Ok(DeviceRuntime::from_driver(self.open(bench)?, RuntimeConfig::default())?)
    }
}

/// What a worker opens for this bench.
pub(crate) fn backend(bench: &Bench) -> DeviceSpec {
    if bench.is_cuda() { DeviceSpec::cuda(0) } else { DeviceSpec::simulated(1) }
}

/// A launch of one thread.
pub(crate) fn launch<'a>(function: &Function, arguments: &'a [u8]) -> LaunchCommand<'a> {
    LaunchCommand {
        function: function.id,
        grid: 1.into(),
        block: 1.into(),
        cluster: None,
        dynamic_shared_bytes: 0,
        cooperative: false,
        arguments,
        declared: None,
        // SAFETY: the kernel `one` writes to the address it is given if its last argument is negative, and nothing
        // otherwise; who passes a negative one means to lose the device.
        vouched: unsafe { Vouched::new() },
    }
}

/// F2: a launch as the caller of the driver interface sees it.
pub(crate) fn driver_launch(bench: &Bench, table: &mut Table) -> Result<(), Failure> {
    for side in Side::BOTH {
        let driver = side.open(bench)?;
        let module = driver.load(&Image::Ptx(KERNELS))?;
        let function = driver.function(module, "one")?;
        let stream = driver.create_stream(StreamRequest::New { priority: 0 })?;
        let memory = driver.allocate(MemoryRequest::Direct { bytes: 64 })?;
        let mut arguments = memory.address.0.to_le_bytes().to_vec();
        arguments.extend(0_i32.to_le_bytes());
        let submit = || driver.submit(stream, &Command::Launch(launch(&function, &arguments))).map(drop);
        let (mut queued, mut waited) = (Vec::new(), Vec::new());
        for _ in 0..bench.repeats {
            queued.push(batches(BATCHES, BATCH, submit, || driver.synchronize(stream))?);
            waited.push(batches(
                BATCHES,
                1,
                || submit().and_then(|()| driver.synchronize(stream)),
                || Ok(()),
            )?);
        }
        let name = side.name();
        table.add("f2", format!("a launch through `Driver`, {name}"), Percentiles::median(&queued));
        table.add("f2 there and back", format!("a launch and its end, {name}"), Percentiles::median(&waited));
    }
    Ok(())
}

/// L1 with the runtime on either side.
pub(crate) fn four_buffers(bench: &Bench, table: &mut Table) -> Result<(), Failure> {
    for side in Side::BOTH {
        let four = Four::new(side.runtime(bench)?)?;
        let spreads = (0..bench.repeats).map(|_| four.measure()).collect::<Result<Vec<_>, _>>()?;
        let subject = format!("kiln, 4 tracked buffers + scalar, {}", side.name());
        table.add("l1 isolated", subject, Percentiles::median(&spreads));
    }
    Ok(())
}

/// A1 with the runtime on either side.
pub(crate) fn awaited(bench: &Bench, table: &mut Table) -> Result<(), Failure> {
    Side::BOTH.into_iter().try_for_each(|side| {
        awaited_on(side.runtime(bench)?, &format!(" {}", side.name()), table, bench.repeats)
    })
}

/// T1 with the runtime on either side.
pub(crate) fn copies(bench: &Bench, table: &mut Table) -> Result<(), Failure> {
    let bytes = if bench.is_cuda() { COPY_BYTES } else { SIMULATED_COPY_BYTES };
    let mut pageable = vec![1_u8; bytes];
    for side in Side::BOTH {
        let gpu = side.runtime(bench)?;
        let buffer = gpu.zeros::<u8>(bytes)?;
        let mut pinned = gpu.pinned::<u8>(bytes)?;
        pinned.write()?.fill(1);
        let mut rows = [const { Vec::new() }; 4];
        for _ in 0..bench.repeats {
            rows[0].push(rate(bytes, || Ok(buffer.upload(&pageable)?.wait()?))?);
            rows[1].push(rate(bytes, || Ok(buffer.download_into(&mut pageable)?))?);
            rows[2].push(rate(bytes, || Ok(pinned.copy_to(&buffer)?.wait()?))?);
            rows[3].push(rate(bytes, || Ok(pinned.copy_from(&buffer)?.wait()?))?);
        }
        let names = ["pageable up", "pageable down", "pinned up", "pinned down"];
        for (name, values) in names.into_iter().zip(rows) {
            table.add_in(
                "GB/s",
                format!("t1 isolated {name}"),
                format!("kiln, {}", side.name()),
                Percentiles::of(values),
            );
        }
    }
    Ok(())
}

/// Gigabytes per second.
fn rate(bytes: usize, copy: impl FnOnce() -> Result<(), Failure>) -> Result<f64, Failure> {
    let start = Instant::now();
    copy()?;
    Ok(bytes as f64 / start.elapsed().as_nanos() as f64)
}
