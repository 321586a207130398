//! The laws that every memory resource obeys.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use kiln_driver::Place;
use kiln_mem::{
    AllocationRequest, DeviceBlock, MemoryResource, MemoryResourceExt, ReclaimStep, Stamps, StreamRef,
};

use crate::rig::{MIB, Random, Rig};

/// Something that holds for every resource.
pub(crate) struct Law {
    pub name: &'static str,
    pub check: fn(Make<'_>, Rig),
}

/// Makes the resource that is looked at.
pub(crate) type Make<'a> = &'a dyn Fn(&Rig) -> Arc<dyn MemoryResource>;

/// All of them.
pub(crate) const LAWS: &[Law] = &[
    Law { name: "alignment", check: alignment },
    Law { name: "disjointness", check: disjointness },
    Law { name: "accounting", check: accounting },
    Law { name: "zero bytes", check: zero_bytes },
    Law { name: "bad requests", check: bad_requests },
    Law { name: "foreign blocks", check: foreign_blocks },
    Law { name: "stale blocks", check: stale_blocks },
    Law { name: "exhaustion", check: exhaustion },
    Law { name: "threads", check: threads },
    Law { name: "frees on other threads and streams", check: frees_elsewhere },
    Law { name: "reaping", check: reaping },
];

/// A resource, its rig, and a stream; the verdict is looked at in the end.
fn with_resource(make: Make<'_>, rig: Rig, run: impl FnOnce(&Rig, &Arc<dyn MemoryResource>, StreamRef)) {
    let stream = rig.stream();
    let resource = make(&rig);
    run(&rig, &resource, stream);
    // A guard keeps freed blocks until it is asked for them.
    resource.trim().unwrap();
    let left = resource.accounting();
    assert_eq!((left.live_bytes, left.live_blocks), (0, 0), "everything was freed");
    assert_eq!(left.reserved_bytes, 0, "and given back");
    drop(resource);
    rig.finish(&[stream]);
}

/// The addresses of a block, with the base that the block is named by.
fn range(block: &DeviceBlock) -> (u64, u64) {
    (block.address().0, block.address().0 + block.bytes())
}

fn assert_disjoint(live: &mut BTreeMap<u64, u64>, block: &DeviceBlock) {
    let (start, end) = range(block);
    let before = live.range(..end).next_back();
    assert!(before.is_none_or(|(_, before)| *before <= start), "{block} overlaps a live block");
    live.insert(start, end);
}

fn alignment(make: Make<'_>, rig: Rig) {
    with_resource(make, rig, |_, resource, stream| {
        for (bytes, align) in
            [(1, 1), (100, 256), (5000, 512), (70_000, 4096), (300, 65_536), (3 * MIB, 2 * MIB)]
        {
            let block = resource.allocate(&AllocationRequest::new(bytes, stream).align(align)).unwrap();
            assert_eq!(block.address().0 % align.max(256), 0, "{bytes} bytes aligned to {align}");
            resource.free(block).unwrap();
        }
    });
}

fn disjointness(make: Make<'_>, rig: Rig) {
    with_resource(make, rig, |_, resource, stream| {
        let mut random = Random::new(1);
        let (mut live, mut blocks) = (BTreeMap::new(), Vec::new());
        // As many blocks as the device has pages, for those that give each block one.
        for _ in 0..1000 {
            if random.below(5) < 3 && blocks.len() < 30 {
                let block =
                    resource.allocate(&AllocationRequest::new(random.size(256 << 10), stream)).unwrap();
                assert_disjoint(&mut live, &block);
                assert_inside(&block);
                blocks.push(block);
            } else if !blocks.is_empty() {
                let block = blocks.swap_remove(random.below(blocks.len() as u64) as usize);
                live.remove(&block.address().0);
                resource.free(block).unwrap();
            }
        }
        blocks.into_iter().for_each(|block| resource.free(block).unwrap());
    });
}

/// A block that has bytes has a place, and says where it lies in the same way twice.
fn assert_inside(block: &DeviceBlock) {
    match block.place() {
        Some(Place::Device(place)) => assert_eq!(block.device_place(), Some(place)),
        Some(Place::Host { .. }) => assert_eq!(block.device_place(), None),
        place => panic!("{block} is at {place:?}"),
    }
}

fn accounting(make: Make<'_>, rig: Rig) {
    with_resource(make, rig, |_, resource, stream| {
        let sizes = [1, 1000, 65_536, 3 * MIB];
        let blocks: Vec<_> = sizes
            .iter()
            .map(|bytes| resource.allocate(&AllocationRequest::new(*bytes, stream)).unwrap())
            .collect();
        let counted = resource.accounting();
        let sum: u64 = sizes.iter().sum();
        assert!(counted.live_bytes >= sum, "{} live for {sum}", counted.live_bytes);
        assert_eq!(counted.live_blocks, sizes.len() as u64);
        assert!(counted.reserved_bytes >= sum && counted.peak_reserved_bytes >= counted.reserved_bytes);
        assert!(counted.peak_live_bytes >= counted.live_bytes);
        for (block, bytes) in blocks.into_iter().zip(sizes) {
            assert_eq!(block.bytes(), bytes);
            resource.free(block).unwrap();
        }
    });
}

fn zero_bytes(make: Make<'_>, rig: Rig) {
    with_resource(make, rig, |_, resource, stream| {
        let blocks: Vec<_> =
            (0..3).map(|_| resource.allocate(&AllocationRequest::new(0, stream)).unwrap()).collect();
        for block in blocks {
            assert!(block.is_empty() && block.place().is_none());
            resource.free(block).unwrap();
        }
    });
}

fn bad_requests(make: Make<'_>, rig: Rig) {
    with_resource(make, rig, |_, resource, stream| {
        let before = resource.accounting();
        for bytes in [u64::MAX, u64::MAX - 4096, 1 << 50] {
            let error = resource.allocate(&AllocationRequest::new(bytes, stream)).unwrap_err();
            assert!(error.is_oom() || error.refusal().is_some() || error.driver().is_some(), "{error}");
        }
        for align in [0, 3, 257, 1 << 40, u64::MAX] {
            let error = resource.allocate(&AllocationRequest::new(64, stream).align(align)).unwrap_err();
            assert!(error.refusal().is_some(), "alignment {align}: {error}");
        }
        assert_eq!(resource.accounting().live_bytes, before.live_bytes);
        assert_eq!(resource.accounting().live_blocks, before.live_blocks);
    });
}

fn foreign_blocks(make: Make<'_>, rig: Rig) {
    with_resource(make, rig, |rig, resource, stream| {
        let other = make(rig);
        let block = other.allocate(&AllocationRequest::new(1000, stream)).unwrap();
        let (address, before) = (block.address(), resource.accounting());
        let refused = resource.free(block).unwrap_err();
        assert!(refused.error.is_foreign(), "{}", refused.error);
        assert_eq!(refused.block.address(), address, "the block comes back as it was");
        assert_eq!(resource.accounting(), before, "nothing was changed");
        other.free(refused.block).unwrap();
        other.trim().unwrap();
    });
}

/// A block cannot be copied, but the author of a resource can make one from its parts: the same one, a second time.
fn stale_blocks(make: Make<'_>, rig: Rig) {
    with_resource(make, rig, |_, resource, stream| {
        let block = resource.allocate(&AllocationRequest::new(3 * MIB, stream)).unwrap();
        let parts = block.into_parts(resource.key()).unwrap();
        // SAFETY: nothing uses the memory. The second block breaks the contract on purpose: it has to be refused.
        let made = || unsafe { DeviceBlock::from_parts(resource.key(), parts) };
        resource.free(made()).unwrap();
        let before = resource.accounting();
        let refused = resource.free(made()).unwrap_err();
        assert!(refused.error.is_stale(), "{}", refused.error);
        assert_eq!(refused.block.address(), parts.address, "the block comes back as it was");
        let after = resource.accounting();
        assert_eq!((after.live_bytes, after.live_blocks), (before.live_bytes, before.live_blocks));
        drop(refused);
    });
}

fn exhaustion(make: Make<'_>, rig: Rig) {
    with_resource(make, rig, |_, resource, stream| {
        let mut blocks = Vec::new();
        let error = loop {
            match resource.allocate(&AllocationRequest::new(4 * MIB, stream)) {
                Ok(block) => blocks.push(block),
                Err(error) => break error,
            }
            assert!(blocks.len() <= 16, "more was handed out than the device has");
        };
        assert!(error.is_oom(), "{error}");
        assert_eq!(error.exhausted().unwrap().requested_bytes / MIB, 4, "{error}");
        assert!(blocks.len() >= 14, "only {} of 16 blocks fit", blocks.len());
        for round in 0..3 {
            let block = blocks.pop().unwrap();
            resource.free(block).unwrap();
            let again = resource.allocate(&AllocationRequest::new(4 * MIB, stream));
            blocks.push(again.unwrap_or_else(|error| panic!("round {round}: {error}")));
        }
        blocks.into_iter().for_each(|block| resource.free(block).unwrap());
    });
}

fn threads(make: Make<'_>, rig: Rig) {
    with_resource(make, rig, |rig, resource, stream| {
        let streams = [stream, rig.stream(), rig.stream()];
        let live = Mutex::new(BTreeMap::new());
        let handed_over: Mutex<Vec<DeviceBlock>> = Mutex::default();
        std::thread::scope(|scope| {
            for (seed, stream) in streams.iter().enumerate() {
                let (live, handed_over, resource) = (&live, &handed_over, &resource);
                scope.spawn(move || {
                    let mut random = Random::new(seed as u64);
                    for _ in 0..150 {
                        if random.below(2) == 0 {
                            let block = resource
                                .allocate(&AllocationRequest::new(random.size(64 << 10), *stream))
                                .unwrap();
                            assert_disjoint(&mut live.lock().unwrap(), &block);
                            handed_over.lock().unwrap().push(block);
                        }
                        let block = handed_over.lock().unwrap().pop();
                        if let Some(block) = block {
                            live.lock().unwrap().remove(&block.address().0);
                            resource.free(block).unwrap();
                        }
                    }
                });
            }
        });
        let left = std::mem::take(&mut *handed_over.lock().unwrap());
        left.into_iter().for_each(|block| resource.free(block).unwrap());
        for stream in &streams[1..] {
            rig.order.remove(*stream).unwrap();
            kiln_driver::Driver::destroy(&*rig.device, stream.id().into()).unwrap();
        }
    });
}

fn frees_elsewhere(make: Make<'_>, rig: Rig) {
    with_resource(make, rig, |rig, resource, stream| {
        let other = rig.stream();
        let block = resource.allocate(&AllocationRequest::new(5000, stream)).unwrap();
        let mut uses = Stamps::NONE;
        if block.device_place().is_some() {
            let first = rig.write(stream, &block, 1);
            kiln_mem::Order::wait_on(&*rig.order, other.key(), first).unwrap();
            uses.insert(rig.write(other, &block, 2));
        }
        std::thread::scope(|scope| {
            scope.spawn(|| resource.deallocate(block, &uses).unwrap());
        });
        rig.synchronize(other);
        rig.synchronize(stream);
        resource.reap_pending().unwrap();
        assert_eq!(resource.accounting().pending_bytes, 0);
        rig.order.remove(other).unwrap();
        kiln_driver::Driver::destroy(&*rig.device, other.id().into()).unwrap();
    });
}

fn reaping(make: Make<'_>, rig: Rig) {
    with_resource(make, rig, |rig, resource, stream| {
        let block = resource.allocate(&AllocationRequest::new(100_000, stream)).unwrap();
        let on_device = block.device_place().is_some();
        if on_device {
            rig.write(stream, &block, 42);
        }
        for step in ReclaimStep::ALL {
            resource.reclaim(step).unwrap();
        }
        assert_eq!(resource.accounting().live_blocks, 1, "what is live stays");
        if on_device {
            assert!(rig.read(stream, &block).iter().all(|byte| *byte == 42));
        }
        resource.free(block).unwrap();
    });
}
