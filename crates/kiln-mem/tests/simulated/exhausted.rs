//! Out of memory is said with its cause, and only when memory is out.

use std::time::Duration;

use crate::rig::{MIB, Rig};
use kiln_mem::layer::{Budgeted, Limited};
use kiln_mem::{
    AllocTag, AllocationRequest, Budget, DeviceBlock, Direct, DriverPool, Heap, HeapConfig, MemoryResource,
    MemoryResourceExt, Order, Pages, PressurePolicy, ReclaimStep, Result, Stamp, Stamps, StreamRef,
};

/// A heap that may take so many bytes from the device and only these steps.
fn heap(rig: &Rig, bytes: u64, steps: &'static [ReclaimStep]) -> Heap {
    let pressure = PressurePolicy::waiting(Duration::from_secs(1)).only(steps);
    rig.heap_with(HeapConfig { budget: Some(Budget::new("test", bytes)), pressure, ..HeapConfig::default() })
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
    let request = AllocationRequest::new(3 * MIB, stream);
    assert_eq!(
        text(limited.allocate(&request)),
        "limit: out of memory: 3145728 bytes were asked for; 0 of a limit of 2097152 are in use"
    );
    assert_eq!(
        text(budgeted.allocate(&request)),
        "budget model: out of memory: 3145728 bytes were asked for; 2097152 of a limit of 4194304 are in use; \
         tried thread caches: nothing, callbacks: nothing"
    );
    assert_eq!(
        text(budgeted.allocate(&request.tag(tag))),
        "budget cache: out of memory: 3145728 bytes were asked for; 0 of a limit of 1048576 are in use; \
         tried thread caches: nothing, callbacks: nothing"
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
fn bases_pass_on_what_the_driver_says() {
    let rig = Rig::new(15, 8 * MIB);
    let stream = rig.stream();
    let direct = Direct::new(rig.driver(), rig.order());
    let pool = DriverPool::new(rig.driver(), rig.order()).unwrap();
    for resource in [&direct as &dyn MemoryResource, &pool] {
        let held = resource.allocate(&AllocationRequest::new(5 * MIB, stream)).unwrap();
        let text = resource.allocate(&AllocationRequest::new(4 * MIB, stream)).unwrap_err().to_string();
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
    let heap = heap(&rig, 8 * MIB, &ReclaimStep::ALL);
    let tag = AllocTag::new("weights").unwrap();
    let held = heap.allocate(&AllocationRequest::new(3 * MIB, first).tag(tag)).unwrap();
    let lent = heap.allocate(&AllocationRequest::new(3 * MIB, first)).unwrap();
    let written = rig.write(first, &lent, 1);
    rig.order.wait_on(second.key(), written).unwrap();
    let use_of = rig.write(second, &lent, 2);
    heap.deallocate(lent, &Stamps::from(use_of)).unwrap();

    let error = heap.allocate(&AllocationRequest::new(16 * MIB + 1, first)).unwrap_err();
    let exhausted = error.exhausted().unwrap();
    assert_eq!((exhausted.limit_bytes, exhausted.in_use_bytes), (Some(8 * MIB), 6 * MIB));
    assert_eq!(exhausted.requested_bytes, 16 * MIB + 1);
    assert!(exhausted.rounded_bytes > 16 * MIB && exhausted.rounded_bytes <= 16 * MIB + 4096);
    assert_eq!(exhausted.top_tags, [(tag, 3 * MIB)]);
    assert_eq!(exhausted.attempts.iter().map(|step| step.step).collect::<Vec<_>>(), ReclaimStep::ALL);
    let text = error.to_string();
    assert_eq!(exhausted.limited_by.as_deref(), Some("test"));
    for part in [
        "heap: out of memory",
        "6291456 of a limit of 8388608 (budget test) are in use",
        "weights 3145728",
        "tried thread caches",
    ] {
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
    let heap = heap(&rig, 8 * MIB, &[ReclaimStep::ThreadCaches]);
    let lent = heap.allocate(&AllocationRequest::new(3 * MIB, first)).unwrap();
    let written = rig.write(first, &lent, 1);
    rig.order.wait_on(second.key(), written).unwrap();
    let use_of = rig.write(second, &lent, 2);
    heap.deallocate(lent, &Stamps::from(use_of)).unwrap();
    let error = heap.allocate(&AllocationRequest::new(8 * MIB, first)).unwrap_err();
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
    let held = heap.allocate(&AllocationRequest::new(5 * MIB, stream)).unwrap();
    let error = heap.allocate(&AllocationRequest::new(4 * MIB, stream)).unwrap_err();
    let exhausted = error.exhausted().unwrap();
    assert_eq!((exhausted.limit_bytes, exhausted.in_use_bytes), (None, 5 * MIB));
    assert!(exhausted.driver.as_ref().unwrap().contains("out of memory"));
    assert_eq!(exhausted.attempts.len(), ReclaimStep::ALL.len());
    heap.free(held).unwrap();
    drop(heap);
    rig.finish(&[stream]);
}

#[test]
fn what_the_driver_says_besides_out_of_memory_is_passed_on() {
    use kiln_driver::Code;
    use kiln_sim::{DeviceConfig, FaultPlan, PlannedFault};

    let faults = FaultPlan::none().on(0, PlannedFault::LostAtCall { call: 6, code: Code::ILLEGAL_ADDRESS });
    let rig = Rig::with(10, DeviceConfig::with_memory(64 * MIB), faults);
    let stream = rig.stream();
    let heap = rig.heap();
    let mut blocks = Vec::new();
    let error = loop {
        match heap.allocate(&AllocationRequest::new(4 * MIB, stream)) {
            Ok(block) => blocks.push(block),
            Err(error) => break error,
        }
    };
    assert!(error.is_sticky() && !error.is_oom(), "{error}");
    assert_eq!(error.driver().unwrap().code(), Some(Code::ILLEGAL_ADDRESS));
    blocks.into_iter().for_each(|block| heap.free(block).unwrap());
}

/// Three megabytes are held, three wait for work on a stream, and four are asked for.
fn short_of_memory(rig: &Rig, resource: &dyn MemoryResource, stream: StreamRef) -> (kiln_mem::Error, Stamp) {
    let tag = AllocTag::new("held by hand").unwrap();
    let held = resource.allocate(&AllocationRequest::new(3 * MIB, stream).tag(tag)).unwrap();
    let lent = resource.allocate(&AllocationRequest::new(3 * MIB, stream)).unwrap();
    let busy = rig.keep_busy(stream, &lent);
    resource.free(lent).unwrap();
    let error = resource.allocate(&AllocationRequest::new(4 * MIB, stream)).unwrap_err();
    rig.synchronize(stream);
    resource.free(held).unwrap();
    rig.synchronize(stream);
    resource.trim().unwrap();
    (error, busy)
}

#[test]
fn memory_straight_from_the_driver_names_what_is_pending() {
    let rig = Rig::new(18, 8 * MIB);
    let stream = rig.stream();
    let direct = Direct::new(rig.driver(), rig.order());
    let (error, busy) = short_of_memory(&rig, &direct, stream);
    let exhausted = error.exhausted().unwrap();
    assert_eq!((exhausted.layer.as_str(), exhausted.in_use_bytes), ("direct", 3 * MIB));
    assert_eq!((exhausted.pending_bytes, exhausted.pending_until), (3 * MIB, Some(busy)));
    assert_eq!(exhausted.attempts.iter().map(|step| step.step).collect::<Vec<_>>(), [ReclaimStep::Completed]);
    assert!(exhausted.driver.is_some() && exhausted.limit_bytes.is_none());
    drop(direct);
    rig.finish(&[stream]);
}

#[test]
fn pages_name_what_is_pending_who_holds_most_and_every_step() {
    for limited in [true, false] {
        let rig = Rig::new(19, if limited { 64 * MIB } else { 8 * MIB });
        let stream = rig.stream();
        let budget = limited.then(|| Budget::new("test", 8 * MIB));
        let config = HeapConfig { budget, ..HeapConfig::default() };
        let pages = Pages::new(rig.driver(), rig.order(), config).unwrap();
        let (error, busy) = short_of_memory(&rig, &pages, stream);
        let exhausted = error.exhausted().unwrap();
        assert_eq!((exhausted.requested_bytes, exhausted.rounded_bytes), (4 * MIB, 4 * MIB));
        assert_eq!(
            (exhausted.in_use_bytes, exhausted.reserved_bytes),
            (if limited { 8 } else { 3 } * MIB, 8 * MIB)
        );
        assert_eq!((exhausted.pending_bytes, exhausted.pending_until), (3 * MIB, Some(busy)));
        assert_eq!(exhausted.top_tags, [(AllocTag::new("held by hand").unwrap(), 3 * MIB)]);
        assert_eq!(exhausted.attempts.iter().map(|step| step.step).collect::<Vec<_>>(), ReclaimStep::ALL);
        assert_eq!(
            (exhausted.limit_bytes, exhausted.driver.is_none()),
            (limited.then_some(8 * MIB), limited)
        );
        drop(pages);
        rig.finish(&[stream]);
    }
}

#[test]
fn limits_above_a_heap_say_what_is_free_below_them() {
    let rig = Rig::new(20, 64 * MIB);
    let stream = rig.stream();
    let layers: [Box<dyn MemoryResource>; 2] = [
        Box::new(Limited::new(4 * MIB, rig.heap())),
        Box::new(Budgeted::new(Budget::new("model", 4 * MIB), rig.heap())),
    ];
    for (resource, name) in layers.iter().zip(["limit", "budget model"]) {
        let blocks = [2, 1, 1]
            .map(|megabytes| resource.allocate(&AllocationRequest::new(megabytes * MIB, stream)).unwrap());
        let [first, second, third] = blocks;
        resource.free(second).unwrap();
        let error = resource.allocate(&AllocationRequest::new(2 * MIB, stream)).unwrap_err();
        let (exhausted, counted) = (error.exhausted().unwrap(), resource.accounting());
        assert_eq!((exhausted.layer.as_str(), exhausted.limit_bytes), (name, Some(4 * MIB)));
        assert!(exhausted.in_use_bytes >= 3 * MIB && exhausted.in_use_bytes < 4 * MIB);
        assert_eq!(exhausted.reserved_bytes, counted.reserved_bytes);
        assert!(exhausted.free_bytes >= MIB, "{error}");
        assert_eq!(exhausted.largest_free_bytes, counted.largest_free_bytes);
        let text = error.to_string();
        assert!(text.contains("taken from the device") && text.contains("% fragmented"), "{text}");
        [first, third].into_iter().for_each(|block| resource.free(block).unwrap());
    }
    drop(layers);
    rig.finish(&[stream]);
}

#[test]
fn nothing_else_is_out_of_memory() {
    let rig = Rig::new(21, 64 * MIB);
    let stream = rig.stream();
    let other = rig.heap();
    let bases: [Box<dyn MemoryResource>; 4] = [
        Box::new(rig.heap()),
        Box::new(Pages::new(rig.driver(), rig.order(), HeapConfig::default()).unwrap()),
        Box::new(Direct::new(rig.driver(), rig.order())),
        Box::new(DriverPool::new(rig.driver(), rig.order()).unwrap()),
    ];
    for resource in &bases {
        let error = resource.allocate(&AllocationRequest::new(64, stream).align(3)).unwrap_err();
        assert!(!error.is_oom() && error.refusal().is_some() && !error.is_retryable(), "{error}");
        let foreign = other.allocate(&AllocationRequest::new(64, stream)).unwrap();
        let refused = resource.free(foreign).unwrap_err();
        assert!(!refused.error.is_oom() && refused.error.exhausted().is_none(), "{}", refused.error);
        other.free(refused.block).unwrap();
    }
    drop((other, bases));
    rig.finish(&[stream]);
}
