//! `kiln bench`.

use crate::outcome::{run, without_driver};

#[test]
fn a_warm_pair_makes_no_driver_call() {
    let outcome = run(without_driver(&["bench", "m7", "--json"]));
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    let json = outcome.json();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0]["workload"].as_str(), rows[0]["subject"].as_str()), (Some("m7"), Some("heap")));
    assert_eq!((rows[0]["p50"].as_f64(), rows[0]["unit"].as_str()), (Some(0.0), Some("calls")));
    assert!(json["device"].as_str().unwrap().contains("simulated"));
    assert!(json["notes"][0].as_str().unwrap().contains("need a GPU"));
}

#[test]
fn a_stack_of_the_callers_choice_is_measured() {
    let outcome = run(without_driver(&["bench", "m7", "--stack", "stats(direct)", "--device", "sim"]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let row = outcome.stdout.lines().find(|line| line.starts_with("m7")).unwrap();
    assert!(row.contains("stats(direct)") && row.contains("2.00"), "an allocation and a free: {row}");
}

#[test]
fn wrong_words_end_with_2_and_a_missing_gpu_with_3() {
    for words in [
        &["bench", "m8"][..],
        &["bench", "m1..m8"],
        &["bench", "m7..m1"],
        &["bench", "m1.."],
        &["bench", "m1", "--stack", "heap("],
        &["bench", "m1", "--repeats", "0"],
        &["bench", "m1", "--device", "tpu"],
    ] {
        let outcome = run(without_driver(words));
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{words:?}");
    }
    assert_eq!(run(without_driver(&["bench", "m1", "--device", "cuda"])).code, Some(3));
    let on_gpus = run(without_driver(&["bench", "m6"]));
    assert_eq!((on_gpus.code, on_gpus.stdout.as_str()), (Some(3), ""), "{}", on_gpus.stderr);
    assert!(on_gpus.stderr.contains("m6 needs a GPU"), "{}", on_gpus.stderr);
}

#[test]
fn a_row_of_workloads_is_measured_once_each() {
    let outcome = run(without_driver(&["bench", "m6..m7", "m7", "--json", "--repeats", "1"]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let json = outcome.json();
    let rows = json["rows"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| row["workload"].as_str().unwrap()).collect();
    assert_eq!(names, ["m7"], "m6 needs a GPU");
}
