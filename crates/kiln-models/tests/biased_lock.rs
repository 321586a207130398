//! The biased lock under loom: every interleaving of an owner and the threads that take over, with weak memory.

#![cfg(kiln_loom)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::sync::Arc;

use kiln_sync::sync_shim::set_fences;
use kiln_sync::{Bias, BiasedLock, Gate};
use loom::thread;

/// Runs a model over its interleavings, with at most so many switches that no thread asked for.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    set_fences(true);
    check(preemptions, model);
}

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// A counter behind a lock that this thread owns, and what another thread does with it.
fn beside(
    bias: Bias,
    other: impl FnOnce(&BiasedLock<u32>) + 'static,
    owner: impl FnOnce(&BiasedLock<u32>),
) -> u32 {
    let lock = Arc::new(BiasedLock::with_bias(0, bias));
    let theirs = {
        let lock = lock.clone();
        thread::spawn(move || other(&lock))
    };
    owner(&lock);
    theirs.join().unwrap();
    let count = *lock.lock();
    count
}

/// The owner pushes to its list and takes from it; another thread empties it. No element is lost and none is taken twice.
#[test]
fn an_element_of_a_shared_list_is_taken_once() {
    explore(3, || {
        let list = Arc::new(BiasedLock::with_bias(vec![1, 2], Bias::Always));
        let visitor = {
            let list = list.clone();
            thread::spawn(move || std::mem::take(&mut *list.visit()))
        };
        let mut mine = Vec::new();
        if let Some(mut guard) = list.try_lock() {
            mine.extend(guard.pop());
        }
        list.lock().push(3);
        let mut all = visitor.join().unwrap();
        all.extend(mine);
        all.append(&mut *list.visit());
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3]);
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn without_its_fences_the_lock_would_let_two_in() {
    set_fences(false);
    check(3, || {
        beside(Bias::Always, |lock| *lock.visit() += 1, |lock| *lock.lock() += 1);
    });
}

#[test]
fn an_owner_and_another_thread_take_turns_under_every_bias() {
    for bias in [Bias::Once, Bias::Returns(1), Bias::Always] {
        explore(3, move || {
            let count = beside(bias, |lock| *lock.lock() += 1, |lock| *lock.lock() += 1);
            assert_eq!(count, 2);
        });
    }
}

/// The owner gets its bias back between two visits, and may lose it for good with the second: turns could overlap at either change.
#[test]
fn a_bias_that_returns_and_ends_lets_in_one_at_a_time() {
    let twice = |lock: &BiasedLock<u32>| {
        *lock.lock() += 1;
        *lock.lock() += 1;
    };
    for bias in [Bias::Once, Bias::Returns(1), Bias::Always] {
        explore(2, move || assert_eq!(beside(bias, twice, twice), 4));
    }
}

#[test]
fn two_visitors_and_an_owner_take_turns() {
    for bias in [Bias::Once, Bias::Always] {
        explore(2, move || {
            let count = Arc::new(BiasedLock::with_bias(0, bias));
            let visitors: Vec<_> = (0..2)
                .map(|_| {
                    let count = count.clone();
                    thread::spawn(move || *count.visit() += 1)
                })
                .collect();
            *count.lock() += 1;
            visitors.into_iter().for_each(|visitor| visitor.join().unwrap());
            assert_eq!(*count.visit(), 3);
        });
    }
}

/// Each attempt may fail because of the other, and leaves the lock as usable as it was.
#[test]
fn attempts_of_both_sides_never_succeed_together() {
    for bias in [Bias::Once, Bias::Always] {
        explore(3, move || {
            let attempt = |lock: &BiasedLock<u32>| {
                if let Some(mut count) = lock.try_lock() {
                    *count += 1;
                }
            };
            assert!(beside(bias, attempt, attempt) <= 2);
        });
    }
}

/// A guard that another thread drops ends the owner's turn, and not before.
#[test]
fn a_guard_may_be_dropped_by_another_thread() {
    explore(3, || {
        let lock: &'static BiasedLock<u32> = Box::leak(Box::new(BiasedLock::with_bias(0, Bias::Always)));
        let guard = lock.lock();
        let dropping = thread::spawn(move || {
            let mut guard = guard;
            *guard += 1;
        });
        *lock.lock() += 1;
        dropping.join().unwrap();
        assert_eq!(*lock.lock(), 2);
    });
}

/// What a user did before it left a gate is seen by the thread that closed it.
#[test]
fn a_gate_closes_behind_its_users() {
    explore(3, || {
        let (gate, cell) = (Arc::new(Gate::default()), Arc::new(loom::cell::UnsafeCell::new(0)));
        let user = {
            let (gate, cell) = (gate.clone(), cell.clone());
            // SAFETY: a user that was admitted is alone with the cell until it leaves; loom watches that.
            thread::spawn(move || {
                gate.pass().map(|_pass| cell.with_mut(|value| unsafe { *value += 1 })).is_some()
            })
        };
        gate.close();
        // SAFETY: the gate is closed and its users have left; loom watches that, too.
        let seen = cell.with(|value| unsafe { *value });
        assert_eq!(seen == 1, user.join().unwrap());
        assert!(gate.pass().is_none());
    });
}
