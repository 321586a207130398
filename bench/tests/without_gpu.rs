//! Workloads that need a GPU say so where there is none.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::process::Command;

#[test]
fn workloads_of_libraries_are_refused_without_a_gpu() {
    let names = ["b1", "b1-call", "b2", "b3", "b4", "b5", "b6", "n1"];
    let mut bench = Command::new(env!("CARGO_BIN_EXE_kiln-bench"));
    let output = bench.args(names).args(["--device", "sim"]).output().unwrap();
    let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(3), "{said}{told}");
    for name in names {
        assert!(said.contains(&format!("# {name} could not be measured: it needs a GPU")), "{said}");
    }
    assert!(told.contains("not all could be measured: b1, b1-call, b2, b3, b4, b5, b6, n1"), "{told}");
}
