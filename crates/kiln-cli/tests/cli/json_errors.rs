//! Errors under `--json`: JSON on the standard output, with the same exit code.

use serde_json::{Value, json};

use crate::folder::Folder;
use crate::kernels::{faulty, right};
use crate::outcome::{run, without_driver};

/// Runs a command that fails, with and without `--json`, and returns the error as JSON.
fn error(words: &[&str], code: i32) -> Value {
    let text = run(without_driver(words));
    assert_eq!((text.code, text.stdout.as_str()), (Some(code), ""), "{words:?}: {}", text.stderr);
    assert!(!text.stderr.is_empty(), "{words:?}");
    let outcome = run(without_driver(&[words, &["--json"]].concat()));
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(code), ""), "{words:?}: {}", outcome.stdout);
    let json = outcome.json();
    assert_eq!(json["exit"], code);
    let error = json["error"].clone();
    assert!(!error["message"].as_str().unwrap().is_empty(), "{words:?}: {error}");
    for field in ["kind", "place", "next_step"] {
        assert!(error.get(field).is_some(), "{words:?}: no {field} in {error}");
    }
    error
}

#[test]
fn every_command_reports_its_errors_as_json() {
    let folder = Folder::new();
    let not_a_folder = folder.write("file", "");
    let log = folder.write("log.csv", "Thread,Time,Action,Pointer,Size,Stream\n1,t,free,0x1,1,0x0\n");
    let saxpy = right("elementwise");
    let mut shape = vec!["--kernel", "fill", "--grid", "1", "--block", "32"];
    let kernels = faulty();
    for (words, code, kind) in [
        (&["inspect", "/nonexistent/k.ptx"][..], 2, "file"),
        (&["inspect", &saxpy, "--kernel", "saxpi"], 3, "refused"),
        (&["run", &saxpy], 2, "usage"),
        (&["run", &saxpy, "--kernel", "saxpy", "--grid", "1", "--block", "1"], 3, "refused"),
        (&["check", &saxpy, "--kernel", "saxpi", "--grid", "1", "--block", "1"], 3, "refused"),
        (&["check", &saxpy, "--device", "cuda"], 3, "refused"),
        (&["demo", "--device", "cuda"], 3, "absent"),
        (&["demo", "--device", "cuda", "--isolate"], 3, "absent"),
        (&["cache", "list", "--at", &not_a_folder], 2, "file"),
        (&["replay", &log], 2, "file"),
        (&["replay", &log, "--partial", "--device", "cuda"], 3, "absent"),
        (&["bench", "m1", "--device", "cuda"], 3, "absent"),
        // What clap refuses.
        (&["doctor", "--policy", "maybe"], 2, "usage"),
        (&["run"], 2, "usage"),
        (&["check", &saxpy, "--arg", "nonsense"], 2, "usage"),
        (&["bench", "m9"], 2, "usage"),
        (&["cache", "prune", "--limit", "lots"], 2, "usage"),
        (&["nonsense"], 2, "usage"),
    ] {
        assert_eq!(error(words, code)["kind"], kind, "{words:?}");
    }
    shape.extend(["--arg", "i32:1", "--arg", "i32:1", "--arg", "i32:1"]);
    let pointer = error(&[&["run", &kernels], &shape[..]].concat(), 3);
    assert!(pointer["message"].as_str().unwrap().contains("argument 0"), "{pointer}");
    assert!(
        pointer["next_step"].as_str().unwrap().contains("in:, inout:, out:, zeros:, uninit: or scratch:"),
        "{pointer}"
    );
    let absent = error(&["demo", "--device", "cuda"], 3);
    assert!(absent["next_step"].as_str().unwrap().contains("correct or unset KILN_LIBCUDA"), "{absent}");
}

#[test]
fn an_environment_that_means_nothing_is_reported_too() {
    for words in [&["doctor", "--json"][..], &["demo", "--json"]] {
        let mut wrong = without_driver(words);
        wrong.env("KILN_POLICY", "nonsense");
        let outcome = run(wrong);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(2), ""), "{words:?}");
        assert_eq!(outcome.json()["error"]["kind"], "usage");
    }
}

#[test]
fn code_that_does_not_compile_has_its_place() {
    let folder = Folder::new();
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n    madx.lo.u32 %r1;\n    ret;\n}\n";
    let ptx = folder.write("bad.ptx", text);
    for words in [&["inspect", &ptx][..], &["run", &ptx, "--grid", "1", "--block", "1"]] {
        let error = error(words, 4);
        assert_eq!(error["kind"], "compile");
        assert_eq!(error["place"], json!({"file": ptx, "line": 5, "column": 5}));
        let message = error["message"].as_str().unwrap();
        assert_eq!(message, "unknown instruction `madx.lo.u32`; did you mean `mad.lo.u32`?");
    }
    let kir = folder.write("bad.kir", "kernel k(in x: f32[]) block(32) {\n    let i = ;\n}\n");
    assert_eq!(error(&["inspect", &kir], 4)["place"]["line"], 2);
}

#[test]
fn cuda_c_that_does_not_compile_has_its_place() {
    if crate::skip::without_nvrtc("cuda_c_that_does_not_compile_has_its_place") {
        return;
    }
    let folder = Folder::new();
    let file = folder.write("bad.cu", "__global__ void k() {\n    int x = y;\n}\n");
    let mut command = without_driver(&["inspect", &file, "--json"]);
    command.env("XDG_CACHE_HOME", folder.path("cache"));
    let outcome = run(command);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(4), ""), "{}", outcome.stdout);
    let error = &outcome.json()["error"];
    assert_eq!((&error["kind"], &error["place"]["line"]), (&json!("compile"), &json!(2)), "{error}");
    assert!(error["place"]["file"].as_str().unwrap().ends_with("bad.cu"), "{error}");
}

#[test]
fn help_under_json_is_still_help() {
    let outcome = run(without_driver(&["run", "--json", "--help"]));
    assert_eq!(outcome.code, Some(0));
    assert!(outcome.stdout.contains("Usage: kiln run"), "{}", outcome.stdout);
}
