//! Every law's recording, read back and run again on a fresh machine, gives answers of the same kinds.

use std::sync::Arc;

use kiln_conform::{Chapter, Law, Opened, run_once};
use kiln_driver::Vouched;
use kiln_driver::call_trace::{Trace, TraceReport, replay};
use kiln_driver::layer::{Layered, RecordingLayer, TraceBuffer};
use kiln_sim::{Machine, Mode};

use crate::simulated;

/// Laws whose answers hang on something a trace does not hold.
const DIFFERENT: [(&str, &str); 3] = [
    (
        "host.registered_once",
        "the replay registers new memory each time, where the law registers the same again",
    ),
    ("peers.pages_", "the pages are of a device that is not recorded"),
    ("collectives.", "a communicator has another id in each run, and ranks on devices that are not recorded"),
];

/// Records a law on one machine.
fn record(law: &Law, seed: u64) -> String {
    let machine = Machine::new(simulated::config().mode(Mode::Seeded(seed)));
    let buffer = TraceBuffer::default();
    let driver = Layered::new(machine.device(0).unwrap(), RecordingLayer::to(buffer.clone()));
    let opened = Opened::new(Arc::new(driver)).with_peer(machine.device(1).unwrap());
    let subject = simulated::subject("the recorded simulator", Mode::Seeded);
    // Some laws have nothing to show here; what they called up to then is a trace, too.
    if let Err(kiln_conform::Stop::Failed(failure)) = run_once(&subject, law, opened, seed) {
        panic!("{}: {failure}", law.name);
    }
    buffer.text()
}

fn play(text: &str, seed: u64) -> TraceReport {
    let machine = Machine::new(simulated::config().mode(Mode::Seeded(seed)));
    // SAFETY: the kernels are host functions of the simulator, which reach its own memory only.
    let trace = Trace::parse(text).unwrap().vouched(unsafe { Vouched::new() });
    assert_eq!(trace.to_string(), text, "a trace is written as it was read");
    replay(&trace, &*machine.device(0).unwrap())
}

#[test]
fn every_law_replays_with_answers_of_the_same_kinds() {
    let (mut calls, mut left_out) = (0, 0);
    // Calls that race are written down in the order they came back, which is not the order they took effect.
    let chapters = Chapter::ALL.iter().filter(|chapter| **chapter != Chapter::Threads);
    for law in chapters.flat_map(|chapter| chapter.laws()) {
        let report = play(&record(law, 3), 3);
        let excused = DIFFERENT.iter().any(|(name, _)| law.name.starts_with(name));
        assert_eq!(report.differences.is_empty(), !excused, "{}: {report}", law.name);
        for skipped in &report.skipped {
            let known = ["another device", "another library", "the replay made no", "the replay exported no"];
            assert!(known.iter().any(|why| skipped.why.contains(why)), "{}: {report}", law.name);
        }
        calls += report.calls;
        left_out += report.skipped.len();
    }
    println!("{calls} calls replayed, {left_out} left out");
    assert!(calls > 1_000 && left_out * 10 < calls, "{calls} calls replayed, {left_out} left out");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for law in Chapter::Order.laws().iter().chain(Chapter::Graphs.laws()) {
        assert_eq!(record(law, 5), record(law, 5), "{}", law.name);
    }
}

#[test]
fn launches_that_may_not_be_repeated_are_left_out() {
    let law = Chapter::Order.laws().first().unwrap();
    let trace = Trace::parse(&record(law, 1)).unwrap();
    let machine = Machine::new(simulated::config());
    let report = replay(&trace, &*machine.device(0).unwrap());
    assert!(!report.is_faithful() && report.differences.is_empty(), "{report}");
    assert!(report.skipped.iter().all(|skipped| skipped.why.contains("vouched")), "{report}");
}
