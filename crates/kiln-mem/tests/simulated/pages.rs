//! Blocks of whole pages, and pages that are handed to another user.

use std::time::Duration;

use crate::rig::{MIB, Rig, request};
use kiln_mem::{
    AllocTag, Budget, Heap, HeapConfig, MemoryResource, MemoryResourceExt, Pages, PressurePolicy,
    ReclaimStep, Result,
};

fn pages(rig: &Rig, config: HeapConfig) -> Pages {
    Pages::new(rig.driver(), rig.order(), config).unwrap()
}

#[test]
fn blocks_lie_as_low_as_they_can_and_mapped_pages_come_first() {
    let rig = Rig::new(1, 64 * MIB);
    let stream = rig.stream();
    let pages = pages(&rig, HeapConfig::default());
    let take = |bytes| pages.allocate(&request(bytes, stream)).unwrap();
    let [one, two, three] = [take(1), take(2 * MIB), take(3 * MIB)];
    let base = one.address().0;
    assert_eq!([two.address().0 - base, three.address().0 - base], [2 * MIB, 4 * MIB]);
    pages.free(one).unwrap();
    pages.free(two).unwrap();
    assert_eq!(pages.accounting().largest_free_bytes, 4 * MIB);
    let four = take(4 * MIB);
    assert_eq!(four.address().0, base, "across two allocations that are mapped side by side");
    assert_eq!(pages.accounting().reserved_bytes, 8 * MIB, "nothing was mapped for it");
    let five = take(1);
    assert_eq!(five.address().0 - base, 8 * MIB);
    for block in [three, four, five] {
        pages.free(block).unwrap();
    }
    assert_eq!(pages.accounting().reserved_bytes, 10 * MIB, "what is free stays mapped");
    assert_eq!(pages.trim().unwrap().released_bytes, 10 * MIB);
    assert_eq!(pages.accounting().reserved_bytes, 0);
    drop(pages);
    rig.finish(&[stream]);
}

/// Eight pages on the device: four of a block that is gone, one of a block that is not; five are asked for.
fn short_of_pages(pressure: PressurePolicy) -> Result<()> {
    let rig = Rig::new(2, 16 * MIB);
    let stream = rig.stream();
    let pages = pages(&rig, HeapConfig { pressure, ..HeapConfig::default() });
    let low = pages.allocate(&request(8 * MIB, stream))?;
    let kept = pages.allocate(&request(2 * MIB, stream).tag(AllocTag::new("kept").unwrap()))?;
    pages.free(low).unwrap();
    let asked = pages.allocate(&request(10 * MIB, stream)).map(|block| pages.free(block).unwrap());
    pages.free(kept).unwrap();
    drop(pages);
    rig.finish(&[stream]);
    asked
}

#[test]
fn pages_are_unmapped_when_memory_is_short() {
    short_of_pages(PressurePolicy::default()).unwrap();
    let error = short_of_pages(PressurePolicy::default().only(&[ReclaimStep::Completed])).unwrap_err();
    assert!(error.is_oom());
    let text = error.to_string();
    for part in [
        "pages: out of memory: 10485760 bytes were asked for",
        "2097152 are in use",
        "the largest piece 8388608",
        "most is held by kept 2097152",
        "tried completed frees: nothing",
        "the driver said: ",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

/// A process has so many addresses for all of them: 16 TiB in the simulation.
#[test]
fn heaps_share_the_addresses_there_are() {
    let rig = Rig::new(12, 128 << 30);
    let stream = rig.stream();
    let heaps: Vec<_> = (0..6).map(|_| rig.heap()).collect();
    for heap in &heaps {
        let block = heap.allocate(&request(2 * MIB, stream)).unwrap();
        heap.free(block).unwrap();
    }
    drop(heaps);
    rig.finish(&[stream]);
}

#[test]
fn more_than_the_window_holds_is_refused_with_that_reason() {
    let rig = Rig::new(8, 16 * MIB);
    let stream = rig.stream();
    let pages = pages(&rig, HeapConfig::default());
    let error = pages.allocate(&request(1 << 40, stream)).unwrap_err();
    assert!(error.is_oom(), "{error}");
    assert!(
        error.to_string().contains("no addresses are left in the window for 1099511627776 bytes"),
        "{error}"
    );
    assert_eq!(pages.accounting(), kiln_mem::Accounting::default());
    drop(pages);
    rig.finish(&[stream]);
}

#[test]
fn a_block_is_not_handed_on_before_its_work_is_done() {
    let rig = Rig::new(3, 2 * MIB);
    let stream = rig.stream();
    let taking = PressurePolicy::default().only(&[ReclaimStep::IdlePages]);
    let patient = PressurePolicy::waiting(Duration::from_secs(60));
    for (pressure, is_met) in [(taking, false), (patient, true)] {
        let pages = pages(&rig, HeapConfig { pressure, ..HeapConfig::default() });
        let block = pages.allocate(&request(MIB, stream)).unwrap();
        rig.write(stream, &block, 1);
        pages.free(block).unwrap();
        assert_eq!(pages.accounting().pending_bytes, MIB);
        let next = pages.allocate(&request(MIB, stream));
        assert_eq!(next.is_ok(), is_met);
        if let Ok(next) = next {
            pages.free(next).unwrap();
        }
        rig.synchronize(stream);
        pages.reap_pending().unwrap();
        assert_eq!(pages.accounting().pending_bytes, 0);
    }
    rig.finish(&[stream]);
}

#[test]
fn a_budget_is_charged_for_pages_and_callbacks_are_asked() {
    let rig = Rig::new(4, 64 * MIB);
    let stream = rig.stream();
    let budget = Budget::new("few", 4 * MIB);
    let pressure = PressurePolicy::default();
    let config =
        HeapConfig { budget: Some(budget.clone()), pressure: pressure.clone(), ..HeapConfig::default() };
    let pages = std::sync::Arc::new(pages(&rig, config));
    let spilled = std::sync::Mutex::new(Some(pages.allocate(&request(3 * MIB, stream)).unwrap()));
    assert_eq!(budget.used_bytes(), 4 * MIB);
    let error = pages.allocate(&request(1, stream)).unwrap_err();
    assert_eq!(error.exhausted().unwrap().limit_bytes, Some(4 * MIB));
    let (owner, spilled) = (pages.clone(), std::sync::Arc::new(spilled));
    let spill = pressure.on_pressure(0, move |_| {
        spilled.lock().unwrap().take().map_or(0, |block| {
            owner.free(block).unwrap();
            4 * MIB
        })
    });
    let block = pages.allocate(&request(1, stream)).unwrap();
    pages.free(block).unwrap();
    drop(spill);
    pages.trim().unwrap();
    assert_eq!(budget.used_bytes(), 0);
    drop(pages);
    rig.finish(&[stream]);
}

#[test]
fn a_block_of_pages_is_reached_through_its_descriptors() {
    crate::exported::block_of_pages(Rig::new(5, 64 * MIB));
}

#[test]
fn a_folded_block_of_a_heap_is_reached_through_its_descriptors() {
    crate::exported::remapped_block(Rig::new(6, 64 * MIB));
}

#[test]
fn what_cannot_be_exported_is_refused_with_a_reason() {
    let rig = Rig::new(7, 64 * MIB);
    let stream = rig.stream();
    let (plain, heap) = (pages(&rig, HeapConfig::default()), rig.heap());
    let chunks = Heap::over_chunks(rig.driver(), rig.order(), HeapConfig::default());
    let block = plain.allocate(&request(MIB, stream)).unwrap();
    let [part] = plain.page_parts(&block).unwrap()[..] else { panic!("one page") };
    let says = |error: kiln_mem::Error, text: &str| assert!(error.to_string().contains(text), "{error}");
    says(plain.export_pages(&part).unwrap_err(), "set `exportable` in the configuration");
    says(heap.export_pages(&part).unwrap_err(), "set `exportable` in the configuration");
    assert!(heap.page_parts(&block).unwrap_err().is_foreign());
    says(chunks.page_parts(&block).unwrap_err(), "use a heap over pages");
    plain.free(block).unwrap();
    drop((plain, heap, chunks));
    rig.finish(&[stream]);
}

/// A request that cannot be met takes nothing from others, neither memory nor budget.
#[test]
fn a_request_that_is_refused_leaves_nothing_mapped() {
    for limit in [None, Some(32 * MIB)] {
        let rig = Rig::new(1, 64 * MIB);
        let stream = rig.stream();
        let budget = limit.map(|limit| Budget::new("shared", limit));
        let config = HeapConfig { budget: budget.clone(), ..HeapConfig::default() };
        let pages = Pages::new(rig.driver(), rig.order(), config).unwrap();
        let held = pages.allocate(&request(6 * MIB, stream)).unwrap();
        let free = || rig.device.memory_info().unwrap().free_bytes;
        let before = (free(), pages.accounting().reserved_bytes, budget.as_ref().map(Budget::used_bytes));
        for megabytes in [33, 60, 64, 1000] {
            if limit.is_none() && megabytes < 60 {
                continue;
            }
            let error = pages.allocate(&request(megabytes * MIB, stream)).unwrap_err();
            assert!(error.is_oom(), "{error}");
            let after = (free(), pages.accounting().reserved_bytes, budget.as_ref().map(Budget::used_bytes));
            assert_eq!(after, before, "{megabytes} MiB under {limit:?}");
        }
        assert!(pages.accounting().peak_reserved_bytes <= 6 * MIB);
        pages.free(held).unwrap();
        drop(pages);
        rig.finish(&[stream]);
    }
}
