//! A heap over chunks, for as long as a program runs: what it gave back and what it was refused costs it nothing later.

use crate::rig::{MIB, Rig};
use kiln_mem::{AllocationRequest, Budget, Heap, HeapConfig, MemoryResource, MemoryResourceExt};

/// More than there are numbers for chunks.
const ROUNDS: usize = 17_000;

fn chunks(rig: &Rig, limit_bytes: u64) -> Heap {
    let budget = Some(Budget::new("test", limit_bytes));
    Heap::over_chunks(rig.driver(), rig.order(), HeapConfig { budget, ..HeapConfig::default() })
}

#[test]
fn requests_that_were_refused_use_nothing_up() {
    let rig = Rig::new(1, 64 * MIB);
    let stream = rig.stream();
    let heap = chunks(&rig, 8 * MIB);
    let held = heap.allocate(&AllocationRequest::new(4 * MIB, stream)).unwrap();
    for _ in 0..ROUNDS {
        assert!(heap.allocate(&AllocationRequest::new(6 * MIB, stream)).unwrap_err().is_oom());
    }
    heap.free(held).unwrap();
    let block = heap.allocate(&AllocationRequest::new(6 * MIB, stream)).unwrap();
    heap.free(block).unwrap();
    drop(heap);
    rig.finish(&[stream]);
}

#[test]
fn chunks_come_and_go_without_end() {
    let rig = Rig::new(2, 64 * MIB);
    let stream = rig.stream();
    let heap = chunks(&rig, 64 * MIB);
    for round in 0..ROUNDS {
        // One stays while others come and go, so that numbers do not simply begin anew.
        let (first, second) =
            (AllocationRequest::new(4 * MIB, stream), AllocationRequest::new(5 * MIB, stream));
        let held = heap.allocate(if round % 2 == 0 { &first } else { &second });
        let held = held.unwrap_or_else(|error| panic!("round {round}: {error}"));
        let other = heap.allocate(&AllocationRequest::new(6 * MIB, stream)).unwrap();
        assert!(other.address().0.abs_diff(held.address().0) >= 4 * MIB, "{held} and {other} overlap");
        heap.free(held).unwrap();
        heap.trim().unwrap();
        heap.free(other).unwrap();
        heap.trim().unwrap();
    }
    assert_eq!(heap.accounting().reserved_bytes, 0);
    drop(heap);
    rig.finish(&[stream]);
}
