//! A block never reaches a second owner before the work of the first is ordered before it.
//!
//! Random programs on several streams write to blocks, pass them between streams, and free them while work is still
//! queued. The simulator remembers who wrote each byte and what was ordered after it; two writes with no order between
//! them are a finding, whichever of them ran first. Memory is short, so that blocks go through every way of reuse:
//! caches, lists, imports, remaps, lending and device-side waits.

use crate::rig::{MIB, Random, Rig};
use kiln_mem::{
    AllocationRequest, DeviceBlock, Heap, HeapConfig, MemoryResource, Order, PressurePolicy, Stamp, Stamps,
    StreamRef,
};

struct Owned {
    block: DeviceBlock,
    /// Its last use on each stream other than its own.
    uses: Stamps,
    /// Its last use at all.
    last: Option<Stamp>,
}

struct Program {
    rig: Rig,
    heap: Heap,
    streams: Vec<StreamRef>,
    blocks: Vec<Owned>,
    random: Random,
    /// The largest block.
    most_bytes: u64,
    reused_by_wait: u64,
}

impl Program {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let rig = Rig::new(seed, [12, 16, 24, 40][random.below(4) as usize] * MIB);
        let pressure = PressurePolicy::waiting(std::time::Duration::from_secs(1));
        // All rows stay mapped, or few do, or none that is not in use.
        let mapping_host_bytes = [None, Some(6 * (24 << 10)), Some(0)][seed as usize % 3];
        let heap = rig.heap_with(HeapConfig { pressure, mapping_host_bytes, ..HeapConfig::default() });
        let streams = (0..2 + random.below(3)).map(|_| rig.stream()).collect();
        // Large ones lie in rows more often.
        let most_bytes = if seed.is_multiple_of(3) { 4 * MIB } else { 16 * MIB };
        Self { rig, heap, streams, blocks: Vec::new(), random, most_bytes, reused_by_wait: 0 }
    }

    fn step(&mut self) {
        match self.random.below(10) {
            0..4 => self.allocate(),
            4..7 => self.free(),
            7 => self.pass_on(),
            8 => self.write_again(),
            _ => {
                let stream = self.any_stream();
                self.rig.order.refresh(stream.key()).unwrap();
            }
        }
    }

    fn any_stream(&mut self) -> StreamRef {
        self.streams[self.random.below(self.streams.len() as u64) as usize]
    }

    /// A new block is written at once, by its own stream.
    fn allocate(&mut self) {
        let stream = self.any_stream();
        let bytes = self.random.size(self.most_bytes);
        match self.heap.allocate(&AllocationRequest::new(bytes, stream)) {
            Ok(block) => {
                let last = Some(write_ends(&self.rig, stream, &block, 1));
                self.blocks.push(Owned { block, uses: Stamps::NONE, last });
            }
            Err(error) => assert!(error.is_oom(), "{error}"),
        }
        self.reused_by_wait = self.heap.accounting().false_dependencies;
    }

    fn free(&mut self) {
        if self.blocks.is_empty() {
            return;
        }
        let at = self.random.below(self.blocks.len() as u64) as usize;
        let owned = self.blocks.swap_remove(at);
        self.heap.deallocate(owned.block, &owned.uses).unwrap();
    }

    /// Another stream writes a block, after whatever used it before.
    fn pass_on(&mut self) {
        let stream = self.any_stream();
        let count = self.blocks.len() as u64;
        let at = self.random.below(count) as usize;
        let Some(owned) = self.blocks.get_mut(at) else { return };
        if let Some(last) = owned.last {
            self.rig.order.wait_on(stream.key(), last).unwrap();
        }
        let stamp = write_ends(&self.rig, stream, &owned.block, 2);
        owned.last = Some(stamp);
        if stream.key() != owned.block.stream() {
            owned.uses.insert(stamp);
        }
    }

    fn write_again(&mut self) {
        let count = self.blocks.len() as u64;
        let at = self.random.below(count) as usize;
        let Some(owned) = self.blocks.get_mut(at) else { return };
        let Some(last) = owned.last else { return };
        let stream = self.streams.iter().find(|stream| stream.key() == last.stream).copied().unwrap();
        let stamp = write_ends(&self.rig, stream, &owned.block, 3);
        owned.last = Some(stamp);
        if stream.key() != owned.block.stream() {
            owned.uses.insert(stamp);
        }
    }

    /// Gives everything back; says how often a device-side wait was needed, and how many rows were unmapped to map others.
    fn finish(mut self) -> [u64; 2] {
        let unmapped = self.heap.activity().remaps_unmapped;
        for owned in std::mem::take(&mut self.blocks) {
            self.heap.deallocate(owned.block, &owned.uses).unwrap();
        }
        for stream in &self.streams {
            self.rig.synchronize(*stream);
        }
        drop(self.heap);
        self.rig.finish(&self.streams);
        [self.reused_by_wait, unmapped]
    }
}

/// Writes both ends of a block: a user that has any part of it too soon is found, and simulated memory is not filled for
/// nothing.
fn write_ends(rig: &Rig, stream: StreamRef, block: &DeviceBlock, byte: u8) -> Stamp {
    let (place, end) = (block.device_place().unwrap(), block.bytes().min(512));
    rig.write_at(stream, place, byte, end);
    rig.write_at(stream, place.plus(block.bytes() - end), byte, end)
}

#[test]
fn no_seed_finds_a_block_with_two_owners() {
    const SEEDS: u64 = 10_000;
    const THREADS: u64 = 2;
    let run = |seed: u64| {
        let mut program = Program::new(seed);
        (0..50).for_each(|_| program.step());
        program.finish()
    };
    let sum = |counts: [u64; 2], more: [u64; 2]| [counts[0] + more[0], counts[1] + more[1]];
    let [waits, unmapped] = std::thread::scope(|scope| {
        let part = |thread: u64| (thread..SEEDS).step_by(THREADS as usize).map(run).fold([0; 2], sum);
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || part(thread))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().expect("the report above names the seed")
        };
        threads.into_iter().map(join).fold([0; 2], sum)
    });
    assert!(waits > 0, "no program needed a device-side wait, so none was tested");
    assert!(unmapped > 0, "no row was unmapped, so none was unmapped too soon");
    println!("{waits} device-side waits, {unmapped} rows unmapped");
}
