//! What a report of `kiln check` says besides its findings.

use serde_json::json;

use crate::folder::Folder;
use crate::outcome::{Outcome, run, without_driver};
use crate::skip;

fn check(words: &[&str]) -> Outcome {
    run(without_driver(&[&["check"], words].concat()))
}

#[test]
fn an_instruction_that_only_a_gpu_executes_is_refused_and_is_no_finding() {
    const PTX: &str = "
        .version 8.0
        .target sm_90a
        .address_size 64
        .visible .entry wait(.param .u64 out) {
            .reg .b32 %r<2>; .reg .b64 %rd<2>;
            ld.param.u64 %rd0, [out];
            mov.u32 %r0, 1;
            st.global.u32 [%rd0], %r0;
            tcgen05.wait::ld.sync.aligned;
            ret;
        }";
    let folder = Folder::new();
    let (file, out) = (folder.write("wait.ptx", PTX), format!("out:u32:1:{}", folder.path("o.npy")));
    let words = [&file, "--grid", "1", "--block", "1", "--arg", &out];
    let outcome = check(&words);
    assert_eq!(outcome.code, Some(3), "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stdout.contains("\nrefused: the instruction `tcgen05.wait"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("\n     wait at PTX line "), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains("1. ") && !outcome.stdout.contains("1 finding"), "{}", outcome.stdout);
    assert!(
        outcome.stdout.ends_with("\nrefused; no findings in what was executed before\n"),
        "{}",
        outcome.stdout
    );
    let help = run(without_driver(&["check", "--help"]));
    assert!(
        help.stdout.replace('\n', " ").contains("3 refused (arguments that do not fit, or an instruction"),
        "{}",
        help.stdout
    );
    let launched = run(without_driver(&[&["run"], &words[..]].concat()));
    assert_eq!(launched.code, Some(3), "{}{}", launched.stdout, launched.stderr);
}

#[test]
fn a_kernel_without_its_dynamic_shared_memory_is_told_the_flag() {
    const PTX: &str = "
        .version 8.0
        .target sm_80
        .address_size 64
        .extern .shared .align 4 .b8 tile[];
        .visible .entry keep(.param .u64 out) {
            .reg .b32 %r<4>; .reg .b64 %rd<4>;
            ld.param.u64 %rd0, [out];
            mov.u32 %r0, %tid.x;
            shl.b32 %r1, %r0, 2;
            mov.u32 %r2, tile;
            add.u32 %r2, %r2, %r1;
            st.shared.u32 [%r2], %r0;
            ld.shared.u32 %r3, [%r2];
            mul.wide.u32 %rd1, %r0, 4;
            add.s64 %rd2, %rd0, %rd1;
            st.global.u32 [%rd2], %r3;
            ret;
        }";
    let folder = Folder::new();
    let (file, out) = (folder.write("keep.ptx", PTX), format!("out:u32:32:{}", folder.path("o.npy")));
    let words = [&file, "--grid", "1", "--block", "32", "--arg", &out];
    let none = check(&words);
    assert_eq!(none.code, Some(5), "{}{}", none.stdout, none.stderr);
    for part in ["the launch has none: give --shared BYTES", "`.shared(bytes)`"] {
        assert!(none.stdout.contains(part), "{}", none.stdout);
    }
    let few = check(&[&words[..], &["--shared", "64"]].concat());
    assert!(few.stdout.contains("the launch has 64 bytes: give --shared BYTES"), "{}", few.stdout);
    let enough = check(&[&words[..], &["--shared", "128"]].concat());
    assert_eq!(enough.code, Some(0), "{}", enough.stdout);
}

/// Reads an argument that no code writes.
const READER: &str = "
    .version 8.0
    .target sm_80
    .address_size 64
    .visible .entry first(.param .u64 x, .param .u64 out) {
        .reg .b32 %r<2>; .reg .b64 %rd<2>;
        ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [out];
        ld.global.u32 %r0, [%rd0];
        st.global.u32 [%rd1], %r0;
        ret;
    }";

#[test]
fn an_array_that_is_only_read_may_be_zeros_or_memory_that_was_never_written() {
    let folder = Folder::new();
    let kernel = folder.write("first.ptx", READER);
    let program =
        folder.write("first.kir", "kernel first(in x: u32[], out y: u32[1]) block(1) { y[0] = x[0]; }");
    let out = format!("out:u32:1:{}", folder.path("o.npy"));
    for (file, shape) in [(&kernel, &["--grid", "1", "--block", "1"][..]), (&program, &["--grid", "1"])] {
        for (start, code) in [("zeros", 0), ("uninit", 5), ("out", 3)] {
            let x = format!("{start}:u32:4:{}", folder.path("x.npy"));
            let outcome = check(&[&[file.as_str(), "--arg", &x, "--arg", &out], shape].concat());
            assert_eq!(outcome.code, Some(code), "{file} {start}: {}{}", outcome.stdout, outcome.stderr);
            match start {
                "uninit" => assert!(outcome.stdout.contains("never written"), "{}", outcome.stdout),
                "out" => assert!(outcome.stderr.contains("in:, zeros: or uninit:"), "{}", outcome.stderr),
                _ => {}
            }
        }
    }
}

fn shifted(folder: &Folder, index: &str, more: &[&str]) -> Outcome {
    let text = format!(
        "kernel shift(in x: f32[], out y: f32[like x]) block(64) over(y) {{\n    y[global.x] = x[{index}];\n}}\n"
    );
    let file = folder.write("shift.kir", text);
    let x = format!("in:{}", folder.floats("x.npy", &[1.0; 100]));
    let y = format!("out:f32:100:{}", folder.path("y.npy"));
    check(&[&[file.as_str(), "--arg", &x, "--arg", &y], more].concat())
}

#[test]
fn indices_of_a_program_that_are_out_of_range_are_noted() {
    let folder = Folder::new();
    let right = shifted(&folder, "global.x", &["--json", "--strict"]);
    assert_eq!((right.code, &right.json()["notes"]), (Some(0), &json!([])), "{}", right.stdout);
    let wrong = shifted(&folder, "global.x + 1", &[]);
    assert_eq!(wrong.code, Some(0), "{}{}", wrong.stdout, wrong.stderr);
    assert!(wrong.stdout.contains("\nnote: 1 load was out of range: loads gave 0"), "{}", wrong.stdout);
    assert_eq!(shifted(&folder, "global.x + 1", &["--strict"]).code, Some(5));
    let many = shifted(&folder, "global.x + 3", &[]).stdout;
    assert!(many.contains("note: 3 loads were out of range"), "{many}");
    // The interpreter takes more steps than a warp of the simulated device.
    let limited = shifted(&folder, "global.x + 1", &["--step-limit", "100"]).stdout;
    assert!(!limited.contains("note: ") && limited.contains("  - indices out of range"), "{limited}");
}

#[test]
fn lines_that_were_not_executed_are_lines_of_the_source() {
    let folder = Folder::new();
    let text = "kernel guard(in x: u32[], out y: u32[like x], n: u32) block(32) over(y) {
    if n > 5u32 {
        trap(3u32);
    }
    y[global.x] = x[global.x];
}
";
    let file = folder.write("guard.kir", text);
    let x = format!("in:{}", folder.array("x.npy", "<u4", 32, &[0; 128]));
    let y = format!("out:u32:32:{}", folder.path("y.npy"));
    let outcome = check(&[&file, "--arg", &x, "--arg", &y, "--arg", "u32:0", "--json"]);
    let unchecked = &outcome.json()["not_checked"];
    let missed = unchecked["lines_not_executed"].as_array().unwrap();
    let [only] = &missed[..] else { panic!("{unchecked:#}") };
    assert_eq!((&only["first"], &only["last"]), (&json!(3), &json!(3)), "{unchecked:#}");
    assert_eq!(unchecked["lines"], 3, "lines 2, 3 and 5 have instructions: {unchecked:#}");
}

#[test]
fn a_header_that_is_missing_is_answered_with_the_flag() {
    if skip::without_nvrtc("a_header_that_is_missing_is_answered_with_the_flag") {
        return;
    }
    let folder = Folder::new();
    let file = folder.write("k.cu", "#include \"own.h\"\n__global__ void k() {}\n");
    let outcome = check(&[&file, "--grid", "1", "--block", "1"]);
    assert_eq!(outcome.code, Some(4), "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stderr.contains("-I FOLDER"), "{}", outcome.stderr);
}

#[test]
fn code_for_the_host_is_answered_with_where_to_put_it() {
    if skip::without_nvrtc("code_for_the_host_is_answered_with_where_to_put_it") {
        return;
    }
    let folder = Folder::new();
    for (begin, end, said) in [
        ("#include <iostream>", "", "this header is for code of the host"),
        ("#include <vector>", "", "this header is for code of the host"),
        ("", "int main() { return 0; }", "put main() and other host code"),
    ] {
        let kernel = "__global__ void k(int n) { assert(n == 0); if (n) printf(\"%d\", n); }";
        let file = folder.write("k.cu", format!("{begin}\n{kernel}\n{end}\n"));
        let words = [&file, "--grid", "1", "--block", "1", "--arg", "i32:0"];
        let outcome = check(&words);
        let text = outcome.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(outcome.code, Some(4), "{}{text}", outcome.stdout);
        assert!(text.contains(said) && text.contains("`#ifndef __CUDACC_RTC__`"), "{text}");
        assert!(!text.contains("include folder"), "{text}");
        let guarded = |part: &str| format!("#ifndef __CUDACC_RTC__\n{part}\n#endif");
        folder.write("k.cu", format!("{}\n{kernel}\n{}\n", guarded(begin), guarded(end)));
        let outcome = check(&words);
        assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    }
}

#[test]
fn a_source_that_was_compiled_in_another_folder_is_named_where_it_is() {
    if skip::without_nvrtc("a_source_that_was_compiled_in_another_folder_is_named_where_it_is") {
        return;
    }
    let cache = Folder::new();
    for _ in 0..2 {
        let folder = Folder::new();
        folder.write("k.cu", "__global__ void k(int* out) {\n    out[threadIdx.x] = 1;\n}\n");
        let words = ["check", "k.cu", "--grid", "1", "--block", "33", "--arg", "out:i32:32:o.npy"];
        let mut command = without_driver(&words);
        command.current_dir(folder.path("")).env("XDG_CACHE_HOME", cache.path(""));
        let outcome = run(command);
        assert_eq!(outcome.code, Some(5), "{}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.stdout.contains("\n     k at k.cu:2 (PTX line "), "{}", outcome.stdout);
    }
}
