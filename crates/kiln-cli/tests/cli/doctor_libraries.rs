//! `kiln doctor` beside libraries that crash, hang or end the process when they are loaded.

use serde_json::Value;

use crate::folder::Folder;
use crate::machine::Machine;
use crate::outcome::{command, run, without_driver};

/// The check of that name.
fn check<'a>(json: &'a Value, name: &str) -> &'a Value {
    let checks = json["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no check {name} in {json}"))
}

/// A shared library of this text in C.
fn library(folder: &Folder, name: &str, text: &str) -> String {
    let (source, file) = (folder.write(&format!("{name}.c"), text), folder.path(&format!("{name}.so")));
    let mut compiler = std::process::Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o", &file, &source]);
    assert!(compiler.status().unwrap().success());
    file
}

/// Writes to address 0 when it is loaded.
const CRASHES: &str = "__attribute__((constructor)) static void start(void) { *(volatile int *)0 = 1; }";

/// NCCL 2.18.0, with something that happens when it is loaded or unloaded.
fn nccl(more: &str) -> String {
    let calls =
        "int ncclGetVersion(int *v) { *v = 21800; return 0; } int ncclGetUniqueId(void) { return 0; }";
    format!("#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n{calls}\n{more}")
}

fn at_start(text: &str) -> String {
    nccl(&format!("__attribute__((constructor)) static void start(void) {{ {text} }}"))
}

#[test]
fn a_library_that_ends_its_process_is_told_and_the_rest_is_examined() {
    let folder = Folder::new();
    let at_end = nccl("__attribute__((destructor)) static void end(void) { *(volatile int *)0 = 1; }");
    for (name, text, why) in [
        ("crash", CRASHES.to_owned(), "signal 11 (SIGSEGV)"),
        ("abort", at_start("abort();"), "signal 6 (SIGABRT)"),
        ("exit", at_start("exit(7);"), "exit status 7"),
        ("done", at_start("exit(0);"), "exit status 0"),
        ("end", at_end, "signal 11 (SIGSEGV)"),
    ] {
        let file = library(&folder, name, &text);
        let doctor = |words: &[&str]| {
            let mut doctor = without_driver(words);
            doctor.env("KILN_NCCL", &file).current_dir(folder.path(""));
            run(doctor)
        };
        let outcome = doctor(&["doctor", "--json"]);
        assert_eq!(outcome.code, Some(0), "{name}: {}", outcome.stderr);
        let json = outcome.json();
        let found = check(&json, "NCCL");
        assert_eq!(found["status"], "missing", "{name}: {found}");
        let wanted = format!("KILN_NCCL names {file}: loading it ended its process with {why}");
        assert_eq!(found["detail"], wanted.as_str());
        let next = found["next_step"].as_str().unwrap();
        assert!(next.starts_with("correct or unset KILN_NCCL, or install"), "{next}");
        assert_eq!(check(&json, "simulated device")["status"], "ok", "{name}");
        assert!(json["summary"].as_str().unwrap().starts_with("Yes"), "{json}");
        let text = doctor(&["doctor"]);
        assert!(text.stdout.contains(&wanted), "{name}: {}", text.stdout);
    }
    let left: Vec<_> =
        std::fs::read_dir(folder.path("")).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("core")), "{left:?}");
}

#[test]
fn a_library_that_never_finishes_loading_is_told() {
    let folder = Folder::new();
    let file = library(&folder, "hang", &at_start("for (;;) pause();"));
    let mut doctor = without_driver(&["doctor", "--json"]);
    doctor.env("KILN_NCCL", &file);
    let outcome = run(doctor);
    assert_eq!(outcome.code, Some(0));
    let json = outcome.json();
    let found = check(&json, "NCCL");
    assert_eq!(found["status"], "missing", "{found}");
    let wanted = format!("KILN_NCCL names {file}: loading it did not end within 10 s");
    assert_eq!(found["detail"], wanted.as_str());
    assert!(found["next_step"].as_str().unwrap().contains("pip install nvidia-nccl"), "{found}");
}

/// What a library prints is not in the output of the command, and its version is.
#[test]
fn a_library_that_prints_and_works_is_found() {
    let folder = Folder::new();
    for (name, text) in [
        ("line", "puts(\"hello\"); fflush(stdout);"),
        ("part", "printf(\"{\"); fflush(stdout);"),
        ("much", "for (int i = 0; i < 50000; i++) puts(\"hello\"); fflush(stdout);"),
    ] {
        let file = library(&folder, name, &at_start(text));
        let mut doctor = without_driver(&["doctor", "--json"]);
        doctor.env("KILN_NCCL", &file);
        let json = run(doctor).json();
        let found = check(&json, "NCCL");
        assert_eq!(found["status"], "ok", "{name}: {found}");
        assert_eq!(found["detail"], format!("2.18.0 at {file} (configured)").as_str());
    }
}

#[test]
fn the_command_that_loads_a_library_is_not_shown_to_users() {
    let help = run(command(&["--help"])).stdout;
    assert!(help.contains("doctor") && !help.contains("load-library"), "{help}");
    let wrong = run(command(&["load-library", "cuNothing", "/nonexistent"]));
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
}

on_machine! {
    fn a_library_that_crashes_does_not_hide_the_gpu() on Machine::fake().with_library("KILN_CUBLAS", CRASHES) => {
        let outcome = run(command(&["doctor", "--json", "--policy", "required"]));
        assert_eq!(outcome.code, Some(0), "{}", outcome.stdout);
        let json = outcome.json();
        let cublas = check(&json, "cuBLAS");
        assert_eq!(cublas["status"], "missing", "{cublas}");
        assert!(cublas["detail"].as_str().unwrap().ends_with("loading it ended its process with signal 11 (SIGSEGV)"), "{cublas}");
        assert_eq!(check(&json, "context on device 0")["status"], "ok");
    }
}

/// A cuBLAS whose handle is made by other code.
macro_rules! cublas_with {
    ($create:literal) => {
        concat!(
            "#define cublasCreate_v2 replaced_create\n",
            include_str!("../../../kiln-cuda/tests/on_fake/libcublas/cublas.c"),
            "\n#undef cublasCreate_v2\nint cublasCreate_v2(void **handle) { *handle = malloc(1); ",
            $create,
            " return 0; }"
        )
    };
}

/// The check of cuBLAS, beside a GPU and other libraries that work.
fn first_use_of_cublas() -> Value {
    let outcome = run(command(&["doctor", "--json", "--policy", "required"]));
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    let json = outcome.json();
    assert_eq!(check(&json, "context on device 0")["status"], "ok");
    // What comes after the libraries is examined, too.
    check(&json, "isolation: device 0");
    assert!(json["summary"].as_str().unwrap().starts_with("Yes: kernels run on"), "{json}");
    check(&json, "cuBLAS").clone()
}

#[track_caller]
fn told_as_missing(found: &Value, wanted: &str) {
    assert_eq!(found["status"], "missing", "{found}");
    assert!(found["detail"].as_str().unwrap().ends_with(wanted), "{found}");
    let next = found["next_step"].as_str().unwrap();
    assert!(next.contains("nvidia-cublas"), "{next}");
}

on_machine! {
    fn a_library_that_crashes_in_its_first_use_is_told()
        on Machine::fake().with_library("KILN_CUBLAS", cublas_with!("*(volatile int *)0 = 1;")) =>
    {
        told_as_missing(&first_use_of_cublas(), "KILN_CUBLAS.so: its first use ended its process with signal 11 (SIGSEGV)");
    }

    fn a_library_that_exits_in_its_first_use_is_told()
        on Machine::fake().with_library("KILN_CUBLAS", cublas_with!("exit(0);")) =>
    {
        told_as_missing(&first_use_of_cublas(), "its first use ended its process with exit status 0");
    }

    fn a_library_that_never_returns_from_its_first_use_is_told()
        on Machine::fake().with_library("KILN_CUBLAS", cublas_with!("for (;;) pause();")) =>
    {
        told_as_missing(&first_use_of_cublas(), "its first use did not end within 20 s");
    }

    fn a_library_that_prints_in_its_first_use_is_measured()
        on Machine::fake().with_library("KILN_CUBLAS", cublas_with!("for (int i = 0; i < 50000; i++) puts(\"{\"); fflush(stdout);")) =>
    {
        let found = first_use_of_cublas();
        assert_eq!(found["status"], "ok", "{found}");
        assert!(found["detail"].as_str().unwrap().contains("the first use takes"), "{found}");
    }
}
