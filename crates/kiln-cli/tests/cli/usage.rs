//! Wrong words, and the environment's.

use crate::outcome::{command, run, without_driver};

#[test]
fn wrong_usage_ends_with_2_and_says_what_is_right() {
    for words in [
        &["nonsense"][..],
        &["doctor", "--policy", "maybe"],
        &["doctor", "extra"],
        &["demo", "--device", "tpu"],
        &["demo", "--seed", "-1"],
        &["demo", "--seed", "18446744073709551616"],
        &["demo", "--json=yes"],
    ] {
        let outcome = run(command(words));
        assert_eq!(outcome.code, Some(2), "{words:?}");
        assert!(outcome.stdout.is_empty() && !outcome.stderr.is_empty(), "{words:?}");
    }
    assert!(run(command(&["doctor", "--policy", "maybe"])).stderr.contains("off, auto, required, simulate"));
}

#[test]
fn no_words_at_all_show_the_help() {
    let outcome = run(command(&[]));
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("doctor") && outcome.stderr.contains("demo"));
}

#[test]
fn help_and_version_end_with_0() {
    for words in [
        &["--help"][..],
        &["--version"],
        &["doctor", "--help"],
        &["demo", "--help"],
        &["inspect", "--help"],
        &["run", "--help"],
        &["check", "--help"],
        &["cache", "--help"],
        &["replay", "--help"],
        &["bench", "--help"],
        &["cache", "prune", "--help"],
    ] {
        let outcome = run(command(words));
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{words:?}");
        assert!(outcome.stdout.contains("kiln"));
    }
    assert!(run(command(&["--help"])).stdout.contains("5 fault or finding"));
}

#[test]
fn an_environment_that_means_nothing_is_wrong_usage() {
    for words in [&["doctor"][..], &["demo"]] {
        let mut wrong = without_driver(words);
        wrong.env("KILN_POLICY", "nonsense");
        let outcome = run(wrong);
        assert_eq!(outcome.code, Some(2), "{words:?}");
        assert!(outcome.stderr.contains("KILN_POLICY") && outcome.stdout.is_empty());
    }
}
