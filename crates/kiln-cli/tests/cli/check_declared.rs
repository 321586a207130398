//! `kiln check`: what arrays are declared for, and the places a finding names.

use serde_json::json;

use crate::folder::Folder;
use crate::outcome::{Outcome, run, without_driver};

/// Writes through an address that it takes from memory: what it does with `x` cannot be told beforehand.
const THROUGH: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry through(.param .u64 x, .param .u64 y) {
    .reg .b64 %rd<6>;
    ld.param.u64 %rd0, [x];
    ld.param.u64 %rd1, [y];
    st.global.u64 [%rd1], %rd0;
    ld.global.u64 %rd2, [%rd1];
    st.global.u32 [%rd2], 7;
    ret;
}";

fn through(folder: &Folder, command: &str, x: &str, more: &[&str]) -> Outcome {
    let file = folder.write("through.ptx", THROUGH);
    let y = format!("zeros:u64:1:{}", folder.path("y.npy"));
    let words = [command, &file, "--grid", "1", "--block", "1", "--arg", x, "--arg", &y];
    run(without_driver(&[&words[..], more].concat()))
}

#[test]
fn a_write_to_an_array_that_is_only_read_is_found_when_the_kernel_runs() {
    let folder = Folder::new();
    let path = folder.integers("x.npy", &[1; 32]);
    let x = format!("in:{path}");
    let report = through(&folder, "check", &x, &["--json"]);
    assert_eq!(report.code, Some(5), "{}", report.stdout);
    let report = report.json();
    assert_eq!(report["arguments"][0]["effect"], "cannot tell");
    let [finding] = &report["findings"].as_array().unwrap()[..] else { panic!("{report:#}") };
    assert_eq!((&finding["kind"], &finding["access"]["kind"]), (&json!("undeclared"), &json!("write")));
    assert_eq!(finding["allocation"], json!({"argument": 0, "bytes": 128, "offset": 0}));
    assert_eq!(finding["place"]["ptx_line"], 11);
    let text = finding["text"].as_str().unwrap();
    assert!(text.contains("inside argument 0 (`x`), which the launch declared as read only"), "{text}");

    let ran = through(&folder, "run", &x, &["--device", "sim"]);
    assert_eq!(ran.code, Some(5), "{}", ran.stdout);
    assert!(
        ran.stdout.ends_with(
            "no file was written: there are findings; KILN_FINDINGS=report writes the results beside them\n"
        ),
        "{}",
        ran.stdout
    );
    assert_eq!(folder.names(), ["through.ptx", "x.npy"]);

    let changed = format!("inout:{path}:{}", folder.path("z.npy"));
    let fixed = through(&folder, "check", &changed, &["--strict"]);
    assert_eq!(fixed.code, Some(0), "{}", fixed.stdout);
}

/// Two lanes write one word, from a function that was inlined at two lines.
const INLINED: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry put(.param .u64 x) {
    .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<2>;
    .loc 1 10 1
    ld.param.u64 %rd0, [x];
    mov.u32 %r0, %tid.x;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 bra ZERO;
    .loc 1 3 5, function_name $L_put, inlined_at 1 12 9
    st.global.u32 [%rd0], %r0;
    bra END;
    ZERO:
    .loc 1 3 5, function_name $L_put, inlined_at 1 14 9
    st.global.u32 [%rd0], 9;
    END:
    .loc 1 16 1
    ret;
}
.file 1 \"put.cu\"
.section .debug_str { $L_put: .b8 112,117,116,0 }";

#[test]
fn both_sides_of_a_race_come_with_their_call_paths() {
    let folder = Folder::new();
    let file = folder.write("put.ptx", INLINED);
    let x = format!("zeros:u32:1:{}", folder.path("x.npy"));
    let words = ["check", &file, "--grid", "1", "--block", "2", "--arg", &x];
    let outcome = run(without_driver(&words));
    assert_eq!(outcome.code, Some(5), "{}{}", outcome.stdout, outcome.stderr);
    let text = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for side in [
        "called at put.cu:12, block (0,0,0) thread (1,0,0)",
        "called at put.cu:14, block (0,0,0) thread (0,0,0)",
    ] {
        assert!(text.contains("write put at put.cu:3 (PTX line ") && text.contains(side), "{side}: {text}");
    }
    let report = run(without_driver(&[&words[..], &["--json"]].concat())).json();
    let finding = &report["findings"][0];
    let lines = [&finding["place"], &finding["earlier"]].map(|place| place["inlined_at"]["line"].as_u64());
    assert!(lines.contains(&Some(12)) && lines.contains(&Some(14)), "{report:#}");
}
