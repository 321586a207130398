//! What is said about devices with different clocks: simulated devices that are not of one simulated machine, and devices with the clock of the host.

use kiln_trace::{
    DeviceRecord, Explainer, Explanation, HostWaitCause, HostWaitRecord, IdleWhy, RecordingClock,
    StartRecord, TraceEvent, TraceStamp, TraceStream, UnknownIdle,
};

use crate::samples::{kernel, span, wait};

/// Two devices of which the first ran work at 1 us and at 9 us of its clock, and waited for the second one. The second one ran work at 2 us of its clock, and the program waited for that.
fn events(kinds: [RecordingClock; 2], clocks: [u32; 2]) -> Vec<TraceEvent<'static>> {
    let on = |device, number| TraceStamp { stream: TraceStream { device, stream: 0 }, number };
    let device = |device: u32| {
        let (clock, clock_kind) = (clocks[device as usize], kinds[device as usize]);
        TraceEvent::Device(DeviceRecord { device, name: "simulated GPU", clock, clock_kind })
    };
    vec![
        TraceEvent::Start(StartRecord {
            program: "two",
            process: 7,
            clock: kinds[0],
            ..StartRecord::default()
        }),
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
    let found = explained(&events([RecordingClock::Virtual; 2], [0, 1]));
    let text = found.to_string();
    assert!(
        text.contains("Its devices have 2 clocks, because they are not of one simulated machine. "),
        "{text}"
    );
    let places = [
        "\nClock 0 (of a simulated machine):\n\nDevice 0 ",
        "\nClock 1 (of a simulated machine):\n\nDevice 1 ",
    ]
    .map(|head| text.find(head));
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
        let found = explained(&events([clock; 2], [0, 0]));
        let text = found.to_string();
        assert!(!text.contains("Clock ") && !text.contains("2 clocks"), "{text}");
        assert!(text.contains("2 submissions in 9.0 us, idle 7.0 us"), "{text}");
        let [first, _] = &*found.devices else { panic!("{text}") };
        assert!(first.idle.iter().any(|reason| matches!(reason.why, IdleWhy::OtherDevice { .. })), "{text}");
        assert_eq!(first.stalls.len(), 1, "{text}");
    }
}

#[test]
fn the_clock_of_the_host_is_told_from_that_of_a_simulated_machine_and_does_not_stand_still() {
    use RecordingClock::{Virtual, Wall};
    for (kinds, host) in [([Virtual, Wall], 1), ([Wall, Virtual], 0)] {
        let found = explained(&events(kinds, [0, 1]));
        let text = found.to_string();
        let machine = 1 - host;
        assert!(text.starts_with("Recording of two (in time of the host and in virtual time)\n"), "{text}");
        assert!(text.contains("2 clocks: that of the host, and one for each simulated machine. "), "{text}");
        assert!(
            !text.contains("because they are not of one") && !text.contains("A clock stands still"),
            "{text}"
        );
        let heads = [
            format!("\nClock {host} (of the host):\n\nDevice {host} "),
            format!("\nClock {machine} (of a simulated machine):\n\nDevice {machine} "),
        ];
        assert!(heads.iter().all(|head| text.contains(head)), "{text}");
        assert!(!found.is_virtual);
        assert_eq!(
            found.clocks.iter().map(|clock| clock.is_virtual).collect::<Vec<_>>(),
            kinds.map(|kind| kind == Virtual)
        );
        let unknown = |device: u32| found.devices[device as usize].idle_unknown;
        assert_eq!((unknown(host), unknown(machine)), (None, Some(UnknownIdle::ClockStandsStill)));
        // The host's clock went on while its device was idle.
        let idle = if host == 0 { "in 9.0 us, idle 7.0 us (78 %)" } else { "in 6.0 us, idle 1 ns (0 %)" };
        assert!(text.contains(idle), "{text}");
    }
}

#[test]
fn waits_of_the_program_are_summed_for_each_clock_alone() {
    use RecordingClock::{Virtual, Wall};
    let waited = |device, ns: u64| {
        TraceEvent::HostWait(HostWaitRecord {
            device,
            thread: 0,
            cause: HostWaitCause::Synchronize,
            line: None,
            awaited: None,
            span: span(20_000, 20_000 + ns),
        })
    };
    let text = |kinds, clocks| {
        let mut events = events(kinds, clocks);
        events.extend([waited(0, 3_000_000), waited(0, 4_000_000), waited(1, 500)]);
        explained(&events).to_string()
    };
    // 6.0 us of device 1 are among the events.
    let apart = |heads: [&str; 2]| {
        let [first, second] = heads;
        format!(
            "\nThe program itself waited, on clock 0 ({first}):\n  7.0 ms in 2 times, at most 4.0 ms: `synchronize`\n\
             \nThe program itself waited, on clock 1 ({second}):\n  6.5 us in 2 times, at most 6.0 us: `synchronize`\n"
        )
    };
    let (host, machine) = ("of the host", "of a simulated machine");
    let found = text([Wall, Virtual], [0, 1]);
    assert!(found.contains(&apart([host, machine])), "{found}");
    let found = text([Virtual, Virtual], [0, 1]);
    assert!(found.contains(&apart([machine, machine])), "{found}");
    let found = text([Virtual, Virtual], [0, 0]);
    assert!(found.contains("\nThe program itself waited:\n  7.0 ms in 4 times, at most 4.0 ms: "), "{found}");
}
