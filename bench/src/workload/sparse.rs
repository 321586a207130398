//! B4: a sparse matrix of 10^7 elements of `f32` times a vector, through kiln-libs and beside cuSPARSE called directly.
//!
//! 10^6 rows with ten elements each, in columns that a generator with a fixed seed chose. cuSPARSE may keep what it finds out about a matrix in its
//! descriptor, so that it is measured in three ways: with one descriptor, with one that was preprocessed, and with another one for each call.

use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::rand::{Sampler, Uniform};
use kiln_libs::sparse::{CsrMatrix, Determinism, Sparse};

use crate::Failure;
use crate::raw_driver::{self, Raw};
use crate::raw_graph::RawGraph;
use crate::raw_library::cusparse::{CSR_ALG2, CsrAddresses, DEFAULT_ALGORITHM, SparseProduct};
use crate::result_table::Table;
use crate::workload::launch::runtime;
use crate::workload::library_comparison::{
    TURNS, calls_for, captured, check_equal, compare, recorded, replayed,
};

const ROWS: usize = 1_000_000;
const PER_ROW: usize = 10;

pub(crate) fn multiplied(table: &mut Table, _: usize) -> Result<(), Failure> {
    let (gpu, raw) = (runtime()?, Raw::new()?);
    let matrix = made_up(&gpu)?;
    let (x, y) = (gpu.allocate::<f32>(ROWS)?, gpu.allocate::<f32>(ROWS)?);
    Sampler::new(&gpu).draw(6).fill(&x, Uniform)?;
    let stage = Stage { gpu: &gpu, raw: &raw, matrix, x, y };
    stage.measured(table, "any", Determinism::Any, DEFAULT_ALGORITHM)?;
    stage.measured(table, "run_to_run", Determinism::RunToRun, CSR_ALG2)
}

/// A matrix with ten elements in each row.
fn made_up(gpu: &DeviceRuntime) -> Result<CsrMatrix<f32>, Failure> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut column = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 33) % ROWS as u64) as i32
    };
    let mut indices: Vec<i32> = (0..ROWS * PER_ROW).map(|_| column()).collect();
    indices.chunks_mut(PER_ROW).for_each(<[i32]>::sort_unstable);
    let offsets: Vec<i32> = (0..=ROWS).map(|row| (row * PER_ROW) as i32).collect();
    let values = gpu.allocate::<f32>(ROWS * PER_ROW)?;
    Sampler::new(gpu).draw(5).fill(&values, Uniform)?;
    Ok(CsrMatrix::from_buffers((ROWS, ROWS), gpu.upload(&offsets)?, gpu.upload(&indices)?, values)?)
}

struct Stage<'a> {
    gpu: &'a DeviceRuntime,
    raw: &'a Raw,
    matrix: CsrMatrix<f32>,
    x: GpuRef<f32>,
    y: GpuRef<f32>,
}

impl Stage<'_> {
    fn measured(
        &self,
        table: &mut Table,
        name: &str,
        order: Determinism,
        algorithm: i32,
    ) -> Result<(), Failure> {
        let workload = format!("b4.{name}.device");
        let (sparse, stream) = (Sparse::new(self.gpu), self.raw.stream()?);
        let product = || sparse.spmv(order, 1.0, &self.matrix, &self.x, None, &self.y);
        product().submit()?.wait()?;
        let by_kiln = self.y.download()?;
        self.y.fill(0.0)?;
        self.gpu.synchronize()?;

        let kept = self.direct(stream, algorithm)?;
        kept.queue()?;
        raw_driver::synchronize(stream)?;
        check_equal(&workload, 1e-4, &by_kiln, &self.y.download()?)?;
        let preprocessed = self.direct(stream, algorithm)?;
        preprocessed.preprocess()?;
        raw_driver::synchronize(stream)?;

        let one = RawGraph::capture(self.raw, stream, 1, || kept.queue())?;
        one.run_timed()?;
        let calls = calls_for(one.run_timed()?);
        let capture =
            |queue: &dyn Fn() -> Result<(), Failure>| RawGraph::capture(self.raw, stream, calls, queue);
        let graphs =
            [capture(&|| kept.queue())?, capture(&|| preprocessed.queue())?, capture(&|| kept.queue_anew())?];
        let graph = recorded(self.gpu, calls, |graph| Ok(product().record(graph).map(drop)?))?;
        let subjects = vec![
            ("cuSPARSE, one descriptor", captured(&graphs[0], calls)),
            ("cuSPARSE, preprocessed", captured(&graphs[1], calls)),
            ("cuSPARSE, a descriptor for each call", captured(&graphs[2], calls)),
            ("kiln", replayed(&graph, calls)),
        ];
        compare(table, &workload, TURNS, subjects)
    }

    fn direct(
        &self,
        stream: cudarc::driver::sys::CUstream,
        algorithm: i32,
    ) -> Result<SparseProduct, Failure> {
        let addresses = CsrAddresses {
            rows: ROWS,
            nonzeros: ROWS * PER_ROW,
            offsets: self.matrix.offsets().address().0,
            indices: self.matrix.indices().address().0,
            values: self.matrix.values().address().0,
        };
        let vectors = (self.x.address().0, self.y.address().0);
        SparseProduct::new(self.raw, stream, addresses, vectors, algorithm)
    }
}
