//! A case in a separate process: this test binary, started again for that case.

use std::process::Command;

use kiln::code_cache::CachePlace;
use kiln_kernels::{Case, Ending, cases};

use crate::row::Row;
use crate::stage::{Kind, Stage};

/// Says which case the process is for, and on which device.
const CASE_VARIABLE: &str = "KILN_KERNEL_CASE";
const DEVICE_VARIABLE: &str = "KILN_KERNEL_DEVICE";

/// The seed of the only run.
const SEED: u64 = 1;

/// Runs a case in a child, and compares what it printed.
pub(crate) fn judge(case: &Case, kind: Kind) -> Result<Row, String> {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["one_case_alone", "--exact", "--include-ignored", "--nocapture", "--test-threads=1"]);
    let output = child.env(CASE_VARIABLE, case.name).env(DEVICE_VARIABLE, kind.name()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(format!("{}\n{said}{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    let mut lines: Vec<&str> = said.lines().collect();
    for expected in case.printed(&case.arguments(SEED)).unwrap_or_default() {
        let at = lines.iter().position(|line| *line == expected);
        lines.swap_remove(at.ok_or_else(|| format!("it did not print `{expected}`, but\n{said}"))?);
    }
    Ok(Row::alone(case))
}

/// What the child does.
pub(crate) fn run() {
    let name = std::env::var(CASE_VARIABLE).expect("another test names the case");
    let kind = match std::env::var(DEVICE_VARIABLE).unwrap().as_str() {
        "cuda" => Kind::Cuda,
        _ => Kind::Simulated,
    };
    let case = cases().iter().find(|case| case.name == name).unwrap();
    let arguments = case.arguments(SEED);
    let stage = Stage::open(kind, SEED, &CachePlace::Off);
    // What the kernel prints begins on a separate line.
    println!();
    match (case.ending, stage.run(case, &arguments)) {
        (Ending::Done, Ok((actual, _))) => {
            case.expected(&arguments).compare(&actual).unwrap();
            print!("{}", stage.printed());
        }
        (Ending::Fault(code), Err(error)) => {
            assert_eq!(error.code().map(|code| code.0), Some(code as i32), "{error:#}");
            assert!(error.is_sticky(), "{error:#}");
        }
        (ending, ran) => panic!("expected {ending:?}, and it {:?}", ran.map(|_| "ran to its end")),
    }
}
