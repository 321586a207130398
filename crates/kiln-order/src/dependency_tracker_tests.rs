//! Tests on a driver that has only queues and reports missing dependencies.

use std::sync::Arc;

use kiln_driver::Access::{self, Read, Write};
use kiln_driver::{Driver, Timeout};

use crate::access_history::AccessHistory;
use crate::dependency_tracker::DependencyTracker;
#[cfg(feature = "mutations")]
use crate::disabled_rule::Mutation;
use crate::event_policy::Recording;
use crate::mock_driver::QueueDriver;
use crate::plan_and_publish::Use;
use crate::rules::Rules;
use crate::stamp::{Stamp, Stamps};
use crate::stream_state::StreamState;
use crate::submit_error::SubmitError;
use crate::sync_shim::{BiasedLock, Ordering};

const BYTES: u64 = 64;

/// A device with some streams and some blocks.
struct Device {
    queues: Arc<QueueDriver>,
    tracker: DependencyTracker,
    streams: Vec<Arc<StreamState>>,
    blocks: Vec<BiasedLock<AccessHistory>>,
}

impl Device {
    fn new(recording: Recording, rules: Rules) -> Self {
        let queues = QueueDriver::new();
        let tracker = DependencyTracker::new(queues.clone(), recording).with_rules(rules);
        let streams = (0..3).map(|_| tracker.add(queues.stream()).unwrap()).collect();
        let blocks = (0..2).map(|_| BiasedLock::new(AccessHistory::new(BYTES, Stamp::default()))).collect();
        Self { queues, tracker, streams, blocks }
    }

    fn uses(&self, touches: &[(usize, Access)]) -> Vec<Use<'_>> {
        let each = |(block, access): &(usize, Access)| Use {
            history: &self.blocks[*block],
            range: 0..BYTES,
            access: *access,
            argument: *block as u16,
        };
        touches.iter().map(each).collect()
    }

    fn submit(&self, state: usize, touches: &[(usize, Access)]) -> Result<Stamp, SubmitError> {
        let mut uses = self.uses(touches);
        self.tracker.submit(&self.streams[state], &mut uses, |_, stream| self.queues.touch(stream, touches))
    }

    fn run(&self, state: usize, touches: &[(usize, Access)]) -> Stamp {
        self.submit(state, touches).unwrap()
    }

    /// Every edge between two blocks, two readers and two writers, with nothing left to luck.
    fn run_all_edges(&self) {
        self.run(0, &[(0, Write), (1, Write)]);
        self.run(1, &[(0, Read)]);
        self.run(2, &[(0, Read)]);
        self.run(0, &[(0, Write)]);
        self.run(1, &[(0, Write)]);
        self.run(2, &[(1, Write)]);
        self.run(0, &[(0, Read), (1, Read)]);
    }
}

const RECORDINGS: [Recording; 3] = [Recording::Adaptive, Recording::OnDemand, Recording::AtOnce];

#[test]
fn work_on_one_stream_costs_no_edge_and_work_on_two_costs_one() {
    let device = Device::new(Recording::OnDemand, Rules::default());
    for number in 1..=3 {
        assert_eq!(device.run(0, &[(0, Write)]), Stamp { stream: device.streams[0].key, number });
    }
    assert_eq!((device.queues.edges(), device.queues.events()), ((0, 0), 0));
    device.run(1, &[(0, Read)]);
    assert_eq!(device.queues.edges(), (1, 1));
    device.run(1, &[(0, Read)]);
    assert_eq!(device.queues.edges(), (1, 1), "it is ordered after that already");
    device.run(2, &[(0, Read)]);
    assert_eq!(device.queues.edges(), (2, 1), "the event is there already");
    device.run(0, &[(0, Write)]);
    assert_eq!(device.queues.edges(), (4, 3), "after both readers");
    assert_eq!(device.queues.races(), [""; 0]);
}

#[test]
fn a_wait_brings_along_what_its_stream_had_waited_for() {
    for recording in RECORDINGS {
        for together in [false, true] {
            let device = Device::new(recording, Rules::default());
            device.run(0, &[(0, Write)]);
            device.run(1, &[(0, Read), (1, Write)]);
            assert_eq!(device.queues.edges().0, 1);
            if together {
                device.run(2, &[(0, Read), (1, Read)]);
            } else {
                device.run(2, &[(1, Read)]);
                device.run(2, &[(0, Read)]);
            }
            assert_eq!((device.queues.edges().0, device.queues.races()), (2, vec![]), "{recording:?}");
        }
    }
}

#[test]
fn every_edge_is_there_however_events_are_recorded() {
    for recording in RECORDINGS {
        let device = Device::new(recording, Rules::default());
        (0..3).for_each(|_| device.run_all_edges());
        assert_eq!(device.queues.races(), [""; 0], "{recording:?}");
        let (_, signals) = device.queues.edges();
        assert!(signals > 0 && (recording != Recording::AtOnce || signals == 21), "{recording:?}: {signals}");
    }
}

#[cfg(feature = "mutations")]
#[test]
fn every_rule_taken_out_is_a_race() {
    let rules = [
        Mutation::ReadAfterWrite,
        Mutation::WriteAfterRead,
        Mutation::WriteAfterWrite,
        Mutation::ReaderPerStream,
        Mutation::TransitiveElision,
        Mutation::PublicationInsideStep,
    ];
    for rule in rules {
        let device = Device::new(Recording::OnDemand, Rules::without(Some(rule)));
        device.run_all_edges();
        device.run_all_edges();
        let raced = !device.queues.races().is_empty();
        // On one thread a stamp that is published late is published in time.
        assert_eq!(raced, rule != Mutation::PublicationInsideStep, "{rule:?}");
    }
}

#[test]
fn a_submission_made_while_another_is_queued_comes_after_it() {
    let device = Device::new(Recording::OnDemand, Rules::default());
    let (stamp, later) = std::thread::scope(|scope| {
        let mut later = None;
        let stamp =
            device.tracker.submit(&device.streams[0], &mut device.uses(&[(0, Write)]), |_, stream| {
                later = Some(scope.spawn(|| device.run(1, &[(0, Write)])));
                device.queues.touch(stream, &[(0, Write)])
            });
        (stamp.unwrap(), later.unwrap().join().unwrap())
    });
    assert_eq!((stamp.number, later.number), (1, 1));
    assert_eq!((device.queues.races(), device.queues.edges()), (vec![], (1, 1)));
}

#[cfg(feature = "mutations")]
#[test]
fn a_stamp_that_is_published_behind_the_work_is_missed() {
    let device = Device::new(Recording::OnDemand, Rules::without(Some(Mutation::PublicationInsideStep)));
    let submitted =
        device.tracker.submit(&device.streams[0], &mut device.uses(&[(0, Write)]), |_, stream| {
            std::thread::scope(|scope| scope.spawn(|| device.run(1, &[(0, Write)])).join().unwrap());
            device.queues.touch(stream, &[(0, Write)])
        });
    assert!(submitted.is_ok() && !device.queues.races().is_empty());
}

#[test]
fn events_are_used_again_however_long_two_streams_take_turns() {
    for recording in RECORDINGS {
        let device = Device::new(recording, Rules::default());
        let rounds = if cfg!(miri) { 40 } else { 400 };
        for at in 0..rounds {
            device.run(at % 2, &[(0, Write)]);
        }
        let (made, leased) = device.tracker.event_counts();
        assert!(made < 40 && leased <= made, "{recording:?}: {made} events");
        assert_eq!((device.queues.edges().0, device.queues.races()), (rounds - 1, vec![]), "{recording:?}");
        device.tracker.destroy_events();
        assert_eq!((device.tracker.event_counts().1, device.queues.events()), (0, 0));
    }
}

#[test]
fn what_the_host_waited_for_needs_no_edge() {
    let device = Device::new(Recording::OnDemand, Rules::default());
    let first = device.run(0, &[(0, Write)]);
    assert!(!device.tracker.is_done(first).unwrap(), "the host did not wait for it");
    assert!(device.tracker.wait(first, Timeout::Never).unwrap().is_done());
    assert!(device.tracker.is_done(first).unwrap());
    device.run(1, &[(0, Write)]);
    assert_eq!((device.queues.edges().0, device.queues.races()), (0, vec![]));

    device.tracker.hold();
    let second = device.run(0, &[(0, Write)]);
    assert!(device.tracker.wait(second, Timeout::Never).unwrap().is_done());
    assert!(!device.tracker.host().covers(second), "what a new context says of old events is not believed");
    device.tracker.forget_unfinished();
    assert!(device.tracker.host().covers(second));
}

#[test]
fn waits_without_work_order_what_follows() {
    let device = Device::new(Recording::OnDemand, Rules::default());
    let written = device.run(0, &[(0, Write)]);
    let stamps = Stamps::from(written);
    assert_eq!(device.tracker.order_after(&device.streams[1], &stamps).unwrap(), 1);
    assert_eq!(device.tracker.order_after(&device.streams[1], &stamps).unwrap(), 0);
    assert!(device.tracker.is_ordered_after(&device.streams[1], written));
    assert!(!device.tracker.is_ordered_after(&device.streams[2], written));
    device.run(1, &[(0, Write)]);
    device.run(2, &[(0, Read)]);
    // The write on stream 1 brought the first along.
    assert_eq!((device.queues.edges().0, device.queues.races()), (2, vec![]));
}

#[test]
fn a_driver_that_refuses_leaves_a_number_that_can_be_waited_for() {
    let device = Device::new(Recording::OnDemand, Rules::default());
    device.queues.refuses.store(true, Ordering::Relaxed);
    assert!(matches!(device.submit(0, &[(0, Write)]), Err(SubmitError::Driver(_))));
    device.queues.refuses.store(false, Ordering::Relaxed);
    assert_eq!((device.streams[0].planned(), device.streams[0].submitted()), (1, 1));
    // The next submission waits for the number, and that ends.
    device.run(1, &[(0, Write)]);
    assert_eq!((device.queues.edges(), device.streams[0].broken()), ((1, 1), None));
    assert_eq!(device.run(0, &[(1, Read)]).number, 2);

    device.tracker.retire(&device.streams[1]);
    assert!(matches!(device.submit(1, &[(0, Read)]), Err(SubmitError::Driver(_))));
    device.queues.destroy(device.streams[1].stream.into()).unwrap();
    device.run(2, &[(0, Read)]);
    assert_eq!(device.queues.races(), [""; 0], "its end was recorded before it went");
}

#[test]
fn threads_that_submit_at_once_lose_no_edge_and_end() {
    let rounds = if cfg!(miri) { 6 } else { 300 };
    for recording in RECORDINGS {
        let device = Device::new(recording, Rules::default());
        std::thread::scope(|scope| {
            // Two on separate streams, which use the same blocks in opposite order, and a third that shares the stream of the first.
            for (state, touches) in
                [(0, [(0, Write), (1, Write)]), (1, [(1, Write), (0, Write)]), (0, [(0, Read), (1, Read)])]
            {
                let device = &device;
                scope.spawn(move || {
                    for _ in 0..rounds {
                        device.run(state, &touches);
                    }
                });
            }
        });
        assert_eq!(device.queues.races(), [""; 0], "{recording:?}");
        let submitted = [0, 1].map(|state: usize| device.streams[state].submitted());
        assert_eq!(submitted, [2 * rounds, rounds], "{recording:?}: every submission has a different number");
    }
}
