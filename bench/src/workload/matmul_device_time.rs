//! B1: how long the device takes for square matrix products through kiln-libs, beside cuBLASLt called directly.
//!
//! Both take turns in one process on the same memory, because the clock of a device moves with its temperature by more than the algorithms of a
//! library differ. `bench/peers/matmul.py` measures PyTorch in the same way: products in a graph, between two events.

use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::blas::{Blas, F8E4M3, Math, MatmulCall, Matrix, MatrixElement};
use kiln_libs::rand::{Bits, Sampler};

use crate::Failure;
use crate::raw_driver::Raw;
use crate::raw_graph::RawGraph;
use crate::raw_library::cublaslt::{LtProduct, ProductTypes};
use crate::result_table::Table;
use crate::timing::Percentiles;
use crate::workload::launch::runtime;
use crate::workload::library_comparison::{TURNS, calls_for, captured, compare, recorded, replayed};

/// Rows and columns of all matrices.
const SIZES: [usize; 5] = [64, 512, 1024, 4096, 16_384];
/// Algorithms that cuBLASLt is asked for, as kiln asks for.
const ALGORITHMS: usize = 16;
/// Turns in which the fastest of them is looked for.
const SEARCH_TURNS: usize = 5;

pub(crate) fn products(table: &mut Table, _: usize) -> Result<(), Failure> {
    let (gpu, raw) = (runtime()?, Raw::new()?);
    for n in SIZES {
        let at = Place { gpu: &gpu, raw: &raw, n };
        at.measure::<half::bf16, half::bf16>(table, "bf16", Math::Ieee, ProductTypes::BF16)?;
        at.measure::<f32, f32>(table, "f32", Math::Ieee, ProductTypes::F32)?;
        at.measure::<f32, f32>(table, "tf32", Math::Tf32, ProductTypes::TF32)?;
        at.measure::<f64, f64>(table, "f64", Math::Ieee, ProductTypes::F64)?;
        at.measure::<F8E4M3, half::bf16>(table, "f8", Math::Ieee, ProductTypes::F8)?;
    }
    Ok(())
}

/// Where products are measured, and their size.
struct Place<'a> {
    gpu: &'a DeviceRuntime,
    raw: &'a Raw,
    n: usize,
}

impl Place<'_> {
    /// Products of one type. The matrices hold random bits: what a product takes depends on how many bits change.
    fn measure<T: MatrixElement, O: MatrixElement>(
        &self,
        table: &mut Table,
        name: &str,
        math: Math,
        types: ProductTypes,
    ) -> Result<(), Failure> {
        let (gpu, n) = (self.gpu, self.n);
        let factor = |seed| -> Result<GpuRef<T>, Failure> {
            let factor = gpu.allocate::<T>(n * n)?;
            Sampler::new(gpu).draw(seed).fill(&factor.cast::<u32>()?, Bits)?;
            Ok(factor)
        };
        let (a, b, c) = (factor(1)?, factor(2)?, gpu.allocate::<O>(n * n)?);
        let blas = Blas::new(gpu);
        // Rows of both factors along k, which is what f8 needs.
        let product = || -> MatmulCall<'_, T, O> {
            let (a, b) = (Matrix::new(&a, n, n), Matrix::new(&b, n, n).transposed());
            blas.matmul(a, b, Matrix::new(&c, n, n)).math(math)
        };
        product().submit()?.wait()?;
        let alone = recorded(gpu, 1, |graph| Ok(product().record(graph).map(drop)?))?;
        let calls = calls_for(alone.replay_timed()?.wait()?.device.as_nanos() as f64);
        let untuned = recorded(gpu, calls, |graph| Ok(product().record(graph).map(drop)?))?;
        product().tune()?;
        let tuned = recorded(gpu, calls, |graph| Ok(product().record(graph).map(drop)?))?;
        // As cuBLASLt stores matrices: Cᵀ = B Aᵀ, column after column.
        let addresses = [b.address().0, a.address().0, c.address().0];
        let direct = self.captured(types, addresses, calls)?;
        let fastest = fastest(&direct)?;
        let first = direct.first().ok_or("cuBLASLt proposes no algorithm")?;
        let subjects = vec![
            ("cuBLASLt", captured(first, calls)),
            ("cuBLASLt, fastest of 16", captured(fastest, calls)),
            ("kiln", replayed(&untuned, calls)),
            ("kiln, tuned", replayed(&tuned, calls)),
        ];
        compare(table, &format!("b1.{name}.{n}.device"), TURNS, subjects)
    }

    /// The products of the library, with each algorithm that it proposes.
    fn captured(
        &self,
        types: ProductTypes,
        addresses: [u64; 3],
        calls: usize,
    ) -> Result<Vec<RawGraph>, Failure> {
        let stream = self.raw.stream()?;
        let proposed = LtProduct::proposed(self.raw, types, self.n, ALGORITHMS)?;
        let mut graphs = Vec::with_capacity(proposed.len());
        for direct in &proposed {
            // The first call loads the kernels, which a capture refuses.
            direct.queue(stream, addresses)?;
            crate::raw_driver::synchronize(stream)?;
            graphs.push(RawGraph::capture(self.raw, stream, calls, || direct.queue(stream, addresses))?);
        }
        Ok(graphs)
    }
}

/// The graph with the shortest median over a few turns.
fn fastest(graphs: &[RawGraph]) -> Result<&RawGraph, Failure> {
    let mut times = vec![Vec::with_capacity(SEARCH_TURNS); graphs.len()];
    for _ in 0..SEARCH_TURNS {
        for (graph, times) in graphs.iter().zip(&mut times) {
            times.push(graph.run_timed()?);
        }
    }
    let medians = times.into_iter().map(|times| Percentiles::of(times).p50);
    let best = graphs.iter().zip(medians).min_by(|(_, one), (_, other)| one.total_cmp(other));
    best.map(|(graph, _)| graph).ok_or_else(|| "cuBLASLt proposes no algorithm".into())
}
