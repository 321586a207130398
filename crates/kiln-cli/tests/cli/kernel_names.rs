//! Which kernel of a file is meant.

use crate::folder::Folder;
use crate::kernels::{CUDA_C, STORE_BYTE, right};
use crate::outcome::{Outcome, run, without_driver};
use crate::skip;

/// `kiln run` and `kiln check` on one block of a few threads.
fn both(file: &str, words: &[&str]) -> [Outcome; 2] {
    ["run", "check"].map(|command| {
        let shape = [command, file, "--grid", "1", "--block", "4", "--device", "sim"];
        run(without_driver(&[&shape[..], words].concat()))
    })
}

#[test]
fn a_file_with_one_kernel_needs_no_name() {
    let folder = Folder::new();
    let file = folder.write("store.ptx", STORE_BYTE);
    let out = format!("zeros:u8:8:{}", folder.path("o.npy"));
    for outcome in both(&file, &["--arg", &out, "--arg", "i32:3"]) {
        assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    }
    assert_eq!(folder.read("o.npy").1, [0, 0, 0, 7, 0, 0, 0, 0]);
}

#[test]
fn a_file_with_several_kernels_lists_them() {
    for outcome in both(&right("elementwise"), &[]) {
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""));
        assert!(outcome.stderr.contains("choose one with --kernel NAME: "), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("saxpy"), "{}", outcome.stderr);
    }
}

#[test]
fn a_misspelt_name_is_answered_with_the_nearest() {
    for outcome in both(&right("elementwise"), &["--kernel", "saxpi"]) {
        assert_eq!(outcome.code, Some(3));
        assert!(outcome.stderr.contains("no kernel `saxpi`"), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("did you mean saxpy?"), "{}", outcome.stderr);
    }
    let inspected = run(without_driver(&["inspect", &right("elementwise"), "--kernel", "sayxp"]));
    assert_eq!(inspected.code, Some(3));
    assert!(inspected.stderr.contains("did you mean saxpy?"), "{}", inspected.stderr);
    let far = run(without_driver(&["inspect", &right("elementwise"), "--kernel", "completely_different"]));
    assert!(far.stderr.contains("; it has saxpy") || far.stderr.contains(", saxpy"), "{}", far.stderr);
}

#[test]
fn one_kernel_of_a_file_is_inspected() {
    let outcome = run(without_driver(&["inspect", &right("elementwise"), "--kernel", "saxpy", "--json"]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let entries = outcome.json()["entries"].clone();
    assert_eq!(entries.as_array().unwrap().len(), 1);
    assert_eq!(entries[0]["name"], "saxpy");
    assert_eq!(entries[0]["parameters"][1]["elements"], serde_json::json!(["f32"]));
}

#[test]
fn a_file_without_kernels_says_what_kernels_are() {
    let folder = Folder::new();
    let file = folder.write("none.ptx", ".version 8.0\n.target sm_80\n.address_size 64\n");
    for outcome in both(&file, &[]) {
        assert_eq!(outcome.code, Some(3));
        assert!(
            outcome.stderr.contains("has no kernels") && outcome.stderr.contains(".entry"),
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn templates_are_suggested_with_arguments() {
    if skip::without_nvrtc("templates_are_suggested_with_arguments") {
        return;
    }
    let folder = Folder::new();
    folder.write("factor.h", "#define FACTOR 2.0f\n");
    let all = folder.write("kernels.cu", CUDA_C);
    let only =
        folder.write("fill.cu", "template <typename T, int N> __global__ void fill(T* y) { y[N] = T(1); }");
    let cached = |words: &[&str]| {
        let mut command = without_driver(words);
        command.env("XDG_CACHE_HOME", folder.path("cache"));
        run(command)
    };
    let shape = ["--grid", "1", "--block", "4", "--device", "sim"];
    for (file, words, told) in [
        (&all, &["--kernel", "fill"][..], "write --kernel 'fill<float>'"),
        (&all, &["--kernel", "fil"], "did you mean 'fill<float>'"),
        (
            &only,
            &[],
            "has no kernels but templates: fill<typename T, int N>; choose arguments, such as --kernel 'fill<float, 256>'",
        ),
    ] {
        let outcome = cached(&[&["run", file], &shape[..], words].concat());
        assert_eq!(outcome.code, Some(3), "{words:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(told), "{told} is not in {}", outcome.stderr);
    }
    let listed = cached(&["inspect", &only]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    assert!(listed.stdout.contains("template fill<typename T, int N>"), "{}", listed.stdout);
    assert!(listed.stdout.contains("--kernel 'fill<float, 256>'"), "{}", listed.stdout);
    let instance = cached(&["inspect", &only, "--kernel", "fill<double, 3>", "--json"]);
    assert_eq!(instance.code, Some(0), "{}", instance.stderr);
    assert_eq!(instance.json()["entries"][0]["function"], "fill<double, 3>");
    let out = format!("out:f64:8:{}", folder.path("o.npy"));
    let ran = cached(&[&["run", &only, "--kernel", "fill<double, 3>", "--arg", &out], &shape[..]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

const PRODUCT: &str = r#"
extern "C" __global__ void k(unsigned* out) {
    asm volatile("wgmma.fence.sync.aligned;\n wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;" ::: "memory");
    out[threadIdx.x] = __CUDA_ARCH__;
}
"#;

#[test]
fn cuda_c_is_compiled_for_the_architecture_that_is_named() {
    if skip::without_nvrtc("cuda_c_is_compiled_for_the_architecture_that_is_named") {
        return;
    }
    let folder = Folder::new();
    let file = folder.write("product.cu", PRODUCT);
    let launch = |words: &[&str]| {
        ["run", "check"].map(|command| {
            let shape = [
                command,
                &file,
                "--grid",
                "1",
                "--block",
                "128",
                "--device",
                "sim",
                "--arg",
                "zeros:u32:128",
            ];
            run(without_driver(&[&shape[..], words].concat()))
        })
    };
    // A command that runs refuses the launch, one that checks has a finding.
    for (outcome, code) in launch(&[]).into_iter().zip([3, 5]) {
        assert_eq!(outcome.code, Some(code), "{}{}", outcome.stdout, outcome.stderr);
    }
    for name in ["sm_90a", "compute_90a"] {
        for outcome in launch(&["--arch", name]) {
            assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
        }
        let inspected = run(without_driver(&["inspect", &file, "--arch", name, "--json"]));
        assert_eq!(inspected.code, Some(0), "{}", inspected.stderr);
        assert!(inspected.stdout.contains("sm_90a"), "{}", inspected.stdout);
    }
    for outcome in launch(&["--arch", "sm_999"]) {
        assert_ne!(outcome.code, Some(0));
        assert!(
            outcome.stderr.contains("does not compile for architecture 999; it knows 75"),
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn an_architecture_is_for_cuda_c_alone() {
    let folder = Folder::new();
    let file = folder.write("store.ptx", STORE_BYTE);
    for outcome in both(&file, &["--arch", "sm_90a"]) {
        assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("--arch sm_90a is for CUDA C"), "{}", outcome.stderr);
    }
    for outcome in both(&file, &["--arch", "hopper"]) {
        assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("sm_90, sm_90a or compute_100f"), "{}", outcome.stderr);
    }
}
