//! Tests of the state of a stream, on the mock driver.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::event_pool::EventPool;
use crate::mock_driver::QueueDriver;
use crate::stamp::Stamp;
use crate::stream_counters::StreamCount;
use crate::stream_key::StreamKey;
use crate::stream_state::{Point, Recorded, StreamState};
use crate::vector_clock::StreamClock;

/// A stream with its own pool of events, and points on it by number.
struct Streams {
    queues: Arc<QueueDriver>,
    pool: Arc<EventPool>,
}

fn stamp(stream: usize, number: u64) -> Stamp {
    Stamp { stream: StreamKey::new(stream).unwrap(), number }
}

impl Streams {
    fn new() -> Self {
        Self { queues: QueueDriver::new(), pool: EventPool::new() }
    }

    fn state(&self, number: u64) -> StreamState {
        StreamState::new(StreamKey::new(1).unwrap(), self.queues.stream(), number)
    }

    fn point(&self, number: u64, clock: StreamClock) -> Point {
        Arc::new(Recorded { stamp: stamp(1, number), event: self.pool.take(&*self.queues).unwrap(), clock })
    }

    fn remember(&self, state: &StreamState, number: u64) {
        state.remember(self.point(number, StreamClock::default()));
    }
}

fn found(state: &StreamState, number: u64) -> Option<u64> {
    state.point(number).map(|point| point.stamp.number)
}

#[test]
fn the_earliest_point_that_covers_a_number_is_found() {
    let streams = Streams::new();
    let state = streams.state(0);
    assert_eq!(found(&state, 1), None);
    // Another thread may record an earlier point and come later with it.
    for number in [3, 9, 6, 9, 4] {
        streams.remember(&state, number);
    }
    let found: Vec<_> = (1..=10).map(|number| found(&state, number)).collect();
    let expected = [3, 3, 3, 4, 6, 6, 9, 9, 9].map(Some).into_iter().chain([None]);
    assert_eq!(found, expected.collect::<Vec<_>>());
    state.forget_points();
    assert!(state.point(1).is_none());
    assert_eq!(streams.pool.counts(), (5, 0), "their events are free again");
}

#[test]
fn old_points_are_forgotten_and_their_events_come_back() {
    let streams = Streams::new();
    let state = streams.state(0);
    (1..=40).for_each(|number| streams.remember(&state, number));
    let (made, leased) = streams.pool.counts();
    assert!(leased < 40 && made <= leased + 1, "{leased} of {made}");
    let oldest = 40 - leased as u64 + 1;
    assert_eq!(found(&state, 1), Some(oldest), "a later point covers it as well");
    assert_eq!(found(&state, 40), Some(40));
    assert!((oldest..=40).all(|number| found(&state, number) == Some(number)));
}

#[test]
fn the_oldest_point_is_recorded_anew_unless_it_is_held() {
    let streams = Streams::new();
    let state = streams.state(0);
    let mut number = 0;
    while state.take_oldest().is_none() {
        number += 1;
        assert!(number < 100, "it is never full");
        streams.remember(&state, number);
    }
    streams.remember(&state, number + 1);
    let held = state.point(2).unwrap();
    assert_eq!(held.stamp.number, 2, "the first was taken");
    assert!(state.take_oldest().is_none(), "a stream is about to wait for it");
    let lease = held.event.clone();
    drop(held);
    assert!(state.take_oldest().is_none(), "foreign code waits for the event");
    drop(lease);
    assert_eq!(state.take_oldest().map(|point| point.stamp.number), Some(2));
}

#[test]
fn a_stream_records_at_once_while_others_keep_asking() {
    let streams = Streams::new();
    let state = streams.state(0);
    let now = || state.records_at_once(&mut state.enter());
    assert!(!now());
    let mut overshoots = 0;
    while !now() {
        state.note_overshoot();
        overshoots += 1;
        assert!(overshoots < 100, "it never starts");
    }
    assert!(overshoots > 1, "one wait that covers too much is no habit");
    streams.remember(&state, 1);
    let asked = |_: usize| {
        assert!(state.point(1).is_some());
        now()
    };
    assert!((0..200).all(asked), "asked for, it goes on");
    let more = (0..200).take_while(|_| now()).count();
    assert!((1..200).contains(&more), "not asked for, it stops after a while: {more}");
    assert!(!now(), "and does not start by itself");
}

#[test]
fn an_heir_goes_on_where_the_stream_ended() {
    let streams = Streams::new();
    let old = streams.state(4);
    assert!(!old.claim(), "it is in use");
    {
        let mut entry = old.enter();
        assert_eq!((old.plan(&mut entry), old.plan(&mut entry)), (5, 6));
        assert_eq!((old.planned(), old.submitted()), (6, 4));
    }
    old.set_submitted(6);
    old.note_broken(6);
    old.note_broken(5);
    old.counters().add(StreamCount::StreamWaits, 3);
    let mut clock = StreamClock::default();
    clock.learn(stamp(2, 8));
    let end = streams.point(6, clock);
    old.remember(end.clone());
    old.close();
    assert!(old.claim() && !old.claim(), "for the first caller");
    old.unclaim();
    assert!(old.claim(), "nothing came of it");

    let successor = old.successor(streams.queues.stream(), Some(&end));
    assert_eq!(
        (successor.key, successor.planned(), successor.submitted(), successor.enter().next),
        (old.key, 6, 6, 7)
    );
    assert!(successor.published_covers(stamp(2, 8)) && successor.enter().clock.covers(stamp(2, 8)));
    assert!(!successor.published_covers(stamp(2, 9)));
    assert_eq!(successor.broken(), Some(5), "the first of them");
    let mut numbers = [0; StreamCount::ALL.len()];
    successor.add_counts(&mut numbers);
    assert_eq!((numbers[StreamCount::StreamWaits as usize], numbers[StreamCount::Signals as usize]), (3, 1));
    successor.forget_broken();
    assert_eq!(successor.broken(), None);
    assert!(successor.point(6).is_none() && !successor.is_retired() && !successor.claim());
}

#[test]
fn a_stream_that_was_given_back_takes_no_work() {
    let streams = Streams::new();
    let state = streams.state(0);
    drop(state.admit().unwrap());
    state.close();
    assert!(state.is_retired() && state.admit().is_none());
    let lasting = streams.state(0).lasting();
    assert!(lasting.admit().is_some() && !lasting.is_retired());
}

#[test]
fn what_a_point_brings_along_is_what_its_stream_was_ordered_after() {
    let streams = Streams::new();
    let state = streams.state(0);
    let mut clock = StreamClock::default();
    clock.learn(stamp(3, 2));
    state.remember(streams.point(1, clock.clone()));
    clock.learn(stamp(3, 5));
    state.publish_clock(&clock);
    assert!(state.implies(1, stamp(3, 2)));
    assert!(!state.implies(1, stamp(3, 3)), "the point was recorded before that was known");
    assert!(state.implies(2, stamp(3, 5)), "a point that is still to be recorded will know");
    let mut read = StreamClock::default();
    state.read_published_clock(&mut read);
    assert!(read.covers(stamp(3, 5)) && !read.covers(stamp(3, 6)));
}

#[test]
fn awaiting_a_number_shows_what_was_done_before_it() {
    let streams = Streams::new();
    let rounds = if cfg!(miri) { 10 } else { 1000 };
    let (state, done) = (streams.state(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..rounds {
                let number = state.plan(&mut state.enter());
                done.store(number, Ordering::Relaxed);
                state.set_submitted(number);
            }
        });
        for number in 1..=rounds {
            let submitted = state.await_submitted(number);
            assert!(submitted >= number && state.planned() >= submitted);
            assert!(done.load(Ordering::Relaxed) >= submitted, "the driver has the work by then");
        }
    });
    assert_eq!((state.planned(), state.submitted()), (rounds, rounds));
}
