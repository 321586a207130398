//! The accounts of a budget under loom: every interleaving of charges and refunds.

#![cfg(kiln_loom)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use kiln_mem::Budget;

/// Runs a model over its interleavings, with at most so many switches that no thread asked for.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

#[test]
fn no_more_is_charged_than_the_limit_and_nothing_is_lost() {
    explore(3, || {
        let budget = Budget::new("device", 10);
        let charges: Vec<_> = [6, 5]
            .map(|bytes| {
                let budget = budget.clone();
                loom::thread::spawn(move || budget.charge(bytes).is_ok().then_some(bytes))
            })
            .into_iter()
            .collect();
        let charged: Vec<u64> = charges.into_iter().filter_map(|charge| charge.join().unwrap()).collect();
        assert_eq!(charged.len(), 1, "either fits and both do not");
        assert_eq!(budget.used_bytes(), charged[0]);
        budget.refund(charged[0]);
        assert_eq!(budget.used_bytes(), 0);
    });
}

/// A request that fits its own account and not the one above is taken back; meanwhile a small one that fits is met.
#[test]
fn a_refused_large_request_does_not_make_a_small_one_fail() {
    explore(3, || {
        let root = Budget::new("root", 10);
        let child = root.child("child", 10);
        root.charge(5).unwrap();
        let large = {
            let child = child.clone();
            loom::thread::spawn(move || assert!(child.charge(9).is_err()))
        };
        child.charge(2).unwrap();
        large.join().unwrap();
        assert_eq!((child.used_bytes(), root.used_bytes()), (2, 7));
        assert_eq!(root.peak_bytes(), 7, "the peak counts admitted bytes only");
    });
}

/// A charge that the account above refuses is no part of any peak, whichever thread settles meanwhile.
#[test]
fn what_was_never_admitted_is_in_no_peak() {
    explore(3, || {
        let root = Budget::new("root", 10);
        let child = root.child("child", 20);
        let large = {
            let child = child.clone();
            loom::thread::spawn(move || assert!(child.charge(11).is_err()))
        };
        child.charge(2).unwrap();
        large.join().unwrap();
        assert_eq!((child.peak_bytes(), root.peak_bytes()), (2, 2));
        child.refund(u64::MAX);
        assert_eq!((child.used_bytes(), root.used_bytes()), (0, 0));
    });
}

/// More than is there is given back while a charge is on its way; the charge is not among it.
#[test]
fn a_charge_on_its_way_is_not_given_back_by_others() {
    explore(3, || {
        let root = Budget::new("root", 10);
        let child = root.child("child", 20);
        let large = {
            let child = child.clone();
            loom::thread::spawn(move || assert!(child.charge(11).is_err()))
        };
        child.refund(5);
        large.join().unwrap();
        assert_eq!((child.used_bytes(), root.used_bytes()), (0, 0));
        child.charge(10).unwrap();
    });
}
