//! What the layers of a stack from text have collected can be read, by type.

use std::sync::Arc;

use kiln_mem::layer::{Damage, GuardChecker, LeakTracker, Statistics, TraceRecorder};
use kiln_mem::resource_stack::{StackBase, StackContext, StackLayer};
use kiln_mem::trace::TraceAction;
use kiln_mem::{
    AllocTag, AllocationRequest, Budget, Direct, DriverPool, Heap, LayerView, MemoryResource,
    MemoryResourceExt, Pages, Stack,
};

use crate::rig::{MIB, Rig, with_rig};

fn build(rig: &Rig, text: &str) -> Arc<dyn MemoryResource> {
    let stack: Stack = text.parse().unwrap();
    stack.build(&StackContext::new(rig.driver(), rig.order())).unwrap()
}

#[test]
fn every_layer_that_collects_is_found_wherever_it_stands() {
    with_rig(|rig, stream| {
        let texts = [
            "stats(trace(guard(256B, 1MiB, leaks(1, budget(32MiB, heap)))))",
            "align(4KiB, budget(32MiB, leaks(1, guard(256B, 1MiB, retry(1, trace(limit(32MiB, stats(fail(0, chunks)))))))))",
        ];
        for text in texts {
            let memory = build(rig, text);
            let tag = AllocTag::new("layers").unwrap();
            let block = memory.allocate(&AllocationRequest::new(5000, stream).tag(tag)).unwrap();
            let bytes = memory.find::<Statistics>().unwrap().counts(tag).live_bytes();
            assert!(bytes >= 5000, "{text}: inside of a guard it counts the red zones");
            let live = memory.find::<LeakTracker>().unwrap().live();
            assert_eq!((live.len(), live[0].tag), (1, tag), "{text}");
            assert!(live[0].site.as_ref().unwrap().to_string().contains("layers"), "{text}");
            let records = memory.find::<TraceRecorder>().unwrap().records();
            assert_eq!((records.len(), records[0].action), (1, TraceAction::Allocate), "{text}");
            assert!(memory.find::<Budget>().unwrap().used_bytes() >= 5000, "{text}");
            let heap = memory.find::<Heap>().unwrap();
            assert_eq!(heap.activity().growths, 1, "{text}");

            // One byte past the end.
            let past = block.device_place().unwrap().plus(5000);
            rig.write_at(stream, past, 7, 1);
            let checker = memory.find::<GuardChecker>().unwrap();
            let found = checker.check().unwrap();
            assert_eq!((found.len(), found[0].tag, found[0].damage), (1, tag, Damage::Overrun { past: 0 }));
            let refused = memory.free(block).unwrap_err();
            assert!(refused.error.is_corrupt(), "{text}");
            memory.free(refused.block).unwrap();
            assert_eq!(checker.take_findings(), [], "{text}: it was reported to the caller");
            assert_eq!(memory.find::<LeakTracker>().unwrap().live().len(), 0, "{text}");
        }
    });
}

#[test]
fn several_layers_of_a_kind_are_all_found_outermost_first() {
    with_rig(|rig, stream| {
        let memory = build(rig, "stats(budget(32MiB, stats(budget(16MiB, guard(256B, 0B, stats(heap))))))");
        let block = memory.allocate(&AllocationRequest::new(MIB, stream)).unwrap();
        let bytes: Vec<u64> =
            memory.find_all::<Statistics>().map(|statistics| statistics.total().live_bytes()).collect();
        assert_eq!(bytes, [MIB, MIB, MIB + 512], "the innermost counts the red zones");
        let limits: Vec<u64> = memory.find_all::<Budget>().map(Budget::limit_bytes).collect();
        assert_eq!(limits, [32 * MIB, 16 * MIB]);
        let outermost = memory.find::<Statistics>().unwrap();
        assert!(std::ptr::eq(outermost, memory.find_all::<Statistics>().next().unwrap()));
        memory.free(block).unwrap();
    });
}

#[test]
fn a_layer_that_is_not_there_is_not_found() {
    with_rig(|rig, _| {
        for base in StackBase::ALL {
            let memory = build(rig, base.name());
            assert!(memory.find::<Statistics>().is_none() && memory.find::<TraceRecorder>().is_none());
            assert!(memory.find::<GuardChecker>().is_none() && memory.find::<LeakTracker>().is_none());
            assert!(memory.find::<Budget>().is_none());
            let is_heap = matches!(base, StackBase::Heap | StackBase::Chunks | StackBase::Host);
            assert_eq!(memory.find::<Heap>().is_some(), is_heap, "{base}");
            assert_eq!(memory.find::<Pages>().is_some(), base == StackBase::Pages);
            assert_eq!(memory.find::<Direct>().is_some(), base == StackBase::Direct);
            assert_eq!(memory.find::<DriverPool>().is_some(), base == StackBase::Pool);
        }
    });
}

/// The oracle is the text: a stack has as many layers as its text, and each shows what its word promises.
#[test]
fn the_layers_are_those_of_the_text() {
    with_rig(|rig, _| {
        let text =
            "budget(32MiB, limit(32MiB, stats(trace(guard(leaks(align(4KiB, retry(1, fail(0, heap)))))))))";
        let stack: Stack = text.parse().unwrap();
        let memory = build(rig, text);
        let shown: Vec<bool> = memory.layers().map(|layer| shows_something(&layer)).collect();
        let mut expected: Vec<bool> = stack
            .layers()
            .iter()
            .map(|layer| {
                matches!(
                    layer,
                    StackLayer::Budget(_)
                        | StackLayer::Statistics
                        | StackLayer::Trace(_)
                        | StackLayer::Guard(_)
                        | StackLayer::Leaks(_)
                )
            })
            .collect();
        expected.push(true);
        assert_eq!(shown, expected);
        let innermost = memory.layers().last().unwrap();
        assert!(innermost.inner().is_none());
        let below_limit: Stack =
            "stats(trace(guard(leaks(align(4KiB, retry(1, fail(0, heap)))))))".parse().unwrap();
        assert_eq!(memory.layers().nth(1).unwrap().inner().unwrap().to_string(), below_limit.to_string());
    });
}

fn shows_something(layer: &LayerView<'_>) -> bool {
    layer.collected::<Statistics>().is_some()
        || layer.collected::<TraceRecorder>().is_some()
        || layer.collected::<GuardChecker>().is_some()
        || layer.collected::<LeakTracker>().is_some()
        || layer.collected::<Budget>().is_some()
        || layer.collected::<Heap>().is_some()
}

#[test]
fn what_threads_count_meanwhile_can_be_read_meanwhile() {
    let rig = Rig::new(1, 64 * MIB);
    let streams = [rig.stream(), rig.stream()];
    let memory = build(&rig, "stats(trace(100, leaks(heap)))");
    std::thread::scope(|scope| {
        for stream in streams {
            let memory = &memory;
            scope.spawn(move || {
                for _ in 0..500 {
                    let block = memory.allocate(&AllocationRequest::new(1000, stream)).unwrap();
                    memory.free(block).unwrap();
                }
            });
        }
        for _ in 0..200 {
            let total = memory.find::<Statistics>().unwrap().total();
            assert!(total.frees <= total.allocations);
            assert!(memory.find::<TraceRecorder>().unwrap().records().len() <= 200);
            assert!(memory.find::<LeakTracker>().unwrap().live().len() <= 2);
        }
    });
    assert_eq!(memory.find::<Statistics>().unwrap().total().frees, 1000);
    drop(memory);
    rig.finish(&streams);
}
