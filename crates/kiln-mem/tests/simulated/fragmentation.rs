//! Memory that is free can be handed out: no request of pages is refused while enough is free, whatever came before.

use crate::rig::{MIB, Rig};
use kiln_mem::workload::{Filling, FillingResult, StreamAllocator};
use kiln_mem::{Budget, HeapConfig, MemoryResource};

/// Fills nine tenths of a budget with sizes from 4 KiB to 256 MiB, over and over.
fn fill(limit_bytes: u64, steps: u64) -> FillingResult {
    let rig = Rig::new(5, 128 << 30);
    let stream = rig.stream();
    let heap = rig
        .heap_with(HeapConfig { budget: Some(Budget::new("limit", limit_bytes)), ..HeapConfig::default() });
    let filled = Filling { limit_bytes, steps }.run(&mut StreamAllocator::new(&heap, stream)).unwrap();
    assert!(heap.accounting().peak_reserved_bytes <= limit_bytes);
    assert_eq!(heap.accounting().live_bytes, 0);
    drop(heap);
    rig.finish(&[stream]);
    filled
}

#[test]
fn nine_tenths_of_a_budget_can_be_used_at_any_size() {
    for (limit_bytes, steps) in [(16 << 30, 100_000), (4 << 30, 50_000), (2000 * MIB, 50_000)] {
        let filled = fill(limit_bytes, steps);
        assert!(filled.large_requests > steps / 3, "{filled:?}");
        assert!(filled.peak_live_bytes > limit_bytes / 10 * 8, "{filled:?}");
        assert_eq!(filled.refused, 0, "{} MiB: {filled:?}", limit_bytes / MIB);
    }
}
