//! M1 and M3: 64 KiB allocated and freed, on one thread and on many.

use kiln_mem::workload::{Percentiles, StreamAllocator, time_pairs, time_threads};
use kiln_mem::{HeapConfig, MemoryResource};

use super::{Bench, CudarcSlices, RawPool};
use crate::Failure;
use crate::fastest_core::FastestCore;
use crate::result_table::Table;

const THREADS: [usize; 4] = [1, 4, 8, 16];
/// Pairs of each thread: a hundred times as many where a pair takes nanoseconds.
const PAIRS: usize = 2_000_000;
const PEER_PAIRS: usize = 20_000;

/// M1.
pub(crate) fn one_thread(bench: &Bench, table: &mut Table) -> Result<(), Failure> {
    let _core = FastestCore::find();
    if bench.is_cuda() {
        let spread = time_pairs(&mut RawPool::new(0)?, bench.repeats, bench.thread_clock())?;
        table.add("m1", "raw cuMemAllocAsync + FreeAsync", spread);
    }
    if bench.with_kiln {
        let setting = bench.setting(HeapConfig::default())?;
        let mut kiln = StreamAllocator::new(&setting.heap, setting.stream()?);
        table.add("m1", "kiln heap", time_pairs(&mut kiln, bench.repeats, bench.thread_clock())?);
        // As a runtime and a stack have it: nothing is inlined.
        let resource: &dyn MemoryResource = &setting.heap;
        let mut kiln = StreamAllocator::new(resource, setting.stream()?);
        let spread = time_pairs(&mut kiln, bench.repeats, bench.thread_clock())?;
        table.add("m1", "kiln heap as `dyn MemoryResource`", spread);
    }
    if bench.is_cuda() {
        let spread = time_pairs(&mut CudarcSlices::new()?, bench.repeats, bench.thread_clock())?;
        table.add("m1", "cudarc alloc + drop", spread);
    }
    Ok(())
}

/// M3.
pub(crate) fn many_threads(bench: &Bench, table: &mut Table) -> Result<(), Failure> {
    for threads in THREADS {
        let workload = format!("m3 {threads} threads");
        if bench.is_cuda() {
            let pool = RawPool::new(0)?;
            let pools: Vec<Entering> =
                (0..threads).map(|_| pool.on_new_stream().map(Entering::new)).collect::<Result<_, _>>()?;
            let values = time_threads(pools, PEER_PAIRS, bench.repeats, &bench.clock)?;
            table.add(&workload, "raw cuMemAllocAsync, wall per pair", Percentiles::of(values));
        }
        if bench.with_kiln {
            let setting = bench.setting(HeapConfig::default())?;
            let streams: Vec<_> = (0..threads).map(|_| setting.stream()).collect::<Result<_, _>>()?;
            let kilns =
                streams.into_iter().map(|stream| StreamAllocator::new(&setting.heap, stream)).collect();
            let values = time_threads(kilns, PAIRS, bench.repeats, &bench.clock)?;
            table.add(&workload, "kiln heap, wall per pair", Percentiles::of(values));
        }
        if bench.is_cuda() {
            let cudarc = CudarcSlices::new()?;
            let slices = (0..threads).map(|_| cudarc.on_new_stream()).collect::<Result<Vec<_>, _>>()?;
            let values = time_threads(slices, PEER_PAIRS, bench.repeats, &bench.clock)?;
            table.add(&workload, "cudarc, wall per pair", Percentiles::of(values));
        }
    }
    Ok(())
}

/// A pool whose context is made current by the thread that first uses it.
struct Entering {
    pool: RawPool,
    has_entered: bool,
}

impl Entering {
    fn new(pool: RawPool) -> Self {
        Self { pool, has_entered: false }
    }
}

impl kiln_mem::workload::Allocator for Entering {
    type Block = u64;
    type Error = String;

    #[inline]
    fn allocate(&mut self, bytes: u64) -> Result<Option<u64>, String> {
        if !self.has_entered {
            self.pool.enter().map_err(|failure| failure.to_string())?;
            self.has_entered = true;
        }
        self.pool.allocate(bytes)
    }

    #[inline]
    fn free(&mut self, block: u64) -> Result<(), String> {
        self.pool.free(block)
    }
}
