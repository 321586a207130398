//! Every interleaving of the two places where threads meet: the lock of a front cache, whose owner pays nothing while
//! others take its blocks, and the accounts of a budget.
//!
//! The sources are those of the crate, compiled here with the model checker's atomics in place of the system's.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]
#![allow(clippy::duplicate_mod, reason = "the lock is looked at with its fence and without")]
#![allow(dead_code, unreachable_pub, missing_docs, reason = "a part of the sources is looked at here")]

#[path = "../src/account.rs"]
mod account;
#[path = "../src/budget.rs"]
mod budget;

/// What an account is made of.
mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
    pub(crate) use loom::thread::yield_now;
}

#[path = "../src/thread"]
mod thread {
    pub(crate) mod biased;

    /// What the lock is made of.
    pub(crate) mod sync {
        pub(crate) use std::sync::PoisonError;

        pub(crate) use loom::cell::UnsafeCell;
        pub(crate) use loom::sync::atomic::{AtomicBool, Ordering};
        pub(crate) use loom::sync::{Mutex, MutexGuard};
        pub(crate) use loom::thread::yield_now as pause;
    }

    /// The fence without help from the system: both sides pay.
    pub(crate) mod barrier {
        use loom::sync::atomic::{Ordering, fence};

        pub(crate) fn light() {
            fence(Ordering::SeqCst);
        }

        pub(crate) fn heavy() {
            fence(Ordering::SeqCst);
        }
    }
}

/// The same lock without its fence, to see that the checker would notice.
#[path = "../src/thread"]
mod unfenced {
    pub(crate) mod biased;

    pub(crate) use super::thread::sync;

    pub(crate) mod barrier {
        pub(crate) fn light() {}

        pub(crate) fn heavy() {}
    }
}

use std::sync::Arc;

use account::Account;
use budget::Budget;
use thread::biased::Biased;

/// Runs a model over its interleavings, with at most so many switches that no thread asked for.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// The owner frees to its cache and allocates from it; another thread empties it. No block is lost and none is had twice.
#[test]
fn a_block_freed_by_its_thread_and_taken_by_another_has_one_owner() {
    explore(3, || {
        let front = Arc::new(Biased::new(vec![1, 2], u32::MAX));
        let visitor = {
            let front = front.clone();
            loom::thread::spawn(move || std::mem::take(&mut *front.visit()))
        };
        let mut mine = Vec::new();
        // SAFETY: only this thread is the owner.
        if let Some(mut turn) = unsafe { front.enter() } {
            mine.extend(turn.pop());
        }
        // SAFETY: as above.
        unsafe { front.lock_owner() }.push(3);
        let mut all = visitor.join().unwrap();
        all.extend(mine);
        all.append(&mut *front.visit());
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3]);
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn without_its_fence_the_lock_would_let_two_in() {
    explore(3, || {
        let count = Arc::new(unfenced::biased::Biased::new(0, u32::MAX));
        let visitor = {
            let count = count.clone();
            loom::thread::spawn(move || *count.visit() += 1)
        };
        // SAFETY: only this thread is the owner.
        if let Some(mut turn) = unsafe { count.enter() } {
            *turn += 1;
        }
        visitor.join().unwrap();
    });
}

#[test]
fn two_visitors_and_an_owner_take_turns() {
    explore(2, || {
        let count = Arc::new(Biased::new(0, u32::MAX));
        let visitors: Vec<_> = (0..2)
            .map(|_| {
                let count = count.clone();
                loom::thread::spawn(move || *count.visit() += 1)
            })
            .collect();
        // SAFETY: only this thread is the owner.
        *unsafe { count.lock_owner() } += 1;
        visitors.into_iter().for_each(|visitor| visitor.join().unwrap());
        assert_eq!(*count.visit(), 3);
    });
}

/// After its patience is over the lock is an ordinary one; the change itself is a place where turns could overlap.
#[test]
fn a_lock_that_loses_its_patience_still_lets_in_one_at_a_time() {
    explore(2, || {
        let count = Arc::new(Biased::new(0, 1));
        let visitor = {
            let count = count.clone();
            loom::thread::spawn(move || {
                *count.lock() += 1;
                *count.lock() += 1;
            })
        };
        // SAFETY: only this thread is the owner.
        *unsafe { count.lock_owner() } += 1;
        // SAFETY: as above.
        *unsafe { count.lock_owner() } += 1;
        visitor.join().unwrap();
        assert_eq!(*count.lock(), 4);
    });
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

/// A charge that the account above refuses is no part of any peak, whoever settles meanwhile.
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

/// Whoever is refused whatever becomes of charges on their way does not wait for them.
#[test]
fn a_charge_that_cannot_fit_does_not_wait_for_others() {
    explore(2, || {
        let account = Account::new(100);
        account.try_charge(60).unwrap();
        account.settle(60);
        account.try_charge(10).unwrap();
        assert_eq!(account.try_charge(50), Err((60, 100)));
        assert_eq!(account.try_charge(u64::MAX), Err((60, 100)));
        account.cancel(10);
        account.try_charge(40).unwrap();
        account.settle(40);
        assert_eq!((account.used(), account.peak()), (100, 100));
    });
}
