//! Devices with different clocks: simulated devices that are not of one simulated machine.

use kiln_trace::{
    DeviceRecord, EndRecord, HostWaitCause, HostWaitRecord, RecordingClock, StartRecord, TraceEvent,
    TraceStamp, TraceStream,
};
use kiln_watch::{RowKind, WatchedFiles, WatchedJob};

use crate::samples::{Recording, kernel, span, wait};

fn events(clocks: [u32; 2]) -> Vec<TraceEvent<'static>> {
    let on = |device, number| TraceStamp { stream: TraceStream { device, stream: 0 }, number };
    let device = |device: u32| {
        let (clock, clock_kind) = (clocks[device as usize], RecordingClock::Virtual);
        TraceEvent::Device(DeviceRecord { device, name: "simulated GPU", clock, clock_kind })
    };
    let waited = |device, cause, span| {
        TraceEvent::HostWait(HostWaitRecord { device, thread: 0, cause, line: None, awaited: None, span })
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
        waited(1, HostWaitCause::Download, span(20_000, 40_000)),
        waited(0, HostWaitCause::Synchronize, span(40_000, 60_000)),
        wait(on(0, 2), on(1, 1), 1, "activations"),
        kernel("second", on(0, 2), 12, 50_000, span(90_000, 91_000)),
        TraceEvent::End(EndRecord { time_ns: 91_000 }),
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
        said.contains("reads `activations`") && said.contains("20.0 us: the program was in `download`"),
        "{said}"
    );
    assert!(said.contains("10.0 us: the program was in `synchronize`"), "{said}");
    assert!(
        state.devices[0].state == "working at the end"
            && state.devices[1].state.starts_with("idle for the last ")
    );
    let (said, state) = sentences([0, 1]);
    assert!(!said.contains("reads `activations`"), "{said}");
    assert!(said.contains("10.0 us: the program was in `synchronize`"), "a wait on its own clock: {said}");
    assert!(!said.contains("`download`"), "a wait on the other clock: {said}");
    assert!(said.contains("40.0 us: queued work had not started"), "{said}");
    let threads = state.rows.iter().filter(|row| matches!(row.kind, RowKind::Thread { thread: 0, .. }));
    assert_eq!(threads.map(|row| row.count).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(state.devices.iter().map(|device| device.clock).collect::<Vec<_>>(), [0, 1]);
    for device in &state.devices {
        assert_eq!(
            device.state,
            "not known: its clock stands still while the program works with devices of other clocks"
        );
    }
}

#[test]
fn each_device_says_whether_its_clock_is_that_of_the_host() {
    let mut events = events([0, 1]);
    for event in &mut events {
        if let TraceEvent::Device(device) = event
            && device.device == 1
        {
            device.clock_kind = RecordingClock::Wall;
        }
    }
    let recording = Recording::of(&events, 100);
    let state = recording.read().state();
    assert_eq!(state.devices.iter().map(|device| device.is_virtual).collect::<Vec<_>>(), [true, false]);
    assert!(!state.is_virtual, "not all times are");
    let said = "not known: the recording has several clocks, and its end is not known on this one";
    assert_eq!(state.devices[1].state, said, "the end mark may be of the other clock");
}

#[test]
fn one_recording_with_two_clocks_is_not_said_to_have_one() {
    let recording = Recording::of(&events([0, 1]), 100);
    let job = WatchedJob::new(WatchedFiles::Files(vec![recording.0.clone()]));
    job.read_all().unwrap();
    let said = "there is one recording, whose devices have 2 clocks that cannot be compared";
    assert_eq!(job.state().clocks, said);
}
