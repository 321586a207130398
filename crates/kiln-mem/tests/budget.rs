//! Budgets: trees of accounts that many charge at once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use kiln_driver::Driver;
use kiln_mem::Budget;
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
        "another simulated device has memory of its own"
    );
    drop(budget);
    assert_eq!(Budget::of_device(device.info()).used_bytes(), 0, "it went with whoever held it");
}
