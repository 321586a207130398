//! L1, L3, L5: what a tracked launch costs over the raw call.

use kiln::telemetry::DeviceTimes;
use kiln::trace::{RecordingReader, SubmissionKind, TraceEvent};
use kiln::{DeviceRuntime, GpuRef, Kernel};
use kiln_driver::{Access, Image};

use crate::Failure;
use crate::raw_driver::{self, KERNELS, Raw};
use crate::result_table::Table;
use crate::timing::{Percentiles, Subject, batches, in_turn, subject};
use crate::workload::recorded_work;

const BATCH: usize = 100;
const BATCHES: usize = 400;

/// The runtime of the first device.
pub(crate) fn runtime() -> Result<DeviceRuntime, Failure> {
    let driver = kiln_cuda::CudaDevice::open(0)?;
    Ok(DeviceRuntime::from_driver(driver, kiln::RuntimeConfig::default())?)
}

pub(crate) fn kernel(gpu: &DeviceRuntime, name: &str) -> Result<Kernel, Failure> {
    Ok(gpu.load_kernel(&Image::Ptx(KERNELS), name, None)?)
}

/// L1: four buffers and a scalar on one stream.
pub(crate) fn four_buffers(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    let raw = Raw::new()?;
    let (function, stream) = (raw.function("four")?, raw.stream()?);
    let mut packed = Vec::new();
    for _ in 0..4 {
        packed.extend(raw.memory(4096)?.to_ne_bytes());
    }
    packed.extend(0_i32.to_ne_bytes());

    let four = Four::new(runtime()?)?;
    let raw = subject(
        BATCH,
        move || raw_driver::launch(function, stream, &packed),
        move || raw_driver::synchronize(stream),
    );
    let kiln = subject(BATCH, || four.launch(), || Ok(four.gpu.synchronize()?));
    let [raw, kiln, cudarc] = in_turn(BATCHES * repeats, [raw, kiln, cudarc_four()?])?;
    table.add("l1", "raw cuLaunchKernel, packed arguments", raw);
    table.add("l1", "kiln, 4 tracked buffers + scalar", kiln);
    table.add("l1", "cudarc, 4 tracked buffers + scalar", cudarc);
    Ok(())
}

/// L6: what recording adds to a launch with four buffers and a scalar.
pub(crate) fn recorded(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    let file = TemporaryRecording::new();
    let (plain, recorded) = (Four::new(runtime()?)?, Four::new(runtime()?)?);
    recorded.gpu.trace(file.path())?;
    let one = subject(BATCH, || plain.launch(), || Ok(plain.gpu.synchronize()?));
    let other = subject(BATCH, || recorded.launch(), || Ok(recorded.gpu.synchronize()?));
    let [plain_time, recorded_time] = in_turn(BATCHES * repeats, [one, other])?;
    let (p50, p99) = (recorded_time.p50 - plain_time.p50, recorded_time.p99 - plain_time.p99);
    let totals = recorded.gpu.flush_trace().unwrap_or_default();
    table.add("l6", "kiln, 4 tracked buffers + scalar", plain_time);
    table.add("l6", "the same, recorded", recorded_time);
    table.add("l6", "the difference", Percentiles { p50, p99 });
    table.note(format!("l6: {} events were written, {} dropped", totals.written, totals.dropped));
    drop(recorded);
    for times in [DeviceTimes::Events { every: 1 }, DeviceTimes::Events { every: 16 }] {
        measured(table, repeats, times)?;
    }
    recorded_work::without_cupti(table, repeats)?;
    measured(table, repeats, DeviceTimes::Cupti)?;
    recorded_work::with_cupti(table, repeats)
}

/// L6: the same where the device's times are taken, one way or another. CUPTI comes last: a process pays for it to its end.
fn measured(table: &mut Table, repeats: usize, times: DeviceTimes) -> Result<(), Failure> {
    let file = TemporaryRecording::new();
    let four = Four::new(runtime()?)?;
    four.gpu.trace_with(file.path(), times)?;
    if let Some(why) = four.gpu.trace_times().and_then(|taken| taken.why_not_as_asked) {
        table.note(format!("l6: no times by {times}: {why}"));
        return Ok(());
    }
    let launches = subject(BATCH, || four.launch(), || Ok(four.gpu.synchronize()?));
    let [time] = in_turn(BATCHES * repeats, [launches])?;
    table.add("l6", format!("recorded, times by {times}"), time);
    drop(four);
    let mut reader = RecordingReader::new(std::io::BufReader::new(std::fs::File::open(file.path())?))?;
    let (mut kernels, mut timed, mut ran_ns) = (0_u64, 0_u64, 0_u64);
    while let Some(event) = reader.next_event()? {
        if let TraceEvent::Submission(work) = event
            && work.kind == SubmissionKind::Kernel
        {
            kernels += 1;
            timed += u64::from(work.device.is_some());
            ran_ns += work.device.map_or(0, |span| span.ns());
        }
    }
    let mean = ran_ns.checked_div(timed).unwrap_or_default();
    table.note(format!("l6: by {times}, {timed} of {kernels} kernels have a time, {mean} ns on average"));
    Ok(())
}

/// The name of a recording that is removed at the end.
pub(crate) struct TemporaryRecording(std::path::PathBuf);

impl TemporaryRecording {
    pub(crate) fn new() -> Self {
        Self(std::env::temp_dir().join(format!("kiln-bench-{}.kiln", std::process::id())))
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        &self.0
    }
}

impl Drop for TemporaryRecording {
    fn drop(&mut self) {
        // A file that cannot be removed lies in the temporary folder.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A kernel with four buffers.
pub(crate) struct Four {
    gpu: DeviceRuntime,
    kernel: Kernel,
    buffers: [GpuRef<f32>; 4],
}

impl Four {
    pub(crate) fn new(gpu: DeviceRuntime) -> Result<Self, Failure> {
        let zeros = || gpu.zeros(1024);
        let buffers = [zeros()?, zeros()?, zeros()?, zeros()?];
        Ok(Self { kernel: kernel(&gpu, "four")?, buffers, gpu })
    }

    /// Nanoseconds of a launch.
    pub(crate) fn measure(&self) -> Result<Percentiles, Failure> {
        batches(BATCHES, BATCH, || self.launch(), || Ok(self.gpu.synchronize()?))
    }

    pub(crate) fn launch(&self) -> Result<(), Failure> {
        let [a, b, c, d] = &self.buffers;
        let mut launch = self.gpu.launch(&self.kernel);
        launch.grid(1).block(1);
        launch.read_write(a).read(b).read(c).read(d).value(0_i32);
        // SAFETY: the kernel touches nothing when its last argument is not negative.
        unsafe { launch.submit() }?;
        Ok(())
    }
}

fn cudarc_four() -> Result<Subject<'static>, Failure> {
    use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    let settled = stream.clone();
    let module = context.load_module(cudarc::nvrtc::Ptx::from_src(KERNELS))?;
    let function = module.load_function("four")?;
    let mut a = stream.alloc_zeros::<f32>(1024)?;
    let (b, c, d) = (
        stream.alloc_zeros::<f32>(1024)?,
        stream.alloc_zeros::<f32>(1024)?,
        stream.alloc_zeros::<f32>(1024)?,
    );
    let config = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
    let launch = move || {
        let mut launch = stream.launch_builder(&function);
        launch.arg(&mut a).arg(&b).arg(&c).arg(&d).arg(&0_i32);
        // SAFETY: the kernel touches nothing when its last argument is not negative.
        unsafe { launch.launch(config) }?;
        Ok(())
    };
    Ok(subject(BATCH, launch, move || Ok(settled.synchronize()?)))
}

/// L3: 32 buffers read by one launch.
pub(crate) fn many_buffers(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    let raw = Raw::new()?;
    let (function, stream) = (raw.function("many")?, raw.stream()?);
    let packed: Vec<u8> = (0..32).flat_map(|_| 0_u64.to_ne_bytes()).collect();
    let gpu = runtime()?;
    let many = kernel(&gpu, "many")?;
    let buffers: Vec<GpuRef<f32>> = (0..32).map(|_| gpu.zeros(16)).collect::<Result<_, _>>()?;
    let launch = || {
        let mut launch = gpu.launch(&many);
        launch.grid(1).block(1);
        for buffer in &buffers {
            launch.read(buffer);
        }
        // SAFETY: the kernel does nothing.
        unsafe { launch.submit() }?;
        Ok(())
    };
    let raw = subject(
        BATCH,
        move || raw_driver::launch(function, stream, &packed),
        move || raw_driver::synchronize(stream),
    );
    let kiln = subject(BATCH, launch, || Ok(gpu.synchronize()?));
    let [raw, kiln] = in_turn(BATCHES * repeats, [raw, kiln])?;
    table.add("l3", "raw cuLaunchKernel, 32 pointers", raw);
    table.add("l3", "kiln, 32 tracked buffers", kiln);
    Ok(())
}

/// L5: a tracked task without a kernel.
pub(crate) fn no_kernel(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    let gpu = runtime()?;
    let buffers: Vec<GpuRef<f32>> = (0..4).map(|_| gpu.zeros(16)).collect::<Result<_, _>>()?;
    let stream = gpu.main_stream();
    let task = || {
        let uses = [
            buffers[0].used_as(Access::ReadWrite),
            buffers[1].used_as(Access::Read),
            buffers[2].used_as(Access::Read),
            buffers[3].used_as(Access::Read),
        ];
        gpu.prepare_block_use(stream, &uses)?.finish()?;
        Ok(())
    };
    let [kiln] = in_turn(BATCHES * repeats, [subject(BATCH, task, || Ok(()))])?;
    table.add("l5", "kiln, task of 4 blocks without a kernel", kiln);
    Ok(())
}
