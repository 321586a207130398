//! A million operations leave nothing behind: no bytes, no pages, no events, no streams.

use std::sync::Arc;

use crate::rig::{MIB, Random, Rig};
use kiln_driver::call::CallKind;
use kiln_driver::layer::{CommandKind, Counting, Layered};
use kiln_driver::{Command, Driver, Pattern, StreamRequest};
use kiln_mem::{
    AllocationRequest, DeviceBlock, DriverOrder, Heap, HeapConfig, MemoryResource, MemoryResourceExt, Order,
    Stamps, StreamRef,
};

const OPERATIONS: u64 = 1_000_000;
const STREAMS: u64 = 3;

struct Program {
    driver: Arc<Layered<Counting>>,
    order: Arc<DriverOrder>,
    heap: Heap,
    streams: Vec<StreamRef>,
    live: Vec<DeviceBlock>,
    random: Random,
}

impl Program {
    fn stream(&self) -> StreamRef {
        self.order.add(self.driver.create_stream(StreamRequest::New { priority: 0 }).unwrap()).unwrap()
    }

    /// A kernel's worth of work on some stream, now and then; returns its stamp.
    fn work(&mut self, block: &DeviceBlock, stream: StreamRef) -> Stamps {
        let to = block.device_place().unwrap();
        let fill = Command::Fill { to, pattern: Pattern::U8(1), count: block.bytes().min(64) };
        Stamps::from(self.order.submit(stream, &fill).unwrap())
    }

    fn step(&mut self, at: u64) {
        let stream = self.streams[self.random.below(STREAMS) as usize];
        if (self.random.below(2) == 0 && self.live.len() < 2000) || self.live.is_empty() {
            let bytes = if self.random.below(50) == 0 { 0 } else { self.random.size(128 << 10) };
            match self.heap.allocate(&AllocationRequest::new(bytes, stream)) {
                Ok(block) => self.live.push(block),
                Err(error) => assert!(error.is_oom(), "{error}"),
            }
            return;
        }
        let block = self.live.swap_remove(self.random.below(self.live.len() as u64) as usize);
        let mut uses = Stamps::NONE;
        if at.is_multiple_of(64) && !block.is_empty() {
            let last = kiln_mem::Stamp { stream: block.stream(), number: self.order.latest(block.stream()) };
            self.order.wait_on(stream.key(), last).unwrap();
            uses = self.work(&block, stream);
            uses.retain(|stamp| stamp.stream != block.stream());
        }
        self.heap.deallocate(block, &uses).unwrap();
        if at.is_multiple_of(4096) {
            self.streams.iter().for_each(|stream| self.order.refresh(stream.key()).unwrap());
            self.heap.reap_pending().unwrap();
        }
        if at.is_multiple_of(50_000) {
            self.change_stream();
        }
    }

    /// A stream goes and another one comes.
    fn change_stream(&mut self) {
        let new = self.stream();
        let gone = std::mem::replace(&mut self.streams[0], new);
        let (going, staying): (Vec<_>, Vec<_>) =
            self.live.drain(..).partition(|block| block.stream() == gone.key());
        self.live = staying;
        going.into_iter().for_each(|block| self.heap.free(block).unwrap());
        self.order.remove(gone).unwrap();
        self.heap.release_stream(gone.key());
        self.driver.destroy(gone.id().into()).unwrap();
    }
}

#[test]
fn a_million_operations_leave_nothing_behind() {
    let rig = Rig::new(11, 192 * MIB);
    let driver = Arc::new(Layered::new(rig.driver(), Counting::default()));
    let order = Arc::new(DriverOrder::new(driver.clone()));
    let heap = Heap::over_pages(driver.clone(), order.clone(), HeapConfig::default()).unwrap();
    let (streams, live, random) = (Vec::new(), Vec::new(), Random::new(5));
    let mut program = Program { driver, order, heap, streams, live, random };
    program.streams = (0..STREAMS).map(|_| program.stream()).collect();
    (0..OPERATIONS).for_each(|at| program.step(at));

    let Program { driver, order, heap, streams, live, .. } = program;
    live.into_iter().for_each(|block| heap.free(block).unwrap());
    for stream in &streams {
        order.remove(*stream).unwrap();
    }
    heap.trim().unwrap();
    let left = heap.accounting();
    assert_eq!((left.live_bytes, left.live_blocks, left.pending_bytes, left.cached_bytes), (0, 0, 0, 0));
    assert_eq!(left.reserved_bytes, 0, "pages in use");
    let calls = driver.layer().counts();
    assert!(calls.submitted(CommandKind::Wait) > 100, "streams used each other's blocks");
    assert!(calls.of(CallKind::CreateEvent) < 100, "events are used again");
    drop((heap, order));
    let free = driver.memory_info().unwrap();
    assert_eq!(free.free_bytes, free.total_bytes);
    streams.iter().for_each(|stream| driver.destroy(stream.id().into()).unwrap());
    drop(driver);
    // Looks for events, streams, pages and reservations that are still there.
    rig.finish(&[]);
}
