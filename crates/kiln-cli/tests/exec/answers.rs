//! The driver API, call by call: what the library answers is what NVIDIA's answered on an H200.
//!
//! The program in `answers` prints a line for each call. `h200.txt` has its lines there; `differences.txt` has those that are other here, and
//! sections of functions that are not there, each with a reason. Where NVIDIA's library crashes (-1), any answer is right.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::{folder, kiln, library, text};

const H200: &str = include_str!("answers/h200.txt");
const DIFFERENCES: &str = include_str!("answers/differences.txt");

/// The lines of each section.
fn sections(lines: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (section, line) in lines.lines().filter_map(|line| line.split_once(": ")) {
        all.entry(section).or_default().push(line);
    }
    all
}

/// A line without its code or value.
fn name(line: &str) -> &str {
    let at = line.rfind(": ").into_iter().chain(line.rfind(" = ")).max();
    at.map_or(line, |at| &line[..at])
}

#[test]
fn every_call_answers_as_on_an_h200() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exec/answers");
    if Command::new("cc").arg("--version").output().is_err() {
        return println!("skipped: there is no C compiler");
    }
    let program = folder().join("answers");
    let files = [
        "main",
        "contexts",
        "memory",
        "transfers",
        "queues",
        "code",
        "values",
        "graph_parts",
        "textures",
        "conditions",
        "sharing",
        "rarer",
    ];
    let output = Command::new("cc")
        .args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wno-unused-function", "-o"])
        .arg(&program)
        .args(files.map(|file| sources.join(format!("{file}.c"))))
        .arg(library())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));

    let answered = text(&kiln(&[], &program, &[]).stdout);
    let (here, there) = (sections(&answered), sections(H200));
    let known: Vec<&str> =
        DIFFERENCES.lines().filter(|line| line.starts_with("- ")).map(|line| &line[2..]).collect();
    let known = |section: &str, line: &str| {
        known
            .iter()
            .any(|known| known.strip_prefix(section).and_then(|rest| rest.strip_prefix(": ")) == Some(line))
    };
    let (mut equal, mut wrong) = (0, Vec::new());
    let is_left_out =
        |section: &str| DIFFERENCES.lines().any(|line| line.strip_prefix("* ") == Some(section));
    for (section, there) in there.iter().filter(|(section, _)| !is_left_out(section)) {
        let here = here.get(section).map(Vec::as_slice).unwrap_or_default();
        for (at, line) in there.iter().enumerate() {
            if line.starts_with("ended with") {
                break;
            }
            let ours = here.get(at).copied().unwrap_or("no answer");
            let is_crash = line.ends_with(": -1") && name(line) == name(ours) && !ours.ends_with(": -1");
            match (ours == *line, known(section, line)) {
                (true, true) => wrong.push(format!("{section}: {line}: listed as a difference, and equal")),
                (true, false) => equal += 1,
                (false, false) if !is_crash => wrong.push(format!("{section}: {line} there, {ours} here")),
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{} answers differ, {equal} are equal:\n{}", wrong.len(), wrong.join("\n"));
    assert!(equal >= 1_000, "{equal} answers are equal");
}
