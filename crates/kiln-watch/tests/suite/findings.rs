//! Findings of the checks, as the page shows them.

use kiln_trace::{FindingRecord, PostMortemRecord, TraceEvent};

use crate::samples::{Recording, kernel, planted, race, span, stamp};

#[test]
fn a_finding_is_listed_with_its_lines_and_its_work_also_where_that_comes_later() {
    let more = TraceEvent::Finding(FindingRecord { more: 4, ..FindingRecord::default() });
    let later = kernel("late", stamp(5, 1), 50, 1_000, span(150_000, 160_000));
    let events =
        [&planted()[..], &[race(stamp(0, 3), "a race"), race(stamp(5, 1), "another"), later, more]].concat();
    let recording = Recording::of(&events, 3);
    let watched = recording.read();
    let state = watched.state();
    assert_eq!((state.findings.len(), state.finding_count, state.devices[0].findings), (2, 6, 6));
    let first = &state.findings[0];
    assert_eq!((&*first.rule, &*first.kernel, &*first.message), ("race", "step", "a race"));
    assert_eq!(
        (first.line.as_deref(), first.submitted.as_deref()),
        (Some("step.cu:7"), Some("src/train.rs:40"))
    );
    assert_eq!((first.device, first.time_ns), (0, 140_000));
    for (finding, name) in state.findings.iter().zip(["step", "late"]) {
        let (row, number) = finding.work.unwrap();
        assert_eq!(watched.work(row, number).unwrap().name, name);
    }
    // No fault, and the device did not fail.
    assert_eq!(state.fault_count, 1);
    // Repeats are told once, with the work of the first.
    let explained = watched.explain().unwrap();
    let words = ["race at step.cu:7", "in `step` (src/train.rs:40, stream 0, submission 3)", ": a race"];
    assert!(words.iter().all(|words| explained.contains(words)), "{explained}");
}

#[test]
fn a_post_mortem_is_listed_whole_with_control_characters_as_escapes() {
    let line = |line| TraceEvent::PostMortem(PostMortemRecord { device: 0, generation: 0, line, time_ns: 7 });
    let events = [&planted()[..], &[line("worker lost: killed"), line("  under way s0#1 a\x1bb")]].concat();
    let watched = Recording::of(&events, 3).read();
    let [found] = &watched.state().post_mortems[..] else { panic!("one loss") };
    assert_eq!((found.device, found.time_ns), (0, 7));
    assert_eq!(found.lines, ["worker lost: killed", "  under way s0#1 a\\x1bb"]);
}

#[test]
fn very_many_findings_are_counted_and_the_first_listed() {
    let events = vec![race(stamp(0, 1), "again"); 700];
    let state = Recording::of(&events, 64).read().state();
    assert_eq!((state.findings.len(), state.finding_count), (500, 700));
}
