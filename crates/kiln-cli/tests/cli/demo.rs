//! `kiln demo` on the simulated device and on stand-ins for a GPU.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::machine::Machine;
use crate::outcome::{command, run, without_driver};

/// What every demo on the simulated device shows: all checks passed, and a timeline in which no stream does two things
/// at once.
fn assert_sound(json: &Value) {
    assert_eq!((json["exit"].as_i64(), json["unmeasured"].as_i64()), (Some(0), Some(0)));
    let checks = json["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 3);
    assert!(checks.iter().all(|check| check["passed"] == true), "{checks:?}");
    let spans = json["timeline"].as_array().unwrap();
    let streams: BTreeSet<&str> = spans.iter().map(|span| span["stream"].as_str().unwrap()).collect();
    assert_eq!(streams, BTreeSet::from(["uploads", "compute a", "compute b", "downloads"]));
    for stream in streams {
        let mut ends = 0;
        for span in spans.iter().filter(|span| span["stream"] == stream) {
            let (start, end) = (span["start_ns"].as_u64().unwrap(), span["end_ns"].as_u64().unwrap());
            assert!(ends <= start && start < end, "{span} on {stream} after {ends}");
            ends = end;
        }
    }
}

#[test]
fn work_is_done_checked_and_drawn_without_a_gpu() {
    let outcome = run(without_driver(&["demo"]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    for words in [
        "simulated device",
        "KILN_LIBCUDA names a file that cannot be used",
        "uploads",
        "█",
        "bit by bit",
        "no race",
        "no leak",
        "left out on purpose",
        "found:",
    ] {
        assert!(outcome.stdout.contains(words), "{words} is not in {}", outcome.stdout);
    }
    assert!(!outcome.stdout.contains("FAILED"));
    assert_eq!(outcome.stderr, "", "progress is for terminals");
}

#[test]
fn a_seed_gives_the_same_run_to_the_byte_and_another_seed_another() {
    let json = |seed: &str| run(without_driver(&["demo", "--device", "sim", "--json", "--seed", seed]));
    let (first, again, other) = (json("7"), json("7"), json("8"));
    assert_eq!(first.code, Some(0));
    assert_eq!(first.stdout, again.stdout);
    assert_ne!(first.stdout, other.stdout);
    assert_sound(&first.json());
    assert_sound(&other.json());
}

#[test]
fn streams_overlap() {
    let json = run(without_driver(&["demo", "--device", "sim", "--json"])).json();
    let spans = json["timeline"].as_array().unwrap();
    let busy: u64 =
        spans.iter().map(|span| span["end_ns"].as_u64().unwrap() - span["start_ns"].as_u64().unwrap()).sum();
    let end = spans.iter().map(|span| span["end_ns"].as_u64().unwrap()).max().unwrap();
    assert!(busy > end, "{busy} ns of work took {end} ns");
}

#[test]
fn the_twin_is_found_out_and_labelled() {
    let json = run(without_driver(&["demo", "--device", "sim", "--json", "--seed", "3"])).json();
    let findings = json["twin_findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding.as_str().unwrap().contains("without an order")));
    assert!(findings.iter().all(|finding| finding.as_str().unwrap().contains("seed 3")));
}

#[test]
fn a_gpu_that_was_asked_for_and_is_not_there_ends_with_3() {
    let outcome = run(without_driver(&["demo", "--device", "cuda"]));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""));
    assert!(outcome.stderr.contains("no usable CUDA driver or device: KILN_LIBCUDA names"));
    let mut required = without_driver(&["demo"]);
    required.env("KILN_POLICY", "required");
    assert_eq!(run(required).code, Some(3));
}

on_machine! {
    fn the_policy_keeps_the_demo_off_a_gpu() on Machine::fake().plan("cuInit=999") => {
        for policy in ["off", "simulate"] {
            let mut quiet = command(&["demo", "--json"]);
            quiet.env("KILN_POLICY", policy);
            let outcome = run(quiet);
            assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
            assert_sound(&outcome.json());
        }
        assert_eq!(run(command(&["demo"])).code, Some(5), "a broken GPU is not replaced by a simulation");
    }

    fn wrong_results_are_found() on Machine::fake() => {
        // The stand-in's kernels do nothing, so what comes back is what was there.
        let outcome = run(command(&["demo", "--json"]));
        assert_eq!(outcome.code, Some(5), "{}", outcome.stderr);
        let json = outcome.json();
        assert_eq!(json["device"]["kind"], "CUDA");
        assert_eq!(json["checks"][0]["passed"], false);
        assert!(json["checks"][0]["detail"].as_str().unwrap().contains("should be"));
        assert!(run(command(&["demo"])).stdout.contains("FAILED"));
    }

    fn code_that_does_not_compile_ends_with_4() on Machine::fake().plan("cuModuleLoadDataEx=218") => {
        let outcome = run(command(&["demo", "--device", "cuda"]));
        assert_eq!(outcome.code, Some(4), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("CUDA_ERROR_INVALID_PTX"));
    }
}

#[test]
fn a_killed_worker_is_replaced_and_its_data_verified() {
    let outcome = run(without_driver(&["demo", "--isolate"]));
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    for words in [
        "worker lost",
        "killed the worker process",
        "not written by any unfinished launch",
        "bit by bit",
        "in all",
    ] {
        assert!(outcome.stdout.contains(words), "{words} is not in {}", outcome.stdout);
    }
    assert!(!outcome.stdout.contains("FAILED"));
    let json = run(without_driver(&["demo", "--isolate", "--device", "sim", "--json", "--seed", "3"])).json();
    assert_eq!((json["exit"].as_i64(), json["generation"].as_i64()), (Some(0), Some(1)));
    assert!(json["checks"].as_array().unwrap().iter().all(|check| check["passed"] == true), "{json}");
    assert!(json["kept_blocks"].as_i64() >= Some(7) && json["takeover_ms"].as_f64() > Some(0.0), "{json}");
}
