//! Which memory a heap takes, in which order: what its stream freed, what it is ordered after, what is known to be done,
//! other free memory, new pages; a device-side wait comes last.

use crate::rig::{MIB, Rig};
use kiln_mem::{
    AllocationRequest, Budget, Heap, HeapConfig, MemoryResource, MemoryResourceExt, Order, Stamp, StreamRef,
};

const BYTES: u64 = 8 * MIB;

fn heap(rig: &Rig, bytes: u64) -> Heap {
    rig.heap_with(HeapConfig { budget: Some(Budget::new("test", bytes)), ..HeapConfig::default() })
}

/// Allocates on a stream, uses that for longer than the next call takes, and frees; returns where that was and the
/// stamp of the last use.
fn used_and_freed(rig: &Rig, heap: &Heap, stream: StreamRef) -> (u64, Stamp) {
    let block = heap.allocate(&AllocationRequest::new(BYTES, stream)).unwrap();
    let (address, used) = (block.address().0, rig.keep_busy(stream, &block));
    heap.free(block).unwrap();
    (address, used)
}

/// One stream freed a block while work on it is queued, then another one asks for as much. Returns what was reserved
/// from the device in the end and how often a stream had to wait.
fn next_on_another_stream(limit_bytes: u64, between: impl FnOnce(&Rig, [StreamRef; 2], Stamp)) -> (u64, u64) {
    let rig = Rig::new(1, 256 * MIB);
    let streams = [rig.stream(), rig.stream()];
    let heap = heap(&rig, limit_bytes);
    let (_, written) = used_and_freed(&rig, &heap, streams[0]);
    between(&rig, streams, written);
    let block = heap.allocate(&AllocationRequest::new(BYTES, streams[1])).unwrap();
    rig.write(streams[1], &block, 2);
    heap.free(block).unwrap();
    let counted = heap.accounting();
    streams.iter().rev().for_each(|stream| rig.synchronize(*stream));
    drop(heap);
    rig.finish(&streams);
    (counted.reserved_bytes, counted.false_dependencies)
}

#[test]
fn a_stream_gets_back_what_it_freed_although_its_work_is_queued() {
    let rig = Rig::new(1, 256 * MIB);
    let stream = rig.stream();
    let heap = heap(&rig, 64 * MIB);
    let (first, _) = used_and_freed(&rig, &heap, stream);
    let (again, _) = used_and_freed(&rig, &heap, stream);
    assert_eq!((first, heap.accounting().reserved_bytes), (again, BYTES));
    rig.synchronize(stream);
    drop(heap);
    rig.finish(&[stream]);
}

#[test]
fn what_a_stream_is_ordered_after_comes_before_new_pages() {
    let ordered = |rig: &Rig, [_, second]: [StreamRef; 2], written| {
        rig.order.wait_on(second.key(), written).unwrap();
    };
    assert_eq!(next_on_another_stream(64 * MIB, ordered), (BYTES, 0));
}

#[test]
fn what_is_known_to_be_done_comes_before_new_pages() {
    let done = |rig: &Rig, [first, _]: [StreamRef; 2], _| rig.synchronize(first);
    assert_eq!(next_on_another_stream(64 * MIB, done), (BYTES, 0));
}

#[test]
fn new_pages_come_before_a_wait_and_a_wait_before_a_refusal() {
    let (reserved, waits) = next_on_another_stream(64 * MIB, |_, _, _| ());
    assert_eq!((reserved, waits), (2 * BYTES, 0), "there was room for more");
    let (reserved, waits) = next_on_another_stream(BYTES, |_, _, _| ());
    assert_eq!((reserved, waits), (BYTES, 1), "there was none");
}

#[test]
fn what_another_thread_freed_comes_back() {
    let rig = Rig::new(1, 256 * MIB);
    let stream = rig.stream();
    let heap = heap(&rig, 64 * MIB);
    for bytes in [BYTES, 4096] {
        for _ in 0..1000 {
            let block = heap.allocate(&AllocationRequest::new(bytes, stream)).unwrap();
            std::thread::scope(|scope| scope.spawn(|| heap.free(block).unwrap()).join().unwrap());
        }
    }
    assert!(heap.accounting().reserved_bytes <= 2 * BYTES, "{:?}", heap.accounting());
    drop(heap);
    rig.finish(&[stream]);
}

#[test]
fn what_was_kept_for_a_stream_that_is_gone_comes_back() {
    let rig = Rig::new(1, 256 * MIB);
    let last = rig.stream();
    let heap = heap(&rig, BYTES);
    for bytes in [BYTES, 64 << 10, 100] {
        for _ in 0..50 {
            let stream = rig.stream();
            let block = heap.allocate(&AllocationRequest::new(bytes, stream)).unwrap();
            let late = heap
                .allocate(&AllocationRequest::new(if bytes == BYTES { 0 } else { bytes }, stream))
                .unwrap();
            rig.write(stream, &block, 1);
            heap.free(block).unwrap();
            rig.order.remove(stream).unwrap();
            heap.release_stream(stream.key());
            kiln_driver::Driver::destroy(&*rig.device, stream.id().into()).unwrap();
            heap.free(late).unwrap();
        }
    }
    let all = heap.allocate(&AllocationRequest::new(BYTES, last)).unwrap();
    assert_eq!(heap.accounting().false_dependencies, 0, "no stream waits for one that is gone");
    heap.free(all).unwrap();
    drop(heap);
    rig.finish(&[last]);
}

#[test]
fn a_pool_takes_blocks_back_whose_stream_is_gone() {
    let rig = Rig::new(1, 64 * MIB);
    let stays = rig.stream();
    let pool = kiln_mem::DriverPool::new(rig.driver(), rig.order()).unwrap();
    for _ in 0..3 {
        let goes = rig.stream();
        let block = pool.allocate(&AllocationRequest::new(MIB, goes)).unwrap();
        let written = rig.write(goes, &block, 1);
        rig.order.wait_on(stays.key(), written).unwrap();
        let used = rig.write(stays, &block, 2);
        rig.order.remove(goes).unwrap();
        kiln_driver::Driver::destroy(&*rig.device, goes.id().into()).unwrap();
        pool.deallocate(block, &used.into()).unwrap();
    }
    assert_eq!(pool.accounting().live_blocks, 0);
    drop(pool);
    rig.finish(&[stays]);
}

/// The memory of a stream that was released is used again before memory is short: by the next stream.
#[test]
fn a_stream_takes_the_place_of_one_that_is_gone() {
    let rig = Rig::new(1, 256 * MIB);
    let heap = rig.heap();
    let mut reserved = None;
    for _ in 0..20 {
        let stream = rig.stream();
        let blocks = [100, 64 << 10, 3 * MIB]
            .map(|bytes| heap.allocate(&AllocationRequest::new(bytes, stream)).unwrap());
        blocks.into_iter().for_each(|block| heap.free(block).unwrap());
        rig.order.remove(stream).unwrap();
        heap.release_stream(stream.key());
        kiln_driver::Driver::destroy(&*rig.device, stream.id().into()).unwrap();
        let counted = heap.accounting();
        assert_eq!(counted.cached_bytes, 0, "no thread keeps anything for it");
        assert_eq!(*reserved.get_or_insert(counted.reserved_bytes), counted.reserved_bytes);
    }
    drop(heap);
    rig.finish(&[]);
}
