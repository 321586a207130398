//! What is said about devices with different clocks: simulated devices that are not of one simulated machine.

use kiln_trace::{
    DeviceRecord, Explainer, Explanation, HostWaitCause, HostWaitRecord, IdleWhy, RecordingClock,
    StartRecord, TraceEvent, TraceStamp, TraceStream,
};

use crate::samples::{kernel, span, wait};

/// Two devices of which the first ran work at 1 us and at 9 us of its clock, and waited for the second one. The second one ran work at 2 us of its clock, and the program waited for that.
fn events(clock: RecordingClock, clocks: [u32; 2]) -> Vec<TraceEvent<'static>> {
    let on = |device, number| TraceStamp { stream: TraceStream { device, stream: 0 }, number };
    let device = |device: u32| {
        let clock = clocks[device as usize];
        TraceEvent::Device(DeviceRecord { device, name: "simulated GPU", clock })
    };
    vec![
        TraceEvent::Start(StartRecord { program: "two", process: 7, clock, ..StartRecord::default() }),
        device(0),
        device(1),
        kernel("first", on(0, 1), 10, 1_000, span(1_000, 2_000)),
        kernel("other", on(1, 1), 11, 2_000, span(2_000, 8_000)),
        TraceEvent::HostWait(HostWaitRecord {
            device: 1,
            thread: 0,
            cause: HostWaitCause::Synchronize,
            line: None,
            awaited: None,
            span: span(2_000, 8_000),
        }),
        wait(on(0, 2), on(1, 1), 1, "activations"),
        kernel("second", on(0, 2), 12, 2_100, span(9_000, 10_000)),
    ]
}

fn explained(events: &[TraceEvent<'_>]) -> Explanation {
    let mut explainer = Explainer::default();
    events.iter().for_each(|event| explainer.add(event));
    explainer.finish()
}

#[test]
fn devices_with_different_clocks_have_sections_and_no_time_of_one_explains_the_other() {
    let found = explained(&events(RecordingClock::Virtual, [0, 1]));
    let text = found.to_string();
    assert!(
        text.contains("Its devices have 2 clocks, because they are not of one simulated machine. "),
        "{text}"
    );
    let places = ["\nClock 0:\n\nDevice 0 ", "\nClock 1:\n\nDevice 1 "].map(|head| text.find(head));
    assert!(places[0].is_some() && places[0] < places[1], "{text}");
    assert!(!text.contains(", idle ") && !text.contains("idle 0 ns"), "{text}");
    assert!(text.contains("2 submissions in 9.0 us of its clock, in which it ran work for 2.0 us"), "{text}");
    assert_eq!(found.devices.iter().map(|device| device.clock).collect::<Vec<_>>(), [0, 1]);
    let reasons = found.devices.iter().flat_map(|device| &device.idle).map(|reason| &reason.why);
    let is_of_other = |why: &IdleWhy| matches!(why, IdleWhy::OtherDevice { .. } | IdleWhy::HostWait { .. });
    assert!(!reasons.into_iter().any(is_of_other), "{text}");
    assert!(found.devices.iter().all(|device| device.stalls.is_empty()), "{text}");
}

#[test]
fn devices_with_one_clock_are_compared() {
    for clock in [RecordingClock::Virtual, RecordingClock::Wall] {
        let found = explained(&events(clock, [0, 0]));
        let text = found.to_string();
        assert!(!text.contains("Clock ") && !text.contains("2 clocks"), "{text}");
        assert!(text.contains("2 submissions in 9.0 us, idle 7.0 us"), "{text}");
        let [first, _] = &*found.devices else { panic!("{text}") };
        assert!(first.idle.iter().any(|reason| matches!(reason.why, IdleWhy::OtherDevice { .. })), "{text}");
        assert_eq!(first.stalls.len(), 1, "{text}");
    }
}
