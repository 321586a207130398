//! Every step of the ladder helps: with it a request is met that without it is refused. When nothing helps, the error
//! says why, for each cause.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[path = "rig/mod.rs"]
mod rig;

use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use kiln_mem::decorator::{Budgeted, Limited};
use kiln_mem::{
    AllocTag, Budget, DeviceBlock, Direct, DriverPool, Heap, HeapConfig, MemoryResource, MemoryResourceExt,
    Order, Pressure, Request, Result, Rung, Stamps,
};
use rig::{MIB, Rig};

/// A heap that may take so many bytes from the device and only these steps.
fn heap(rig: &Rig, bytes: u64, rungs: &'static [Rung]) -> Heap {
    let pressure = Pressure::waiting(Duration::from_secs(1)).only(rungs);
    rig.heap_with(HeapConfig { budget: Some(Budget::new("test", bytes)), pressure, ..HeapConfig::default() })
}

/// Runs a scene with one step allowed, and with none; the request at its end is met only with the step.
fn helps(rung: &'static [Rung], scene: impl Fn(&'static [Rung]) -> Result<()>) {
    let without = scene(&[]).expect_err("the step was not needed");
    assert!(without.is_oom(), "{without}");
    scene(rung).unwrap_or_else(|error| panic!("{rung:?} did not help: {error}"));
}

#[test]
fn front_caches_of_other_threads_are_emptied() {
    helps(&[Rung::FrontCaches], |rungs| {
        let rig = Rig::new(1, 64 * MIB);
        let stream = rig.stream();
        let heap = heap(&rig, 2 * MIB, rungs);
        let (stocked, done) = (Barrier::new(2), Barrier::new(2));
        let answer = std::thread::scope(|scope| {
            scope.spawn(|| {
                let blocks: Vec<_> =
                    (0..16).map(|_| heap.allocate(&Request::new(64 << 10, stream)).unwrap()).collect();
                blocks.into_iter().for_each(|block| heap.free(block).unwrap());
                stocked.wait();
                // The thread lives on, with its stock, and does nothing.
                done.wait();
            });
            stocked.wait();
            assert!(heap.accounting().cached_bytes >= MIB / 2);
            let answer =
                heap.allocate(&Request::new(2 * MIB - 4096, stream)).map(|block| heap.free(block).unwrap());
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
    helps(&[Rung::Completed], |rungs| {
        let rig = Rig::new(2, 64 * MIB);
        let (first, second) = (rig.stream(), rig.stream());
        let heap = heap(&rig, 8 * MIB, rungs);
        let block = heap.allocate(&Request::new(8 * MIB, first)).unwrap();
        rig.write(first, &block, 1);
        heap.free(block).unwrap();
        // It is done, but nobody has told the order yet.
        kiln_driver::DriverExt::synchronize(&*rig.device, first.id).unwrap();
        let answer = heap.allocate(&Request::new(4 * MIB, second)).map(|block| heap.free(block).unwrap());
        assert_eq!(heap.accounting().false_dependencies, 0);
        rig.order.refresh(first.key).unwrap();
        drop(heap);
        rig.finish(&[first, second]);
        answer
    });
}

#[test]
fn a_stream_waits_on_the_device_for_the_memory_of_another() {
    helps(&[Rung::Ordered], |rungs| {
        let rig = Rig::new(3, 64 * MIB);
        let (first, second) = (rig.stream(), rig.stream());
        let heap = heap(&rig, 8 * MIB, rungs);
        let block = heap.allocate(&Request::new(8 * MIB, first)).unwrap();
        rig.write(first, &block, 1);
        heap.free(block).unwrap();
        let answer = heap.allocate(&Request::new(4 * MIB, second)).map(|block| {
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
    helps(&[Rung::IdlePages], |rungs| {
        let rig = Rig::new(4, 9 * MIB);
        let (first, second) = (rig.stream(), rig.stream());
        let pressure = Pressure::default().only(rungs);
        let heap =
            Heap::over_chunks(rig.driver(), rig.order(), HeapConfig { pressure, ..HeapConfig::default() });
        let block = heap.allocate(&Request::new(4 * MIB, first)).unwrap();
        heap.free(block).unwrap();
        let answer = heap.allocate(&Request::new(6 * MIB, second)).map(|block| heap.free(block).unwrap());
        drop(heap);
        rig.finish(&[first, second]);
        answer
    });
}

#[test]
fn callbacks_give_memory_up() {
    helps(&[Rung::Callbacks], |rungs| {
        let rig = Rig::new(5, 64 * MIB);
        let stream = rig.stream();
        let pressure = Pressure::default().only(rungs);
        let config =
            HeapConfig { budget: Some(Budget::new("test", 8 * MIB)), pressure, ..HeapConfig::default() };
        let heap = Arc::new(rig.heap_with(config.clone()));
        let cache: Arc<Mutex<Vec<DeviceBlock>>> = Arc::default();
        cache.lock().unwrap().push(heap.allocate(&Request::new(6 * MIB, stream)).unwrap());
        let spill = {
            let (heap, cache) = (heap.clone(), cache.clone());
            config.pressure.on_pressure(0, move |_| {
                let blocks = std::mem::take(&mut *cache.lock().unwrap());
                let bytes = blocks.iter().map(DeviceBlock::bytes).sum();
                blocks.into_iter().for_each(|block| heap.free(block).unwrap());
                bytes
            })
        };
        let answer = heap.allocate(&Request::new(5 * MIB, stream)).map(|block| heap.free(block).unwrap());
        std::mem::take(&mut *cache.lock().unwrap()).into_iter().for_each(|block| heap.free(block).unwrap());
        drop((spill, heap));
        rig.finish(&[stream]);
        answer
    });
}

#[test]
fn work_that_frees_enough_is_waited_for() {
    helps(&[Rung::Wait], |rungs| {
        let rig = Rig::new(6, 64 * MIB);
        let (first, second) = (rig.stream(), rig.stream());
        let heap = heap(&rig, 8 * MIB, rungs);
        let block = heap.allocate(&Request::new(8 * MIB, first)).unwrap();
        let written = rig.write(first, &block, 1);
        rig.order.wait_on(second.key, written).unwrap();
        let uses = Stamps::from(rig.write(second, &block, 2));
        heap.deallocate(block, &uses).unwrap();
        assert_eq!(heap.accounting().pending_bytes, 8 * MIB);
        let answer = heap.allocate(&Request::new(8 * MIB, first)).map(|block| heap.free(block).unwrap());
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
    let pressure = Pressure::default();
    let budget = Budget::new("test", 4 * MIB);
    let resource = Arc::new(Budgeted::new(budget.clone(), rig.heap()).under(pressure.clone()));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let block = resource.allocate(&Request::new(100, stream)).unwrap();
            resource.free(block).unwrap();
        });
    });
    assert!(budget.used_bytes() > 0, "the thread that ended kept something at hand");
    let all = resource.allocate(&Request::new(4 * MIB, stream)).unwrap();
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
    let block = resource.allocate(&Request::new(3 * MIB, stream)).unwrap();
    resource.free(block).unwrap();
    drop((spill, held, resource));
    assert_eq!(budget.used_bytes(), 0);
    rig.finish(&[stream]);
}

#[test]
fn waiting_goes_on_until_enough_came_free_and_does_not_begin_in_vain() {
    let rig = Rig::new(12, 64 * MIB);
    let (first, second) = (rig.stream(), rig.stream());
    let heap = heap(&rig, 12 * MIB, &[Rung::Wait]);
    for _ in 0..3 {
        let block = heap.allocate(&Request::new(4 * MIB, first)).unwrap();
        let written = rig.write(first, &block, 1);
        rig.order.wait_on(second.key, written).unwrap();
        let uses = Stamps::from(rig.write(second, &block, 2));
        heap.deallocate(block, &uses).unwrap();
    }
    assert_eq!(heap.accounting().pending_bytes, 12 * MIB);
    let error = heap.allocate(&Request::new(16 * MIB, first)).unwrap_err();
    assert_eq!(error.exhausted().unwrap().steps[0].to_string(), "bounded wait: nothing");
    assert_eq!(heap.accounting().pending_bytes, 12 * MIB, "nothing was waited for");
    let block = heap.allocate(&Request::new(12 * MIB, first)).unwrap();
    heap.free(block).unwrap();
    rig.synchronize(second);
    rig.synchronize(first);
    drop(heap);
    rig.finish(&[first, second]);
}

#[test]
fn limits_say_which_of_them_was_reached() {
    let rig = Rig::new(13, 64 * MIB);
    let stream = rig.stream();
    let tag = AllocTag::new("cache").unwrap();
    let limited = Limited::new(2 * MIB, rig.heap());
    let budgeted = Budgeted::new(Budget::new("model", 4 * MIB), rig.heap()).limit_tag(tag, MIB);
    let reserved = budgeted.reserve(2 * MIB).unwrap();
    let text = |answer: Result<DeviceBlock>| answer.unwrap_err().to_string();
    let request = Request::new(3 * MIB, stream);
    assert_eq!(
        text(limited.allocate(&request)),
        "limit: out of memory: 3145728 bytes were asked for; 0 of a limit of 2097152 are in use"
    );
    assert_eq!(
        text(budgeted.allocate(&request)),
        "budget model: out of memory: 3145728 bytes were asked for; 2097152 of a limit of 4194304 are in use; \
         tried front caches: nothing, callbacks: nothing"
    );
    assert_eq!(
        text(budgeted.allocate(&request.tag(tag))),
        "budget cache: out of memory: 3145728 bytes were asked for; 0 of a limit of 1048576 are in use; \
         tried front caches: nothing, callbacks: nothing"
    );
    assert_eq!(
        text(budgeted.allocate_from(&reserved, &request)),
        "budget set aside of model: out of memory: 3145728 bytes were asked for; 0 of a limit of 2097152 are in use"
    );
    drop(reserved);
    drop((limited, budgeted));
    rig.finish(&[stream]);
}

#[test]
fn what_was_set_aside_pays_for_a_tag_with_an_account_of_its_own() {
    let rig = Rig::new(14, 64 * MIB);
    let stream = rig.stream();
    let tag = AllocTag::new("rows").unwrap();
    let budget = Budget::new("model", 8 * MIB);
    let resource = Budgeted::new(budget.clone(), rig.heap()).limit_tag(tag, 3 * MIB);
    let reserved = resource.reserve(4 * MIB).unwrap();
    let request = Request::new(2 * MIB, stream).tag(tag);
    let block = resource.allocate_from(&reserved, &request).unwrap();
    assert_eq!((budget.used_bytes(), budget.children()[0].used_bytes()), (4 * MIB, 2 * MIB));
    let error = resource.allocate_from(&reserved, &request).unwrap_err();
    assert!(error.to_string().starts_with("budget rows: out of memory"), "{error}");
    assert_eq!(reserved.left_bytes(), 2 * MIB, "a refused draw is put back");
    let elsewhere = Budget::new("other", 8 * MIB).reserve(MIB).unwrap();
    assert!(resource.allocate_from(&elsewhere, &request).unwrap_err().refusal().is_some());
    resource.free(block).unwrap();
    drop(reserved);
    assert_eq!((budget.used_bytes(), budget.children()[0].used_bytes()), (0, 0));
    drop(resource);
    rig.finish(&[stream]);
}

#[test]
fn bases_pass_on_what_the_driver_says() {
    let rig = Rig::new(15, 8 * MIB);
    let stream = rig.stream();
    let direct = Direct::new(rig.driver(), rig.order());
    let pool = DriverPool::new(rig.driver(), rig.order()).unwrap();
    for resource in [&direct as &dyn MemoryResource, &pool] {
        let held = resource.allocate(&Request::new(5 * MIB, stream)).unwrap();
        let text = resource.allocate(&Request::new(4 * MIB, stream)).unwrap_err().to_string();
        let start = format!("{resource}: out of memory: 4194304 bytes were asked for; 5242880 are in use");
        assert!(text.starts_with(&start) && text.contains("the driver said: "), "{text}");
        resource.free(held).unwrap();
        resource.trim().unwrap();
        rig.synchronize(stream);
    }
    drop((direct, pool));
    rig.finish(&[stream]);
}

#[test]
fn the_error_explains_itself_for_a_budget() {
    let rig = Rig::new(8, 64 * MIB);
    let (first, second) = (rig.stream(), rig.stream());
    let heap = heap(&rig, 8 * MIB, &Rung::ALL);
    let tag = AllocTag::new("weights").unwrap();
    let held = heap.allocate(&Request::new(3 * MIB, first).tag(tag)).unwrap();
    let lent = heap.allocate(&Request::new(3 * MIB, first)).unwrap();
    let written = rig.write(first, &lent, 1);
    rig.order.wait_on(second.key, written).unwrap();
    let use_of = rig.write(second, &lent, 2);
    heap.deallocate(lent, &Stamps::from(use_of)).unwrap();

    let error = heap.allocate(&Request::new(16 * MIB + 1, first)).unwrap_err();
    let exhausted = error.exhausted().unwrap();
    assert_eq!((exhausted.limit_bytes, exhausted.in_use_bytes), (Some(8 * MIB), 6 * MIB));
    assert_eq!(exhausted.requested_bytes, 16 * MIB + 1);
    assert!(exhausted.rounded_bytes > 16 * MIB && exhausted.rounded_bytes <= 16 * MIB + 4096);
    assert_eq!(exhausted.top_tags, [(tag, 3 * MIB)]);
    assert_eq!(exhausted.steps.iter().map(|step| step.rung).collect::<Vec<_>>(), Rung::ALL);
    let text = error.to_string();
    for part in ["heap: out of memory", "limit of 8388608", "weights 3145728", "tried front caches"] {
        assert!(text.contains(part), "`{part}` is missing in: {text}");
    }
    heap.free(held).unwrap();
    rig.synchronize(second);
    rig.synchronize(first);
    drop(heap);
    rig.finish(&[first, second]);
}

#[test]
fn the_error_names_what_is_pending_and_until_when() {
    let rig = Rig::new(11, 64 * MIB);
    let (first, second) = (rig.stream(), rig.stream());
    let heap = heap(&rig, 8 * MIB, &[Rung::FrontCaches]);
    let lent = heap.allocate(&Request::new(3 * MIB, first)).unwrap();
    let written = rig.write(first, &lent, 1);
    rig.order.wait_on(second.key, written).unwrap();
    let use_of = rig.write(second, &lent, 2);
    heap.deallocate(lent, &Stamps::from(use_of)).unwrap();
    let error = heap.allocate(&Request::new(8 * MIB, first)).unwrap_err();
    let exhausted = error.exhausted().unwrap();
    assert_eq!((exhausted.pending_bytes, exhausted.pending_until), (3 * MIB, Some(use_of)));
    assert!(
        error.to_string().contains(&format!("3145728 more are pending until {use_of} is done")),
        "{error}"
    );
    rig.synchronize(second);
    rig.synchronize(first);
    drop(heap);
    rig.finish(&[first, second]);
}

#[test]
fn the_error_explains_itself_for_the_device() {
    let rig = Rig::new(9, 8 * MIB);
    let stream = rig.stream();
    let heap = rig.heap();
    let held = heap.allocate(&Request::new(5 * MIB, stream)).unwrap();
    let error = heap.allocate(&Request::new(4 * MIB, stream)).unwrap_err();
    let exhausted = error.exhausted().unwrap();
    assert_eq!((exhausted.limit_bytes, exhausted.in_use_bytes), (None, 5 * MIB));
    assert!(exhausted.driver.as_ref().unwrap().contains("out of memory"));
    assert_eq!(exhausted.steps.len(), Rung::ALL.len());
    heap.free(held).unwrap();
    drop(heap);
    rig.finish(&[stream]);
}

#[test]
fn what_the_driver_says_besides_out_of_memory_is_passed_on() {
    use kiln_driver::Code;
    use kiln_sim::{DeviceConfig, Fault, FaultPlan};

    let faults = FaultPlan::none().on(0, Fault::LostAtCall { call: 6, code: Code::ILLEGAL_ADDRESS });
    let rig = Rig::with(10, DeviceConfig::with_memory(64 * MIB), faults);
    let stream = rig.stream();
    let heap = rig.heap();
    let mut blocks = Vec::new();
    let error = loop {
        match heap.allocate(&Request::new(4 * MIB, stream)) {
            Ok(block) => blocks.push(block),
            Err(error) => break error,
        }
    };
    assert!(error.is_sticky() && !error.is_oom(), "{error}");
    assert_eq!(error.driver().unwrap().code(), Some(Code::ILLEGAL_ADDRESS));
    blocks.into_iter().for_each(|block| heap.free(block).unwrap());
}
