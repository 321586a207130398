//! What happens around the ladder: callbacks that do more than free, work worth waiting for, a device that is lost on the way.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::rig::{MIB, Rig};
use kiln_driver::Code;
use kiln_mem::layer::Budgeted;
use kiln_mem::{
    AllocTag, AllocationRequest, Budget, Heap, HeapConfig, MemoryResource, MemoryResourceExt, Order, Pages,
    PressurePolicy, ReclaimStep, Reclaimed, Result, Stamps,
};
use kiln_sim::{DeviceConfig, FaultPlan, PlannedFault};

fn config(limit_bytes: u64, pressure: &PressurePolicy) -> HeapConfig {
    let budget = Some(Budget::new("test", limit_bytes));
    HeapConfig { budget, pressure: pressure.clone(), ..HeapConfig::default() }
}

/// Whatever is asked of memory inside of a callback, the callback is not called for it: it is at work already.
#[test]
fn a_callback_that_allocates_is_not_called_for_what_it_asks() {
    let rig = Rig::new(1, 64 * MIB);
    let stream = rig.stream();
    let pressure = PressurePolicy::default();
    let resources: [Arc<dyn MemoryResource>; 3] = [
        Arc::new(rig.heap_with(config(8 * MIB, &pressure))),
        Arc::new(Pages::new(rig.driver(), rig.order(), config(8 * MIB, &pressure)).unwrap()),
        Arc::new(Budgeted::new(Budget::new("test", 8 * MIB), rig.heap()).under(pressure.clone())),
    ];
    for resource in &resources {
        let calls = Arc::new(AtomicU64::new(0));
        let spill = {
            let (resource, calls) = (resource.clone(), calls.clone());
            pressure.on_pressure(0, move |missing| {
                calls.fetch_add(1, Ordering::Relaxed);
                // A place to spill to, which is out of memory too.
                assert!(resource.allocate(&AllocationRequest::new(missing, stream)).unwrap_err().is_oom());
                let small = resource.allocate(&AllocationRequest::new(1000, stream)).unwrap();
                resource.free(small).unwrap();
                0
            })
        };
        let held = resource.allocate(&AllocationRequest::new(4 * MIB, stream)).unwrap();
        assert!(
            resource.allocate(&AllocationRequest::new(6 * MIB, stream)).unwrap_err().is_oom(),
            "{resource}"
        );
        assert_eq!(calls.load(Ordering::Relaxed), 1, "{resource}");
        drop(spill);
        resource.free(held).unwrap();
    }
    drop((resources, pressure));
    rig.finish(&[stream]);
}

/// Others are: what one of them asks for, the next may give up.
#[test]
fn what_a_callback_asks_for_others_may_give_up() {
    let rig = Rig::new(2, 64 * MIB);
    let stream = rig.stream();
    let pressure = PressurePolicy::default();
    let heap = Arc::new(rig.heap_with(config(8 * MIB, &pressure)));
    let held = Mutex::new(Some(heap.allocate(&AllocationRequest::new(6 * MIB, stream)).unwrap()));
    let asks = {
        let heap = heap.clone();
        pressure.on_pressure(2, move |_| {
            let staging = heap.allocate(&AllocationRequest::new(4 * MIB, stream)).unwrap();
            heap.free(staging).unwrap();
            0
        })
    };
    let gives = {
        let heap = heap.clone();
        pressure.on_pressure(1, move |_| {
            let Some(block) = held.lock().unwrap().take() else { return 0 };
            heap.free(block).unwrap();
            6 * MIB
        })
    };
    let block = heap.allocate(&AllocationRequest::new(8 * MIB, stream)).unwrap();
    heap.free(block).unwrap();
    drop((asks, gives, heap, pressure));
    rig.finish(&[stream]);
}

#[test]
fn a_callback_that_panics_leaves_memory_as_it_was_and_is_called_again() {
    let rig = Rig::new(3, 64 * MIB);
    let stream = rig.stream();
    let pressure = PressurePolicy::default();
    let resources: [Box<dyn MemoryResource>; 2] = [
        Box::new(rig.heap_with(config(8 * MIB, &pressure))),
        Box::new(Budgeted::new(Budget::new("test", 8 * MIB), rig.heap()).under(pressure.clone())),
    ];
    for resource in &resources {
        let panics = Arc::new(AtomicBool::new(true));
        let calls = Arc::new(AtomicU64::new(0));
        let spill = {
            let (panics, calls) = (panics.clone(), calls.clone());
            pressure.on_pressure(0, move |_| {
                calls.fetch_add(1, Ordering::Relaxed);
                assert!(!panics.load(Ordering::Relaxed), "on purpose");
                0
            })
        };
        let held = resource.allocate(&AllocationRequest::new(4 * MIB, stream)).unwrap();
        let before = resource.accounting();
        let large = || resource.allocate(&AllocationRequest::new(6 * MIB, stream));
        assert!(catch_unwind(AssertUnwindSafe(large)).is_err());
        assert_eq!(resource.accounting().live_bytes, before.live_bytes);
        panics.store(false, Ordering::Relaxed);
        assert!(large().unwrap_err().is_oom());
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        drop(spill);
        resource.free(held).unwrap();
        resource.free(large().unwrap()).unwrap();
    }
    drop((resources, pressure));
    rig.finish(&[stream]);
}

/// A callback says how much it freed, and may be wrong.
#[test]
fn a_callback_that_boasts_is_not_believed_beyond_what_can_be_counted() {
    let most = Reclaimed::freed(u64::MAX)
        + Reclaimed::freed(1)
        + Reclaimed::released(u64::MAX)
        + Reclaimed::released(1);
    assert_eq!((most.freed_bytes, most.released_bytes), (u64::MAX, u64::MAX));
    let rig = Rig::new(4, 64 * MIB);
    let (first, second) = (rig.stream(), rig.stream());
    let pressure = PressurePolicy::default();
    let heap = Arc::new(rig.heap_with(config(8 * MIB, &pressure)));
    let held = heap.allocate(&AllocationRequest::new(4 * MIB, first)).unwrap();
    let written = rig.write(first, &held, 1);
    rig.order.wait_on(second.key(), written).unwrap();
    let uses = Stamps::from(rig.write(second, &held, 2));
    rig.synchronize(second);
    let spill = {
        let (heap, held) = (heap.clone(), Mutex::new(Some(held)));
        pressure.on_pressure(0, move |_| {
            if let Some(block) = held.lock().unwrap().take() {
                heap.deallocate(block, &uses).unwrap();
            }
            u64::MAX
        })
    };
    assert!(heap.allocate(&AllocationRequest::new(20 * MIB, first)).unwrap_err().is_oom());
    drop((spill, heap, pressure));
    rig.finish(&[first, second]);
}

/// Four megabytes are held, four wait for work, and four were never taken: eight can be had by waiting.
fn waits(rig: &Rig, resource: &dyn MemoryResource) -> Result<()> {
    let (first, second) = (rig.stream(), rig.stream());
    let held = resource.allocate(&AllocationRequest::new(4 * MIB, first))?;
    let lent = resource.allocate(&AllocationRequest::new(4 * MIB, first))?;
    let written = rig.write(first, &lent, 1);
    rig.order.wait_on(second.key(), written).unwrap();
    let uses = Stamps::from(rig.write(second, &lent, 2));
    resource.deallocate(lent, &uses).unwrap();
    assert_eq!(resource.accounting().pending_bytes, 4 * MIB);
    let error = resource.allocate(&AllocationRequest::new(12 * MIB, first)).unwrap_err();
    let waited = error.exhausted().unwrap().attempts.iter().find(|step| step.step == ReclaimStep::Wait);
    assert!(
        waited.unwrap().reclaimed.is_nothing(),
        "twelve cannot be had by waiting, so nothing is waited for"
    );
    assert_eq!(resource.accounting().pending_bytes, 4 * MIB);
    let answer =
        resource.allocate(&AllocationRequest::new(8 * MIB, first)).map(|block| resource.free(block).unwrap());
    resource.free(held).unwrap();
    rig.synchronize(first);
    rig.synchronize(second);
    resource.trim().unwrap();
    for stream in [first, second] {
        rig.order.remove(stream).unwrap();
        kiln_driver::Driver::destroy(&*rig.device, stream.id().into()).unwrap();
    }
    answer
}

#[test]
fn waiting_is_worth_it_if_what_comes_free_and_what_was_never_taken_are_enough() {
    let pressure =
        PressurePolicy::waiting(Duration::from_secs(1)).only(&[ReclaimStep::Wait, ReclaimStep::IdlePages]);
    let rig = Rig::new(5, 64 * MIB);
    let heap = rig.heap_with(config(12 * MIB, &pressure));
    let pages = Pages::new(rig.driver(), rig.order(), config(12 * MIB, &pressure)).unwrap();
    let chunks = Heap::over_chunks(rig.driver(), rig.order(), config(12 * MIB, &pressure));
    for resource in [&heap as &dyn MemoryResource, &pages, &chunks] {
        waits(&rig, resource).unwrap_or_else(|error| panic!("{error}"));
    }
    drop((heap, pages, chunks));
    rig.finish(&[]);
}

/// Wherever on the way down the device is lost, that is what is said.
#[test]
fn a_device_that_is_lost_on_the_ladder_is_not_out_of_memory() {
    type Make = fn(&Rig, HeapConfig) -> Result<Box<dyn MemoryResource>>;
    let makes: [Make; 3] = [
        |rig, config| Ok(Box::new(Heap::over_pages(rig.driver(), rig.order(), config)?)),
        |rig, config| Ok(Box::new(Heap::over_chunks(rig.driver(), rig.order(), config))),
        |rig, config| Ok(Box::new(Pages::new(rig.driver(), rig.order(), config)?)),
    ];
    for make in makes {
        let mut lost = 0;
        for call in 2..40 {
            let faults =
                FaultPlan::none().on(0, PlannedFault::LostAtCall { call, code: Code::ILLEGAL_ADDRESS });
            let rig = Rig::with(6, DeviceConfig::with_memory(16 * MIB), faults);
            let stream = rig.stream();
            let Ok(resource) = make(&rig, HeapConfig::default()) else { continue };
            // Every second page is free, and a page more is asked for than are in a row.
            let mut blocks = Vec::new();
            let error = loop {
                match resource.allocate(&AllocationRequest::new(2 * MIB, stream)) {
                    Ok(block) => blocks.push(block),
                    Err(error) => break error,
                }
            };
            let is_lost = || !rig.device.health().is_healthy();
            assert_eq!(error.is_oom(), !is_lost(), "call {call}: {error}");
            for (at, block) in blocks.into_iter().enumerate() {
                if at % 2 == 0 {
                    let _ = resource.free(block);
                }
            }
            let request = AllocationRequest::new(4 * MIB, stream).align(4096);
            for _ in 0..2 {
                if let Err(error) = resource.allocate(&request) {
                    assert_eq!(error.is_oom(), !is_lost(), "call {call} of {resource}: {error}");
                    lost += usize::from(is_lost());
                }
            }
        }
        assert!(lost > 0, "the device was lost somewhere on the way");
    }
}

/// What a tag may have is asked of the program before it is refused, whatever it is charged to.
#[test]
fn callbacks_make_room_in_the_account_of_a_tag_for_what_was_set_aside() {
    let rig = Rig::new(7, 64 * MIB);
    let stream = rig.stream();
    let (tag, pressure) = (AllocTag::new("rows that spill").unwrap(), PressurePolicy::default());
    let budgeted = Budgeted::new(Budget::new("model", 8 * MIB), rig.heap());
    let resource = Arc::new(budgeted.limit_tag(tag, 2 * MIB).under(pressure.clone()));
    let request = AllocationRequest::new(2 * MIB, stream).tag(tag);
    let held = Mutex::new(Some(resource.allocate(&request).unwrap()));
    let spill = {
        let resource = resource.clone();
        pressure.on_pressure(0, move |_| {
            let Some(block) = held.lock().unwrap().take() else { return 0 };
            resource.free(block).unwrap();
            2 * MIB
        })
    };
    let reserved = resource.reserve(4 * MIB).unwrap();
    let block = resource.allocate_from(&reserved, &request).unwrap();
    let error = resource.allocate_from(&reserved, &request).unwrap_err();
    assert!(!error.exhausted().unwrap().attempts.is_empty(), "{error}");
    resource.free(block).unwrap();
    drop((spill, reserved, resource, pressure));
    rig.finish(&[stream]);
}
