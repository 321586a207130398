//! Processes that outlive the program that started them: programs in C.

use std::path::Path;

use super::{compiled, kiln, text};

/// The number in `process N (outlives-...)`.
fn process(told: &str) -> Option<u32> {
    let (_, rest) = told.split_once("process ")?;
    rest.split(' ').next()?.parse().ok()
}

#[test]
fn a_process_that_still_runs_is_told() {
    let Some(program) = compiled("outlives") else { return };
    let output = kiln(&[], &program, &["20"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(
        told.contains("(outlives") && told.contains("still runs") && told.contains("--left-behind"),
        "{told}"
    );
    let output = kiln(&["--json"], &program, &["20"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["left_behind"].as_array().map(Vec::len), Some(1), "{report}");
}

#[test]
fn what_it_finds_is_in_the_report_if_it_is_waited_for() {
    let Some(program) = compiled("outlives") else { return };
    let output = kiln(&["--left-behind", "wait"], &program, &["5"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{told}");
    assert!(told.contains("1 finding in 1 run") && told.contains("add_one"), "{told}");
    assert!(!told.contains("still runs"), "{told}");
}

#[test]
fn it_is_ended_if_that_is_asked_for() {
    let Some(program) = compiled("outlives") else { return };
    let output = kiln(&["--left-behind", "end"], &program, &["600"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("was ended"), "{told}");
    // Its end may not have been taken note of.
    let state = std::fs::read_to_string(format!("/proc/{}/stat", process(&told).unwrap()));
    assert!(state.as_ref().map_or(true, |state| state.contains(") Z ")), "{state:?}");
}

#[test]
fn a_program_that_leaves_nothing_behind_is_told_nothing() {
    for choice in ["leave", "wait", "end"] {
        let output = kiln(&["--left-behind", choice], Path::new("sh"), &["-c", "sleep 0.1 & wait"]);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{choice}");
    }
}
