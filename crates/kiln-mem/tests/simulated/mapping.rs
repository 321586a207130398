//! What the rows of mapped frames cost the host, and that it has an end.

use crate::rig::{MIB, Rig};
use kiln_driver::WallClock;
use kiln_mem::workload::{RandomLives, StreamAllocator};
use kiln_mem::{AllocationRequest, Heap, HeapConfig, MemoryResource, MemoryResourceExt, Spare, StreamRef};

/// What one mapped frame costs.
const FRAME_BYTES: u64 = 24 << 10;
const LIVES: RandomLives = RandomLives { count: 3_000, max_bytes: 128 * MIB };

fn heap_that_keeps(rig: &Rig, frames: u64) -> Heap {
    rig.heap_with(HeapConfig { mapping_host_bytes: Some(frames * FRAME_BYTES), ..HeapConfig::default() })
}

fn live(heap: &Heap, stream: StreamRef, seed: u64) {
    let lived = LIVES.run_from(seed, &mut StreamAllocator::new(heap, stream), &WallClock::new()).unwrap();
    assert_eq!(lived.refused, 0);
}

/// Frames that one run of the program maps, from a heap that has everything and knows no rows.
fn frames_of_a_run() -> u64 {
    let rig = Rig::new(1, 128 << 30);
    let stream = rig.stream();
    let heap = rig.heap();
    live(&heap, stream, 7);
    let first = heap.activity();
    live(&heap, stream, 7);
    let frames = first.frames_mapped.max(heap.activity().since(&first).frames_mapped);
    assert_eq!(heap.mapping_host_bytes(), heap.activity().frames_mapped * FRAME_BYTES, "all are kept");
    drop(heap);
    rig.finish(&[stream]);
    frames
}

#[test]
fn a_program_that_repeats_itself_within_what_is_kept_soon_maps_nothing() {
    let kept = frames_of_a_run() * 3 / 2;
    let rig = Rig::new(1, 128 << 30);
    let stream = rig.stream();
    let heap = heap_that_keeps(&rig, kept);
    (0..3).for_each(|_| live(&heap, stream, 7));
    let warm = heap.activity();
    assert!(warm.frames_mapped > kept && warm.remaps_unmapped > 0, "more was mapped than is kept: {warm}");
    (0..3).for_each(|_| live(&heap, stream, 7));
    let after = heap.activity().since(&warm);
    assert!(!after.called_driver() && after.remaps_reused > 0, "{after}");
    assert_eq!(heap.activity().spare_raised, 0, "its patience did not end");
    drop(heap);
    rig.finish(&[stream]);
}

#[test]
fn what_is_mapped_costs_the_host_no_more_than_it_may() {
    const KEPT: u64 = 8_000;
    let rig = Rig::new(2, 128 << 30);
    let stream = rig.stream();
    let config = HeapConfig { spare: Spare::percent(9), ..HeapConfig::default() };
    let heap = rig.heap_with(HeapConfig { mapping_host_bytes: Some(KEPT * FRAME_BYTES), ..config });
    assert_eq!(heap.to_string(), "heap(spare=9%, mapping=192000 KiB)");
    let mut most = 0;
    for seed in 0..24 {
        live(&heap, stream, seed);
        most = most.max(heap.mapping_host_bytes());
        assert!(most <= KEPT * FRAME_BYTES, "{most}");
    }
    let activity = heap.activity();
    assert!(activity.frames_mapped > 2 * KEPT && most > KEPT / 2 * FRAME_BYTES, "{activity}, {most}");
    heap.trim().unwrap();
    assert_eq!(heap.mapping_host_bytes(), 0, "all are unused");
    drop(heap);
    rig.finish(&[stream]);
}

#[test]
fn a_request_is_met_even_if_nothing_can_be_unmapped() {
    let rig = Rig::new(4, 64 * MIB);
    let stream = rig.stream();
    let heap = heap_that_keeps(&rig, 0);
    let allocate = |mib: u64| heap.allocate(&AllocationRequest::new(mib * MIB, stream)).unwrap();
    let blocks: Vec<_> = (0..8).map(|_| allocate(8)).collect();
    // Every second one is freed, so that 16 MiB are free in no row, and the device has no more.
    let (freed, kept): (Vec<_>, Vec<_>) = (0..).zip(blocks).partition(|(at, _)| at % 2 == 0);
    let busy = &kept[0].1;
    freed.into_iter().for_each(|(_, block)| heap.free(block).unwrap());
    let mut rows = Vec::new();
    for _ in 0..3 {
        // Nothing that a row was used for is over.
        rig.keep_busy(stream, busy);
        let row = allocate(16);
        rig.write(stream, &row, 3);
        heap.free(row).unwrap();
        let other = allocate(24);
        rig.write(stream, &other, 4);
        rows.push(heap.mapping_host_bytes());
        heap.free(other).unwrap();
    }
    assert!(rows.iter().all(|bytes| *bytes > 0), "{rows:?}");
    rig.synchronize(stream);
    kept.into_iter().for_each(|(_, block)| heap.free(block).unwrap());
    heap.trim().unwrap();
    assert_eq!(heap.accounting().reserved_bytes, 0);
    assert_eq!(heap.mapping_host_bytes(), 0);
    drop(heap);
    rig.finish(&[stream]);
}

#[test]
fn what_goes_away_costs_nothing_any_more() {
    let rig = Rig::new(5, 64 * MIB);
    let stream = rig.stream();
    let heap = rig.heap();
    let allocate = |mib: u64| heap.allocate(&AllocationRequest::new(mib * MIB, stream)).unwrap();
    let blocks: Vec<_> = (0..8).map(|_| allocate(8)).collect();
    let (freed, kept): (Vec<_>, Vec<_>) = (0..).zip(blocks).partition(|(at, _)| at % 2 == 0);
    freed.into_iter().for_each(|(_, block)| heap.free(block).unwrap());
    let row = allocate(32);
    let whole = heap.mapping_host_bytes();
    assert!(whole > 0);
    heap.free(row).unwrap();
    // It lies in the row, whose other frames go back to the device.
    let small = allocate(2);
    heap.trim().unwrap();
    let part = heap.mapping_host_bytes();
    assert!(part > 0 && part < whole, "{part} of {whole}");
    heap.free(small).unwrap();
    heap.trim().unwrap();
    assert_eq!(heap.mapping_host_bytes(), 0);
    kept.into_iter().for_each(|(_, block)| heap.free(block).unwrap());
    drop(heap);
    rig.finish(&[stream]);
}

#[test]
fn heap_after_heap_finds_addresses_and_several_at_once_share_them() {
    let rig = Rig::new(6, 64 * MIB);
    let stream = rig.stream();
    let try_it = |heap: &Heap| {
        let block = heap.allocate(&AllocationRequest::new(3 * MIB, stream)).unwrap();
        rig.write(stream, &block, 1);
        heap.free(block).unwrap();
    };
    for _ in 0..40 {
        let heap = rig.heap();
        try_it(&heap);
        rig.synchronize(stream);
    }
    // Each takes what it would like, or half of it, or half again.
    let heaps: Vec<Heap> = (0..10).map(|_| rig.heap()).collect();
    heaps.iter().for_each(try_it);
    rig.synchronize(stream);
    drop(heaps);
    rig.finish(&[stream]);
}
