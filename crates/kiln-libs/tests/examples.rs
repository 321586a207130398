//! The examples that use this crate, run as a user runs them. Each checks its own results and ends badly if one is wrong.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::path::PathBuf;
use std::process::Command;

/// Where cargo puts the examples when it builds the tests; built now if only this test was asked for.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join(name);
    if !program.exists() {
        let arguments = ["build", "--quiet", "--package", "kiln-libs", "--example", name];
        let built = Command::new(env!("CARGO")).args(arguments).status().unwrap();
        assert!(built.success() && program.exists(), "{name} was not built");
    }
    program
}

/// What an example prints.
fn output(name: &str) -> String {
    let output = Command::new(program(name)).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{name} ended with {}: {complaint}\n{text}", output.status);
    text
}

#[test]
fn matmul() {
    assert!(output("12_matmul").ends_with("100 replays of a graph give the same\n"));
}

#[test]
fn sort_and_scan() {
    let text = output("13_sort_and_scan");
    assert!(text.contains("key 3 has rows "), "{text}");
}

#[test]
fn transformer() {
    let text = output("14_transformer");
    assert!(text.contains("the same losses when the worker is killed at step 15\n"), "{text}");
    assert!(text.contains("the same text without a graph\n"), "{text}");
    assert!(text.contains("the same text when the worker is killed at character 8\n"), "{text}");
    assert!(text.ends_with("2 workers were lost\n"), "{text}");
}

/// What the example of data-parallel training prints.
fn trained(arguments: &[&str]) -> Vec<String> {
    let output = Command::new(program("data_parallel")).args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?} ended with {}: {complaint}\n{text}", output.status);
    text.lines().map(str::to_owned).collect()
}

/// The losses among what was printed, as numbers.
fn losses(lines: &[String]) -> Vec<f32> {
    let loss = |line: &String| line.strip_prefix("step ")?.split(' ').nth(2)?.parse().ok();
    lines.iter().filter_map(loss).collect()
}

#[test]
fn data_parallel_training_gives_the_same_losses_on_any_number_of_ranks() {
    let alone = trained(&["1"]);
    let found = losses(&alone);
    assert_eq!(found.len(), 12, "{alone:?}");
    assert!(found[11] < found[0] * 0.8, "it learns: {found:?}");
    for ranks in ["2", "4", "5"] {
        assert_eq!(trained(&[ranks]), alone, "{ranks} ranks");
    }
}

#[test]
fn data_parallel_training_goes_on_without_a_lost_rank_and_gives_the_same_losses() {
    let alone = losses(&trained(&["1"]));
    for (ranks, killed, step) in [("4", "2", "5"), ("4", "0", "0"), ("3", "1", "11"), ("2", "1", "3")] {
        let lines = trained(&[ranks, "--kill-rank", killed, "--at-step", step]);
        let told = format!("rank {killed} is lost (its thread panicked); ");
        assert!(lines[0].starts_with(&told), "{lines:?}");
        assert_eq!(losses(&lines), alone, "{ranks} ranks, {killed} lost at step {step}");
    }
}

#[test]
fn data_parallel_training_refuses_words_that_it_does_not_understand() {
    for (arguments, why) in [
        (&["2", "--kill-rank", "5", "--at-step", "1"][..], "there is no rank 5 among 2"),
        (&["4", "--bogus"], "`--bogus` is not understood"),
        (&["4", "--kill-rank", "2"], "--kill-rank and --at-step belong together"),
        (&["4", "--at-step", "2"], "--kill-rank and --at-step belong together"),
        (&["4", "--kill-rank", "2", "--at-step", "99"], "there is no step 99 among 12"),
        (&["1", "--kill-rank", "0", "--at-step", "3"], "no rank would be left"),
    ] {
        let output = Command::new(program("data_parallel")).args(arguments).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{arguments:?}");
        assert!(complaint.contains(why), "{complaint}");
    }
}

/// The book shows the program for cudarc and the one for kiln, one behind the other, with what differs. Both are compiled with the tests of the documentation.
#[test]
fn the_book_has_the_ported_product_beside_the_one_of_cudarc() {
    let book = include_str!("../../../docs/book/src/libraries.md");
    let (_, section) = book.split_once("\n## From cudarc\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let listings: Vec<&str> = section.split("```").skip(1).step_by(2).collect();
    let [cudarc, kiln] = listings[..] else { panic!("{} listings", listings.len()) };
    assert!(
        cudarc.contains("use cudarc::") && cudarc.contains("launch_builder") && cudarc.contains("unsafe")
    );
    assert!(kiln.starts_with("rust\n") && kiln.contains(".matmul(") && !kiln.contains("unsafe"));
    assert!(kiln.contains("assert_eq!(c.download()?, [7.0, 10.0, 15.0, 22.0]);"));
    assert!(section.contains("| | cudarc, kernel | cudarc, `cublas::Gemm` | kiln |"));
}

#[test]
fn port_cudarc_matmul() {
    let text = output("port_cudarc_matmul");
    assert!(
        text.contains("by a kernel:  [7.0, 10.0, 15.0, 22.0]\nby a library: [7.0, 10.0, 15.0, 22.0]\n"),
        "{text}"
    );
    assert!(text.contains("refused: blas.matmul: "), "{text}");
}
