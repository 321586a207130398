//! `kiln inspect`.

use serde_json::json;

use crate::folder::Folder;
use crate::kernels::{CUDA_C, faulty, right, tensor};
use crate::outcome::{run, without_driver};
use crate::skip;

#[test]
fn parameters_memory_and_needs_are_listed() {
    let outcome = run(without_driver(&["inspect", &right("elementwise"), "--json"]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let sheet = outcome.json();
    let saxpy = sheet["entries"].as_array().unwrap().iter().find(|entry| entry["name"] == "saxpy").unwrap();
    let columns = |name: &str| {
        saxpy["parameters"].as_array().unwrap().iter().map(|each| each[name].clone()).collect::<Vec<_>>()
    };
    assert_eq!(columns("kind"), ["value", "pointer", "pointer", "value"]);
    assert_eq!(columns("bytes"), [4, 8, 8, 4]);
    assert_eq!(columns("offset"), [0, 8, 16, 24]);
    assert_eq!(columns("access"), [json!(null), json!("reads"), json!("both"), json!(null)]);
    assert_eq!((&saxpy["shared"]["static_bytes"], &saxpy["parameter_bytes"]), (&json!(0), &json!(28)));

    let sheet = run(without_driver(&["inspect", &faulty(), "--json"])).json();
    let entry = |name: &str| {
        sheet["entries"].as_array().unwrap().iter().find(|entry| entry["name"] == name).unwrap().clone()
    };
    assert_eq!(entry("neighbour")["shared"], json!({"static_bytes": 512, "dynamic": false}));
    assert_eq!(entry("neighbour")["barriers"], json!([0]));
    assert_eq!(entry("heap")["needs"], json!(["the device heap"]));
    assert_eq!(entry("claim")["needs"], json!(["assert"]));
    let doubts = entry("call_pointer");
    assert_eq!(doubts["parameters"][1]["access"], "cannot tell");
    assert!(doubts["doubts"][0]["ptx_line"].as_u64().unwrap() > 0);
}

#[test]
fn the_text_is_a_table_per_kernel() {
    let outcome = run(without_driver(&["inspect", &right("elementwise")]));
    assert_eq!(outcome.code, Some(0));
    let text = &outcome.stdout;
    assert!(text.contains("elementwise.ptx: ") && text.contains(" kernels, PTX "), "{text}");
    let table = text.split("\nsaxpy\n").nth(1).unwrap();
    let rows: Vec<&str> = table.lines().take(5).collect();
    assert_eq!(
        rows,
        [
            "  #  name     kind     type  bytes  offset  access",
            "  0  param_0  value    f32       4       0",
            "  1  param_1  pointer  u64       8       8  reads",
            "  2  param_2  pointer  u64       8      16  both",
            "  3  param_3  value    u32       4      24",
        ]
    );
}

#[test]
fn instructions_only_a_gpu_has_are_named_with_their_line() {
    let outcome = run(without_driver(&["inspect", &tensor(), "--json"]));
    let sheet = outcome.json();
    let text = std::fs::read_to_string(tensor()).unwrap();
    let found = &sheet["entries"][0]["unsupported"][0];
    let line = text.lines().nth(found["ptx_line"].as_u64().unwrap() as usize - 1).unwrap();
    assert!(line.contains(found["instruction"].as_str().unwrap()), "{found} is not in {line}");
    assert_eq!(found["family"], "tensor core");
    let shown = run(without_driver(&["inspect", &tensor()])).stdout;
    assert!(shown.contains("only on a GPU") && shown.contains("(tensor core)"), "{shown}");
}

/// A kernel of C++ with a barrier that no block has, and one that is right.
const MANGLED: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry _Z4waitPKfPfj(.param .u64 _Z4waitPKfPfj_param_0, .param .u64 _Z4waitPKfPfj_param_1, .param .u32 _Z4waitPKfPfj_param_2) {
    .reg .b64 %d<3>; .reg .f32 %f1;
    ld.param.u64 %d1, [_Z4waitPKfPfj_param_0];
    ld.param.u64 %d2, [_Z4waitPKfPfj_param_1];
    ld.global.f32 %f1, [%d1];
    bar.sync 16;
    st.global.f32 [%d2], %f1;
    ret;
}
.visible .entry _Z4goodv() {
    bar.sync 0;
    ret;
}
";

#[test]
fn a_kernel_of_cpp_is_shown_with_the_names_and_types_of_its_source() {
    let folder = Folder::new();
    let file = folder.write("wait.ptx", MANGLED);
    let shown = run(without_driver(&["inspect", &file])).stdout;
    let (_, table) = shown.split_once("wait, in PTX _Z4waitPKfPfj\n").unwrap_or_else(|| panic!("{shown}"));
    let rows: Vec<&str> = table.lines().take(4).collect();
    assert_eq!(
        rows,
        [
            "  #  name     kind     type          bytes  offset  access",
            "  0  param_0  pointer  float const*      8       0  reads",
            "  1  param_1  pointer  float*            8       8  writes",
            "  2  param_2  value    unsigned int      4      16",
        ]
    );
    let json = run(without_driver(&["inspect", &file, "--json"])).json();
    let first = &json["entries"][0]["parameters"][0];
    assert_eq!((&first["name"], &first["type"]), (&json!("_Z4waitPKfPfj_param_0"), &json!("u64")));
    assert_eq!(first["cpp_type"], "float const*");
}

#[test]
fn a_kernel_that_no_device_loads_is_told_with_the_reason() {
    let folder = Folder::new();
    let file = folder.write("wait.ptx", MANGLED);
    let outcome = run(without_driver(&["inspect", &file]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let shown = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("refused `bar.sync` at PTX line 10 uses barrier 16"), "{shown}");
    assert!(!shown.contains("any of the 16 barriers"), "{shown}");
    assert!(
        shown.contains("synchronises with __syncthreads()") || shown.matches("synchronises").count() == 1
    );
    let json = run(without_driver(&["inspect", &file, "--json"])).json();
    assert!(json["entries"][0]["refused"].as_str().unwrap().contains("uses barrier 16"), "{json}");
    assert_eq!((&json["entries"][0]["barriers"], &json["entries"][1]["refused"]), (&json!([]), &json!(null)));
    assert_eq!(json["entries"][1]["barriers"], json!([0]));
}

#[test]
fn files_that_are_none_end_with_2_and_code_that_is_none_with_4() {
    let folder = Folder::new();
    let bad = folder.write("bad.ptx", ".version 8.0\n.target sm_80\nnonsense");
    let outcome = run(without_driver(&["inspect", &bad]));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(4), ""));
    assert!(outcome.stderr.contains("bad.ptx") && outcome.stderr.contains("3:"), "{}", outcome.stderr);
    for file in ["/nonexistent/k.ptx", "kernels.txt", "kernels"] {
        assert_eq!(run(without_driver(&["inspect", file])).code, Some(2), "{file}");
    }
}

#[test]
fn cuda_c_is_inspected_by_its_own_names() {
    if skip::without_nvrtc("cuda_c_is_inspected_by_its_own_names") {
        return;
    }
    let folder = Folder::new();
    folder.write("factor.h", "#define FACTOR 2.0f\n");
    let file = folder.write("kernels.cu", CUDA_C);
    let mut command = without_driver(&["inspect", &file, "--json"]);
    command.env("XDG_CACHE_HOME", folder.path("cache"));
    let outcome = run(command);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let sheet = outcome.json();
    let functions: Vec<_> =
        sheet["entries"].as_array().unwrap().iter().filter_map(|entry| entry["function"].as_str()).collect();
    for name in ["saxpy", "lib::twice", "same"] {
        assert!(functions.contains(&name), "{name} is not in {functions:?}");
    }
}
