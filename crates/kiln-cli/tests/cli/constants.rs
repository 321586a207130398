//! `--const`: what variables of a module hold at the launch.

use serde_json::json;

use crate::folder::Folder;
use crate::outcome::{Outcome, run, without_driver};
use crate::skip;

/// `out[i] = factor * weights[i] + shift.add * shift.count`, with variables as compilers write them.
const FILTER: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .const .align 4 .f32 factor = 0f3F800000;
.visible .const .align 4 .b8 weights[16];
.visible .const .align 4 .b8 _ZN3lib5shiftE[8];
.visible .global .align 4 .u32 calls;
.visible .entry filter(.param .u64 out)
{
    .reg .b32 %r<4>; .reg .f32 %f<6>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    mov.u64 %rd3, weights;
    add.s64 %rd3, %rd3, %rd2;
    ld.const.f32 %f1, [%rd3];
    ld.const.f32 %f2, [factor];
    ld.const.f32 %f3, [_ZN3lib5shiftE];
    ld.const.u32 %r2, [_ZN3lib5shiftE+4];
    ld.global.u32 %r3, [calls];
    add.u32 %r2, %r2, %r3;
    cvt.rn.f32.u32 %f4, %r2;
    mul.f32 %f5, %f3, %f4;
    fma.rn.f32 %f5, %f1, %f2, %f5;
    add.s64 %rd4, %rd1, %rd2;
    st.global.f32 [%rd4], %f5;
    ret;
}
";

fn launch(folder: &Folder, command: &str, constants: &[&str]) -> Outcome {
    let file = folder.write("filter.ptx", FILTER);
    let out = format!("out:f32:4:{}", folder.path("o.npy"));
    let mut words = vec![command, &file, "--grid", "1", "--block", "4", "--device", "sim", "--arg", &out];
    words.extend(constants.iter().flat_map(|constant| ["--const", *constant]));
    words.push("--json");
    run(without_driver(&words))
}

#[test]
fn variables_hold_what_the_command_says() {
    let folder = Folder::new();
    let weights = format!("weights=in:{}", folder.floats("w.npy", &[1.0, 2.0, 3.0, 4.0]));
    let all = ["factor=f32:2.5", &weights, "lib::shift=struct:{f32:0.5,u32:2}", "calls=u32:4"];
    for command in ["run", "check"] {
        let outcome = launch(&folder, command, &all);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{}", outcome.stdout);
        let report = outcome.json();
        let first = json!({"name": "factor", "given": "f32:2.5", "bytes": 4});
        assert_eq!((report["constants"].as_array().unwrap().len(), &report["constants"][0]), (4, &first));
    }
    let expected: Vec<u8> = [5.5_f32, 8.0, 10.5, 13.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    assert_eq!(folder.read("o.npy").1, expected);
    // A variable that is given nothing keeps what the file says.
    let outcome = launch(&folder, "run", &[&weights, "_ZN3lib5shiftE=bytes:0000000000000000"]);
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    let expected: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    assert_eq!(folder.read("o.npy").1, expected);
}

#[test]
fn values_that_do_not_fit_a_variable_are_refused() {
    let folder = Folder::new();
    let doubles = folder.array("d.npy", "<f8", 4, &[0; 32]);
    for (constant, code, told) in [
        ("facto=f32:1", 3, "it has `factor`, `weights`, `lib::shift`, `calls`"),
        ("factor=f64:1", 3, "the variable has 4 bytes, and 8 are given"),
        ("factor=u32:1", 3, "the variable is a float, and an integer is given"),
        ("calls=f32:1", 3, "the variable is an integer, and a float is given"),
        (&format!("weights=in:{doubles}"), 3, "the variable has 16 bytes, and 32 are given"),
        ("weights=in:/nonexistent/w.npy", 2, "/nonexistent/w.npy"),
        ("factor", 2, "write NAME=SPEC"),
        ("factor=out:f32:1", 2, "is no content of a variable"),
    ] {
        for command in ["run", "check"] {
            let outcome = launch(&folder, command, &[constant]);
            let text = format!("{}{}", outcome.stdout, outcome.stderr);
            assert_eq!(outcome.code, Some(code), "{constant}: {text}");
            assert!(text.contains(told), "{constant}: {text}");
        }
    }
}

#[test]
fn a_variable_has_one_content_and_a_file_that_is_missing_a_next_step() {
    let folder = Folder::new();
    let outcome = launch(&folder, "run", &["factor=f32:1", "calls=u32:1", "factor=f32:2"]);
    let text = format!("{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(outcome.code, Some(2), "{text}");
    assert!(text.contains("--const factor: two contents are given for this variable"), "{text}");
    for command in ["run", "check", "inspect"] {
        for (file, next) in [
            ("/nonexistent/k.ptx", "check the name\n"),
            ("none/k.ptx", "the folder that kiln was started in"),
        ] {
            let outcome = run(without_driver(&[command, file]));
            assert_eq!(outcome.code, Some(2), "{command}: {}", outcome.stderr);
            let is_told = outcome.stderr.contains("No such file") && outcome.stderr.contains(next);
            assert!(is_told, "{command}: {}", outcome.stderr);
        }
    }
}

#[test]
fn a_program_has_no_variables() {
    let folder = Folder::new();
    let file = folder.write("one.kir", "kernel one(out x: u32[]) block(32) over(x) { x[global.x] = 1; }");
    let words = ["run", &file, "--arg", "out:u32:32", "--const", "x=u32:1", "--device", "sim"];
    let outcome = run(without_driver(&words));
    assert_eq!(outcome.code, Some(2), "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stderr.contains("with --arg"), "{}", outcome.stderr);
}

#[test]
fn constants_of_cuda_c_are_given_by_their_names() {
    if skip::without_nvrtc("constants_of_cuda_c_are_given_by_their_names") {
        return;
    }
    let folder = Folder::new();
    let source = "namespace lib { __constant__ float table[4]; }\n__constant__ int step;\n\
                  __global__ void look(float* out) { out[threadIdx.x] = lib::table[threadIdx.x * step]; }";
    let file = folder.write("look.cu", source);
    let table = format!("lib::table=in:{}", folder.floats("t.npy", &[1.0, 2.0, 3.0, 4.0]));
    let out = format!("out:f32:2:{}", folder.path("o.npy"));
    let words = [
        "run",
        &file,
        "--grid",
        "1",
        "--block",
        "2",
        "--device",
        "sim",
        "--arg",
        &out,
        "--const",
        &table,
        "--const",
        "step=i32:3",
    ];
    let mut command = without_driver(&words);
    command.env("XDG_CACHE_HOME", folder.path("cache"));
    let outcome = run(command);
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stdout.contains("variable step = i32:3 (4 bytes)"), "{}", outcome.stdout);
    assert_eq!(folder.read("o.npy").1, [1.0_f32, 4.0].map(f32::to_le_bytes).concat());
}
