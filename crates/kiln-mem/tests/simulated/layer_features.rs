//! What each layer is there for.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::rig::{MIB, with_rig};
use kiln_mem::layer::{
    Aligned, Counted, FailPlan, Failing, GuardConfig, Guarded, LeakTracked, Limited, Retrying,
};
use kiln_mem::{AllocTag, AllocationRequest, DeviceBlock, MemoryResource, MemoryResourceExt};

/// A call site that is found by its name, however the rest of the test was compiled.
#[inline(never)]
fn leaky_call_site(leaks: &impl MemoryResource, request: &AllocationRequest) -> DeviceBlock {
    leaks.allocate(request).unwrap()
}

#[test]
fn leaks_are_listed_with_tags_and_call_sites() {
    with_rig(|rig, stream| {
        let leaks = LeakTracked::sampling(2, rig.heap());
        let (cache, rows) = (AllocTag::new("leaky cache").unwrap(), AllocTag::new("leaky rows").unwrap());
        let allocate = |bytes, tag| leaky_call_site(&leaks, &AllocationRequest::new(bytes, stream).tag(tag));
        let blocks = [allocate(100, rows), allocate(5000, cache), allocate(300, rows)];
        assert_eq!(leaks.tracker().by_tag(), [(cache, 1, 5000), (rows, 2, 400)]);
        let live = leaks.tracker().live();
        assert_eq!(live.iter().map(|live| live.serial).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(live[0].site.is_none() && live[2].site.is_none());
        let site = live[1].site.as_ref().unwrap().to_string();
        assert!(site.contains("leaky_call_site"), "{site}");
        assert!(live[1].to_string().contains("5000 bytes for leaky cache"));
        blocks.into_iter().for_each(|block| leaks.free(block).unwrap());
        assert_eq!(leaks.tracker().live().len(), 0);
    });
}

#[test]
fn a_scope_measures_one_tag_and_no_other() {
    with_rig(|rig, stream| {
        let stats = Counted::new(rig.heap());
        let (mine, other) = (AllocTag::new("mine").unwrap(), AllocTag::new("other").unwrap());
        let before = stats.allocate(&AllocationRequest::new(77, stream).tag(mine)).unwrap();
        let scope = stats.statistics().scope(mine);
        let noise = stats.allocate(&AllocationRequest::new(5000, stream).tag(other)).unwrap();
        let block = stats.allocate(&AllocationRequest::new(1000, stream).tag(mine)).unwrap();
        stats.free(before).unwrap();
        let counts = scope.counts();
        assert_eq!((counts.allocations, counts.allocated_bytes, counts.frees), (1, 1000, 1));
        assert_eq!(stats.statistics().counts(other).live_bytes(), 5000);
        assert_eq!((stats.statistics().total().live_bytes(), stats.statistics().peak_bytes()), (6000, 6077));
        stats.free(noise).unwrap();
        stats.free(block).unwrap();
    });
}

#[test]
fn an_error_that_passes_counters_names_who_holds_most() {
    with_rig(|rig, stream| {
        let stats = Counted::new(Limited::new(MIB, rig.heap()));
        let hog = AllocTag::new("hog").unwrap();
        let block = stats.allocate(&AllocationRequest::new(900_000, stream).tag(hog)).unwrap();
        let error = stats.allocate(&AllocationRequest::new(MIB, stream)).unwrap_err();
        assert_eq!(error.exhausted().unwrap().top_tags, [(hog, 900_000)]);
        stats.free(block).unwrap();
    });
}

#[test]
fn failures_come_when_they_were_planned_and_change_nothing() {
    with_rig(|rig, stream| {
        let plan = FailPlan { every_allocation: 3, every_free: 2, above_bytes: 10_000 };
        let failing = Failing::new(plan, rig.heap());
        let allocate = |bytes| failing.allocate(&AllocationRequest::new(bytes, stream));
        let mut blocks = vec![allocate(1).unwrap(), allocate(1).unwrap()];
        assert!(allocate(1).unwrap_err().is_oom());
        blocks.push(allocate(10_000).unwrap());
        assert!(allocate(10_001).unwrap_err().is_oom());
        assert_eq!(failing.accounting().live_blocks, 3);
        failing.free(blocks.remove(0)).unwrap();
        let failed = failing.free(blocks.remove(0)).unwrap_err();
        assert!(!failed.error.is_oom() && failed.error.driver().is_some());
        assert_eq!(failing.accounting().live_blocks, 2);
        failing.free(failed.block).unwrap();
        let last = failing.free(blocks.remove(0)).unwrap_err().block;
        failing.free(last).unwrap();
    });
}

#[test]
fn trying_again_helps_where_the_resource_below_does_not_by_itself() {
    with_rig(|rig, stream| {
        let stock = |bytes| {
            // Blocks of the pool that were freed stay in the pool until it is trimmed.
            let pool = kiln_mem::DriverPool::new(rig.driver(), rig.order()).unwrap();
            let block = pool.allocate(&AllocationRequest::new(bytes, stream)).unwrap();
            pool.free(block).unwrap();
            rig.synchronize(stream);
            pool
        };
        let direct =
            |pool| Retrying::new(1, Both { pool, direct: kiln_mem::Direct::new(rig.driver(), rig.order()) });
        let request = AllocationRequest::new(40 * MIB, stream);
        let plain = stock(40 * MIB);
        let both = Both { pool: plain, direct: kiln_mem::Direct::new(rig.driver(), rig.order()) };
        let refused = both.allocate(&request).unwrap_err();
        assert!(refused.is_oom(), "{refused}");
        drop(both);
        let retrying = direct(stock(40 * MIB));
        let block = retrying.allocate(&request).unwrap();
        retrying.free(block).unwrap();
        let error = retrying.allocate(&AllocationRequest::new(100 * MIB, stream)).unwrap_err();
        assert!(!error.exhausted().unwrap().attempts.is_empty(), "{error}");
        retrying.trim().unwrap();
    });
}

/// Allocates directly; under pressure a pool that holds memory is trimmed.
struct Both {
    pool: kiln_mem::DriverPool,
    direct: kiln_mem::Direct,
}

impl MemoryResource for Both {
    fn key(&self) -> kiln_mem::ResourceKey {
        self.direct.key()
    }

    fn allocate(&self, request: &AllocationRequest) -> kiln_mem::Result<DeviceBlock> {
        self.direct.allocate(request)
    }

    fn deallocate(&self, block: DeviceBlock, uses: &kiln_mem::Stamps) -> Result<(), kiln_mem::FreeError> {
        self.direct.deallocate(block, uses)
    }

    fn accounting(&self) -> kiln_mem::Accounting {
        self.direct.accounting()
    }

    fn reclaim(&self, step: kiln_mem::ReclaimStep) -> kiln_mem::Result<kiln_mem::Reclaimed> {
        Ok(self.pool.reclaim(step)? + self.direct.reclaim(step)?)
    }
}

impl std::fmt::Display for Both {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("both")
    }
}

#[test]
fn alignment_is_the_larger_of_both() {
    with_rig(|rig, stream| {
        let aligned = Aligned::new(64 << 10, rig.heap()).unwrap();
        for (asked, got) in [(1, 64 << 10), (2 * MIB, 2 * MIB)] {
            let block = aligned.allocate(&AllocationRequest::new(100, stream).align(asked)).unwrap();
            assert_eq!(block.address().0 % got, 0);
            aligned.free(block).unwrap();
        }
        assert!(Aligned::new(3, rig.heap()).is_err());
    });
}

#[test]
fn a_step_that_cannot_be_taken_does_not_hide_that_memory_is_out() {
    with_rig(|rig, stream| {
        let heap = Failing::new(FailPlan { every_free: 1, ..FailPlan::default() }, rig.heap());
        let config = GuardConfig { zone_bytes: 256, quarantine_bytes: 64 * MIB };
        let retrying = Retrying::new(2, Guarded::new(config, rig.driver(), rig.order(), heap));
        let block = retrying.allocate(&AllocationRequest::new(MIB, stream)).unwrap();
        // Into quarantine, which it cannot leave.
        retrying.free(block).unwrap();
        let error = retrying.allocate(&AllocationRequest::new(80 * MIB, stream)).unwrap_err();
        assert!(error.is_oom(), "{error}");
        assert_eq!(error.exhausted().unwrap().layer, "heap");
        let quarantined = retrying.accounting();
        assert_eq!((quarantined.live_blocks, quarantined.pending_bytes), (1, 0));
    });
}

/// Nothing of it is left, until it was asked so often to give something up.
struct Stingy {
    key: kiln_mem::ResourceKey,
    reaps_left: AtomicU32,
    heap: kiln_mem::Heap,
}

impl MemoryResource for Stingy {
    fn key(&self) -> kiln_mem::ResourceKey {
        self.key
    }

    fn allocate(&self, request: &AllocationRequest) -> kiln_mem::Result<DeviceBlock> {
        // An alignment that no block can have is refused first.
        let block = self.heap.allocate(request)?;
        if self.reaps_left.load(Ordering::Relaxed) > 0 {
            self.heap.free(block).unwrap();
            return Err(kiln_mem::ErrorKind::from(kiln_mem::Exhausted::new("stingy", request.bytes)).into());
        }
        let parts = block.into_parts(self.heap.key()).unwrap();
        // SAFETY: the parts are those of a block of the heap's, and `deallocate` makes the block out of them again.
        Ok(unsafe { DeviceBlock::from_parts(self.key, parts) })
    }

    fn deallocate(&self, block: DeviceBlock, uses: &kiln_mem::Stamps) -> Result<(), kiln_mem::FreeError> {
        let parts = block.into_parts(self.key).unwrap();
        // SAFETY: as above.
        self.heap.deallocate(unsafe { DeviceBlock::from_parts(self.heap.key(), parts) }, uses)
    }

    fn accounting(&self) -> kiln_mem::Accounting {
        self.heap.accounting()
    }

    /// Gives a little on one step.
    fn reclaim(&self, step: kiln_mem::ReclaimStep) -> kiln_mem::Result<kiln_mem::Reclaimed> {
        if step != kiln_mem::ReclaimStep::Callbacks {
            return Ok(kiln_mem::Reclaimed::default());
        }
        self.reaps_left.fetch_sub(1, Ordering::Relaxed);
        Ok(kiln_mem::Reclaimed::freed(1))
    }
}

impl std::fmt::Display for Stingy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stingy")
    }
}

#[test]
fn the_ladder_is_gone_down_as_often_as_was_said_and_only_for_want_of_memory() {
    with_rig(|rig, stream| {
        let stingy = |reaps_left| Stingy {
            key: kiln_mem::ResourceKey::fresh(),
            reaps_left: AtomicU32::new(reaps_left),
            heap: rig.heap(),
        };
        let retrying = Retrying::new(3, stingy(3));
        retrying.free(retrying.allocate(&AllocationRequest::new(64, stream)).unwrap()).unwrap();
        let retrying = Retrying::new(3, stingy(4));
        let error = retrying.allocate(&AllocationRequest::new(64, stream)).unwrap_err();
        assert_eq!(error.exhausted().unwrap().attempts.len(), 3 * kiln_mem::ReclaimStep::ALL.len());
        let retrying = Retrying::new(3, stingy(5));
        assert!(
            retrying.allocate(&AllocationRequest::new(64, stream).align(3)).unwrap_err().refusal().is_some()
        );
        assert_eq!(retrying.inner().reaps_left.load(Ordering::Relaxed), 5, "nothing was asked for it");
    });
}

#[test]
fn counters_leave_the_tags_that_a_layer_below_named() {
    with_rig(|rig, stream| {
        let hog = AllocTag::new("hog beside the counters").unwrap();
        let heap = std::sync::Arc::new(rig.heap());
        let held = heap.allocate(&AllocationRequest::new(40 * MIB, stream).tag(hog)).unwrap();
        let stats = Counted::new(heap.clone());
        let own = stats.allocate(&AllocationRequest::new(MIB, stream)).unwrap();
        let error = stats.allocate(&AllocationRequest::new(40 * MIB, stream)).unwrap_err();
        assert_eq!(error.exhausted().unwrap().top_tags[0], (hog, 40 * MIB));
        stats.free(own).unwrap();
        heap.free(held).unwrap();
    });
}
