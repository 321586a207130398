//! The state in which a device ended: idle time is told where `kiln explain` knows it, and not elsewhere.

use kiln_trace::{
    DeviceRecord, DropCause, DroppedRecord, EarlierRecord, EndRecord, FaultRecord, NOT_BROUGHT_BACK,
    StartRecord, SubmissionRecord, TakeoverPhase, TakeoverRecord, TimeSpan, TraceEvent, WorkerRecord,
};

use crate::samples::{Recording, bytes, kernel, span, stamp};

fn end() -> TraceEvent<'static> {
    TraceEvent::End(EndRecord { time_ns: 900_000 })
}

fn begin() -> Vec<TraceEvent<'static>> {
    vec![
        TraceEvent::Start(StartRecord { program: "train", ..StartRecord::default() }),
        TraceEvent::Device(DeviceRecord { name: "GPU", ..DeviceRecord::default() }),
    ]
}

fn timed(number: u64) -> TraceEvent<'static> {
    let begin = number * 1_000;
    kernel("timed", stamp(0, number), 1, begin, span(begin, begin + 100))
}

fn untimed(number: u64) -> TraceEvent<'static> {
    let begin = number * 1_000;
    let host: TimeSpan = span(begin, begin + 10);
    TraceEvent::Submission(SubmissionRecord { stamp: stamp(0, number), host, ..SubmissionRecord::default() })
}

fn step(phase: TakeoverPhase, span: TimeSpan) -> TraceEvent<'static> {
    TraceEvent::Takeover(TakeoverRecord { device: 0, phase, span })
}

fn fault(message: &'static str, time_ns: u64) -> TraceEvent<'static> {
    TraceEvent::Fault(FaultRecord { message, time_ns, ..FaultRecord::default() })
}

/// The state of the device, and what `kiln explain` says.
fn state(events: impl IntoIterator<Item = TraceEvent<'static>>) -> (String, String) {
    let events: Vec<_> = begin().into_iter().chain(events).collect();
    let recording = Recording::of(&events, 2);
    let watched = recording.read();
    (watched.state().devices[0].state.clone(), watched.explain().unwrap())
}

fn worker(process: u32, time_ns: u64) -> TraceEvent<'static> {
    TraceEvent::Worker(WorkerRecord { device: 0, process, name: "train", time_ns })
}

#[test]
fn worker_processes_are_listed_with_the_time_in_which_they_had_the_device() {
    let lives = |events: &[TraceEvent<'static>]| {
        let events: Vec<_> = begin().into_iter().chain(events.iter().copied()).collect();
        let workers = Recording::of(&events, 2).read().state().workers;
        workers.into_iter().map(|worker| (worker.process, worker.begin_ns, worker.end_ns)).collect::<Vec<_>>()
    };
    let mut events = vec![worker(4_711, 10), timed(1), step(TakeoverPhase::Lost, span(2_000, 3_000))];
    assert_eq!(lives(&events), [(4_711, 10, Some(2_000))]);
    events.extend([step(TakeoverPhase::Rebuilding, span(3_000, 4_000)), worker(4_712, 4_000)]);
    assert_eq!(lives(&events), [(4_711, 10, Some(2_000)), (4_712, 4_000, None)], "it still has the device");
    events.push(end());
    assert_eq!(lives(&events), [(4_711, 10, Some(2_000)), (4_712, 4_000, Some(900_000))]);
    assert_eq!(lives(&[timed(1)]), [], "a device of the program's own process");
}

#[test]
fn idle_time_is_told_where_it_is_known() {
    let (state, text) = state([timed(1), timed(2), end()]);
    assert_eq!(state, "idle for the last 897.9 us");
    assert!(text.contains(", idle 901 ns"), "{text}");
}

#[test]
fn idle_time_is_not_told_where_no_work_was_measured() {
    let (found, text) = state([untimed(1), untimed(2), end()]);
    assert_eq!(found, "not known: when its work ran was not measured");
    assert!(text.contains("when they ran was not measured, so that idle time is not known"), "{text}");
    // Nor after a takeover.
    let steps =
        [step(TakeoverPhase::Lost, span(3_000, 4_000)), step(TakeoverPhase::Rebuilding, span(4_000, 9_000))];
    let events = [untimed(1)].into_iter().chain(steps).chain([untimed(20), end()]);
    assert_eq!(state(events).0, "not known: when its work ran was not measured");
}

#[test]
fn idle_time_is_not_told_where_the_last_work_was_not_measured() {
    let (found, text) = state([timed(1), untimed(2), end()]);
    assert_eq!(found, "not known: when its last work ran was not measured");
    assert!(text.contains("1 submission was not measured"), "{text}");
    assert_eq!(state([untimed(1), timed(2), end()]).0, "idle for the last 897.9 us");
}

#[test]
fn idle_time_is_not_told_where_events_are_missing_or_damaged() {
    let dropped = TraceEvent::Dropped(DroppedRecord {
        events: 9,
        cause: DropCause::TooFast,
        ..DroppedRecord::default()
    });
    let (found, text) = state([timed(1), dropped, timed(2), end()]);
    assert_eq!(found, "not known: events are missing");
    assert!(text.contains("events are missing, so that idle time is not known"), "{text}");
    // A byte of the second block is wrong.
    let events: Vec<_> = begin().into_iter().chain([timed(1), timed(2), timed(3), end()]).collect();
    let (recording, mut whole) = (Recording::empty(), bytes(&events, 2));
    let at = bytes(&events[..2], 2).len() + 25;
    whole[at] ^= 0xff;
    std::fs::write(&recording.0, whole).unwrap();
    let watched = recording.read();
    assert_eq!(watched.state().damaged.len(), 1);
    assert_eq!(watched.state().devices[0].state, "not known: events are missing");
    let text = watched.explain().unwrap();
    assert!(text.contains("events are missing, so that idle time is not known"), "{text}");
}

#[test]
fn idle_time_is_not_told_without_an_end_mark_or_with_work_from_before() {
    let (found, text) = state([timed(1), timed(2)]);
    assert_eq!(found, "not known: the recording has no end mark, and may lack its last work");
    assert!(text.contains("It ended without an end mark"), "{text}");
    let earlier = |until_ns| TraceEvent::Earlier(EarlierRecord { stamp: stamp(1, 1), until_ns });
    let (found, _) = state([earlier(None), timed(2), end()]);
    assert_eq!(found, "not known: it still had work that was submitted before the recording began");
    assert_eq!(state([earlier(Some(1_500)), timed(2), end()]).0, "idle for the last 897.9 us");
}

#[test]
fn a_device_that_is_lost_for_good_is_not_being_brought_back() {
    let lost = || step(TakeoverPhase::Lost, span(3_000, 900_000));
    // Without a worker nothing brings it back, and nothing says so but the end of the recording.
    let (found, text) = state([timed(1), fault("the device is lost", 3_000), lost(), end()]);
    assert_eq!(found, "lost, and not brought back");
    assert!(text.contains("The device was lost, and was not brought back."), "{text}");
    // A worker that was given up.
    let rebuilt = || step(TakeoverPhase::Rebuilding, span(4_000, 900_000));
    let given_up: &'static str = format!("{NOT_BROUGHT_BACK}: no worker").leak();
    let events =
        [timed(1), step(TakeoverPhase::Lost, span(3_000, 4_000)), rebuilt(), fault(given_up, 900_000)];
    let (found, text) = state(events);
    assert_eq!(found, "lost, and not brought back");
    assert!(text.contains("The device was lost, and was not brought back."), "{text}");
    // One that is brought back while its program still runs.
    assert_eq!(state([timed(1), lost()]).0, "being brought back (lost)");
    // One that was brought back, and had no work since.
    let events = [timed(1), step(TakeoverPhase::Lost, span(3_000, 4_000)), rebuilt(), end()];
    assert_eq!(state(events).0, "working at the end");
}

#[test]
fn a_device_that_met_a_fault_behind_its_work_is_faulted_and_one_that_worked_on_is_not() {
    assert_eq!(state([timed(1), fault("an illegal address", 1_200), end()]).0, "faulted");
    assert_eq!(
        state([timed(1), fault("an illegal address", 1_200), timed(2), end()]).0,
        "idle for the last 897.9 us"
    );
}
