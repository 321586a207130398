//! Measures one workload on one memory stack.

use std::sync::Arc;

use kiln_driver::layer::{Counting, Layered};
use kiln_driver::{Driver, Object, StreamRequest, WallClock};
use kiln_mem::resource_stack::{StackBase, StackContext};
use kiln_mem::workload::{
    Allocator, Filling, PAIR_BYTES, Percentiles, RandomLives, StreamAllocator, time_pairs, time_threads,
};
use kiln_mem::{Budget, DriverOrder, HeapConfig, MemoryResource, Result, Stack, StreamRef};

use super::Workload;
use super::table::Row;

const THREADS: [usize; 4] = [1, 4, 8, 16];
const PAIRS: usize = 200_000;
const COUNTED_PAIRS: u64 = 10_000;

/// What is measured.
pub(super) struct Subject<'a> {
    /// Opens the device.
    pub(super) open: &'a dyn Fn() -> Result<Arc<dyn Driver>>,
    pub(super) stack: &'a Stack,
    pub(super) repeats: u32,
}

/// A stack with its streams, which it destroys when dropped.
struct Built {
    driver: Arc<dyn Driver>,
    order: Arc<DriverOrder>,
    resource: Option<Arc<dyn MemoryResource>>,
    streams: Vec<StreamRef>,
}

impl Subject<'_> {
    /// Measures a workload; rows go to `add`.
    pub(super) fn measure(&self, workload: Workload, add: &mut dyn FnMut(Row)) -> Result<()> {
        match workload {
            Workload::M1 => self.pairs(add),
            Workload::M2 | Workload::M4 => self.lives(workload, add),
            Workload::M3 => self.threads(add),
            Workload::M5 => self.filling(add),
            Workload::M7 => self.calls(add),
            // M6 is measured by `kiln-bench`, calls of libraries without a memory stack.
            Workload::M6
            | Workload::L1
            | Workload::L2
            | Workload::L3
            | Workload::L4
            | Workload::L5
            | Workload::L6
            | Workload::L7
            | Workload::L8
            | Workload::L9 => Ok(()),
        }
    }

    fn row(&self, workload: impl Into<String>, unit: &str, spread: Percentiles) -> Row {
        let subject = match self.stack.base() {
            StackBase::Pool => format!("{} (cuMemAllocAsync)", self.stack),
            _ => self.stack.to_string(),
        };
        Row { workload: workload.into(), subject, p50: spread.p50, p99: spread.p99, unit: unit.to_owned() }
    }

    fn build(&self, streams: usize, heap: HeapConfig) -> Result<Built> {
        Built::new((self.open)()?, self.stack, streams, heap)
    }

    fn pairs(&self, add: &mut dyn FnMut(Row)) -> Result<()> {
        let built = self.build(1, HeapConfig::default())?;
        let mut allocator = built.allocator(0)?;
        let spread = time_pairs(&mut allocator, self.repeats as usize, &WallClock::new())?;
        add(self.row("m1", "ns", spread));
        Ok(())
    }

    fn threads(&self, add: &mut dyn FnMut(Row)) -> Result<()> {
        for threads in THREADS {
            let built = self.build(threads, HeapConfig::default())?;
            let allocators = (0..threads).map(|at| built.allocator(at)).collect::<Result<Vec<_>>>()?;
            let values = time_threads(allocators, PAIRS, self.repeats as usize, &WallClock::new())?;
            add(self.row(format!("m3 {threads} threads"), "ns", Percentiles::of(values)));
        }
        Ok(())
    }

    fn lives(&self, workload: Workload, add: &mut dyn FnMut(Row)) -> Result<()> {
        for max_bytes in RandomLives::MAX_BYTES {
            for count in RandomLives::COUNTS {
                let lives = RandomLives { count, max_bytes };
                let built = self.build(1, HeapConfig::default())?;
                let mut allocator = built.allocator(0)?;
                let warm = lives.run(&mut allocator, &WallClock::new())?;
                let point = format!("max {} MiB n {count}", max_bytes >> 20);
                if workload == Workload::M4 {
                    let reserved = built.accounting().peak_reserved_bytes as f64;
                    let ratio = reserved / warm.peak_live_bytes.max(1) as f64;
                    add(self.row(format!("m4 {point}"), "res/live", Percentiles { p50: ratio, p99: ratio }));
                    continue;
                }
                let run = |_| lives.run(&mut allocator, &WallClock::new()).map(|lived| lived.nanoseconds);
                let values = (0..self.repeats).map(run).collect::<Result<Vec<_>>>()?;
                add(self.row(format!("m2 {point}"), "ns", Percentiles::of(values)));
            }
        }
        Ok(())
    }

    /// Only a heap and pages have a limit to fill.
    fn filling(&self, add: &mut dyn FnMut(Row)) -> Result<()> {
        if !matches!(self.stack.base(), StackBase::Heap | StackBase::Chunks | StackBase::Pages) {
            return Ok(());
        }
        let filling = Filling::default();
        let budget = Some(Budget::new("m5", filling.limit_bytes));
        let built = self.build(1, HeapConfig { budget, ..HeapConfig::default() })?;
        let filled = filling.run(&mut built.allocator(0)?)?;
        let refused = filled.large_refused as f64;
        add(self.row("m5", "refused", Percentiles { p50: refused, p99: refused }));
        Ok(())
    }

    fn calls(&self, add: &mut dyn FnMut(Row)) -> Result<()> {
        let counted = Arc::new(Layered::new((self.open)()?, Counting::default()));
        let built = Built::new(counted.clone(), self.stack, 1, HeapConfig::default())?;
        let mut allocator = built.allocator(0)?;
        let mut pairs = |count: u64| (0..count).try_for_each(|_| allocator.pair(PAIR_BYTES));
        pairs(100)?;
        let before = counted.layer().counts();
        pairs(COUNTED_PAIRS)?;
        let calls = counted.layer().counts().since(&before).total() as f64 / COUNTED_PAIRS as f64;
        add(self.row("m7", "calls", Percentiles { p50: calls, p99: calls }));
        Ok(())
    }
}

impl Built {
    fn new(driver: Arc<dyn Driver>, stack: &Stack, streams: usize, heap: HeapConfig) -> Result<Self> {
        let order = Arc::new(DriverOrder::new(driver.clone()));
        let mut built = Self { driver, order, resource: None, streams: Vec::new() };
        for _ in 0..streams {
            let id = built.driver.create_stream(StreamRequest::New { priority: 0 })?;
            built.streams.push(built.order.add(id)?);
        }
        let site = StackContext { driver: built.driver.clone(), order: built.order.clone(), heap };
        built.resource = Some(stack.build(&site)?);
        Ok(built)
    }

    fn allocator(&self, stream: usize) -> Result<StreamAllocator<'_, dyn MemoryResource>> {
        match (&self.resource, self.streams.get(stream)) {
            (Some(resource), Some(stream)) => Ok(StreamAllocator::new(&**resource, *stream)),
            _ => Err(kiln_mem::Error::corrupt("a stack without a resource or a stream")),
        }
    }

    fn accounting(&self) -> kiln_mem::Accounting {
        self.resource.as_ref().map(|resource| resource.accounting()).unwrap_or_default()
    }
}

impl Drop for Built {
    fn drop(&mut self) {
        self.resource = None;
        for stream in &self.streams {
            // Destroying fails only on a lost device, which has nothing left to destroy.
            let _ = self.order.remove(*stream);
            let _ = self.driver.destroy(Object::Stream(stream.id()));
        }
    }
}
