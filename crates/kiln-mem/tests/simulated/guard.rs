//! A guard finds writes that should not have happened, says of which allocation, and loses no block.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::rig::{MIB, Random, Rig, with_rig};
use kiln_mem::layer::{Damage, FailPlan, Failing, GuardConfig, Guarded};
use kiln_mem::{AllocTag, AllocationRequest, DeviceBlock, Heap, MemoryResource, MemoryResourceExt};
use kiln_sim::{DeviceConfig, FaultPlan, PlannedFault};

fn guard(rig: &Rig, quarantine_bytes: u64) -> Guarded<Heap> {
    let config = GuardConfig { zone_bytes: 256, quarantine_bytes };
    Guarded::new(config, rig.driver(), rig.order(), rig.heap())
}

#[test]
fn a_guard_finds_writes_beside_a_block_and_says_which() {
    with_rig(|rig, stream| {
        let guard = guard(rig, 0);
        let tag = AllocTag::new("victim").unwrap();
        let victim = || guard.allocate(&AllocationRequest::new(1000, stream).tag(tag)).unwrap();
        let (under, over) = (victim(), victim());
        assert_eq!(guard.checker().check().unwrap(), []);
        let before = |block: &DeviceBlock, bytes: u64| {
            let mut place = block.device_place().unwrap();
            place.offset -= bytes;
            place
        };
        rig.write_at(stream, before(&under, 5), 7, 1);
        rig.write_at(stream, over.device_place().unwrap().plus(1000 + 3), 7, 1);
        let found = guard.checker().check().unwrap();
        let damage: Vec<(u64, Damage)> = found.iter().map(|found| (found.serial, found.damage)).collect();
        assert_eq!(damage, [(1, Damage::Underrun { before: 5 }), (2, Damage::Overrun { past: 3 })]);
        assert_eq!((found[0].tag, found[0].bytes, found[1].block), (tag, 1000, over.id()));
        let text = found[1].to_string();
        assert!(
            text.starts_with("allocation 2 (1000 bytes for victim") && text.ends_with("3 bytes past its end")
        );
        for block in [under, over] {
            let failed = guard.free(block).unwrap_err();
            assert!(failed.error.is_corrupt(), "{}", failed.error);
            guard.free(failed.block).expect("what was reported once can be freed");
        }
        assert_eq!(guard.accounting().live_blocks, 0);
    });
}

#[test]
fn a_guard_finds_writes_after_the_end() {
    with_rig(|rig, stream| {
        let guard = guard(rig, MIB);
        let block = guard.allocate(&AllocationRequest::new(5000, stream)).unwrap();
        let place = block.device_place().unwrap();
        guard.free(block).unwrap();
        assert_eq!(guard.checker().check().unwrap(), []);
        rig.write_at(stream, place.plus(123), 7, 1);
        let found = guard.checker().check().unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].damage, Damage::UseAfterFree { offset: 123 });
        guard.trim().unwrap();
        assert_eq!(guard.checker().take_findings(), found, "and when it leaves the quarantine");
        assert_eq!(guard.checker().take_findings(), []);
    });
}

#[test]
fn a_new_block_holds_what_no_program_mistakes_for_data() {
    with_rig(|rig, stream| {
        let guard = guard(rig, 0);
        let block = guard.allocate(&AllocationRequest::new(300, stream)).unwrap();
        assert!(rig.read(stream, &block).iter().all(|byte| *byte == 0xcd));
        guard.free(block).unwrap();
    });
}

#[test]
fn a_block_in_quarantine_cannot_be_freed_again() {
    with_rig(|rig, stream| {
        let guard = guard(rig, MIB);
        let block = guard.allocate(&AllocationRequest::new(5000, stream)).unwrap();
        let parts = block.into_parts(guard.key()).unwrap();
        // SAFETY: nothing uses the memory. The second block breaks the contract on purpose: it has to be refused.
        let made = || unsafe { DeviceBlock::from_parts(guard.key(), parts) };
        guard.free(made()).unwrap();
        let refused = guard.free(made()).unwrap_err();
        assert!(refused.error.is_stale(), "{}", refused.error);
        assert_eq!(guard.accounting().live_blocks, 1, "it is watched as before");
        guard.trim().unwrap();
        assert_eq!((guard.accounting().live_blocks, guard.checker().take_findings()), (0, Vec::new()));
        drop(refused);
    });
}

#[test]
fn a_block_that_cannot_be_freed_stays_in_quarantine() {
    with_rig(|rig, stream| {
        let plan = FailPlan { every_free: 2, ..FailPlan::default() };
        let config = GuardConfig { zone_bytes: 256, quarantine_bytes: MIB };
        let guard = Guarded::new(config, rig.driver(), rig.order(), Failing::new(plan, rig.heap()));
        let blocks = [1, 2, 3].map(|bytes| guard.allocate(&AllocationRequest::new(bytes, stream)).unwrap());
        let late = blocks[1].device_place().unwrap();
        blocks.into_iter().for_each(|block| guard.free(block).unwrap());
        rig.write_at(stream, late, 7, 1);
        assert!(guard.trim().unwrap_err().driver().is_some(), "the second free fails");
        assert_eq!(guard.accounting().live_blocks, 2);
        assert_eq!(guard.checker().take_findings(), [], "which is not over yet");
        assert_eq!(guard.checker().check().unwrap().len(), 1);
        assert!(guard.trim().is_err(), "the fourth one too");
        guard.trim().unwrap();
        assert_eq!(guard.accounting().live_blocks, 0);
        let found = guard.checker().take_findings();
        assert_eq!((found.len(), found[0].damage), (1, Damage::UseAfterFree { offset: 0 }));
    });
}

#[test]
fn a_guard_that_goes_gives_back_what_it_kept() {
    with_rig(|rig, stream| {
        let heap: Arc<Heap> = Arc::new(rig.heap());
        let config = GuardConfig { zone_bytes: 256, quarantine_bytes: MIB };
        let guard = Guarded::new(config, rig.driver(), rig.order(), heap.clone());
        for bytes in [1000, 3000] {
            let block = guard.allocate(&AllocationRequest::new(bytes, stream)).unwrap();
            guard.free(block).unwrap();
        }
        assert_eq!(heap.accounting().live_blocks, 2, "kept and watched");
        drop(guard);
        assert_eq!((heap.accounting().live_blocks, heap.accounting().live_bytes), (0, 0));
    });
}

#[test]
fn a_guard_without_room_to_look_through_takes_nothing() {
    // The first allocation is the heap's, the second the guard's window.
    let faults = FaultPlan::none().on(0, PlannedFault::OutOfMemory { allocation: 2 });
    let rig = Rig::with(1, DeviceConfig::with_memory(64 * MIB), faults);
    let stream = rig.stream();
    let guard = guard(&rig, 0);
    guard.allocate(&AllocationRequest::new(1000, stream)).unwrap_err();
    assert_eq!(guard.accounting().live_blocks, 0);
    let block = guard.allocate(&AllocationRequest::new(1000, stream)).unwrap();
    guard.free(block).unwrap();
    drop(guard);
    rig.finish(&[stream]);
}

/// Memory that other threads free, and get again with other bounds, is not taken for damage.
#[test]
fn a_guard_that_is_asked_while_others_allocate_finds_nothing_where_nothing_is() {
    for quarantine_bytes in [0, 8 << 10] {
        let rig = Rig::new(4, 64 * MIB);
        let streams = [rig.stream(), rig.stream(), rig.stream()];
        let guard = guard(&rig, quarantine_bytes);
        let working = AtomicUsize::new(streams.len());
        std::thread::scope(|scope| {
            for (seed, stream) in streams.iter().enumerate() {
                let (guard, rig, working) = (&guard, &rig, &working);
                scope.spawn(move || {
                    let mut random = Random::new(seed as u64);
                    let mut live = Vec::new();
                    for _ in 0..300 {
                        if random.below(2) == 0 || live.is_empty() {
                            let block = guard
                                .allocate(&AllocationRequest::new(random.size(2 << 10), *stream))
                                .unwrap();
                            rig.write(*stream, &block, 7);
                            live.push(block);
                        } else {
                            guard.free(live.swap_remove(random.below(live.len() as u64) as usize)).unwrap();
                        }
                    }
                    live.into_iter().for_each(|block| guard.free(block).unwrap());
                    working.fetch_sub(1, Ordering::Relaxed);
                });
            }
            while working.load(Ordering::Relaxed) > 0 {
                assert_eq!(guard.checker().check().unwrap(), []);
                // The others have to come to their turn.
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        });
        guard.trim().unwrap();
        assert_eq!((guard.checker().take_findings(), guard.accounting().live_blocks), (Vec::new(), 0));
        drop(guard);
        rig.finish(&streams);
    }
}

/// One block that the resource below does not take now does not keep a guard from giving up the others.
#[test]
fn a_guard_gives_up_what_it_can_when_memory_is_short() {
    let rig = Rig::new(5, 8 * MIB);
    let stream = rig.stream();
    let plan = FailPlan { every_free: 2, ..FailPlan::default() };
    let config = GuardConfig { zone_bytes: 256, quarantine_bytes: 64 * MIB };
    let guard = Guarded::new(config, rig.driver(), rig.order(), Failing::new(plan, rig.heap()));
    let request = AllocationRequest::new(3 * MIB, stream);
    let blocks = [guard.allocate(&request).unwrap(), guard.allocate(&request).unwrap()];
    blocks.into_iter().for_each(|block| guard.free(block).unwrap());
    // The first of them is freed below; the second is not.
    let block = guard.allocate(&request).unwrap();
    let error = guard.allocate(&AllocationRequest::new(6 * MIB, stream)).unwrap_err();
    assert!(error.is_oom(), "{error}");
    guard.free(block).unwrap();
    while guard.accounting().live_blocks > 0 {
        let _ = guard.trim();
    }
    drop(guard);
    rig.finish(&[stream]);
}

#[test]
fn a_guard_finds_writes_beside_a_block_that_was_freed() {
    with_rig(|rig, stream| {
        let guard = guard(rig, MIB);
        let block = guard.allocate(&AllocationRequest::new(1000, stream)).unwrap();
        let place = block.device_place().unwrap();
        guard.free(block).unwrap();
        rig.write_at(stream, place.plus(1000 + 9), 7, 1);
        let found = guard.checker().check().unwrap();
        assert_eq!(found.iter().map(|found| found.damage).collect::<Vec<_>>(), [Damage::Overrun { past: 9 }]);
        guard.trim().unwrap();
        assert_eq!(guard.checker().take_findings(), found, "and when it leaves the quarantine");
    });
}

/// What was freed below belongs to another user; what is written there then is no damage.
#[test]
fn a_guard_forgets_what_it_gave_back() {
    with_rig(|rig, stream| {
        let heap = Arc::new(rig.heap());
        let config = GuardConfig { zone_bytes: 256, quarantine_bytes: 0 };
        let guard = Guarded::new(config, rig.driver(), rig.order(), heap.clone());
        let block = guard.allocate(&AllocationRequest::new(64 << 10, stream)).unwrap();
        guard.free(block).unwrap();
        let other = heap.allocate(&AllocationRequest::new((64 << 10) + 2 * 256, stream)).unwrap();
        rig.write(stream, &other, 7);
        assert_eq!(guard.checker().check().unwrap(), []);
        heap.free(other).unwrap();
    });
}
