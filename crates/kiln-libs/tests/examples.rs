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

#[test]
fn port_cudarc_matmul() {
    let text = output("port_cudarc_matmul");
    assert!(
        text.contains("by a kernel:  [7.0, 10.0, 15.0, 22.0]\nby a library: [7.0, 10.0, 15.0, 22.0]\n"),
        "{text}"
    );
    assert!(text.contains("refused: blas.matmul: "), "{text}");
}
