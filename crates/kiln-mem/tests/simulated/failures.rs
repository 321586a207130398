//! A call that fails below has changed nothing above.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::rig::{MIB, Rig, with_rig};
use kiln_driver::{DeviceAddress, Timeout, Waited};
use kiln_mem::layer::{
    Budgeted, Damage, FailPlan, Failing, GuardConfig, Guarded, LeakTracked, Limited, TraceConfig, Traced,
};
use kiln_mem::replay::{AllocationLog, LogOptions};
use kiln_mem::trace::{RecordedTrace, TraceAction};
use kiln_mem::{
    AllocTag, AllocationRequest, Budget, DeviceBlock, DriverOrder, Heap, HeapConfig, MemoryResource,
    MemoryResourceExt, Order, Pages, Stamp, StreamKey,
};

/// A heap of which every so many allocations and frees fail.
fn failing(rig: &Rig, every_allocation: u64, every_free: u64) -> Failing<Heap> {
    Failing::new(FailPlan { every_allocation, every_free, above_bytes: 0 }, rig.heap())
}

#[test]
fn limits_are_not_used_up_by_allocations_that_fail_below() {
    with_rig(|rig, stream| {
        let budget = Budget::new("test", 4 * MIB);
        let layers: [Box<dyn MemoryResource>; 2] = [
            Box::new(Limited::new(4 * MIB, failing(rig, 2, 0))),
            Box::new(Budgeted::new(budget.clone(), failing(rig, 2, 0))),
        ];
        for resource in &layers {
            for _ in 0..10 {
                let block = resource.allocate(&AllocationRequest::new(3 * MIB, stream)).unwrap();
                resource.free(block).unwrap();
                let error = resource.allocate(&AllocationRequest::new(3 * MIB, stream)).unwrap_err();
                assert_eq!(error.exhausted().unwrap().layer, "fail", "{resource}: {error}");
            }
        }
        drop(layers);
        assert_eq!(budget.used_bytes(), 0);
    });
}

#[test]
fn limits_count_what_could_not_be_freed() {
    with_rig(|rig, stream| {
        let budget = Budget::new("test", 4 * MIB);
        let layers: [Box<dyn MemoryResource>; 2] = [
            Box::new(Limited::new(4 * MIB, failing(rig, 0, 2))),
            Box::new(Budgeted::new(budget.clone(), failing(rig, 0, 2))),
        ];
        for resource in &layers {
            let block = resource.allocate(&AllocationRequest::new(MIB, stream)).unwrap();
            resource.free(block).unwrap();
            let block = resource.allocate(&AllocationRequest::new(3 * MIB, stream)).unwrap();
            let block = resource.free(block).unwrap_err().block;
            assert!(
                resource.allocate(&AllocationRequest::new(2 * MIB, stream)).unwrap_err().is_oom(),
                "{resource}"
            );
            resource.free(block).unwrap();
        }
        drop(layers);
        assert_eq!(budget.used_bytes(), 0);
    });
}

#[test]
fn what_was_set_aside_is_there_after_an_allocation_that_failed_below() {
    with_rig(|rig, stream| {
        let tag = AllocTag::new("set aside for nothing").unwrap();
        let budget = Budget::new("test", 4 * MIB);
        let resource = Budgeted::new(budget.clone(), failing(rig, 1, 0)).limit_tag(tag, 3 * MIB);
        let reserved = resource.reserve(2 * MIB).unwrap();
        for request in [AllocationRequest::new(MIB, stream), AllocationRequest::new(MIB, stream).tag(tag)] {
            assert!(resource.allocate_from(&reserved, &request).unwrap_err().is_oom());
            assert_eq!((reserved.left_bytes(), budget.used_bytes()), (2 * MIB, 2 * MIB));
            assert_eq!(budget.children()[0].used_bytes(), 0);
        }
        // It goes where it came from, also after its resource was dropped.
        drop(resource);
        std::thread::scope(|scope| drop(scope.spawn(move || drop(reserved))));
        assert_eq!(budget.used_bytes(), 0);
    });
}

#[test]
fn a_trace_and_a_table_of_live_blocks_know_what_could_not_be_freed() {
    with_rig(|rig, stream| {
        let traced = Traced::new(TraceConfig::default(), failing(rig, 0, 1));
        let leaks = LeakTracked::new(traced);
        let block = leaks.allocate(&AllocationRequest::new(1000, stream)).unwrap();
        let before = leaks.tracker().live()[0].to_string();
        let block = leaks.free(block).unwrap_err().block;
        assert_eq!(leaks.tracker().live().iter().map(ToString::to_string).collect::<Vec<_>>(), [before]);
        let traced = leaks.inner();
        let actions: Vec<TraceAction> =
            traced.recorder().records().iter().map(|record| record.action).collect();
        assert_eq!(actions, [TraceAction::Allocate, TraceAction::Free, TraceAction::Allocate]);
        let recorded = RecordedTrace { records: traced.recorder().records(), dropped: 0 };
        let log = AllocationLog::from_recorded(&recorded, LogOptions::default()).unwrap();
        assert_eq!((log.blocks(), log.peak_bytes()), (2, 1000));
        // The heap goes, and the block with it.
        drop(block);
    });
}

#[test]
fn a_guard_still_watches_what_could_not_be_freed() {
    with_rig(|rig, stream| {
        let config = GuardConfig { zone_bytes: 256, quarantine_bytes: 0 };
        let guard = Guarded::new(config, rig.driver(), rig.order(), failing(rig, 0, 1));
        let block = guard.allocate(&AllocationRequest::new(1000, stream)).unwrap();
        let block = guard.free(block).unwrap_err().block;
        assert_eq!((block.bytes(), guard.checker().check().unwrap()), (1000, Vec::new()));
        rig.write_at(stream, block.device_place().unwrap().plus(1000), 7, 1);
        let found = guard.checker().check().unwrap();
        assert_eq!((found[0].serial, found[0].damage), (1, Damage::Overrun { past: 0 }));
        drop(block);
    });
}

/// An order that makes no stream wait for another while it is told not to.
struct Reluctant {
    order: Arc<DriverOrder>,
    refuses: AtomicBool,
}

impl Order for Reluctant {
    fn latest(&self, stream: StreamKey) -> u64 {
        self.order.latest(stream)
    }

    fn is_ordered(&self, stream: StreamKey, stamp: Stamp) -> bool {
        self.order.is_ordered(stream, stamp)
    }

    fn is_complete(&self, stamp: Stamp) -> bool {
        self.order.is_complete(stamp)
    }

    fn refresh(&self, _: StreamKey) -> kiln_driver::Result<()> {
        // The order does not learn how far a stream is, so that there is something to wait for.
        Ok(())
    }

    fn wait_on(&self, stream: StreamKey, stamp: Stamp) -> kiln_driver::Result<()> {
        if self.refuses.load(Ordering::Relaxed) {
            return Err(kiln_driver::Error::invalid("wait_on", "an edge", "ask again"));
        }
        self.order.wait_on(stream, stamp)
    }

    fn wait(&self, stamp: Stamp, timeout: Timeout) -> kiln_driver::Result<Waited> {
        self.order.wait(stamp, timeout)
    }
}

#[test]
fn memory_of_another_stream_is_still_there_after_a_wait_that_could_not_be_made() {
    let rig = Rig::new(2, 64 * MIB);
    let (first, second) = (rig.stream(), rig.stream());
    let order = Arc::new(Reluctant { order: rig.order.clone(), refuses: AtomicBool::new(true) });
    let config = HeapConfig { budget: Some(Budget::new("test", 8 * MIB)), ..HeapConfig::default() };
    let heap = Heap::over_pages(rig.driver(), order.clone(), config).unwrap();
    let block = heap.allocate(&AllocationRequest::new(8 * MIB, first)).unwrap();
    rig.write(first, &block, 1);
    heap.free(block).unwrap();
    for _ in 0..3 {
        let error = heap.allocate(&AllocationRequest::new(8 * MIB, second)).unwrap_err();
        assert!(error.driver().is_some() && !error.is_oom(), "{error}");
    }
    order.refuses.store(false, Ordering::Relaxed);
    let block = heap.allocate(&AllocationRequest::new(8 * MIB, second)).unwrap();
    rig.write(second, &block, 2);
    heap.free(block).unwrap();
    assert_eq!(heap.accounting().false_dependencies, 1);
    rig.synchronize(second);
    rig.synchronize(first);
    drop((heap, order));
    rig.finish(&[first, second]);
}

/// Also while work may still use the block, so that it is not free yet.
#[test]
fn a_block_of_pages_that_is_pending_is_not_taken_back_twice() {
    let rig = Rig::new(1, 64 * MIB);
    let stream = rig.stream();
    let pages = Pages::new(rig.driver(), rig.order(), HeapConfig::default()).unwrap();
    let block = pages.allocate(&AllocationRequest::new(3 * MIB, stream)).unwrap();
    rig.keep_busy(stream, &block);
    let parts = block.into_parts(pages.key()).unwrap();
    // SAFETY: nothing uses the memory. The second block breaks the contract on purpose: it has to be refused.
    let made = || unsafe { DeviceBlock::from_parts(pages.key(), parts) };
    pages.free(made()).unwrap();
    let before = pages.accounting();
    assert_eq!(before.pending_bytes, 3 * MIB);
    let refused = pages.free(made()).unwrap_err();
    assert!(refused.error.is_stale(), "{}", refused.error);
    assert_eq!((pages.accounting(), refused.block.address()), (before, DeviceAddress(parts.address.0)));
    drop(refused);
    rig.synchronize(stream);
    drop(pages);
    rig.finish(&[stream]);
}
