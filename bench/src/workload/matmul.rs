//! B1: square matrix products through kiln-libs: what a call costs the host, and how long the device takes.
//!
//! `bench/peers/matmul.cu` measures cuBLASLt, and `bench/peers/matmul.py` PyTorch, in the same way: device time as the mean of products that are
//! queued one after the other between two events, submission as the time of a call while the device has work.

use std::time::{Duration, Instant};

use kiln::DeviceRuntime;
use kiln_libs::blas::{Blas, F8E4M3, Math, MatmulCall, Matrix, MatrixElement};
use kiln_libs::rand::{Bits, Sampler};

use crate::Failure;
use crate::row::Table;
use crate::timing::Percentiles;
use crate::workload::launch::runtime;

/// Rows and columns of all matrices.
const SIZES: [usize; 5] = [64, 512, 1024, 4096, 16_384];
/// Batches that are timed for each figure.
const BATCHES: usize = 7;
/// A batch takes about so long on the device.
const BATCH: Duration = Duration::from_millis(20);

pub(crate) fn products(table: &mut Table, _: usize) -> Result<(), Failure> {
    let gpu = runtime()?;
    for n in SIZES {
        measured::<half::bf16, half::bf16>(table, &gpu, ("bf16", n), Math::Ieee)?;
        measured::<f32, f32>(table, &gpu, ("f32", n), Math::Ieee)?;
        measured::<f32, f32>(table, &gpu, ("tf32", n), Math::Tf32)?;
        measured::<f64, f64>(table, &gpu, ("f64", n), Math::Ieee)?;
        measured::<F8E4M3, half::bf16>(table, &gpu, ("f8", n), Math::Ieee)?;
    }
    Ok(())
}

/// Matrices of one type and size. They hold random bits: what a product takes depends on how many bits change.
fn measured<T: MatrixElement, O: MatrixElement>(
    table: &mut Table,
    gpu: &DeviceRuntime,
    (name, n): (&str, usize),
    math: Math,
) -> Result<(), Failure> {
    let elements = n * n;
    let (a, b) = (gpu.allocate::<T>(elements)?, gpu.allocate::<T>(elements)?);
    let c = gpu.allocate::<O>(elements)?;
    for (seed, input) in [(1, &a), (2, &b)] {
        Sampler::new(gpu).draw(seed).fill(&input.cast::<u32>()?, Bits)?;
    }
    let blas = Blas::new(gpu);
    // Rows of both factors along k, which is what f8 needs.
    let product = || -> MatmulCall<'_, T, O> {
        let (a, b) = (Matrix::new(&a, n, n), Matrix::new(&b, n, n).transposed());
        blas.matmul(a, b, Matrix::new(&c, n, n)).math(math)
    };
    let rows = |table: &mut Table, subject: &str| -> Result<(), Failure> {
        product().submit()?.wait()?;
        let mut graph = gpu.graph();
        product().record(&mut graph)?;
        let alone = graph.build()?.replay_timed()?.wait()?.device;
        let calls = (BATCH.as_nanos() / alone.as_nanos().max(1)).clamp(2, 1000) as usize;
        let (mut submissions, mut times) = (Vec::new(), Vec::new());
        for _ in 0..BATCHES {
            let start = Instant::now();
            for _ in 0..calls.min(200) {
                product().submit()?;
            }
            submissions.push(start.elapsed().as_nanos() as f64 / calls.min(200) as f64);
            gpu.synchronize()?;
        }
        let mut graph = gpu.graph();
        for _ in 0..calls.min(100) {
            product().record(&mut graph)?;
        }
        let graph = graph.build()?;
        graph.replay()?.wait()?;
        for _ in 0..BATCHES {
            times.push(graph.replay_timed()?.wait()?.device.as_nanos() as f64 / calls.min(100) as f64);
        }
        table.add(format!("b1.{name}.{n}.device"), subject, Percentiles::of(times));
        table.add(format!("b1.{name}.{n}.submit"), subject, Percentiles::of(submissions));
        Ok(())
    };
    rows(table, "kiln")?;
    let tuned = product().tune()?;
    rows(table, if tuned.algorithm == 0 { "kiln, measured" } else { "kiln, another algorithm" })
}
