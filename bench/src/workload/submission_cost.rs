//! L0: what a submission costs the host beside the driver, over a driver whose calls do nothing.
//!
//! A library stands in for libcuda, so no GPU is needed and none is used. Each operation is measured three times: with the caches left
//! alone; with a library that runs through as much code and data as the first caches hold, which is what a real driver does to code that
//! calls it; and with one that runs through as much data as the second hold, which is what a driver and busy neighbours do together. The time
//! inside of the library is taken off, and so is what the bare calls take.

use std::process::Command;
use std::ptr;
use std::sync::Arc;

use kiln::{DeviceRuntime, GpuRef, Graph, Kernel, Stream};
use kiln_cuda::CudaDevice;
use kiln_driver::{
    Access, Command as Work, Dim3, Driver, FunctionId, Image, LaunchCommand, StreamId, StreamRequest, Vouched,
};
use kiln_libs::blas::{Blas, Matrix, PreparedMatmul};
use serde_json::json;

use crate::Failure;
use crate::raw_driver::{self, KERNELS};
use crate::result_table::Table;
use crate::timing::Percentiles;
use crate::workload::fake_libcuda::{Caches, FakeLibcuda, Meter};
use crate::workload::launch::{Four, TemporaryRecording};

/// Launches of the graph that is replayed.
const NODES: usize = 10;
/// Buffers of the launch with many.
const MANY: usize = 32;
/// Rows and columns of the matrices of a product.
const SIDE: usize = 32;
/// Bytes of the pinned block, as in T2.
const PINNED_BYTES: usize = 1 << 20;
/// Bytes of the arguments of a launch with four buffers and a scalar.
const ARGUMENT_BYTES: usize = 36;

/// L0.
pub(crate) fn launches(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    let Some(library) = FakeLibcuda::compile()? else {
        table.note("l0 needs a C compiler and was left out");
        return Ok(());
    };
    let mut child = Command::new(std::env::current_exe()?);
    let output = library.stand_in(child.arg("--empty-driver").arg(repeats.to_string())).output()?;
    if !output.status.success() {
        return Err(format!("l0: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    table.add_peers(&String::from_utf8_lossy(&output.stdout))
}

/// Measures in this process, which has the library in place of libcuda, and prints a row a line.
#[expect(clippy::print_stdout, reason = "the process that started this one reads it")]
pub(crate) fn in_this_process(repeats: usize) -> Result<(), Failure> {
    let (subjects, meter) = (Subjects::new()?, Meter::find()?);
    let kinds = [
        (Caches::LeftAlone, "caches left alone"),
        (Caches::FirstDrivenOut, "first caches driven out"),
        (Caches::SecondDrivenOut, "second caches driven out"),
    ];
    for (kind, caches) in kinds {
        meter.set_caches(kind);
        for (workload, subject, Percentiles { p50, p99 }) in subjects.measure(&meter, repeats.max(1))? {
            let subject = format!("{subject}, {caches}");
            let row = json!({"workload": workload, "subject": subject, "p50": p50, "p99": p99, "unit": "ns"});
            println!("{row}");
        }
    }
    Ok(())
}

/// Does one operation over and over in this process, for tools that count what it executes and touches.
pub(crate) fn repeat(operation: &str, times: usize) -> Result<(), Failure> {
    let subjects = Subjects::new()?;
    let prepared = subjects.prepared()?;
    let mut turn = 0;
    for _ in 0..times {
        match operation {
            "launch" => subjects.launch()?,
            "many" => subjects.launch_many()?,
            "turns" => subjects.take_turn(&mut turn)?,
            "replay" => subjects.replay()?,
            "task" => subjects.prepare()?,
            "pinned" => subjects.pin()?,
            "product" => subjects.multiply()?,
            "recorded" => subjects.recorded.launch()?,
            "prepared" => subjects.multiply_prepared(&prepared)?,
            other => return Err(format!("no operation is called {other}").into()),
        }
    }
    Ok(())
}

/// What is measured.
struct Subjects {
    device: Arc<CudaDevice>,
    stream: StreamId,
    function: FunctionId,
    gpu: DeviceRuntime,
    four: Kernel,
    one: Kernel,
    many: Kernel,
    buffers: [GpuRef<f32>; 4],
    recorded: Four,
    /// Where it is recorded; removed at the end.
    _recording: TemporaryRecording,
    many_buffers: Vec<GpuRef<f32>>,
    leases: [Stream; 2],
    graph: Graph,
    blas: Blas,
}

type Figure = (&'static str, &'static str, Percentiles);

impl Subjects {
    fn new() -> Result<Self, Failure> {
        let device = CudaDevice::open(0)?;
        let module = device.load(&Image::Ptx(KERNELS))?;
        let gpu = DeviceRuntime::from_driver(device.clone(), kiln::RuntimeConfig::default())?;
        let kernel = |name| gpu.load_kernel(&Image::Ptx(KERNELS), name, None);
        let zeros = || gpu.zeros(1024);
        let buffers = [zeros()?, zeros()?, zeros()?, zeros()?];
        let (four, one, many) = (kernel("four")?, kernel("one")?, kernel("many")?);
        let recording = TemporaryRecording::new();
        let recorded = DeviceRuntime::from_driver(device.clone(), kiln::RuntimeConfig::default())?;
        recorded.trace(recording.path())?;
        let mut builder = gpu.graph();
        for _ in 0..NODES {
            let mut launch = builder.launch(&one);
            launch.grid(1).block(1);
            launch.read_write(&buffers[0]).value(0_i32);
            // SAFETY: the kernel touches nothing when its last argument is not negative.
            unsafe { launch.record() }?;
        }
        Ok(Self {
            stream: device.create_stream(StreamRequest::New { priority: 0 })?,
            function: device.function(module, "four")?.id,
            device,
            graph: builder.build()?,
            leases: [gpu.stream()?, gpu.stream()?],
            blas: Blas::new(&gpu),
            many_buffers: (0..MANY).map(|_| zeros()).collect::<Result<_, _>>()?,
            gpu,
            four,
            one,
            many,
            buffers,
            recorded: Four::new(recorded)?,
            _recording: recording,
        })
    }

    /// One after the other in each repeat, so that what disturbs the machine disturbs all of them.
    fn measure(&self, meter: &Meter, repeats: usize) -> Result<Vec<Figure>, Failure> {
        let mut turn = 0;
        let prepared = self.prepared()?;
        let mut spreads: [Vec<Percentiles>; 13] = Default::default();
        for _ in 0..repeats {
            let measured = [
                meter.time(|| raw_driver::launch(ptr::null_mut(), ptr::null_mut(), &[0; ARGUMENT_BYTES]))?,
                meter.time(|| self.launch_untracked())?,
                meter.time(|| self.launch())?,
                meter.time(|| self.launch_many())?,
                meter.time(bare_turn)?,
                meter.time(|| self.take_turn(&mut turn))?,
                meter.time(|| raw_driver::launch_graph(ptr::null_mut(), ptr::null_mut()))?,
                meter.time(|| self.replay())?,
                meter.time(|| self.prepare())?,
                meter.time(|| self.pin())?,
                meter.time(|| self.multiply())?,
                meter.time(|| self.recorded.launch())?,
                meter.time(|| self.multiply_prepared(&prepared))?,
            ];
            spreads.iter_mut().zip(measured).for_each(|(all, spread)| all.push(spread));
        }
        let [
            bare,
            untracked,
            launch,
            many,
            bare_turn,
            turn,
            bare_graph,
            graph,
            task,
            pinned,
            product,
            recorded,
            prepared,
        ] = spreads.map(|all| Percentiles::median(&all));
        let over = |bare: &Percentiles, all: Percentiles| Percentiles {
            p50: all.p50 - bare.p50,
            p99: all.p99 - bare.p99,
        };
        Ok(vec![
            ("l0.launch", "kiln's driver over the bare call", over(&bare, untracked)),
            ("l0.recorded", "kiln, recorded, over the same launch not recorded", over(&launch, recorded)),
            ("l0.launch", "kiln, 4 tracked buffers + scalar, the same", over(&bare, launch)),
            ("l0.many", "kiln, 32 tracked buffers, the same", over(&bare, many)),
            ("l0.turns", "kiln, two streams in turn, over bare calls", over(&bare_turn, turn)),
            ("l0.replay", "kiln, over the bare call", over(&bare_graph, graph)),
            ("l0.task", "kiln, task of 4 blocks without a kernel", task),
            ("l0.pinned", "kiln, pinned block from the pool", pinned),
            ("l0.product", "kiln, product with a workspace, over an empty call", over(&bare, product)),
            ("l0.product", "kiln, prepared product, the same", over(&bare, prepared)),
        ])
    }

    fn launch_untracked(&self) -> Result<(), Failure> {
        let one = Dim3::new(1, 1, 1);
        let driver: &dyn Driver = &*self.device;
        // SAFETY: the library in place of libcuda runs nothing.
        let vouched = unsafe { Vouched::new() };
        driver.submit(
            self.stream,
            &Work::Launch(LaunchCommand {
                function: self.function,
                grid: one,
                block: one,
                cluster: None,
                dynamic_shared_bytes: 0,
                cooperative: false,
                arguments: &[0; ARGUMENT_BYTES],
                declared: None,
                vouched,
            }),
        )?;
        Ok(())
    }

    fn launch(&self) -> Result<(), Failure> {
        let [a, b, c, d] = &self.buffers;
        let mut launch = self.gpu.launch(&self.four);
        launch.grid(1).block(1);
        launch.read_write(a).read(b).read(c).read(d).value(0_i32);
        // SAFETY: the kernel touches nothing when its last argument is not negative.
        unsafe { launch.submit() }?;
        Ok(())
    }

    fn launch_many(&self) -> Result<(), Failure> {
        let mut launch = self.gpu.launch(&self.many);
        launch.grid(1).block(1);
        for buffer in &self.many_buffers {
            launch.read(buffer);
        }
        // SAFETY: the kernel does nothing.
        unsafe { launch.submit() }?;
        Ok(())
    }

    fn take_turn(&self, turn: &mut usize) -> Result<(), Failure> {
        *turn ^= 1;
        let mut launch = self.gpu.launch(&self.one);
        launch.grid(1).block(1);
        launch.on(&self.leases[*turn]).read_write(&self.buffers[0]).value(0_i32);
        // SAFETY: the kernel touches nothing when its last argument is not negative.
        unsafe { launch.submit() }?;
        Ok(())
    }

    fn replay(&self) -> Result<(), Failure> {
        self.graph.replay()?;
        Ok(())
    }

    fn pin(&self) -> Result<(), Failure> {
        let _: () = drop(self.gpu.pinned_uninit::<u8>(PINNED_BYTES)?);
        Ok(())
    }

    fn multiply(&self) -> Result<(), Failure> {
        let [a, b, c, _] = &self.buffers;
        let matrix = |buffer| Matrix::new(buffer, SIDE, SIDE);
        self.blas.matmul(matrix(a), matrix(b), matrix(c)).submit()?;
        Ok(())
    }

    fn prepared(&self) -> Result<PreparedMatmul<'_, f32, f32>, Failure> {
        let [a, b, c, _] = &self.buffers;
        let matrix = |buffer| Matrix::new(buffer, SIDE, SIDE);
        Ok(self.blas.matmul(matrix(a), matrix(b), matrix(c)).prepare()?)
    }

    fn multiply_prepared(&self, prepared: &PreparedMatmul<'_, f32, f32>) -> Result<(), Failure> {
        let [a, b, c, _] = &self.buffers;
        prepared.submit(a, b, c)?;
        Ok(())
    }

    fn prepare(&self) -> Result<(), Failure> {
        let [a, b, c, d] = &self.buffers;
        let reads = [b, c, d].map(|buffer| buffer.used_as(Access::Read));
        let [b, c, d] = reads;
        let uses = [a.used_as(Access::ReadWrite), b, c, d];
        self.gpu.prepare_block_use(self.gpu.main_stream(), &uses)?.finish()?;
        Ok(())
    }
}

/// The calls of a launch on one of two streams that take turns.
fn bare_turn() -> Result<(), Failure> {
    raw_driver::wait(ptr::null_mut(), ptr::null_mut())?;
    raw_driver::launch(ptr::null_mut(), ptr::null_mut(), &[0; ARGUMENT_BYTES])?;
    raw_driver::record(ptr::null_mut(), ptr::null_mut())
}
