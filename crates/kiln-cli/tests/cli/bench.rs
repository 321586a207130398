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

#[test]
fn calls_of_libraries_are_measured_until_they_are_queued_and_until_they_are_done() {
    let outcome = run(without_driver(&["bench", "l1..l9", "--json", "--repeats", "1"]));
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    let json = outcome.json();
    let rows = json["rows"].as_array().unwrap();
    let calls = [
        "blas.matmul f32 48",
        "blas.matmul bf16 48",
        "fft.transform f32 1024",
        "prims.sort u32 4096",
        "prims.scan u32 4096",
        "rand.normal f32 4096",
        "sparse.spmv f32 512",
        "solve.cholesky f64 24",
        "dnn.attention f16 16",
    ];
    assert_eq!(rows.len(), 2 * calls.len(), "{json:#}");
    for ((number, call), rows) in (1..).zip(calls).zip(rows.chunks(2)) {
        let words =
            |at: usize| ["workload", "subject", "unit"].map(|field| rows[at][field].as_str().unwrap());
        let (submitted, done) = (format!("l{number} submitted"), format!("l{number} done"));
        assert_eq!([words(0), words(1)], [[&*submitted, call, "ns"], [&*done, call, "us"]]);
        let p50 = |at: usize| rows[at]["p50"].as_f64().unwrap();
        // Done is not before queued.
        assert!(p50(0) > 0.0 && p50(1) * 1e3 >= p50(0), "{json:#}");
    }
    assert_eq!(json["notes"].as_array().map(Vec::len), Some(0), "nothing is said of memory");
}

#[test]
fn figures_have_the_digits_that_mean_something() {
    let outcome = run(without_driver(&["bench", "m4", "l1..l6", "--json", "--repeats", "3"]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let figures: Vec<&str> = outcome
        .stdout
        .lines()
        .filter(|line| line.contains("\"p50\":") || line.contains("\"p99\":"))
        .collect();
    assert!(figures.len() >= 2 * 12, "{}", outcome.stdout);
    for line in figures {
        let number = line.trim().trim_end_matches(',').split_once(": ").unwrap().1;
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        let digits =
            if whole == "0" { decimals.trim_start_matches('0').len() } else { whole.len() + decimals.len() };
        assert!(decimals.len() <= 2 || digits <= 4, "{line}");
    }
}

#[test]
fn a_range_may_name_memory_and_calls() {
    let outcome = run(without_driver(&["bench", "m7..l1", "--json", "--repeats", "1"]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let json = outcome.json();
    let names: Vec<_> =
        json["rows"].as_array().unwrap().iter().map(|row| row["workload"].as_str().unwrap()).collect();
    assert_eq!(names, ["m7", "l1 submitted", "l1 done"]);
}
