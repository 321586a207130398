//! Devices with different clocks: simulated devices that are not of one simulated machine.

use kiln_trace::{
    DeviceRecord, HostWaitCause, HostWaitRecord, RecordingClock, StartRecord, TraceEvent, TraceStamp,
    TraceStream,
};
use kiln_watch::RowKind;

use crate::samples::{Recording, kernel, span, wait};

fn events(clocks: [u32; 2]) -> Vec<TraceEvent<'static>> {
    let on = |device, number| TraceStamp { stream: TraceStream { device, stream: 0 }, number };
    let device = |device: u32| {
        TraceEvent::Device(DeviceRecord { device, name: "simulated GPU", clock: clocks[device as usize] })
    };
    let waited = |device| {
        TraceEvent::HostWait(HostWaitRecord {
            device,
            thread: 0,
            cause: HostWaitCause::Synchronize,
            line: None,
            awaited: None,
            span: span(20_000, 60_000),
        })
    };
    vec![
        TraceEvent::Start(StartRecord {
            program: "two",
            process: 7,
            clock: RecordingClock::Virtual,
            ..StartRecord::default()
        }),
        device(0),
        device(1),
        kernel("first", on(0, 1), 10, 1_000, span(1_000, 2_000)),
        kernel("other", on(1, 1), 11, 20_000, span(20_000, 60_000)),
        waited(1),
        waited(0),
        wait(on(0, 2), on(1, 1), 1, "activations"),
        kernel("second", on(0, 2), 12, 50_000, span(90_000, 91_000)),
    ]
}

#[test]
fn times_of_different_clocks_explain_no_gap_and_have_rows_and_states_apart() {
    let sentences = |clocks| {
        let recording = Recording::of(&events(clocks), 100);
        let watched = recording.read();
        let place = watched.find("second")[0].totals.longest;
        let gap = watched.work(place.row, place.number).unwrap().gap.unwrap();
        (gap.sentences.join("\n"), watched.state())
    };
    let (said, state) = sentences([0, 0]);
    assert!(
        said.contains("reads `activations`") && said.contains("30.0 us: the program was in `synchronize`"),
        "{said}"
    );
    assert!(
        state.devices[0].state == "working at the end"
            && state.devices[1].state.starts_with("idle for the last ")
    );
    let (said, state) = sentences([0, 1]);
    assert!(!said.contains("reads `activations`"), "{said}");
    assert!(said.contains("30.0 us: the program was in `synchronize`"), "a wait on its own clock: {said}");
    assert!(said.contains("40.0 us: queued work had not started"), "{said}");
    let threads = state.rows.iter().filter(|row| matches!(row.kind, RowKind::Thread { thread: 0, .. }));
    assert_eq!(threads.map(|row| row.count).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(state.devices.iter().map(|device| device.clock).collect::<Vec<_>>(), [0, 1]);
    for device in &state.devices {
        assert_eq!(device.state, "not known: other devices have other clocks");
    }
}
