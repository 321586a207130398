//! Events that are taken, given back and taken again.

use crate::event_pool::*;
use crate::mock_driver::QueueDriver;
use crate::sync_shim::Ordering;

#[test]
fn an_event_is_used_again_once_its_last_lease_is_dropped_and_not_before() {
    let (queues, pool) = (QueueDriver::new(), EventPool::new());
    let first = pool.take(&*queues).unwrap();
    assert!(first.is_sole());
    let (event, shared) = (first.event(), first.clone());
    assert!(!first.is_sole() && !shared.is_sole());
    drop(first);
    assert!(shared.is_sole());
    let second = pool.take(&*queues).unwrap();
    assert_ne!(second.event(), event, "a stream still waits for its old signal");
    assert_eq!(pool.counts(), (2, 2));
    drop(shared);
    assert_eq!(pool.counts(), (2, 1));
    assert_eq!(pool.take(&*queues).unwrap().event(), event);
    assert_eq!((pool.counts(), queues.events()), ((2, 1), 2));
}

#[test]
fn an_event_that_could_not_be_made_takes_no_place() {
    let (queues, pool) = (QueueDriver::new(), EventPool::new());
    queues.refuses.store(true, Ordering::Relaxed);
    for _ in 0..3 {
        assert!(pool.take(&*queues).is_err());
        assert_eq!(pool.counts().1, 0);
    }
    queues.refuses.store(false, Ordering::Relaxed);
    let lease = pool.take(&*queues).unwrap();
    assert_eq!((pool.counts(), queues.events()), ((1, 1), 1));
    drop(lease);
    pool.destroy_all(&*queues);
    assert_eq!(queues.events(), 0);
}

#[test]
fn past_the_limit_there_is_a_refusal_until_one_comes_back() {
    let (queues, pool) = (QueueDriver::new(), EventPool::new());
    let last = pool.take(&*queues).unwrap();
    pool.free.lock().unwrap().used = MAX_EVENTS;
    let Err(error) = pool.take(&*queues) else { panic!("one too many") };
    assert!(error.is_refused() && error.to_string().contains(&MAX_EVENTS.to_string()), "{error}");
    drop(last);
    assert!(pool.take(&*queues).is_ok());
}

#[test]
fn leases_that_threads_share_come_back_once() {
    let (queues, pool) = (QueueDriver::new(), EventPool::new());
    let rounds = if cfg!(miri) { 4 } else { 500 };
    for _ in 0..rounds {
        let leases = [pool.take(&*queues).unwrap(), pool.take(&*queues).unwrap()];
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let mine = leases.clone();
                scope.spawn(move || drop(mine.clone()));
            }
            drop(leases);
        });
        let mut returned = pool.free.lock().unwrap().returned.clone();
        returned.sort_unstable();
        assert_eq!(returned, [0, 1]);
    }
    assert_eq!(pool.counts(), (2, 0));
}
