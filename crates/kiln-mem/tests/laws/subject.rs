//! The memory resources that the laws are run on.

use std::sync::Arc;

use kiln_mem::layer::{
    Aligned, Budgeted, Counted, FailPlan, Failing, GuardConfig, Guarded, LeakTracked, Limited, Retrying,
    TraceConfig, Traced,
};
use kiln_mem::{Budget, Direct, DriverPool, Heap, HeapConfig, MemoryResource, Pages};

use crate::rig::Rig;

/// A resource to be tested.
pub(crate) struct Subject {
    pub name: &'static str,
    /// What its `Display` prints.
    pub text: &'static str,
    pub make: fn(&Rig) -> Arc<dyn MemoryResource>,
    /// Laws it need not obey, and why.
    pub exclusions: &'static [(&'static str, &'static str)],
}

const GIB: u64 = 1 << 30;
const DRIVER_ALIGNS: (&str, &str) = ("alignment", "the driver aligns to 256 bytes and no more");
const HOST_MEMORY: (&str, &str) = ("exhaustion", "host memory is not the device's, and the host has a lot");

/// All of them.
pub(crate) const SUBJECTS: &[Subject] = &[
    Subject { name: "direct", text: "direct", make: direct, exclusions: &[DRIVER_ALIGNS] },
    Subject { name: "pages", text: "pages", make: pages, exclusions: &[] },
    Subject { name: "pool", text: "pool", make: pool, exclusions: &[DRIVER_ALIGNS] },
    Subject { name: "heap over pages", text: "heap", make: heap, exclusions: &[] },
    Subject { name: "heap over chunks", text: "chunks", make: chunks, exclusions: &[] },
    Subject { name: "heap over host memory", text: "host", make: host, exclusions: &[HOST_MEMORY] },
    Subject {
        name: "budget",
        text: "budget(1 GiB, heap)",
        make: |rig| Arc::new(Budgeted::new(Budget::new("test", GIB), heap(rig))),
        exclusions: &[],
    },
    Subject {
        name: "limit",
        text: "limit(1 GiB, heap)",
        make: |rig| Arc::new(Limited::new(GIB, heap(rig))),
        exclusions: &[],
    },
    Subject {
        name: "statistics",
        text: "stats(heap)",
        make: |rig| Arc::new(Counted::new(heap(rig))),
        exclusions: &[],
    },
    Subject {
        name: "trace",
        text: "trace(100, heap)",
        make: |rig| {
            let config = TraceConfig { records_per_thread: 100, ..TraceConfig::default() };
            Arc::new(Traced::new(config, heap(rig)))
        },
        exclusions: &[],
    },
    Subject { name: "guard", text: "guard(heap)", make: guard, exclusions: &[] },
    Subject {
        name: "leaks",
        text: "leaks(100, heap)",
        make: |rig| Arc::new(LeakTracked::sampling(100, heap(rig))),
        exclusions: &[],
    },
    Subject {
        name: "alignment",
        text: "align(4 KiB, heap)",
        make: |rig| Arc::new(Aligned::new(4096, heap(rig)).unwrap()),
        exclusions: &[],
    },
    Subject {
        name: "retry",
        text: "retry(2, heap)",
        make: |rig| Arc::new(Retrying::new(2, heap(rig))),
        exclusions: &[],
    },
    Subject {
        name: "failing that never fails",
        text: "fail(0, heap)",
        make: |rig| Arc::new(Failing::new(FailPlan::default(), heap(rig))),
        exclusions: &[],
    },
    Subject {
        name: "everything over the heap",
        text: "budget(1 GiB, retry(1, leaks(trace(100, align(512 B, guard(256 B, 0 B, stats(heap)))))))",
        make: stacked,
        exclusions: &[],
    },
    Subject {
        name: "counted and limited pages",
        text: "stats(limit(1 GiB, leaks(pages)))",
        make: |rig| Arc::new(Counted::new(Limited::new(GIB, LeakTracked::new(pages(rig))))),
        exclusions: &[],
    },
    Subject {
        name: "the same in another order, over the pool",
        text: "stats(trace(100, leaks(limit(1 GiB, retry(1, pool)))))",
        make: stacked_pool,
        exclusions: &[DRIVER_ALIGNS],
    },
];

fn direct(rig: &Rig) -> Arc<dyn MemoryResource> {
    Arc::new(Direct::new(rig.driver(), rig.order()))
}

fn pages(rig: &Rig) -> Arc<dyn MemoryResource> {
    Arc::new(Pages::new(rig.driver(), rig.order(), HeapConfig::default()).unwrap())
}

fn pool(rig: &Rig) -> Arc<dyn MemoryResource> {
    Arc::new(DriverPool::new(rig.driver(), rig.order()).unwrap())
}

fn heap(rig: &Rig) -> Arc<dyn MemoryResource> {
    Arc::new(rig.heap())
}

fn chunks(rig: &Rig) -> Arc<dyn MemoryResource> {
    Arc::new(Heap::over_chunks(rig.driver(), rig.order(), HeapConfig::default()))
}

fn host(rig: &Rig) -> Arc<dyn MemoryResource> {
    Arc::new(Heap::over_host(rig.driver(), rig.order(), HeapConfig::default()))
}

fn guard(rig: &Rig) -> Arc<dyn MemoryResource> {
    Arc::new(Guarded::new(GuardConfig::default(), rig.driver(), rig.order(), heap(rig)))
}

fn stacked(rig: &Rig) -> Arc<dyn MemoryResource> {
    let stats = Counted::new(heap(rig));
    let config = GuardConfig { quarantine_bytes: 0, ..GuardConfig::default() };
    let guarded = Guarded::new(config, rig.driver(), rig.order(), stats);
    let aligned = Aligned::new(512, guarded).unwrap();
    let traced = Traced::new(TraceConfig { records_per_thread: 100, ..TraceConfig::default() }, aligned);
    let retrying = Retrying::new(1, LeakTracked::new(traced));
    Arc::new(Budgeted::new(Budget::new("test", GIB), retrying))
}

fn stacked_pool(rig: &Rig) -> Arc<dyn MemoryResource> {
    let limited = Limited::new(GIB, Retrying::new(1, pool(rig)));
    let config = TraceConfig { records_per_thread: 100, ..TraceConfig::default() };
    Arc::new(Counted::new(Traced::new(config, LeakTracked::new(limited))))
}
