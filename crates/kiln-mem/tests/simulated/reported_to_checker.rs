//! A device that checks accesses is told where blocks begin and end, and others are not.

use std::sync::Arc;

use kiln_driver::layer::{Counting, Layered};
use kiln_driver::{Driver, MemoryPart, MemoryRequest, PartKind, PartLabel};
use kiln_mem::layer::{Annotated, Counted};
use kiln_mem::resource_stack::StackContext;
use kiln_mem::{AllocTag, MemoryResource, MemoryResourceExt, Stack};
use kiln_sim::FindingKind;

use crate::rig::{MIB, Rig, request, with_rig};

fn build(rig: &Rig, text: &str) -> Arc<dyn MemoryResource> {
    let stack: Stack = text.parse().unwrap();
    stack.build(&StackContext::new(rig.driver(), rig.order())).unwrap()
}

#[test]
fn a_fill_of_a_freed_block_is_found_if_it_was_submitted_after_the_free() {
    for seed in 0..16 {
        for text in ["heap", "chunks", "pages", "stats(guard(heap))", "budget(32MiB, align(4KiB, heap))"] {
            let rig = Rig::new(seed, 64 * MIB);
            let stream = rig.stream();
            let memory = build(&rig, text);
            let tag = AllocTag::new("activations").unwrap();
            let block = memory.allocate(&request(4096, stream).tag(tag)).unwrap();
            let place = block.device_place().unwrap();
            rig.write_at(stream, place, 1, 4096);
            memory.free(block).unwrap();
            rig.synchronize(stream);
            assert!(rig.findings().is_empty(), "{text}: {:#?}", rig.findings());
            rig.write_at(stream, place.plus(100), 1, 28);
            rig.synchronize(stream);
            let findings = rig.findings();
            let [finding] = &findings[..] else { panic!("{text}: {findings:#?}") };
            assert_eq!((&finding.kind, finding.bytes.clone()), (&FindingKind::UseAfterFree, Some(100..128)));
            let words = finding.to_string();
            assert!(words.contains("4096 bytes (activations)") && words.contains("freed at"), "{words}");
            let freed_by = finding.first.as_ref().unwrap();
            assert_eq!(freed_by.stream, Some(stream.id()), "{words}");
        }
    }
}

#[test]
fn earlier_work_still_sees_the_contents_of_the_block_before() {
    for seed in 0..32 {
        let rig = Rig::new(seed, 64 * MIB);
        let stream = rig.stream();
        let memory = build(&rig, "heap");
        let host = rig.device.allocate_host(4096).unwrap();
        let block = memory.allocate(&request(4096, stream)).unwrap();
        let place = block.device_place().unwrap();
        rig.write(stream, &block, 1);
        kiln_driver::DriverExt::download(&*rig.device, stream.id(), place, &host, 4096).unwrap();
        memory.free(block).unwrap();
        let next = memory.allocate(&request(4096, stream)).unwrap();
        assert_eq!(next.device_place(), Some(place), "the heap hands the block out again");
        rig.synchronize(stream);
        assert!(rig.findings().is_empty(), "seed {seed}: {:#?}", rig.findings());
        rig.read(stream, &next);
        let kinds: Vec<_> = rig.findings().into_iter().map(|found| found.kind).collect();
        assert_eq!(kinds, [FindingKind::Uninitialised], "seed {seed}");
        memory.free(next).unwrap();
    }
}

#[test]
fn a_block_whose_free_failed_is_live_and_keeps_its_contents() {
    with_rig(|rig, stream| {
        let memory = build(rig, "fail(0, 2, heap)");
        let block = memory.allocate(&request(512, stream)).unwrap();
        memory.free(block).unwrap();
        let block = memory.allocate(&request(512, stream)).unwrap();
        rig.write(stream, &block, 7);
        let failed = memory.free(block).unwrap_err();
        assert_eq!(rig.read(stream, &failed.block), [7; 512]);
        rig.write(stream, &failed.block, 8);
        rig.synchronize(stream);
        memory.free(failed.block).unwrap();
    });
}

#[test]
fn what_a_guard_does_to_freed_blocks_is_no_use_by_an_owner() {
    with_rig(|rig, stream| {
        let memory = build(rig, "guard(256B, 16KiB, heap)");
        for _ in 0..20 {
            let blocks = [1000, 2000, 3000].map(|bytes| memory.allocate(&request(bytes, stream)).unwrap());
            for block in blocks {
                rig.write(stream, &block, 3);
                memory.free(block).unwrap();
            }
            let checker = memory.find::<kiln_mem::layer::GuardChecker>().unwrap();
            assert_eq!(checker.check().unwrap(), []);
        }
    });
}

#[test]
fn a_device_that_checks_nothing_is_told_nothing() {
    let rig = Rig::unchecked(1, 64 * MIB);
    let stream = rig.stream();
    let driver = Arc::new(Layered::new(rig.driver(), Counting::default()));
    let stack: Stack = "stats(heap)".parse().unwrap();
    let memory = stack.build(&StackContext::new(driver.clone(), rig.order())).unwrap();
    let warm = |memory: &Arc<dyn MemoryResource>| {
        let block = memory.allocate(&request(4096, stream)).unwrap();
        memory.free(block).unwrap();
    };
    warm(&memory);
    let before = driver.layer().counts();
    (0..100).for_each(|_| warm(&memory));
    assert_eq!(driver.layer().counts().since(&before).total(), 0);
    let inner: Arc<dyn Driver> = driver;
    assert!(Arc::ptr_eq(&Annotated::around(&inner, memory.clone()), &memory), "no layer is added");
    drop((memory, inner));
    rig.finish(&[stream]);
}

#[test]
fn a_stack_is_annotated_once() {
    with_rig(|rig, stream| {
        let built = build(rig, "heap");
        assert_eq!((built.to_string(), built.layers().count()), ("heap".to_owned(), 1));
        let counted: Arc<dyn MemoryResource> = Arc::new(Counted::new(built));
        assert!(Arc::ptr_eq(&Annotated::around(&rig.driver(), counted.clone()), &counted));
        let plain: Arc<dyn MemoryResource> = Arc::new(rig.heap());
        let around = Annotated::around(&rig.driver(), plain.clone());
        assert!(!Arc::ptr_eq(&around, &plain));
        assert_eq!(around.key(), plain.key());
        let block = around.allocate(&request(100, stream)).unwrap();
        around.free(block).unwrap();
    });
}

#[test]
fn millions_of_blocks_use_the_same_handles() {
    with_rig(|rig, stream| {
        let memory = rig.device.allocate(MemoryRequest::Direct { bytes: 4096 }).unwrap();
        let part = MemoryPart {
            place: memory.id.into(),
            bytes: 256,
            stream: Some(stream.id()),
            kind: PartKind::NewBlock,
            label: PartLabel::new("x"),
        };
        let mut last = None;
        for _ in 0..200_000 {
            let begun = rig.device.allocate(MemoryRequest::Part(part)).unwrap();
            assert_eq!((begun.address, begun.bytes), (memory.address, 256));
            rig.device.free(begun.id, Some(stream.id())).unwrap();
            last = Some(begun.id);
        }
        assert!(last.unwrap().to_string().starts_with("memory:1."), "{last:?}");
        rig.device.free(memory.id, None).unwrap();
    });
}

#[test]
fn parts_that_cannot_be_are_refused() {
    with_rig(|rig, stream| {
        let memory = rig.device.allocate(MemoryRequest::Direct { bytes: 4096 }).unwrap();
        let part = MemoryPart {
            place: memory.id.into(),
            bytes: 256,
            stream: Some(stream.id()),
            kind: PartKind::NewBlock,
            label: PartLabel::new("x"),
        };
        let ask = |part| rig.device.allocate(MemoryRequest::Part(part));
        for wrong in [
            MemoryPart { bytes: 0, ..part },
            MemoryPart { bytes: 5000, ..part },
            MemoryPart { place: part.place.plus(u64::MAX), ..part },
        ] {
            assert!(ask(wrong).unwrap_err().is_refused(), "{wrong:?}");
        }
        let begun = ask(part).unwrap();
        rig.device.free(begun.id, None).unwrap();
        rig.device.free(memory.id, None).unwrap();
        assert!(ask(part).unwrap_err().is_refused(), "the memory is gone");
    });
    let rig = Rig::without_lifetimes(1, MIB);
    let memory = rig.device.allocate(MemoryRequest::Direct { bytes: 4096 }).unwrap();
    let (place, kind, label) = (memory.id.into(), PartKind::NewBlock, PartLabel::new("x"));
    let part = MemoryPart { place, bytes: 1, stream: None, kind, label };
    assert!(rig.device.allocate(MemoryRequest::Part(part)).unwrap_err().is_unsupported());
    rig.device.free(memory.id, None).unwrap();
    rig.finish(&[]);
}
