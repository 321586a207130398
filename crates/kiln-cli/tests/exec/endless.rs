//! Programs in C that poll for work without an end, and that have more mistakes than are kept.

use super::{compiled, finds, kiln, text};

#[test]
fn a_query_of_work_that_never_ends_answers_why_the_device_is_lost() {
    finds("endless", &[], &[("stream", "no end"), ("event", "no end")]);
}

#[test]
fn findings_beyond_those_that_are_kept_are_counted() {
    let Some(program) = compiled("endless") else { return };
    let output = kiln(&[], &program, &["many"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{told}");
    assert!(
        told.contains("1024 findings in 1 run") && told.contains("76 more findings of process"),
        "{told}"
    );
    let output = kiln(&["--json"], &program, &["many"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["findings"].as_array().unwrap().len(), 1024);
    let note = report["notes"][0].as_str().unwrap();
    assert!(note.contains("76 more findings of process"), "{note}");
}
