//! What a program that never repeats itself costs, with memory to spare and without, counted in driver calls.

use std::sync::Arc;

use crate::rig::{MIB, Rig};
use kiln_driver::layer::{Counting, Layered};
use kiln_driver::{Driver, StreamRequest, WallClock};
use kiln_mem::workload::{Filling, RandomLives, StreamAllocator};
use kiln_mem::{
    AllocationRequest, Budget, DriverOrder, Heap, HeapActivity, HeapConfig, MemoryResource,
    MemoryResourceExt, Spare,
};

/// What some runs cost.
struct Cost {
    operations: u64,
    calls: u64,
    activity: HeapActivity,
    reserved_over_live: f64,
}

/// Runs random lives, each run from another seed, and counts what all but the first two cost.
fn never_repeating(max_bytes: u64, spare: Spare) -> Cost {
    const WARM_UP: u64 = 2;
    const RUNS: u64 = 5;
    let rig = Rig::new(1, 128 << 30);
    let driver = Arc::new(Layered::new(rig.driver(), Counting::default()));
    let order = Arc::new(DriverOrder::new(driver.clone()));
    let stream = order.add(driver.create_stream(StreamRequest::New { priority: 0 }).unwrap()).unwrap();
    let config = HeapConfig { spare, ..HeapConfig::default() };
    let heap = Heap::over_pages(driver.clone(), order.clone(), config).unwrap();
    let lives = RandomLives { count: 4_000, max_bytes };
    let (mut operations, mut peak_live) = (0, 0);
    let (mut calls, mut activity) = (driver.layer().counts(), heap.activity());
    for run in 0..RUNS {
        if run == WARM_UP {
            (operations, calls, activity) = (0, driver.layer().counts(), heap.activity());
        }
        let lived =
            lives.run_from(1000 + run, &mut StreamAllocator::new(&heap, stream), &WallClock::new()).unwrap();
        assert_eq!(lived.refused, 0);
        operations += lived.operations;
        peak_live = peak_live.max(lived.peak_live_bytes);
    }
    let cost = Cost {
        operations,
        calls: driver.layer().counts().since(&calls).total(),
        activity: heap.activity().since(&activity),
        reserved_over_live: heap.accounting().peak_reserved_bytes as f64 / peak_live as f64,
    };
    drop(heap);
    order.remove(stream).unwrap();
    driver.destroy(stream.id().into()).unwrap();
    drop((order, driver));
    rig.finish(&[]);
    cost
}

#[test]
fn with_memory_to_spare_a_program_that_never_repeats_itself_calls_no_driver() {
    for max_bytes in [64 * MIB, 256 * MIB] {
        let Cost { operations, calls, activity, reserved_over_live } =
            never_repeating(max_bytes, Spare::percent(50));
        assert!(calls * 1000 <= operations, "{calls} calls for {operations} operations: {activity}");
        assert!(reserved_over_live <= 1.5, "{reserved_over_live}");
    }
}

#[test]
fn without_it_rows_are_mapped_and_little_is_reserved() {
    let Cost { operations, calls, activity, reserved_over_live } =
        never_repeating(256 * MIB, Spare::percent(9));
    assert!(calls * 50 > operations, "{calls} calls for {operations} operations: {activity}");
    assert!(activity.frames_mapped > 4 * activity.remaps_mapped, "{activity}");
    assert!(reserved_over_live <= 1.1, "{reserved_over_live}");
}

#[test]
fn a_heap_that_mapped_enough_holds_more_and_maps_no_more() {
    // Mapping takes no time on this device, so that nothing is forgotten and frames alone count: twice what can be kept.
    const KEPT_FRAMES: u64 = 1 << 14;
    const ENOUGH_FRAMES: u64 = 2 * KEPT_FRAMES;
    const RUNS: u64 = 400;
    let rig = Rig::new(3, 128 << 30);
    let stream = rig.stream();
    let mapping_host_bytes = Some(KEPT_FRAMES * (24 << 10));
    let heap = rig.heap_with(HeapConfig { mapping_host_bytes, ..HeapConfig::default() });
    let lives = RandomLives { count: 4_000, max_bytes: 128 * MIB };
    let (mut peak_live, mut runs) = (0, 0..RUNS);
    let mut run = |seed: u64| {
        let lived =
            lives.run_from(seed, &mut StreamAllocator::new(&heap, stream), &WallClock::new()).unwrap();
        peak_live = peak_live.max(lived.peak_live_bytes);
        heap.accounting().peak_reserved_bytes as f64 / peak_live as f64
    };
    let mut modest = 0.0;
    let learnt = runs.find(|seed| {
        let reserved = run(*seed);
        let is_over = heap.activity().spare_raised > 0;
        modest = if is_over { modest } else { reserved };
        is_over
    });
    let before = heap.activity();
    assert!(learnt.is_some(), "{before}");
    assert!(before.frames_mapped >= ENOUGH_FRAMES && before.spare_raised == 1, "{before}");
    assert!(modest > 1.0 && modest <= 1.1, "{modest} of what is in use was held before");

    let reserved = runs.by_ref().take(3).map(&mut run).fold(0.0, f64::max);
    let settled = heap.activity();
    runs.take(3).for_each(|seed| assert!(run(seed) <= 1.5));
    let after = heap.activity().since(&settled);
    assert!(after.remaps_mapped * 1000 <= 3 * 2 * lives.count as u64, "{after}");
    assert!(reserved > 1.1 && reserved <= 1.5, "{reserved} of what is in use is held since");
    drop(heap);
    rig.finish(&[stream]);
}

#[test]
fn near_a_budget_spare_memory_refuses_nothing() {
    let rig = Rig::new(5, 128 << 30);
    let stream = rig.stream();
    let limit_bytes = 4 << 30;
    let heap = rig.heap_with(HeapConfig {
        budget: Some(Budget::new("limit", limit_bytes)),
        spare: Spare::percent(100),
        ..HeapConfig::default()
    });
    let filled =
        Filling { limit_bytes, steps: 40_000 }.run(&mut StreamAllocator::new(&heap, stream)).unwrap();
    assert_eq!(filled.refused, 0, "{filled:?}");
    assert!(heap.accounting().peak_reserved_bytes <= limit_bytes);
    drop(heap);
    rig.finish(&[stream]);
}

#[test]
fn what_is_spared_ends_where_the_room_does_and_is_given_back_by_trim() {
    // So many blocks of 16 MiB; every second one is freed, so that nothing larger is free in a row.
    const BLOCKS: u64 = 16;
    let reserved_after = |device_mib: u64| {
        let rig = Rig::new(7, device_mib * MIB);
        let stream = rig.stream();
        let heap = rig.heap_with(HeapConfig { spare: Spare::percent(100), ..HeapConfig::default() });
        let allocate = |bytes| heap.allocate(&AllocationRequest::new(bytes, stream)).unwrap();
        let blocks: Vec<_> = (0..BLOCKS).map(|_| allocate(16 * MIB)).collect();
        let (freed, mut kept): (Vec<_>, Vec<_>) = (0..).zip(blocks).partition(|(at, _)| at % 2 == 0);
        freed.into_iter().for_each(|(_, block)| heap.free(block).unwrap());
        kept.push((BLOCKS, allocate(24 * MIB)));
        let reserved = heap.accounting().reserved_bytes / MIB;
        heap.trim().unwrap();
        let trimmed = heap.accounting();
        assert!(trimmed.reserved_bytes <= trimmed.live_bytes + 8 * MIB, "{trimmed:?}");
        kept.into_iter().for_each(|(_, block)| heap.free(block).unwrap());
        drop(heap);
        rig.finish(&[stream]);
        reserved
    };
    assert_eq!(reserved_after(1024), 256 + 24, "there is room: new memory is taken");
    assert_eq!(reserved_after(272), 256, "there is little: what is scattered is gathered");
}

#[test]
fn what_is_missing_for_a_row_is_taken_from_the_device_and_no_more() {
    // So many blocks of 16 MiB; every second one is freed: half of them is free, 16 MiB in a row.
    const BLOCKS: u64 = 16;
    let reserved_after = |wanted_mib: u64, limit_mib: u64| {
        let rig = Rig::new(9, 1 << 30);
        let stream = rig.stream();
        let budget = Some(Budget::new("limit", limit_mib * MIB));
        let heap = rig.heap_with(HeapConfig { budget, ..HeapConfig::default() });
        let allocate = |bytes| heap.allocate(&AllocationRequest::new(bytes, stream));
        let blocks: Vec<_> = (0..BLOCKS).map(|_| allocate(16 * MIB).unwrap()).collect();
        let (freed, mut kept): (Vec<_>, Vec<_>) = (0..).zip(blocks).partition(|(at, _)| at % 2 == 0);
        freed.into_iter().for_each(|(_, block)| heap.free(block).unwrap());
        let before = heap.activity();
        let got = allocate(wanted_mib * MIB).map_err(|error| assert!(error.is_oom(), "{error}"));
        let here = heap.activity().since(&before);
        let reserved = got.is_ok().then(|| heap.accounting().reserved_bytes / MIB);
        kept.extend(got.ok().map(|block| (BLOCKS, block)));
        for (at, block) in kept {
            rig.write(stream, &block, at as u8);
            assert!(rig.read(stream, &block).iter().all(|byte| u64::from(*byte) == at));
            heap.free(block).unwrap();
        }
        drop(heap);
        rig.finish(&[stream]);
        (reserved, here.growths, here.remaps_mapped)
    };
    assert_eq!(reserved_after(112, 1024), (Some(256), 0, 1), "all of it is there");
    assert_eq!(reserved_after(160, 1024), (Some(256 + 32), 1, 1), "a fifth is missing");
    assert_eq!(reserved_after(160, 256 + 32), (Some(256 + 32), 1, 1), "and there is just so much");
    assert_eq!(reserved_after(160, 256 + 30).0, None, "there is not");
}
