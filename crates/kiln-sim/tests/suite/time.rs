//! Virtual time: streams overlap, engines take turns, waits end when they should.

use std::time::Duration;

use kiln_driver::{Driver, DriverExt, EventRequest, Submission, Timeout, WaitTarget, Waited};
use kiln_sim::{DeviceConfig, Machine};

use crate::rig::{Kernel, Rig, config};

const SPIN_NS: u64 = 1_000_000;

fn spinning(machine: &Machine, streams: usize, kernels: usize) -> Duration {
    let rig = Rig::new(machine, streams);
    let start = rig.device.clock().now();
    for kernel in 0..kernels {
        rig.launch(kernel % streams, Kernel::Spin, &[SPIN_NS]).unwrap();
    }
    (0..streams).for_each(|stream| rig.sync(stream));
    let passed = rig.device.clock().now() - start;
    rig.close();
    passed
}

#[test]
fn four_streams_take_a_quarter_of_the_time() {
    let one = spinning(&Machine::new(config(1)), 1, 4);
    let four = spinning(&Machine::new(config(1)), 4, 4);
    assert!(
        one >= Duration::from_nanos(4 * SPIN_NS) && four < Duration::from_nanos(2 * SPIN_NS),
        "{one:?} {four:?}"
    );
}

#[test]
fn a_device_with_one_kernel_at_a_time_does_not_overlap_them() {
    let machine = Machine::new(config(1).device(DeviceConfig::small()));
    assert!(spinning(&machine, 4, 4) >= Duration::from_nanos(4 * SPIN_NS));
}

#[test]
fn timed_events_measure_what_lies_between_them() {
    let rig = Rig::seeded(0, 1);
    let timed = || {
        let event = rig.device.create_event(EventRequest::Timed).unwrap();
        rig.give_back_later(event);
        event
    };
    let (from, to, plain) = (timed(), timed(), rig.event());
    let not_signalled = rig.device.elapsed(from, to);
    assert!(not_signalled.unwrap_err().is_refused());
    rig.signal(0, from);
    rig.launch(0, Kernel::Spin, &[SPIN_NS]).unwrap();
    rig.signal(0, to);
    rig.signal(0, plain);
    assert!(rig.device.elapsed(from, to).unwrap_err().is_refused(), "not done");
    rig.sync(0);
    let elapsed = rig.device.elapsed(from, to).unwrap();
    assert!(elapsed >= Duration::from_nanos(SPIN_NS) && elapsed < Duration::from_nanos(SPIN_NS * 11 / 10));
    assert!(rig.device.elapsed(from, plain).unwrap_err().is_refused(), "not timed");
    rig.close();
}

#[test]
fn calls_that_measure_take_no_time() {
    let rig = Rig::seeded(0, 1);
    let now = || rig.device.clock().now();
    let measure = || {
        let event = rig.device.create_event(EventRequest::Timed).unwrap();
        rig.signal(0, event);
        assert_eq!(rig.device.wait(WaitTarget::Event(event), Timeout::Never).unwrap(), Waited::Done);
        assert_eq!(rig.device.elapsed(event, event).unwrap(), Duration::ZERO);
        rig.device.destroy(event.into()).unwrap();
    };
    let before = now();
    measure();
    assert_eq!(now(), before);
    rig.launch(0, Kernel::Spin, &[SPIN_NS]).unwrap();
    let launched = now();
    assert!(launched > before, "another call does");
    measure();
    assert!(now() - launched >= Duration::from_nanos(SPIN_NS), "work is waited for");
    rig.signal(0, rig.event());
    let signalled = now();
    rig.signal(0, rig.event());
    assert!(now() > signalled, "an event that does not measure");
    rig.close();
}

#[test]
fn a_wait_with_a_deadline_ends_at_it() {
    let rig = Rig::seeded(0, 1);
    rig.launch(0, Kernel::Spin, &[SPIN_NS]).unwrap();
    let stream = WaitTarget::Stream(rig.streams[0]);
    let start = rig.device.clock().now();
    let early = rig.device.wait(stream, Timeout::After(Duration::from_nanos(SPIN_NS / 2))).unwrap();
    assert_eq!(early, Waited::TimedOut);
    let passed = rig.device.clock().now() - start;
    assert!(passed >= Duration::from_nanos(SPIN_NS / 2) && passed < Duration::from_nanos(SPIN_NS));
    assert_eq!(rig.device.progress(rig.streams[0]).unwrap().completed, Submission(0));
    assert!(rig.device.wait(stream, Timeout::After(Duration::from_secs(1))).unwrap().is_done());
    assert_eq!(rig.device.progress(rig.streams[0]).unwrap().completed, Submission(1));
    rig.close();
}

#[test]
fn polls_reach_the_end_whatever_the_seed() {
    for seed in 0..200 {
        let rig = Rig::seeded(seed, 2);
        let event = rig.event();
        rig.launch(0, Kernel::Spin, &[SPIN_NS]).unwrap();
        rig.launch(1, Kernel::Spin, &[SPIN_NS]).unwrap();
        rig.signal(1, event);
        let mut polls = 0;
        while !rig.device.is_done(event).unwrap() {
            polls += 1;
            assert!(polls < 1_000, "seed {seed}");
        }
        let mut progress = rig.device.progress(rig.streams[0]).unwrap();
        while progress.completed < progress.submitted {
            progress = rig.device.progress(rig.streams[0]).unwrap();
            polls += 1;
            assert!(polls < 1_000, "seed {seed}");
        }
        rig.close();
    }
}

#[test]
fn an_event_that_was_never_signalled_holds_back_nothing() {
    let rig = Rig::seeded(0, 1);
    let event = rig.event();
    assert!(rig.device.is_done(event).unwrap());
    rig.wait(0, event);
    rig.launch(0, Kernel::Spin, &[1]).unwrap();
    rig.close();
}

#[test]
fn the_timeline_shows_each_stream_in_order_and_edges_kept() {
    let rig = Rig::seeded(3, 2);
    let x = rig.block(1 << 16);
    rig.write(0, x, 1);
    rig.order(0, 1);
    rig.bump(1, x);
    rig.bump(1, x);
    let (machine, streams) = (rig.machine.clone(), rig.streams.clone());
    rig.close();
    let spans = machine.timeline();
    let labels: Vec<_> = spans.iter().map(|span| (span.stream, span.label.as_str())).collect();
    assert_eq!(
        labels,
        [(streams[0], "launch write"), (streams[1], "launch bump"), (streams[1], "launch bump")]
    );
    assert!(spans.windows(2).all(|pair| pair[0].end <= pair[1].start && pair[0].start < pair[0].end));
}

#[test]
fn time_that_would_pass_its_end_stays_there() {
    let rig = Rig::seeded(0, 1);
    rig.device.clock().sleep(Duration::MAX);
    let x = rig.block(64);
    rig.write(0, x, 1);
    assert!(
        rig.device.wait(WaitTarget::Stream(rig.streams[0]), Timeout::After(Duration::MAX)).unwrap().is_done()
    );
    rig.close();
}
