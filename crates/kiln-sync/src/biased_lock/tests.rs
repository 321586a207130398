//! The lock over real threads. Its interleavings are explored by the models of `kiln-models`.

use super::*;

/// A lock that has an owner even when so many were taken over that new ones have none.
fn owned<T>(value: T, bias: Bias) -> BiasedLock<T> {
    let lock = BiasedLock::with_bias(value, bias);
    lock.owner.store(if is_light_cheap() { this_thread() } else { NONE }, Ordering::Relaxed);
    lock
}

#[test]
fn a_held_value_is_not_given_out_again() {
    for bias in [Bias::Once, Bias::Returns(2), Bias::Always] {
        let lock = owned(1, bias);
        let mut guard = lock.lock();
        assert!(lock.try_lock().is_none());
        assert!(lock.try_lock().is_none(), "a refused attempt releases nothing");
        *guard += 1;
        drop(guard);
        assert_eq!(*lock.try_lock().unwrap(), 2);
    }
}

/// Many locks, each made by one thread that goes on using it while others come: the moment of the take-over is what is tried.
#[test]
fn an_owner_and_other_threads_are_never_inside_together() {
    let rounds = if cfg!(miri) { 2 } else { 200 };
    for round in 0..rounds {
        let bias = [Bias::Once, Bias::Returns(3), Bias::Always][round % 3];
        let lock = owned((0_u64, 0_u64), bias);
        let count = |times: u64| {
            for turn in 0..times {
                let mut pair = if turn % 5 == 0 { lock.visit() } else { lock.lock() };
                pair.0 += 1;
                std::hint::black_box(&mut *pair);
                pair.1 += 1;
                assert_eq!(pair.0, pair.1);
            }
        };
        let (theirs, mine) = if cfg!(miri) { (10, 30) } else { (100, 300) };
        std::thread::scope(|scope| {
            scope.spawn(|| count(theirs));
            count(mine);
        });
        assert_eq!(*lock.lock(), (theirs + mine, theirs + mine));
    }
}

#[test]
fn a_guard_that_moves_to_another_thread_keeps_the_owner_out() {
    let lock = owned(0, Bias::Always);
    let guard = lock.lock();
    std::thread::scope(|scope| {
        let moved = scope.spawn(move || {
            yield_now();
            let mut guard = guard;
            *guard += 1;
        });
        assert!(lock.try_lock().is_none_or(|value| *value == 1));
        moved.join().unwrap();
    });
    assert_eq!(*lock.lock(), 1);
}

#[test]
fn threads_that_count_lose_nothing() {
    let (threads, rounds) = if cfg!(miri) { (2, 50) } else { (4, 20_000) };
    let lock = BiasedLock::new(0_u64);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| (0..rounds).for_each(|_| *lock.lock() += 1));
        }
    });
    assert_eq!(*lock.lock(), threads * rounds);
}

/// Whose the lock is after another thread had it and its first owner took it again.
fn owner_after(lock: &BiasedLock<u32>, look: impl Fn(&BiasedLock<u32>) + Sync) -> u32 {
    // The scope joins the thread and passes a panic on.
    std::thread::scope(|scope| drop(scope.spawn(|| look(lock))));
    assert_eq!(lock.owner.load(Ordering::Relaxed), NONE, "another thread took it over");
    *lock.lock() += 1;
    lock.owner.load(Ordering::Relaxed)
}

#[test]
fn the_bias_returns_as_often_as_it_is_meant_to() {
    if !is_light_cheap() {
        return; // Such a system has no bias at all.
    }
    let me = this_thread();
    let counted = |lock: &BiasedLock<u32>| *lock.lock() += 1;
    let visit = |lock: &BiasedLock<u32>| *lock.visit() += 1;
    assert_eq!(owner_after(&owned(0, Bias::Once), counted), NONE);
    let always = owned(0, Bias::Always);
    let twice = owned(0, Bias::Returns(2));
    for turn in 1..=3 {
        assert_eq!(owner_after(&always, counted), me);
        assert_eq!(owner_after(&twice, visit), me, "a visit does not count");
        if turn < 2 {
            assert_eq!(owner_after(&twice, counted), me);
        }
    }
    assert_eq!(owner_after(&twice, counted), NONE);
    assert_eq!(*twice.lock(), 10);
}

#[test]
fn a_later_thread_with_the_same_number_owns_the_lock() {
    if !is_light_cheap() {
        return;
    }
    // Threads of other tests take numbers at the same time, so a number may stay with one of them: then another lock is tried.
    let successors_of_one_lock = || {
        let lock = std::thread::spawn(|| owned(0, Bias::Always)).join().unwrap();
        let successors = (0..20).filter(|_| {
            std::thread::scope(|scope| {
                let check =
                    || (lock.owner.load(Ordering::Relaxed) == this_thread()).then(|| *lock.lock() += 1);
                scope.spawn(check).join().unwrap().is_some()
            })
        });
        let successors = successors.count();
        assert_eq!(*lock.lock(), successors);
        successors
    };
    assert!(
        (0..500).any(|_| successors_of_one_lock() > 0),
        "no thread ever got the number of an earlier one"
    );
}
