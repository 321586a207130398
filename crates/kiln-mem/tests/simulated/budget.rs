//! Budgets: trees of accounts that many charge at once.

use crate::rig::{MIB, Rig};
use kiln_driver::Driver;
use kiln_mem::layer::Budgeted;
use kiln_mem::{AllocTag, AllocationRequest, Budget, HeapConfig, MemoryResource, MemoryResourceExt};
use kiln_sim::SimDevice;

#[test]
fn a_refused_charge_leaves_no_trace_in_any_account() {
    let root = Budget::new("root", 100);
    let (left, right) = (root.child("left", 80), root.child("right", 80));
    left.charge(70).unwrap();
    let short = right.charge(40).unwrap_err();
    assert_eq!((short.name.as_str(), short.used, short.limit), ("root", 70, 100));
    assert_eq!((right.used_bytes(), root.used_bytes()), (0, 70));
    assert_eq!(right.room_bytes(), 30);
    assert_eq!(root.peak_bytes(), 70, "the peak counts admitted bytes only");
    left.refund(70);
    assert_eq!(root.used_bytes(), 0);
    assert!(root.charge(u64::MAX).is_err());
}

#[test]
fn what_was_set_aside_is_drawn_by_many_and_the_rest_returns() {
    let budget = Budget::new("budget", 100);
    let reserved = budget.reserve(60).unwrap();
    assert!(budget.charge(50).is_err());
    reserved.draw(20).unwrap();
    reserved.draw(30).unwrap();
    assert!(reserved.draw(11).is_err());
    reserved.put_back(30);
    assert_eq!(reserved.left_bytes(), 40);
    drop(reserved);
    assert_eq!(budget.used_bytes(), 20);
    budget.refund(20);
    assert_eq!(budget.used_bytes(), 0);
}

#[test]
fn a_small_request_is_never_refused_because_of_a_large_one() {
    let root = Budget::new("root", 1000);
    let child = root.child("child", 1000);
    root.charge(500).unwrap();
    std::thread::scope(|scope| {
        // Fits the child, never the root.
        scope.spawn(|| (0..20_000).for_each(|_| assert!(child.charge(900).is_err())));
        scope.spawn(|| {
            for _ in 0..20_000 {
                child.charge(200).unwrap();
                child.refund(200);
            }
        });
    });
    assert_eq!((child.used_bytes(), root.used_bytes()), (0, 500));
}

#[test]
fn a_device_has_one_budget_however_often_it_is_asked_for() {
    let (device, other) = (SimDevice::single(1), SimDevice::single(1));
    let budget = Budget::of_device(device.info());
    assert_eq!(budget.limit_bytes(), device.info().total_memory_bytes);
    budget.charge(100).unwrap();
    assert_eq!(Budget::of_device(device.info()).used_bytes(), 100);
    assert_eq!(
        Budget::of_device(other.info()).used_bytes(),
        0,
        "another simulated device has separate memory"
    );
    drop(budget);
    assert_eq!(Budget::of_device(device.info()).used_bytes(), 0, "it was dropped with its last holder");
}

#[test]
fn more_than_was_charged_is_not_given_back() {
    let root = Budget::new("root", 100);
    let child = root.child("child", 50);
    root.charge(10).unwrap();
    child.charge(5).unwrap();
    child.refund(40);
    assert_eq!((child.used_bytes(), root.used_bytes()), (0, 10), "what others charged stays");
    let reserved = child.reserve(30).unwrap();
    reserved.draw(10).unwrap();
    reserved.put_back(u64::MAX);
    assert_eq!(reserved.left_bytes(), 30);
    drop(reserved);
    child.refund(u64::MAX);
    assert_eq!((child.used_bytes(), root.used_bytes()), (0, 10));
    assert!(child.charge(51).is_err(), "and the limit is what it was");
    child.charge(50).unwrap();
}

#[test]
fn a_tag_has_a_separate_limit_below_the_budget() {
    let rig = Rig::new(1, 64 * MIB);
    let stream = rig.stream();
    let (rows, other) = (AllocTag::new("limited rows").unwrap(), AllocTag::new("unlimited").unwrap());
    let budget = Budget::new("model", 4 * MIB);
    let resource = Budgeted::new(budget.clone(), rig.heap()).limit_tag(rows, MIB);
    let allocate = |bytes, tag| resource.allocate(&AllocationRequest::new(bytes, stream).tag(tag));
    let block = allocate(MIB, rows).unwrap();
    let full = allocate(1, rows).unwrap_err();
    let exhausted = full.exhausted().unwrap();
    assert_eq!((exhausted.layer.as_str(), exhausted.limit_bytes), ("budget limited rows", Some(MIB)));
    assert_eq!(exhausted.top_tags, [(rows, MIB)], "the tags that are counted apart are named");
    let rest = allocate(3 * MIB, other).unwrap();
    assert_eq!((budget.children()[0].used_bytes(), budget.used_bytes()), (MIB, 4 * MIB));
    let full = allocate(1, other).unwrap_err();
    let exhausted = full.exhausted().unwrap();
    assert_eq!(exhausted.layer, "budget model");
    assert_eq!(exhausted.top_tags, [(other, 3 * MIB), (rows, MIB)], "and those that are not");
    resource.free(block).unwrap();
    assert_eq!(budget.children()[0].used_bytes(), 0);
    resource.free(allocate(MIB, rows).unwrap()).unwrap();
    resource.free(rest).unwrap();
    drop(resource);
    assert_eq!((budget.used_bytes(), budget.children().len()), (0, 0));
    rig.finish(&[stream]);
}

/// What threads have charged in advance is not used; it does not make a request fail either, through any resource that shares the budget.
#[test]
fn what_one_keeps_at_hand_is_there_for_all_who_share_the_budget() {
    let rig = Rig::new(1, 64 * MIB);
    let stream = rig.stream();
    let root = Budget::new("device", 4 * MIB);
    let (left, right) = (root.child("left", 4 * MIB), root.child("right", 4 * MIB));
    let keeps = Budgeted::new(left, rig.heap());
    let stock = || {
        let block = keeps.allocate(&AllocationRequest::new(100, stream)).unwrap();
        keeps.free(block).unwrap();
        assert!(root.used_bytes() > 0, "something is kept at hand");
    };
    stock();
    let other = Budgeted::new(right.clone(), rig.heap());
    let block = other.allocate(&AllocationRequest::new(4 * MIB, stream)).unwrap();
    other.free(block).unwrap();
    stock();
    drop(other.reserve(4 * MIB).unwrap());
    stock();
    let config = HeapConfig { budget: Some(right), ..HeapConfig::default() };
    let heap = rig.heap_with(config);
    let block = heap.allocate(&AllocationRequest::new(4 * MIB, stream)).unwrap();
    heap.free(block).unwrap();
    drop((keeps, other, heap));
    assert_eq!(root.used_bytes(), 0);
    rig.finish(&[stream]);
}

#[test]
fn what_was_set_aside_pays_for_a_tag_with_a_separate_account() {
    let rig = Rig::new(14, 64 * MIB);
    let stream = rig.stream();
    let tag = AllocTag::new("rows").unwrap();
    let budget = Budget::new("model", 8 * MIB);
    let resource = Budgeted::new(budget.clone(), rig.heap()).limit_tag(tag, 3 * MIB);
    let reserved = resource.reserve(4 * MIB).unwrap();
    let request = AllocationRequest::new(2 * MIB, stream).tag(tag);
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
