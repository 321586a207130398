//! Copies of pageable memory: the pinned memory that they go through is made once and used again. A program in C, on the simulated device and over the stand-in for a
//! GPU's driver, whose log has every call.

use std::path::Path;

use super::{compiled, folder, gpu, kiln, passes, said, text};

/// What `--stats` says of the pinned memory of a run: how many blocks were made.
fn blocks_made(program: &Path, words: &[&str]) -> u64 {
    let output = kiln(&["--stats", "--json"], program, words);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    report["statistics"][0]["staging_blocks"].as_u64().unwrap_or_else(|| panic!("{report}"))
}

/// Cases that have the same blocks however often they copy.
const WARM: [&str; 6] = ["copies", "gone streams", "default stream", "queries", "events", "wild"];

#[test]
fn warm_copies_make_no_pinned_memory() {
    let Some(program) = compiled("staging") else { return };
    for case in WARM {
        let (few, many) = (blocks_made(&program, &[case, "2"]), blocks_made(&program, &[case, "300"]));
        assert!(few == many && (1..=3).contains(&few), "{case}: {few} and {many}");
    }
    // Rows of many sizes share the blocks of a few classes.
    assert!(blocks_made(&program, &["rows", "500"]) <= 4);
}

#[test]
fn what_is_never_waited_for_is_bounded() {
    let Some(program) = compiled("staging") else { return };
    let made = blocks_made(&program, &["never waited", "5000"]);
    assert!((1000..=1100).contains(&made), "{made}");
}

#[test]
fn warm_copies_on_a_gpu_call_the_driver_for_nothing_but_the_copies() {
    let Some(program) = compiled("staging") else { return };
    for case in WARM {
        let calls = |count: &str| {
            let log = folder().join(format!("staging {case} {count}.log"));
            let mut command = gpu::command_of(&[], &program, &[case, count])?;
            let output = command.env("FAKE_CUDA_LOG", &log).output().unwrap();
            assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()), "{case}");
            let log = std::fs::read_to_string(&log).unwrap();
            let count = |name: &str| log.lines().filter(|line| line.contains(name)).count();
            Some((count("cuMemHostAlloc"), count("cuMemFreeHost"), count("cuMemcpy")))
        };
        let (Some(few), Some(many)) = (calls("2"), calls("100")) else { return };
        assert_eq!((few.0, few.1), (many.0, many.1), "{case}");
        assert!(few.0 >= 1 && many.2 >= 50 * few.2 / 2, "{case}: {few:?} {many:?}");
    }
}

#[test]
fn a_context_on_a_gpu_gives_back_the_pinned_memory_that_it_made() {
    let Some(program) = compiled("staging") else { return };
    let log = folder().join("staging contexts.log");
    let Some(mut command) = gpu::command_of(&[], &program, &["contexts", "20"]) else { return };
    let output = command.env("FAKE_CUDA_LOG", &log).output().unwrap();
    assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()));
    let log = std::fs::read_to_string(&log).unwrap();
    let count = |name: &str| log.lines().filter(|line| line.contains(name)).count();
    // Each has two, whose copies are in flight when it ends.
    assert_eq!((count("cuMemHostAlloc"), count("cuMemFreeHost")), (40, 40), "{log}");
}

#[test]
fn copies_of_pageable_memory_have_their_bytes() {
    for case in ["copies", "gone streams", "rows", "never waited"] {
        let Some(program) = compiled("staging") else { return };
        let output = kiln(&["--seeds", "3"], &program, &[case, "40"]);
        assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()), "{case}");
    }
    passes("staging", &["--seeds", "5"], &["threads", "contexts", "destroyed meanwhile", "forks"]);
    let Some(program) = compiled("staging") else { return };
    // The stand-in calls functions of the host at once, in the thread that queues them.
    for case in ["threads", "contexts", "forks", "rows"] {
        let Some(mut command) = gpu::command_of(&[], &program, &[case]) else { return };
        let output = command.output().unwrap();
        assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()), "GPU: {case}");
    }
}

#[test]
fn a_block_that_is_used_again_is_no_mistake_in_a_worker_either() {
    let Some(program) = compiled("staging") else { return };
    for case in WARM.iter().chain(&["rows"]) {
        let output = kiln(&["--isolate"], &program, &[case, "20"]);
        assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()), "{case}");
    }
}

#[test]
fn copies_on_a_lost_device_answer_the_fault() {
    let Some(program) = compiled("staging") else { return };
    let output = kiln(&[], &program, &["lost"]);
    let told = text(&output.stderr);
    assert!(output.status.code() == Some(5) && !told.contains("answered"), "{told}");
}
