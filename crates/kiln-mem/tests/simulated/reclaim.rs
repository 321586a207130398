//! Every reclaim step helps: with it a request is met that without it is refused.

use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use crate::rig::{MIB, Rig};
use kiln_mem::layer::Budgeted;
use kiln_mem::{
    AllocationRequest, Budget, DeviceBlock, Direct, DriverPool, Heap, HeapConfig, MemoryResource,
    MemoryResourceExt, Order, PressurePolicy, ReclaimStep, Result, Stamps,
};

/// A heap that may take so many bytes from the device and only these steps.
fn heap(rig: &Rig, bytes: u64, steps: &'static [ReclaimStep]) -> Heap {
    let pressure = PressurePolicy::waiting(Duration::from_secs(1)).only(steps);
    rig.heap_with(HeapConfig { budget: Some(Budget::new("test", bytes)), pressure, ..HeapConfig::default() })
}

/// Runs a scene with one step allowed, and with none; the request at its end is met only with the step.
fn helps(step: &'static [ReclaimStep], scene: impl Fn(&'static [ReclaimStep]) -> Result<()>) {
    let without = scene(&[]).expect_err("the step was not needed");
    assert!(without.is_oom(), "{without}");
    scene(step).unwrap_or_else(|error| panic!("{step:?} did not help: {error}"));
}

#[test]
fn caches_of_other_threads_are_emptied() {
    helps(&[ReclaimStep::ThreadCaches], |steps| {
        let rig = Rig::new(1, 64 * MIB);
        let stream = rig.stream();
        let heap = heap(&rig, 2 * MIB, steps);
        let (stocked, done) = (Barrier::new(2), Barrier::new(2));
        let answer = std::thread::scope(|scope| {
            scope.spawn(|| {
                let blocks: Vec<_> = (0..16)
                    .map(|_| heap.allocate(&AllocationRequest::new(64 << 10, stream)).unwrap())
                    .collect();
                blocks.into_iter().for_each(|block| heap.free(block).unwrap());
                stocked.wait();
                // The thread lives on, with its cache, and does nothing.
                done.wait();
            });
            stocked.wait();
            assert!(heap.accounting().cached_bytes >= MIB / 2);
            let answer = heap
                .allocate(&AllocationRequest::new(2 * MIB - 4096, stream))
                .map(|block| heap.free(block).unwrap());
            done.wait();
            answer
        });
        drop(heap);
        rig.finish(&[stream]);
        answer
    });
}

#[test]
fn completed_work_gives_its_memory_to_other_streams() {
    helps(&[ReclaimStep::Completed], |steps| {
        let rig = Rig::new(2, 64 * MIB);
        let (first, second) = (rig.stream(), rig.stream());
        let heap = heap(&rig, 8 * MIB, steps);
        let block = heap.allocate(&AllocationRequest::new(8 * MIB, first)).unwrap();
        rig.write(first, &block, 1);
        heap.free(block).unwrap();
        // It is done, but the order does not know yet.
        kiln_driver::DriverExt::synchronize(&*rig.device, first.id()).unwrap();
        let answer =
            heap.allocate(&AllocationRequest::new(4 * MIB, second)).map(|block| heap.free(block).unwrap());
        assert_eq!(heap.accounting().false_dependencies, 0);
        rig.order.refresh(first.key()).unwrap();
        drop(heap);
        rig.finish(&[first, second]);
        answer
    });
}

#[test]
fn a_stream_waits_on_the_device_for_the_memory_of_another() {
    helps(&[ReclaimStep::Ordered], |steps| {
        let rig = Rig::new(3, 64 * MIB);
        let (first, second) = (rig.stream(), rig.stream());
        let heap = heap(&rig, 8 * MIB, steps);
        let block = heap.allocate(&AllocationRequest::new(8 * MIB, first)).unwrap();
        rig.write(first, &block, 1);
        heap.free(block).unwrap();
        let answer = heap.allocate(&AllocationRequest::new(4 * MIB, second)).map(|block| {
            assert_eq!(heap.accounting().false_dependencies, 1);
            rig.write(second, &block, 2);
            heap.free(block).unwrap();
        });
        rig.synchronize(second);
        rig.synchronize(first);
        drop(heap);
        rig.finish(&[first, second]);
        answer
    });
}

#[test]
fn idle_chunks_go_back_to_the_device() {
    helps(&[ReclaimStep::IdlePages], |steps| {
        let rig = Rig::new(4, 9 * MIB);
        let (first, second) = (rig.stream(), rig.stream());
        let pressure = PressurePolicy::default().only(steps);
        let heap =
            Heap::over_chunks(rig.driver(), rig.order(), HeapConfig { pressure, ..HeapConfig::default() });
        let block = heap.allocate(&AllocationRequest::new(4 * MIB, first)).unwrap();
        heap.free(block).unwrap();
        let answer =
            heap.allocate(&AllocationRequest::new(6 * MIB, second)).map(|block| heap.free(block).unwrap());
        drop(heap);
        rig.finish(&[first, second]);
        answer
    });
}

#[test]
fn idle_pages_go_back_to_the_device_and_no_other_step_can_stand_in_for_it() {
    const OTHERS: &[ReclaimStep] = &[
        ReclaimStep::ThreadCaches,
        ReclaimStep::Completed,
        ReclaimStep::Ordered,
        ReclaimStep::Callbacks,
        ReclaimStep::Wait,
    ];
    let scene = |steps| {
        let rig = Rig::new(16, 64 * MIB);
        let stream = rig.stream();
        let heap = heap(&rig, 16 * MIB, steps);
        let blocks: Vec<_> =
            (0..8).map(|_| heap.allocate(&AllocationRequest::new(2 * MIB, stream)).unwrap()).collect();
        // Every second page is free. A block with a larger alignment is not made of scattered pages, so these
        // have to go before there is room in the budget for others in a row.
        let (freed, kept): (Vec<_>, Vec<_>) = (0..).zip(blocks).partition(|(at, _)| at % 2 == 0);
        freed.into_iter().for_each(|(_, block)| heap.free(block).unwrap());
        let request = AllocationRequest::new(4 * MIB, stream).align(4096);
        let answer = heap.allocate(&request).map(|block| {
            assert_eq!(heap.accounting().reserved_bytes, 14 * MIB, "four pages went, three came");
            heap.free(block).unwrap();
        });
        kept.into_iter().for_each(|(_, block)| heap.free(block).unwrap());
        drop(heap);
        rig.finish(&[stream]);
        answer
    };
    let without = scene(OTHERS).expect_err("the step was not needed");
    assert!(without.is_oom(), "{without}");
    helps(&[ReclaimStep::IdlePages], scene);
}

#[test]
fn callbacks_give_memory_up() {
    helps(&[ReclaimStep::Callbacks], |steps| {
        let rig = Rig::new(5, 64 * MIB);
        let stream = rig.stream();
        let pressure = PressurePolicy::default().only(steps);
        let config =
            HeapConfig { budget: Some(Budget::new("test", 8 * MIB)), pressure, ..HeapConfig::default() };
        let heap = Arc::new(rig.heap_with(config.clone()));
        let cache: Arc<Mutex<Vec<DeviceBlock>>> = Arc::default();
        cache.lock().unwrap().push(heap.allocate(&AllocationRequest::new(6 * MIB, stream)).unwrap());
        let spill = {
            let (heap, cache) = (heap.clone(), cache.clone());
            config.pressure.on_pressure(0, move |_| {
                let blocks = std::mem::take(&mut *cache.lock().unwrap());
                let bytes = blocks.iter().map(DeviceBlock::bytes).sum();
                blocks.into_iter().for_each(|block| heap.free(block).unwrap());
                bytes
            })
        };
        let answer =
            heap.allocate(&AllocationRequest::new(5 * MIB, stream)).map(|block| heap.free(block).unwrap());
        std::mem::take(&mut *cache.lock().unwrap()).into_iter().for_each(|block| heap.free(block).unwrap());
        drop((spill, heap));
        rig.finish(&[stream]);
        answer
    });
}

#[test]
fn work_that_frees_enough_is_waited_for() {
    helps(&[ReclaimStep::Wait], |steps| {
        let rig = Rig::new(6, 64 * MIB);
        let (first, second) = (rig.stream(), rig.stream());
        let heap = heap(&rig, 8 * MIB, steps);
        let block = heap.allocate(&AllocationRequest::new(8 * MIB, first)).unwrap();
        let written = rig.write(first, &block, 1);
        rig.order.wait_on(second.key(), written).unwrap();
        let uses = Stamps::from(rig.write(second, &block, 2));
        heap.deallocate(block, &uses).unwrap();
        assert_eq!(heap.accounting().pending_bytes, 8 * MIB);
        let answer =
            heap.allocate(&AllocationRequest::new(8 * MIB, first)).map(|block| heap.free(block).unwrap());
        rig.synchronize(second);
        rig.synchronize(first);
        drop(heap);
        rig.finish(&[first, second]);
        answer
    });
}

#[test]
fn the_budget_takes_back_what_threads_have_at_hand_and_asks_callbacks() {
    let rig = Rig::new(7, 64 * MIB);
    let stream = rig.stream();
    let pressure = PressurePolicy::default();
    let budget = Budget::new("test", 4 * MIB);
    let resource = Arc::new(Budgeted::new(budget.clone(), rig.heap()).under(pressure.clone()));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let block = resource.allocate(&AllocationRequest::new(100, stream)).unwrap();
            resource.free(block).unwrap();
        });
    });
    assert!(budget.used_bytes() > 0, "the thread that ended kept something at hand");
    let all = resource.allocate(&AllocationRequest::new(4 * MIB, stream)).unwrap();
    let held = Arc::new(Mutex::new(Some(all)));
    let spill = {
        let (resource, held) = (resource.clone(), held.clone());
        pressure.on_pressure(0, move |_| {
            let block = held.lock().unwrap().take().unwrap();
            let bytes = block.bytes();
            resource.free(block).unwrap();
            bytes
        })
    };
    let block = resource.allocate(&AllocationRequest::new(3 * MIB, stream)).unwrap();
    resource.free(block).unwrap();
    drop((spill, held, resource));
    assert_eq!(budget.used_bytes(), 0);
    rig.finish(&[stream]);
}

#[test]
fn waiting_goes_on_until_enough_came_free_and_does_not_begin_in_vain() {
    let rig = Rig::new(12, 64 * MIB);
    let (first, second) = (rig.stream(), rig.stream());
    let heap = heap(&rig, 12 * MIB, &[ReclaimStep::Wait]);
    for _ in 0..3 {
        let block = heap.allocate(&AllocationRequest::new(4 * MIB, first)).unwrap();
        let written = rig.write(first, &block, 1);
        rig.order.wait_on(second.key(), written).unwrap();
        let uses = Stamps::from(rig.write(second, &block, 2));
        heap.deallocate(block, &uses).unwrap();
    }
    assert_eq!(heap.accounting().pending_bytes, 12 * MIB);
    let error = heap.allocate(&AllocationRequest::new(16 * MIB, first)).unwrap_err();
    assert_eq!(error.exhausted().unwrap().attempts[0].to_string(), "bounded wait: nothing");
    assert_eq!(heap.accounting().pending_bytes, 12 * MIB, "nothing was waited for");
    let block = heap.allocate(&AllocationRequest::new(12 * MIB, first)).unwrap();
    heap.free(block).unwrap();
    rig.synchronize(second);
    rig.synchronize(first);
    drop(heap);
    rig.finish(&[first, second]);
}

#[test]
fn callbacks_are_asked_by_priority_until_enough_is_free() {
    let rig = Rig::new(5, 64 * MIB);
    let stream = rig.stream();
    let pressure = PressurePolicy::default();
    let config = HeapConfig {
        budget: Some(Budget::new("test", 8 * MIB)),
        pressure: pressure.clone(),
        ..HeapConfig::default()
    };
    let heap = Arc::new(rig.heap_with(config));
    let asked: Arc<Mutex<Vec<(i32, u64)>>> = Arc::default();
    let spill = |priority: i32, megabytes: u64| {
        let block = heap.allocate(&AllocationRequest::new(megabytes * MIB, stream)).unwrap();
        let (heap, asked, held) = (heap.clone(), asked.clone(), Mutex::new(Some(block)));
        pressure.on_pressure(priority, move |missing| {
            asked.lock().unwrap().push((priority, missing));
            let Some(block) = held.lock().unwrap().take() else { return 0 };
            let bytes = block.bytes();
            heap.free(block).unwrap();
            bytes
        })
    };
    let spills = [spill(1, 2), spill(3, 2), spill(2, 4)];
    let block = heap.allocate(&AllocationRequest::new(6 * MIB, stream)).unwrap();
    assert_eq!(*asked.lock().unwrap(), [(3, 6 * MIB), (2, 4 * MIB)], "the last one keeps what it has");
    heap.free(block).unwrap();
    // Room for it is made of pages that came free before, and of those that a callback gives up now.
    let all = heap.allocate(&AllocationRequest::new(8 * MIB, stream)).unwrap();
    assert_eq!(asked.lock().unwrap().last(), Some(&(1, 8 * MIB)));
    heap.free(all).unwrap();
    drop((spills, pressure, heap));
    rig.finish(&[stream]);
}

#[test]
fn memory_straight_from_the_driver_is_freed_when_its_work_is_done() {
    let rig = Rig::new(16, 8 * MIB);
    let stream = rig.stream();
    let direct = Direct::new(rig.driver(), rig.order());
    let block = direct.allocate(&AllocationRequest::new(6 * MIB, stream)).unwrap();
    rig.write(stream, &block, 1);
    direct.free(block).unwrap();
    assert_eq!(direct.accounting().pending_bytes, 6 * MIB);
    // It is done, but the order does not know yet.
    kiln_driver::DriverExt::synchronize(&*rig.device, stream.id()).unwrap();
    let block = direct.allocate(&AllocationRequest::new(6 * MIB, stream)).unwrap();
    direct.free(block).unwrap();
    drop(direct);
    rig.finish(&[stream]);
}

#[test]
fn a_pool_gives_back_what_it_keeps_before_it_refuses() {
    let rig = Rig::new(17, 8 * MIB);
    let (first, second) = (rig.stream(), rig.stream());
    let pool = DriverPool::new(rig.driver(), rig.order()).unwrap();
    // Kept by the pool, for the stream that freed it.
    let block = pool.allocate(&AllocationRequest::new(6 * MIB, first)).unwrap();
    pool.free(block).unwrap();
    rig.synchronize(first);
    assert!(rig.device.memory_info().unwrap().free_bytes <= 2 * MIB, "the pool keeps what was freed");
    let block = pool.allocate(&AllocationRequest::new(7 * MIB, second)).unwrap();
    pool.free(block).unwrap();
    drop(pool);
    rig.finish(&[first, second]);
}
