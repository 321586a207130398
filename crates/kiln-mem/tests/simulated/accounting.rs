//! What a resource says it holds, asked at any time and by any thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use crate::rig::{MIB, Rig, with_rig};
use kiln_mem::layer::Counted;
use kiln_mem::{AllocTag, AllocationRequest, DeviceBlock, Direct, MemoryResource, MemoryResourceExt};

/// Blocks that are allocated by one thread and freed by another are never counted as freed before they are allocated,
/// at any moment.
#[test]
fn what_is_live_is_never_less_than_nothing() {
    const BYTES: u64 = 1000;
    const IN_FLIGHT: usize = 4;
    let rig = Rig::new(1, 64 * MIB);
    let stream = rig.stream();
    let stats = Counted::new(rig.heap());
    let done = AtomicBool::new(false);
    let (sender, receiver) = sync_channel::<DeviceBlock>(IN_FLIGHT);
    // In the channel, and one each in the hands of both; and as many more as come and go during the count.
    std::thread::scope(|scope| {
        let (stats, done) = (&stats, &done);
        scope.spawn(move || {
            for block in receiver {
                stats.free(block).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        scope.spawn(move || {
            for _ in 0..100_000 {
                sender.send(stats.allocate(&AllocationRequest::new(BYTES, stream)).unwrap()).unwrap();
            }
        });
        while !done.load(Ordering::Relaxed) {
            let counted = stats.accounting();
            let most = counted.outstanding_bytes().max(stats.statistics().total().live_bytes());
            assert!(most < 1 << 40, "{most} bytes are live");
            assert!(counted.live_blocks < 1 << 40 && stats.statistics().total().live_blocks() < 1 << 40);
            assert!(stats.statistics().peak_bytes() < 1 << 40);
        }
    });
    assert_eq!((stats.statistics().total().live_bytes(), stats.accounting().live_bytes), (0, 0));
    drop(stats);
    rig.finish(&[stream]);
}

#[test]
fn a_scope_that_frees_more_than_it_allocates_holds_nothing() {
    with_rig(|rig, stream| {
        let stats = Counted::new(rig.heap());
        let tag = AllocTag::new("freed in a scope").unwrap();
        let block = stats.allocate(&AllocationRequest::new(1000, stream).tag(tag)).unwrap();
        let scope = stats.statistics().scope(tag);
        stats.free(block).unwrap();
        assert_eq!((scope.counts().live_bytes(), scope.counts().live_blocks()), (0, 0));
        assert_eq!((scope.counts().frees, scope.counts().freed_bytes), (1, 1000));
    });
}

#[test]
fn the_peak_of_what_was_taken_counts_what_was_pending() {
    let rig = Rig::new(2, 64 * MIB);
    let stream = rig.stream();
    let direct = Direct::new(rig.driver(), rig.order());
    for _ in 0..2 {
        let block = direct.allocate(&AllocationRequest::new(4 * MIB, stream)).unwrap();
        rig.keep_busy(stream, &block);
        direct.free(block).unwrap();
    }
    let counted = direct.accounting();
    assert_eq!((counted.pending_bytes, counted.reserved_bytes), (8 * MIB, 8 * MIB));
    rig.synchronize(stream);
    direct.trim().unwrap();
    let counted = direct.accounting();
    assert_eq!((counted.reserved_bytes, counted.peak_reserved_bytes), (0, 8 * MIB));
    assert_eq!(counted.peak_live_bytes, 4 * MIB);
    drop(direct);
    rig.finish(&[stream]);
}
