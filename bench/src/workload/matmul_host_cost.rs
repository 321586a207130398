//! Products of square matrices of `bf16` through kiln-libs, beside cuBLASLt called directly on the same memory: what a call costs the host (a part of
//! B1), and graphs of a hundred products (B5).

use std::sync::Arc;

use kiln::{DeviceRuntime, GpuRef, Graph, RuntimeConfig};
use kiln_driver::call::CallKind;
use kiln_driver::layer::{Counting, Counts, Layered};
use kiln_driver::{Command, Driver, FunctionId, Image, LaunchCommand, StreamId, StreamRequest, Vouched};
use kiln_libs::blas::{Blas, MatmulCall, Matrix};
use kiln_libs::rand::{Normal, Sampler};

use crate::Failure;
use crate::raw_driver::{self, Raw};
use crate::raw_graph::RawGraph;
use crate::raw_library::cublaslt::{LtProduct, ProductTypes};
use crate::result_table::Table;
use crate::timing::{Percentiles, in_turn, subject};
use crate::workload::launch::runtime;
use crate::workload::library_comparison::{TURNS, captured, check_equal, compare, recorded, replayed};

/// Rows and columns of the matrices.
const SIZES: [usize; 2] = [64, 1024];
/// Calls in a batch, few enough that the device's queue never makes the host wait, and batches.
const BATCH: usize = 50;
const BATCHES: usize = 100;
/// Products in a graph, replays in a batch, and batches.
const PRODUCTS: usize = 100;
const REPLAYS: usize = 5;
const REPLAY_BATCHES: usize = 50;
/// Calls and replays whose allocations are counted.
const COUNTED: usize = 100;

type Bf16 = half::bf16;

/// A product with its matrices.
struct Stage {
    gpu: DeviceRuntime,
    blas: Blas,
    n: usize,
    a: GpuRef<Bf16>,
    b: GpuRef<Bf16>,
    c: GpuRef<Bf16>,
}

impl Stage {
    fn new(gpu: DeviceRuntime, n: usize) -> Result<Self, Failure> {
        let fill = |seed| -> Result<GpuRef<Bf16>, Failure> {
            let numbers = gpu.allocate::<f32>(n * n)?;
            Sampler::new(&gpu).draw(seed).fill(&numbers, Normal { mean: 0.0, deviation: 1.0 })?;
            let rounded: Vec<Bf16> = numbers.download()?.into_iter().map(Bf16::from_f32).collect();
            Ok(gpu.upload(&rounded)?)
        };
        let (a, b, c) = (fill(1)?, fill(2)?, gpu.allocate(n * n)?);
        Ok(Self { blas: Blas::new(&gpu), gpu, n, a, b, c })
    }

    /// `C = A Bᵀ`.
    fn product(&self) -> MatmulCall<'_, Bf16, Bf16> {
        let n = self.n;
        let b = Matrix::new(&self.b, n, n).transposed();
        self.blas.matmul(Matrix::new(&self.a, n, n), b, Matrix::new(&self.c, n, n))
    }

    fn submit(&self) -> Result<(), Failure> {
        self.product().submit()?;
        Ok(())
    }

    /// The addresses of the same product as cuBLASLt stores matrices: `Cᵀ = B Aᵀ`, column after column.
    fn addresses(&self) -> [u64; 3] {
        [&self.b, &self.a, &self.c].map(|buffer| buffer.address().0)
    }

    fn result(&self) -> Result<Vec<f32>, Failure> {
        Ok(self.c.download()?.into_iter().map(Bf16::to_f32).collect())
    }

    fn settle(&self) -> Result<(), Failure> {
        self.gpu.synchronize()?;
        raw_driver::settle()
    }

    /// The same product by the library, after both gave the same result.
    fn direct(&self, raw: &Raw, stream: cudarc::driver::sys::CUstream) -> Result<LtProduct, Failure> {
        self.submit()?;
        let by_kiln = self.result()?;
        self.c.fill_bytes(0)?;
        self.settle()?;
        let direct = LtProduct::new(raw, ProductTypes::BF16, self.n)?;
        direct.queue(stream, self.addresses())?;
        raw_driver::synchronize(stream)?;
        // Numbers of bf16 have eight bits.
        check_equal("products", 0.01, &by_kiln, &self.result()?)?;
        Ok(direct)
    }
}

/// What a call costs the host: the library's function, kiln's driver without the runtime, and kiln.
pub(crate) fn submitted(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    let raw = Raw::new()?;
    for n in SIZES {
        let (stage, stream) = (Stage::new(runtime()?, n)?, raw.stream()?);
        let direct = stage.direct(&raw, stream)?;
        let untracked = Untracked::new(&stage, &raw)?;
        untracked.submit()?;
        let prepared = stage.product().prepare()?;
        stage.settle()?;
        let settle = || stage.settle();
        let subjects = [
            subject(BATCH, || direct.queue(stream, stage.addresses()), settle),
            subject(BATCH, || untracked.submit(), settle),
            subject(BATCH, || stage.submit(), settle),
            subject(
                BATCH,
                || prepared.submit(&stage.a, &stage.b, &stage.c).map(|_| ()).map_err(Into::into),
                settle,
            ),
        ];
        let [direct, untracked, kiln, kiln_prepared] = in_turn(BATCHES * repeats, subjects)?;
        let workload = format!("b1.bf16.{n}.call");
        table.add(&workload, "cublasLtMatmul", direct);
        table.add(&workload, "kiln's driver", untracked);
        table.add(&workload, "kiln", kiln);
        table.add(&workload, "kiln, prepared", kiln_prepared);
    }
    Ok(())
}

/// The product as a launch of the driver alone: without order, checks of shapes, and workspace from the heap.
struct Untracked {
    driver: Arc<dyn Driver>,
    function: FunctionId,
    stream: StreamId,
    arguments: Vec<u8>,
}

impl Untracked {
    fn new(stage: &Stage, raw: &Raw) -> Result<Self, Failure> {
        let driver = stage.gpu.driver().clone();
        let operation = stage.product().operation()?;
        let module = driver.load(&Image::Library(&operation.to_string()))?;
        let function = driver.function(module, operation.name())?;
        let mut words = stage.addresses().to_vec();
        words.push(1.0_f64.to_bits());
        if function.attributes.workspace_bytes > 0 {
            words.push(raw.memory(function.attributes.workspace_bytes as usize)?);
        }
        Ok(Self {
            function: function.id,
            stream: driver.create_stream(StreamRequest::New { priority: 0 })?,
            arguments: words.into_iter().flat_map(u64::to_ne_bytes).collect(),
            driver,
        })
    }

    fn submit(&self) -> Result<(), Failure> {
        let launch = LaunchCommand {
            function: self.function,
            grid: 1.into(),
            block: 1.into(),
            cluster: None,
            dynamic_shared_bytes: 0,
            cooperative: false,
            arguments: &self.arguments,
            declared: None,
            // SAFETY: the addresses are those of matrices and workspace that are as large as the operation says and live until the caller has waited.
            vouched: unsafe { Vouched::new() },
        };
        self.driver.submit(self.stream, &Command::Launch(launch))?;
        Ok(())
    }
}

/// B5: a graph of a hundred products, replayed.
pub(crate) fn replayed_by_the_hundred(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    let raw = Raw::new()?;
    for n in SIZES {
        let (stage, stream, event) = (Stage::new(runtime()?, n)?, raw.stream()?, raw.event()?);
        let direct = stage.direct(&raw, stream)?;
        let direct = RawGraph::capture(&raw, stream, PRODUCTS, || direct.queue(stream, stage.addresses()))?;
        let graph = recorded(&stage.gpu, PRODUCTS, |graph| Ok(stage.product().record(graph).map(drop)?))?;
        let replay = || graph.replay().map(drop).map_err(Failure::from);
        let settle = || stage.settle();
        let subjects = [subject(REPLAYS, || direct.launch(), settle), subject(REPLAYS, replay, settle)];
        let queued = in_turn(REPLAY_BATCHES * repeats, subjects)?;
        add(table, &format!("b5.{n}.queue"), queued);
        let subjects = [
            subject(1, || direct.launch().and_then(|()| raw_driver::poll(event, stream)), || Ok(())),
            subject(1, || Ok(graph.replay()?.wait()?), || Ok(())),
        ];
        add(table, &format!("b5.{n}.done"), in_turn(REPLAY_BATCHES * repeats, subjects)?);
        let subjects =
            vec![("cuBLASLt, captured", captured(&direct, 1)), ("kiln, replay", replayed(&graph, 1))];
        compare(table, &format!("b5.{n}.device"), TURNS, subjects)?;
        drop(graph);
        count(table, &raw, n)?;
    }
    Ok(())
}

fn add(table: &mut Table, workload: &str, [direct, kiln]: [Percentiles; 2]) {
    table.add(workload, "cuBLASLt, captured", direct);
    table.add(workload, "kiln, replay", kiln);
}

/// Counts allocations of calls and replays that are not the first: those that kiln asks the driver for, and the memory that is gone afterwards, which
/// would be the library's.
fn count(table: &mut Table, raw: &Raw, n: usize) -> Result<(), Failure> {
    let driver = Arc::new(Layered::new(kiln_cuda::CudaDevice::open(0)?, Counting::default()));
    let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default())?;
    let stage = Stage::new(gpu, n)?;
    let graph = recorded(&stage.gpu, PRODUCTS, |graph| Ok(stage.product().record(graph).map(drop)?))?;
    run(&stage, &graph)?;
    let (before, free) = (driver.layer().counts(), raw.free_bytes()?);
    run(&stage, &graph)?;
    let made = allocations(&driver.layer().counts().since(&before)) as f64;
    let gone = free.saturating_sub(raw.free_bytes()?) as f64;
    let workload = format!("b5.{n} warm");
    let subject = format!("kiln, {COUNTED} calls and {COUNTED} replays");
    table.add_in("calls", format!("{workload}, driver allocations"), &subject, exactly(made));
    table.add_in("bytes", format!("{workload}, memory gone"), &subject, exactly(gone));
    Ok(())
}

fn run(stage: &Stage, graph: &Graph) -> Result<(), Failure> {
    for _ in 0..COUNTED {
        stage.submit()?;
        graph.replay()?;
    }
    stage.settle()
}

/// Calls that allocate memory of the device or of the host.
fn allocations(counts: &Counts) -> u64 {
    let kinds =
        [CallKind::Reserve, CallKind::CreatePages, CallKind::Map, CallKind::Allocate, CallKind::AllocateHost];
    kinds.into_iter().map(|kind| counts.of(kind)).sum()
}

fn exactly(value: f64) -> Percentiles {
    Percentiles { p50: value, p99: value }
}
