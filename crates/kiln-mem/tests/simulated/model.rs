//! Random programs against a naive map, with a guard on top and the simulator's checks below.
//!
//! The map knows which bytes each block must hold. The guard knows that nothing was written beside a block or after its end, the
//! simulator that nothing was read before it was written and no two uses were without order.

use std::collections::BTreeMap;

use crate::rig::{MIB, Random, Rig};
use kiln_mem::layer::{GuardConfig, Guarded};
use kiln_mem::{
    AllocationRequest, DeviceBlock, Heap, MemoryResource, MemoryResourceExt, Order, Stamps, StreamRef,
};

struct Entry {
    block: DeviceBlock,
    /// What is in it, once it was written.
    byte: Option<u8>,
    last: Stamps,
}

struct Model {
    rig: Rig,
    resource: Guarded<Heap>,
    streams: Vec<StreamRef>,
    blocks: BTreeMap<u64, Entry>,
    random: Random,
    refused: u64,
}

impl Model {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let rig = Rig::new(seed, [6, 10, 24][random.below(3) as usize] * MIB);
        let streams = (0..3).map(|_| rig.stream()).collect();
        let quarantine_bytes = [0, 100_000, 4 * MIB][random.below(3) as usize];
        let config = GuardConfig { zone_bytes: 1 + random.below(600), quarantine_bytes };
        let resource = Guarded::new(config, rig.driver(), rig.order(), rig.heap());
        Self { rig, resource, streams, blocks: BTreeMap::new(), random, refused: 0 }
    }

    fn any(&mut self) -> Option<u64> {
        let at = self.random.below(self.blocks.len() as u64) as usize;
        self.blocks.keys().nth(at).copied()
    }

    fn stream_of(&self, block: &DeviceBlock) -> StreamRef {
        self.streams.iter().copied().find(|stream| stream.key() == block.stream()).unwrap()
    }

    fn allocate(&mut self) {
        let stream = self.streams[self.random.below(3) as usize];
        let align = 1 << self.random.below(14);
        let most = [4096, MIB, 3 * MIB][self.random.below(3) as usize];
        let bytes = self.random.size(most);
        match self.resource.allocate(&AllocationRequest::new(bytes, stream).align(align)) {
            Ok(block) => {
                let (start, end) = (block.address().0, block.address().0 + bytes);
                assert_eq!((block.bytes(), start % align), (bytes, 0));
                let before = self.blocks.range(..end).next_back().map(|(_, entry)| &entry.block);
                assert!(before.is_none_or(|before| before.address().0 + before.bytes() <= start), "{block}");
                self.blocks.insert(start, Entry { block, byte: None, last: Stamps::NONE });
            }
            Err(error) => {
                assert!(error.is_oom(), "{error}");
                self.refused += 1;
            }
        }
    }

    fn write(&mut self) {
        let Some(at) = self.any() else { return };
        let byte = self.random.below(256) as u8;
        let elsewhere = self.random.below(4) == 0;
        let stream = self.streams[self.random.below(3) as usize];
        let own = self.stream_of(&self.blocks[&at].block);
        let Entry { block, byte: content, last } = self.blocks.get_mut(&at).unwrap();
        let stream = if elsewhere { stream } else { own };
        // After whatever used it before.
        for used in last.iter() {
            self.rig.order.wait_on(stream.key(), used).unwrap();
        }
        let on_own = kiln_mem::Stamp { stream: own.key(), number: self.rig.order.latest(own.key()) };
        self.rig.order.wait_on(stream.key(), on_own).unwrap();
        let stamp = self.rig.write(stream, block, byte);
        *last = Stamps::from(stamp);
        *content = Some(byte);
    }

    fn read(&mut self) {
        let Some(at) = self.any() else { return };
        let Entry { block, byte: Some(byte), last } = &self.blocks[&at] else { return };
        let own = self.stream_of(block);
        for used in last.iter() {
            self.rig.order.wait_on(own.key(), used).unwrap();
        }
        assert!(self.rig.read(own, block).iter().all(|other| other == byte), "{block}");
    }

    fn free(&mut self) {
        let Some(at) = self.any() else { return };
        let Entry { block, mut last, .. } = self.blocks.remove(&at).unwrap();
        last.retain(|stamp| stamp.stream != block.stream());
        self.resource.deallocate(block, &last).unwrap();
    }

    fn run(mut self, steps: usize) -> u64 {
        for _ in 0..steps {
            match self.random.below(12) {
                0..4 => self.allocate(),
                4..7 => self.free(),
                7..10 => self.write(),
                10 => self.read(),
                _ => {
                    let live = self.blocks.len() as u64;
                    // The guard's blocks are those below; those in quarantine are live there too.
                    assert!(self.resource.accounting().live_blocks >= live);
                    assert_eq!(self.resource.checker().check().unwrap(), []);
                }
            }
        }
        for (_, Entry { block, mut last, .. }) in std::mem::take(&mut self.blocks) {
            last.retain(|stamp| stamp.stream != block.stream());
            self.resource.deallocate(block, &last).unwrap();
        }
        self.resource.trim().unwrap();
        assert_eq!(self.resource.checker().take_findings(), []);
        let left = self.resource.accounting();
        assert_eq!((left.live_bytes, left.live_blocks), (0, 0));
        drop(self.resource);
        self.rig.finish(&self.streams);
        self.refused
    }
}

#[test]
fn random_programs_find_what_they_wrote_and_nothing_else() {
    let refused: u64 = (0..60).map(|seed| Model::new(seed).run(120)).sum();
    assert!(refused > 0, "memory was never short, so that was not tested");
}
