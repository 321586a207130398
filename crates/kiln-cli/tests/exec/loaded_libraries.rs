//! The program's own lines where its code is loaded and unloaded, has no names, or calls the API through code of others.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{compiled, folder, kiln, text};

/// The library that launches, with a name of its function.
fn plugin(function: &str, flags: &[&str]) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exec/plugin.c");
    let file = folder().join(format!("lib{function}.so"));
    let output = Command::new("cc")
        .args(["-std=c11", "-g", "-shared", "-fPIC", &format!("-DNAME={function}"), "-o"])
        .arg(&file)
        .arg(source)
        .args(flags)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    file.to_str().unwrap().to_owned()
}

/// What the findings about a block say of where their work was queued.
fn places_of(output: &Output, block: &str) -> Vec<String> {
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let about = findings.iter().filter(|finding| finding["text"].as_str().unwrap().contains(block));
    let places = about.flat_map(|finding| finding["queued_at"].as_array().unwrap().clone());
    let places: Vec<String> = places.map(|place| place.as_str().unwrap().to_owned()).collect();
    assert!(!places.is_empty(), "nothing is said of {block}: {report}");
    places
}

#[test]
fn work_of_a_library_is_told_of_that_library_also_when_another_took_its_place() {
    let Some(program) = compiled("plugins") else { return };
    let files = [plugin("first", &[]), plugin("second", &["-DSECOND"])];
    for case in ["told at once", "told at the end"] {
        let output = kiln(&["--json"], &program, &[case, &files[0], &files[1]]);
        assert_eq!(output.status.code(), Some(5), "{case}: {}", text(&output.stderr));
        for (block, own, other) in [("memory:1.1", "first", "second"), ("memory:2.1", "second", "first")] {
            let places = places_of(&output, block);
            assert!(places.iter().any(|place| place.contains(own)), "{case}, {block}: {places:?}");
            assert!(!places.iter().any(|place| place.contains(other)), "{case}, {block}: {places:?}");
        }
    }
}

#[test]
fn a_library_that_was_loaded_after_a_finding_is_told() {
    let Some(program) = compiled("plugins") else { return };
    let output = kiln(&["--json"], &program, &["after a finding", &plugin("third", &[])]);
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
    let places = places_of(&output, "memory:1.1");
    assert!(places.iter().any(|place| place.contains("third")), "{places:?}");
}

/// The line of the program's file at an address in it, as another tool says.
fn line_at(program: &Path, address: &str) -> Option<String> {
    let output = Command::new("addr2line").arg("-e").arg(program).arg(address).output().ok()?;
    Some(text(&output.stdout))
}

#[test]
fn a_program_without_names_is_told_by_addresses_in_its_file() {
    let Some(program) = compiled("mistakes") else { return };
    let stripped = PathBuf::from(format!("{}-stripped", program.display()));
    let Ok(made) = Command::new("strip").arg("-o").arg(&stripped).arg(&program).output() else {
        return println!("skipped: there is no strip");
    };
    assert!(made.status.success(), "{}", text(&made.stderr));
    let output = kiln(&["--json"], &stripped, &["bounds"]);
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
    let places = places_of(&output, "memory:1.1");
    let name = stripped.file_name().unwrap().to_str().unwrap();
    let addresses: Vec<&str> = places[0]
        .split(", ")
        .map(|place| place.strip_prefix(&format!("{name}+")).unwrap_or_else(|| panic!("{places:?}")))
        .collect();
    let lines = [
        (include_str!("driver_api.h"), "return cuLaunchKernel(function", 1),
        (include_str!("mistakes.c"), "strcmp(which, \"bounds\")", 2),
    ];
    for (address, (source, words, after)) in addresses.iter().zip(lines) {
        let line = source.lines().position(|line| line.contains(words)).unwrap() + after;
        let Some(told) = line_at(&program, address) else {
            return println!("skipped: there is no addr2line");
        };
        assert!(told.trim_end().ends_with(&format!(":{line}")), "{told} for {places:?}");
    }
}

#[test]
fn code_of_packages_and_of_the_compiler_is_left_out_where_the_program_has_its_own() {
    let Some(program) = compiled("generated") else { return };
    let output = kiln(&["--json"], &program, &[]);
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
    for place in places_of(&output, "memory:1.1") {
        assert!(place.contains("launch, own.c:40 in step, own.c:5"), "{place}");
        assert!(
            !place.contains("registry") && !place.contains("include") && !place.contains("rustc"),
            "{place}"
        );
    }
}
