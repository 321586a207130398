//! An address that comes back at once: a resource below frees a block, another thread gets the same address and enters
//! it in the tables of the layer, and only then does the free return. A layer that removes a block from its tables after
//! it was freed below crosses out the new one.

use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::rig::{MIB, Rig};
use kiln_mem::layer::{Budgeted, Counted, GuardConfig, Guarded, LeakTracked, Limited, TraceConfig, Traced};
use kiln_mem::trace::{RecordedTrace, TraceAction};
use kiln_mem::{
    Accounting, AllocationRequest, Budget, DeviceBlock, FreeError, MemoryResource, MemoryResourceExt,
    ReclaimStep, Reclaimed, ResourceKey, Result, Stamps, StreamRef,
};

/// A resource that, when it is told to, returns from a free only after another thread allocated.
struct Delaying {
    inner: Arc<dyn MemoryResource>,
    delay: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl MemoryResource for Delaying {
    fn key(&self) -> ResourceKey {
        self.inner.key()
    }

    fn allocate(&self, request: &AllocationRequest) -> Result<DeviceBlock> {
        self.inner.allocate(request)
    }

    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        self.inner.deallocate(block, uses)?;
        let delay = self.delay.lock().unwrap().take();
        if let Some((freed, allocated)) = delay {
            freed.send(()).unwrap();
            allocated.recv().unwrap();
        }
        Ok(())
    }

    fn accounting(&self) -> Accounting {
        self.inner.accounting()
    }

    fn reclaim(&self, step: ReclaimStep) -> Result<Reclaimed> {
        self.inner.reclaim(step)
    }
}

impl fmt::Display for Delaying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.inner)
    }
}

const BYTES: u64 = MIB;

/// Lets an address change hands in the middle of a free through a layer, then looks at its books: exactly the new
/// block is live. Both blocks have the same address.
fn hand_over<D: MemoryResource>(
    make: impl FnOnce(&Rig, Arc<Delaying>) -> D,
    check: impl FnOnce(&D, &DeviceBlock, StreamRef),
) {
    let rig = Rig::new(1, 64 * MIB);
    let stream = rig.stream();
    let (freed, has_freed) = channel();
    let (allocated, has_allocated) = channel();
    let delaying = Arc::new(Delaying { inner: Arc::new(rig.heap()), delay: Mutex::new(None) });
    let resource = make(&rig, delaying.clone());
    let first = resource.allocate(&AllocationRequest::new(BYTES, stream)).unwrap();
    let address = first.address();
    *delaying.delay.lock().unwrap() = Some((freed, has_allocated));
    let second = std::thread::scope(|scope| {
        let (resource, delaying) = (&resource, &delaying);
        let other = scope.spawn(move || {
            has_freed.recv().unwrap();
            // What this thread took from the front cache of the other one lies in the arena.
            delaying.reclaim(ReclaimStep::ThreadCaches).unwrap();
            let block = resource.allocate(&AllocationRequest::new(BYTES, stream)).unwrap();
            allocated.send(()).unwrap();
            block
        });
        resource.free(first).unwrap();
        other.join().unwrap()
    });
    assert_eq!(second.address(), address, "the address came back");
    check(&resource, &second, stream);
    resource.free(second).unwrap();
    resource.trim().unwrap();
    assert_eq!(resource.accounting().live_blocks, 0);
    drop((resource, delaying));
    rig.finish(&[stream]);
}

#[test]
fn leak_tracking_knows_the_new_block() {
    hand_over(
        |_, inner| LeakTracked::new(inner),
        |leaks, block, _| {
            let live = leaks.tracker().live();
            assert_eq!(live.len(), 1);
            assert_eq!((live[0].block, live[0].serial), (block.id(), 2));
        },
    );
}

#[test]
fn a_guard_watches_the_new_block() {
    let config = GuardConfig { zone_bytes: 256, quarantine_bytes: 0 };
    hand_over(
        |rig, inner| Guarded::new(config, rig.driver(), rig.order(), inner),
        |guard, block, _| {
            assert_eq!(guard.checker().check().unwrap(), [], "nothing was written");
            assert_eq!(block.bytes(), BYTES);
            // The free that follows would be refused below if the guard had forgotten how much larger the block is there.
        },
    );
}

#[test]
fn a_trace_tells_the_story_in_order() {
    hand_over(
        |_, inner| Traced::new(TraceConfig::default(), inner),
        |traced, _, _| {
            let records = traced.recorder().records();
            let actions: Vec<TraceAction> = records.iter().map(|record| record.action).collect();
            assert_eq!(actions, [TraceAction::Allocate, TraceAction::Free, TraceAction::Allocate]);
            let recorded = RecordedTrace { records, dropped: 0 };
            let log = kiln_mem::replay::AllocationLog::from_recorded(
                &recorded,
                kiln_mem::replay::LogOptions::default(),
            );
            assert_eq!(log.unwrap().peak_bytes(), BYTES, "never two owners");
        },
    );
}

#[test]
fn counters_count_one() {
    hand_over(
        |_, inner| Counted::new(inner),
        |stats, _, _| {
            let total = stats.statistics().total();
            assert_eq!((total.allocations, total.live_bytes()), (2, BYTES));
        },
    );
    hand_over(
        |_, inner| Limited::new(2 * BYTES, inner),
        |limit, _, stream| {
            assert_eq!(limit.used_bytes(), BYTES);
            assert!(limit.allocate(&AllocationRequest::new(BYTES + 1, stream)).is_err());
        },
    );
    let budget = Budget::new("test", 2 * BYTES);
    hand_over(
        |_, inner| Budgeted::new(budget.clone(), inner),
        |_, _, _| assert!(budget.used_bytes() >= BYTES && budget.used_bytes() < BYTES + BYTES / 64),
    );
    assert_eq!(budget.used_bytes(), 0);
}

#[test]
fn a_limit_does_not_let_in_more_than_it_allows_while_a_free_is_on_its_way() {
    type Make = fn(Arc<Delaying>) -> Box<dyn MemoryResource>;
    let makes: [Make; 2] = [
        |inner| Box::new(Limited::new(BYTES, inner)),
        |inner| Box::new(Budgeted::new(Budget::new("test", BYTES), inner)),
    ];
    for make in makes {
        let rig = Rig::new(2, 64 * MIB);
        let stream = rig.stream();
        let (freed, has_freed) = channel();
        let (allocated, has_allocated) = channel();
        let delaying = Arc::new(Delaying { inner: Arc::new(rig.heap()), delay: Mutex::new(None) });
        let limit = make(delaying.clone());
        let first = limit.allocate(&AllocationRequest::new(BYTES, stream)).unwrap();
        *delaying.delay.lock().unwrap() = Some((freed, has_allocated));
        std::thread::scope(|scope| {
            let limit = &limit;
            scope.spawn(move || {
                has_freed.recv().unwrap();
                // The free is not done until it returns.
                assert!(limit.allocate(&AllocationRequest::new(1, stream)).unwrap_err().is_oom());
                allocated.send(()).unwrap();
            });
            limit.free(first).unwrap();
        });
        let all = limit.allocate(&AllocationRequest::new(BYTES, stream)).unwrap();
        limit.free(all).unwrap();
        drop((limit, delaying));
        rig.finish(&[stream]);
    }
}
