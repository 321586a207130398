//! Other processes: this test binary, started again with a task in its environment.

use std::process::{Command, Stdio};

const TASK: &str = "KILN_SIM_TEST_TASK";

/// What a child process says, if it ends well.
pub(crate) fn run(task: &str, stdin: Stdio) -> Option<String> {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child::does_its_task", "--include-ignored", "--nocapture", "--test-threads=1"])
        .env(TASK, task)
        .stdin(stdin)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let said = text.split_once("<<<").and_then(|(_, rest)| rest.split_once(">>>"));
    said.filter(|_| output.status.success()).map(|(said, _)| said.to_string())
}

/// Where a child begins.
#[test]
#[ignore = "helper process"]
fn does_its_task() {
    let task = std::env::var(TASK).expect("other tests start this one and name a task");
    let said = match task.split_once(' ') {
        Some(("trace", seed)) => crate::determinism::trace(seed.parse().unwrap()),
        Some(("pages", size)) => crate::processes::continue_with_pages(size.parse().unwrap()),
        _ => panic!("no task {task}"),
    };
    println!("<<<{said}>>>");
}
