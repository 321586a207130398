//! The calls of libraries that are measured, each with separate buffers.
//!
//! They are as large as programs have them on a GPU, and small on the simulated device, which computes them on the host.

use half::{bf16, f16};
use kiln::{DeviceRuntime, GpuRef};
use kiln_driver::DeviceKind;
use kiln_libs::Result;
use kiln_libs::blas::{Blas, Matrix};
use kiln_libs::dnn::{AttentionTensor, Dnn};
use kiln_libs::elementwise::{ElementNumber, Elementwise};
use kiln_libs::fft::Fft;
use kiln_libs::prims::{Primitives, ScanOperator};
use kiln_libs::rand::{Bits, Normal, Sampler, Uniform};
use kiln_libs::solve::{Solve, Triangle};
use kiln_libs::sparse::{CsrMatrix, Determinism, Sparse};

use super::Workload;

/// A call that can be made again and again, and how large it is.
pub(super) struct MeasuredCall {
    pub(super) name: String,
    pub(super) call: Box<dyn Fn() -> Result<()>>,
}

/// Elements of a row of the sparse matrix.
const ROW_ELEMENTS: usize = 8;
/// Elements of a head of attention.
const HEAD: usize = 64;

impl MeasuredCall {
    fn new(name: String, call: impl Fn() -> Result<()> + 'static) -> Self {
        Self { name, call: Box::new(call) }
    }

    /// The call of a workload on a device; none for workloads that allocate memory. Nothing is queued but what fills its buffers.
    pub(super) fn of(workload: Workload, gpu: &DeviceRuntime) -> Option<Result<Self>> {
        let sizes = |on_gpu: usize, simulated: usize| {
            if gpu.info().kind == DeviceKind::Simulated { simulated } else { on_gpu }
        };
        Some(match workload {
            Workload::L1 => Self::product::<f32>(gpu, "f32", sizes(4096, 48)),
            Workload::L2 => Self::product::<bf16>(gpu, "bf16", sizes(4096, 48)),
            Workload::L3 => Self::transform(gpu, sizes(1 << 20, 1 << 10)),
            Workload::L4 => Self::sort(gpu, sizes(1 << 24, 1 << 12)),
            Workload::L5 => Self::scan(gpu, sizes(1 << 24, 1 << 12)),
            Workload::L6 => Self::normals(gpu, sizes(1 << 24, 1 << 12)),
            Workload::L7 => Self::sparse_product(gpu, sizes(1 << 20, 1 << 9)),
            Workload::L8 => Self::cholesky(gpu, sizes(2048, 24)),
            Workload::L9 => Self::attention(gpu, sizes(2048, 16)),
            _ => return None,
        })
    }

    fn product<T: ElementNumber + kiln_libs::blas::MatrixElement>(
        gpu: &DeviceRuntime,
        element: &str,
        n: usize,
    ) -> Result<Self> {
        let [a, b] = [numbers::<T>(gpu, 1, n * n)?, numbers::<T>(gpu, 2, n * n)?];
        let (c, blas) = (gpu.allocate::<T>(n * n)?, Blas::new(gpu));
        Ok(Self::new(format!("blas.matmul {element} {n}"), move || {
            let [a, b, c] = [&a, &b, &c].map(|buffer| Matrix::new(buffer, n, n));
            blas.matmul(a, b, c).submit().map(drop)
        }))
    }

    fn transform(gpu: &DeviceRuntime, n: usize) -> Result<Self> {
        let signal = numbers::<f32>(gpu, 3, 2 * n)?.cast::<[f32; 2]>()?;
        let (spectrum, fft) = (gpu.allocate::<[f32; 2]>(n)?, Fft::new(gpu));
        Ok(Self::new(format!("fft.transform f32 {n}"), move || {
            fft.transform(&[n]).forward(&signal, &spectrum).submit().map(drop)
        }))
    }

    fn sort(gpu: &DeviceRuntime, n: usize) -> Result<Self> {
        let (keys, sorted) = (gpu.allocate::<u32>(n)?, gpu.allocate::<u32>(n)?);
        Sampler::new(gpu).draw(4).fill(&keys, Bits)?;
        let prims = Primitives::new(gpu);
        let call = move || prims.sort(&keys, &sorted).submit().map(drop);
        Ok(Self::new(format!("prims.sort u32 {n}"), call))
    }

    fn scan(gpu: &DeviceRuntime, n: usize) -> Result<Self> {
        let (values, sums) = (gpu.allocate::<u32>(n)?, gpu.allocate::<u32>(n)?);
        Sampler::new(gpu).draw(5).fill(&values, Bits)?;
        let prims = Primitives::new(gpu);
        Ok(Self::new(format!("prims.scan u32 {n}"), move || {
            prims.scan_inclusive(&values, ScanOperator::Sum, &sums).submit().map(drop)
        }))
    }

    fn normals(gpu: &DeviceRuntime, n: usize) -> Result<Self> {
        let (values, sampler) = (gpu.allocate::<f32>(n)?, Sampler::new(gpu));
        let call = move || sampler.draw(6).fill(&values, Normal { mean: 0.0, deviation: 1.0 }).map(drop);
        Ok(Self::new(format!("rand.normal f32 {n}"), call))
    }

    /// A band matrix.
    fn sparse_product(gpu: &DeviceRuntime, n: usize) -> Result<Self> {
        let of_row = |row: usize| (0..ROW_ELEMENTS.min(n)).map(move |at| ((row + at) % n) as i32);
        let indices: Vec<i32> = (0..n)
            .flat_map(|row| {
                let mut columns: Vec<i32> = of_row(row).collect();
                columns.sort_unstable();
                columns
            })
            .collect();
        let offsets: Vec<i32> = (0..=n).map(|row| (row * ROW_ELEMENTS.min(n)) as i32).collect();
        let values = vec![0.5_f32; indices.len()];
        let a = CsrMatrix::<f32>::upload(gpu, (n, n), &offsets, &indices, &values)?;
        let (x, y, sparse) = (numbers::<f32>(gpu, 7, n)?, gpu.allocate::<f32>(n)?, Sparse::new(gpu));
        Ok(Self::new(format!("sparse.spmv f32 {n}"), move || {
            sparse.spmv(Determinism::Any, 1.0, &a, &x, None, &y).submit().map(drop)
        }))
    }

    /// Of the identity, whose factor is itself: the call can be made again without a copy.
    fn cholesky(gpu: &DeviceRuntime, n: usize) -> Result<Self> {
        let identity: Vec<f64> = (0..n * n).map(|at| if at % (n + 1) == 0 { 1.0 } else { 0.0 }).collect();
        let (a, solve) = (gpu.upload(&identity)?, Solve::new(gpu));
        Ok(Self::new(format!("solve.cholesky f64 {n}"), move || {
            solve.cholesky(Matrix::new(&a, n, n), Triangle::Lower).submit().map(drop)
        }))
    }

    fn attention(gpu: &DeviceRuntime, positions: usize) -> Result<Self> {
        let heads = if gpu.info().kind == DeviceKind::Simulated { 2 } else { 16 };
        let len = heads * positions * HEAD;
        let [q, k, v] = [numbers::<f16>(gpu, 8, len)?, numbers(gpu, 9, len)?, numbers(gpu, 10, len)?];
        let (o, dnn) = (gpu.allocate::<f16>(len)?, Dnn::new(gpu));
        Ok(Self::new(format!("dnn.attention f16 {positions}"), move || {
            let tensor = |buffer| AttentionTensor::new(buffer, [1, heads, positions, HEAD]);
            dnn.attention(tensor(&q), tensor(&k), tensor(&v), tensor(&o)).causal().submit().map(drop)
        }))
    }
}

/// Numbers from 0 to 1.
fn numbers<T: ElementNumber>(gpu: &DeviceRuntime, seed: u64, len: usize) -> Result<GpuRef<T>> {
    let (wide, narrow) = (gpu.allocate::<f32>(len)?, gpu.allocate::<T>(len)?);
    Sampler::new(gpu).draw(seed).fill(&wide, Uniform)?;
    Elementwise::new(gpu).cast(&wide, &narrow).submit()?;
    Ok(narrow)
}
