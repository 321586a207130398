//! The examples of the course and of the ports, run as a user runs them. Each checks its own results and ends badly if one is wrong.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where cargo puts the examples when it builds the tests; built now if only this test was asked for.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join(name);
    if !program.exists() {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "kiln", "--all-features", "--example", name])
            .status()
            .unwrap();
        assert!(built.success() && program.exists(), "{name} was not built");
    }
    program
}

/// What an example prints.
fn output(name: &str) -> String {
    output_under(name, None)
}

/// What an example prints under a policy.
fn output_under(name: &str, policy: Option<&str>) -> String {
    let mut command = Command::new(program(name));
    command.envs(policy.map(|policy| ("KILN_POLICY", policy)));
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{name} ended with {}: {complaint}\n{text}", output.status);
    text
}

#[test]
fn allocate() {
    assert!(output("01_allocate").ends_with("outstanding at the end: 0 bytes\n"));
}

#[test]
fn copy() {
    assert!(output("02_copy").ends_with("1048576 elements came back as they went\n"));
}

#[test]
fn launch() {
    assert!(output("03_launch").ends_with("10000 elements are right\n"));
}

#[test]
fn program_in_rust() {
    let text = output("05_program");
    assert!(
        text.contains("built in Rust: 1000 elements are right\nread from text: 1000 elements are right\n"),
        "{text}"
    );
    assert!(text.contains("refused: "), "{text}");
}

#[test]
fn tensor_cores() {
    let text = output("tensor_cores");
    assert!(text.contains("sm_90, tensor cores: 16 mma, 8 ldmatrix, 0 fma"), "{text}");
    assert!(text.contains("sm_70, fused products: 0 mma, 0 ldmatrix, 32 fma"), "{text}");
    assert!(text.ends_with("24576 elements are right\n"), "{text}");
}

#[test]
fn sequence() {
    assert!(output("06_sequence").ends_with("40 steps in one submission, 64 cells are right\n"));
}

#[test]
fn graph() {
    assert!(output("07_graph").ends_with("20 steps of 1000 elements are right, three times\n"));
}

#[test]
fn streams() {
    let text = output("04_streams");
    for counts in [
        "four streams read one buffer:                 4 launches,  1 events,  4 waits",
        "twelve more that follow on their streams:    12 launches,  0 events,  0 waits",
        "after the host waited for everything:         4 launches,  0 events,  0 waits",
    ] {
        assert!(text.contains(counts), "{counts} is not in\n{text}");
    }
}

#[test]
fn query_engine() {
    let text = output("query_engine");
    assert!(text.contains("0 uses were left unfinished") && text.contains("under pressure: budget engine"));
}

#[test]
fn compiler_backend() {
    let text = output("compiler_backend");
    assert!(
        text.contains("audit backend: program `guard` trapped with code 4 in thread 1 of block 0"),
        "{text}"
    );
    assert!(text.ends_with("every promise of a program kept\n"), "{text}");
}

#[test]
fn survive() {
    let text = output("08_survive");
    assert!(text.ends_with("100000 elements survived and go on\n"), "{text}");
    assert!(text.contains("launch wild") && text.contains("not written by any unfinished launch"), "{text}");
}

/// The worker has the device of the policy of its client.
#[test]
fn survive_under_each_policy() {
    for policy in ["simulate", "auto", "off"] {
        let text = output_under("08_survive", Some(policy));
        assert!(text.ends_with("100000 elements survived and go on\n"), "{policy}: {text}");
    }
}

#[test]
fn futures() {
    assert!(output("09_await").contains("100 tasks awaited together"));
}

#[test]
fn device_service() {
    let text = output("10_device_service");
    assert!(text.contains("the same address, one device later: generation 1, ready"), "{text}");
    assert!(text.ends_with("all devices shut down, nothing left\n"));
}

#[test]
fn actor_service() {
    assert!(output("actor_service").ends_with("every promise kept\n"));
}

#[test]
fn backend_probe() {
    assert!(output("backend_probe").ends_with("the probe keeps its promises\n"));
}

/// The text after `marker` up to the next space or backtick.
fn word_after<'a>(text: &'a str, marker: &str) -> Option<&'a str> {
    text.split_once(marker)?.1.split([' ', '`', '\n']).next()
}

#[test]
fn the_command_at_the_top_of_each_example_runs_that_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut commands = 0;
    for entry in std::fs::read_dir(root.join("examples")).unwrap() {
        let path = entry.unwrap().path();
        let file = if path.is_dir() { path.join("main.rs") } else { path.clone() };
        // A folder without a program has modules of an example that lies beside it.
        if file.extension().is_none_or(|extension| extension != "rs") || !file.exists() {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        // A file that is shared by examples has no command and no `main`.
        let Some((_, command)) = text.split_once("`cargo run ") else {
            assert!(!text.contains("fn main"), "{} does not say how to run it", file.display());
            continue;
        };
        let command = command.split('`').next().unwrap();
        let (package, name) =
            (word_after(command, "-p ").unwrap(), word_after(command, "--example ").unwrap());
        assert_eq!(path.file_stem().unwrap(), name, "{command}");
        let manifest = root.join("crates").join(package).join("Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).unwrap_or_else(|error| panic!("{command}: {error}"));
        let entry = format!("name = \"{name}\"\npath = \"../../examples/");
        assert!(manifest.contains(&entry), "{package} has no example {name}");
        commands += 1;
    }
    assert!(commands > 10, "{commands}");
}
