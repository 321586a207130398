//! `kiln exec`: programs in C that call the CUDA driver API, run as they are.
//!
//! The programs are beside this file. They are compiled with the C compiler and linked against the shared library, whose name inside is that of
//! NVIDIA's, so that the loader asks for `libcuda.so.1`.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and says why"
)]

mod answers;
mod arrays;
mod conditions;
mod endless;
mod external_memory;
mod gpu;
mod graph_nodes;
mod graph_parts;
mod host_functions;
mod host_memory;
mod injected;
mod interprocess;
mod lines;
mod links;
mod loaded_libraries;
mod management;
mod orders;
mod outlives;
mod recorded;
mod refusals;
mod shared_pools;
mod staging;
mod stream_values;
mod tensor_maps;
mod virtual_memory;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The shared library, which cargo builds for the tests.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folders = [test.parent().unwrap().to_owned(), test.parent().unwrap().parent().unwrap().to_owned()];
    let found = folders.iter().map(|folder| folder.join("libkiln_shim.so")).find(|path| path.exists());
    found.unwrap_or_else(|| panic!("libkiln_shim.so is not in {folders:?}"))
}

/// A folder for the programs of this process.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("kiln-exec-tests-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        path
    })
}

/// Compiles a program; nothing where there is no C compiler.
fn compiled(name: &str) -> Option<PathBuf> {
    if Command::new("cc").arg("--version").output().is_err() {
        println!("skipped: there is no C compiler");
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exec").join(format!("{name}.c"));
    let thread = format!("{:?}", std::thread::current().id());
    let number: String = thread.chars().filter(char::is_ascii_digit).collect();
    let program = folder().join(format!("{name}-{number}"));
    let output = Command::new("cc")
        .args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-g", "-pthread", "-o"])
        .arg(&program)
        .arg(source)
        .arg(library())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

fn kiln(flags: &[&str], program: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kiln"));
    command.arg("exec").arg("--library").arg(library()).args(flags).arg("--").arg(program).args(words);
    command.output().unwrap()
}

/// What is said beside notes of addresses that were refused, which programs give on purpose.
fn said(output: &Output) -> String {
    let told = text(&output.stderr);
    let lines = told.lines().filter(|line| !line.contains(" was refused with CUDA_ERROR_INVALID_VALUE: "));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Runs a program in C once for each case, or seed of it: all is well, and nothing is said.
fn passes(name: &str, flags: &[&str], cases: &[&str]) {
    let Some(program) = compiled(name) else { return };
    for case in cases {
        let output = kiln(flags, &program, &[case]);
        assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()), "{case}");
    }
}

/// Runs a program in C once for each case: something is found, and the report has the words; what the program itself checks is right.
fn finds(name: &str, flags: &[&str], cases: &[(&str, &str)]) {
    let Some(program) = compiled(name) else { return };
    for (case, words) in cases {
        let output = kiln(flags, &program, &[case]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{case}: {told}");
        assert!(told.contains(words) && !told.contains("answered"), "{case}: {told}");
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_program_without_mistakes_ends_as_it_is() {
    let Some(program) = compiled("right") else { return };
    let output = kiln(&["--seeds", "5"], &program, &[]);
    assert_eq!(text(&output.stderr), "");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "right\n".repeat(5)));
}

#[test]
fn mistakes_are_found_with_their_kernel() {
    let Some(program) = compiled("mistakes") else { return };
    for (which, said) in [("bounds", "add_one"), ("race", "nothing orders"), ("unwritten", "never written")] {
        let output = kiln(&[], &program, &[which]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{which}: {told}");
        assert!(told.contains("kiln exec: ") && told.contains(said), "{which}: {told}");
    }
    let output = kiln(&[], &program, &[]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

#[test]
fn memory_of_a_device_that_is_not_reached_is_named() {
    let Some(program) = compiled("mistakes") else { return };
    let output = kiln(&["--devices", "2"], &program, &["peer"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{told}");
    assert!(
        told.contains("byte 0 of memory:1.1 of device 0, whose memory device 1 does not reach"),
        "{told}"
    );
}

#[test]
fn places_for_results_that_no_process_can_have_get_a_code() {
    passes("wild_results", &[], &[""]);
}

#[test]
fn kernels_are_named_as_their_authors_wrote_them() {
    let Some(program) = compiled("mangled") else { return };
    for (which, name) in [("template", "scale<float>"), ("python", "cudapy::__main__::fill")] {
        let output = kiln(&[], &program, &[which]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{which}: {told}");
        assert!(told.contains(name) && !told.contains("_Z") && !told.contains("[abi"), "{which}: {told}");
        // Programs that read the report have the name of the PTX, too.
        let output = kiln(&["--json"], &program, &[which]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let finding = &report["findings"][0];
        assert!(finding["kernel"].as_str().is_some_and(|kernel| kernel.starts_with("_Z")), "{report}");
        assert!(finding["text"].as_str().is_some_and(|text| text.contains(name)), "{report}");
    }
}

#[test]
fn mistakes_of_public_projects_are_found_and_what_they_meant_is_not() {
    let Some(program) = compiled("upstream") else { return };
    let found = [
        ("slice", "slice", "shared"),
        ("threads", "threads", "out of bounds"),
        ("local", "local_array", "local"),
        ("plane", "plane", "race"),
        ("descriptor", "descriptor", "shared"),
    ];
    for (which, kernel, said) in found {
        let output = kiln(&[], &program, &[which]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{which}: {told}");
        assert!(told.contains(kernel) && told.contains(said), "{which}: {told}");
        let output = kiln(&["--seeds", "3"], &program, &[which, "right"]);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{which}");
    }
}

#[test]
fn findings_outlive_the_process_and_seeds_are_one_report() {
    let Some(program) = compiled("mistakes") else { return };
    let output = kiln(&["--json", "--seeds", "3", "--seed", "7"], &program, &["killed"]);
    assert_eq!(output.status.code(), Some(5));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["exit_codes"], serde_json::json!([137, 137, 137]), "{report}");
    assert_eq!((&report["runs"], &report["exit_code"]), (&3.into(), &5.into()));
    let findings = report["findings"].as_array().unwrap();
    assert!(!findings.is_empty() && findings.iter().all(|finding| finding["rule"] == "Race"), "{report}");
    assert_eq!(findings[0]["seed"], 7);
}

#[test]
fn findings_that_cannot_be_written_are_told_and_count() {
    let Some(program) = compiled("mistakes") else { return };
    let text = format!("ln -s /dev/full $KILN_EXEC_FOLDER/process-$$.jsonl; exec {} race", program.display());
    let output = kiln(&[], Path::new("sh"), &["-c", &text]);
    let told = self::text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{told}");
    assert!(told.contains("kiln exec: note: findings of a process could not be written"), "{told}");
    assert!(
        told.contains("kiln: this could not be written to ") && told.contains("nothing orders"),
        "{told}"
    );
}

#[test]
fn wrong_handles_and_pointers_get_the_code_of_the_driver() {
    let Some(program) = compiled("handles") else { return };
    let output = kiln(&[], &program, &[]);
    let told = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "handles\n".into()), "{told}");
    // Code that was refused is explained.
    assert!(told.contains("machine code") && told.contains("build it with PTX"), "{told}");
}

#[test]
fn libraries_and_links_that_are_left_are_counted_once() {
    let Some(program) = compiled("leaks") else { return };
    for (which, said) in [("library", "libraries not given back"), ("link", "links not given back")] {
        let output = kiln(&["--leaks"], &program, &[which]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{which}: {told}");
        assert!(told.contains("1 finding in 1 run") && told.contains(said), "{which}: {told}");
    }
    passes("leaks", &["--leaks"], &["nothing"]);
}

#[test]
fn functions_are_there_by_their_older_names() {
    passes("older_names", &[], &["all"]);
}

#[test]
fn forks_queued_work_and_failures_are_no_crash() {
    let Some(program) = compiled("lives") else { return };
    for (which, code) in [("before", 0), ("after", 0), ("queued", 0), ("fails", 42)] {
        let output = kiln(&[], &program, &[which]);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(code), String::new()), "{which}");
    }
    // What is queued at the end of the process is run and checked.
    let output = kiln(&[], &program, &["queued wrong"]);
    let told = text(&output.stderr);
    assert!(output.status.code() == Some(5) && told.contains("out of bounds"), "{told}");
    let output = kiln(&[], &program, &["table"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("libcudart"), "{}", text(&output.stderr));
}

#[test]
fn one_library_is_loaded_under_all_its_names() {
    passes("both_libraries", &[], &["names", "driver first", "management first"]);
}

#[test]
fn the_api_answers_until_the_end_of_the_process() {
    passes("ends", &["--leaks"], &["atexit first", "atexit last", "destructor", "key", "deep"]);
}

#[test]
fn an_output_that_is_closed_changes_no_code() {
    let Some(program) = compiled("mistakes") else { return };
    let closed = |words: &str| {
        let text =
            format!("{} exec --library {} -- {words} >&-", env!("CARGO_BIN_EXE_kiln"), library().display());
        Command::new("sh").args(["-c", &text]).output().unwrap()
    };
    let output = closed("sh -c 'exit 9'");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(9), String::new()));
    let output = closed(&format!("{} race", program.display()));
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
}

#[test]
fn seeds_beyond_the_last_are_refused_before_the_first_run() {
    let output = kiln(&["--seed", "18446744073709551615", "--seeds", "2"], Path::new("echo"), &["ran"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()));
    assert!(text(&output.stderr).contains("give a smaller --seed"), "{}", text(&output.stderr));
    let output = kiln(&["--seed", "18446744073709551615"], Path::new("echo"), &["ran"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "ran\n".into()));
}

#[test]
fn a_folder_that_the_loader_would_not_read_as_one_is_refused() {
    for name in ["a:b", "a;b", "$ORIGIN"] {
        let folder = folder().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_kiln"));
        command.args(["exec", "--library"]).arg(library()).args(["--", "echo", "ran"]).env("TMPDIR", &folder);
        let output = command.output().unwrap();
        let told = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()), "{name}: {told}");
        assert!(told.contains("set TMPDIR to a folder with another name"), "{name}: {told}");
        assert!(std::fs::read_dir(&folder).unwrap().next().is_none(), "{name}");
    }
}

#[test]
fn what_cannot_be_run_is_told() {
    let output = kiln(&[], Path::new("/nonexistent/program"), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("cannot be started"), "{}", text(&output.stderr));
    let mut command = Command::new(env!("CARGO_BIN_EXE_kiln"));
    let output = command.args(["exec", "--library", "/nonexistent/lib.so", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    // Another library than kiln's, and memory that is no number.
    let wrong = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kiln"));
    let output = command.args(["exec", "--library"]).arg(wrong).args(["--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("not the library of kiln"), "{}", text(&output.stderr));
    for memory in ["much", "0", "-5", ""] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kiln"));
        command
            .args(["exec", "--library"])
            .arg(library())
            .args(["--", "true"])
            .env("KILN_EXEC_MEMORY", memory);
        let output = command.output().unwrap();
        let told = text(&output.stderr);
        assert!(output.status.code() == Some(2) && told.contains("KILN_EXEC_MEMORY"), "{memory}: {told}");
    }
    let output = kiln(&["--devices", "0"], Path::new("true"), &[]);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_signal_is_passed_on_and_the_folder_is_removed() {
    let folder = folder().join("signalled");
    std::fs::create_dir_all(&folder).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kiln"));
    command.args(["exec", "--library"]).arg(library()).args(["--seeds", "3", "--", "sleep", "60"]);
    let mut child = command.env("TMPDIR", &folder).spawn().unwrap();
    let began = std::time::Instant::now();
    let has_folder = || std::fs::read_dir(&folder).unwrap().next().is_some();
    while !has_folder() && began.elapsed().as_secs() < 20 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // Until the program was started, which nothing outside tells.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let id = i32::try_from(child.id()).unwrap();
    assert!(Command::new("kill").args(["-TERM", &id.to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    assert!(began.elapsed().as_secs() < 50, "the program was waited for");
    assert!(!has_folder(), "the folder is still there");
}
