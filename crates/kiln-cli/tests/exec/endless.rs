//! Programs in C that poll for work without an end, and that have more mistakes than are kept.

use std::path::Path;
use std::process::{Command, Output};

use super::{compiled, finds, kiln, library, passes, text};

/// Runs a case, which must end by itself: a command of the system ends it after two minutes, with another code.
fn ended(flags: &[&str], program: &Path, case: &str) -> Output {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "120", env!("CARGO_BIN_EXE_kiln"), "exec", "--library"]).arg(library());
    command.args(flags).arg("--").arg(program).arg(case).output().unwrap()
}

#[test]
fn a_query_of_work_that_never_ends_answers_why_the_device_is_lost() {
    finds("endless", &[], &[("stream", "no end"), ("event", "no end")]);
}

#[test]
fn work_that_never_ends_is_told_in_a_worker_process_too() {
    let Some(program) = compiled("endless") else { return };
    for case in ["stream", "event"] {
        let output = ended(&["--isolate"], &program, case);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{case}: {told}");
        assert!(
            told.contains("no end") && told.contains("spin") && !told.contains("answered"),
            "{case}: {told}"
        );
    }
}

#[test]
fn a_kernel_that_counts_for_ever_is_stopped_at_the_limit() {
    let Some(program) = compiled("endless") else { return };
    for case in ["counts", "counts together"] {
        for flags in [["--step-limit", "100000"].as_slice(), &["--step-limit", "100000", "--isolate"]] {
            let output = ended(flags, &program, case);
            let told = text(&output.stderr);
            assert_eq!(output.status.code(), Some(5), "{case} {flags:?}: {told}");
            let says = |words: &str| told.contains(words);
            assert!(says("no end") && says("100000") && says("--step-limit"), "{case} {flags:?}: {told}");
            assert!(says("count") && !says("answered"), "{case} {flags:?}: {told}");
        }
    }
    // What ends is not stopped before it reaches the limit.
    passes("endless", &[], &["ends"]);
    passes("endless", &["--isolate"], &["ends"]);
    let output = ended(&["--step-limit", "0"], &program, "ends");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
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
