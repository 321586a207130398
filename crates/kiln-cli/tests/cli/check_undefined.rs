//! Elements of outputs that are undefined when a launch is over.

use serde_json::Value;

use crate::folder::Folder;
use crate::outcome::{run, without_driver};

/// Runs code with one warp under `kiln check`. `%s` is shared memory of 16 bytes for each thread, of which the first byte was written; `%o` is the thread's 16
/// bytes of the only argument.
fn check(array: &str, code: &str) -> (Option<i32>, Vec<Value>, String) {
    let folder = Folder::new();
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64
         .visible .entry k(.param .u64 out) {{
         .shared .align 16 .b8 tile[512]; .reg .b64 %s; .reg .b64 %o; .reg .b64 %at; .reg .b32 %t;
         .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .b16 %h<9>; .reg .f32 %f<9>; .reg .pred %p<9>;
         ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %at, %t, 16;
         add.s64 %o, %o, %at; mov.u64 %s, tile; add.s64 %s, %s, %at;
         st.shared.u8 [%s], 5;
         {code}
         ret; }}"
    );
    let file = folder.write("k.ptx", &text);
    let argument = format!("{array}:{}", folder.path("o.npy"));
    let words = ["check", &file, "--grid", "1", "--block", "32", "--seeds", "1", "--arg", &argument];
    let plain = run(without_driver(&words));
    let json = run(without_driver(&[&words[..], &["--json"]].concat())).json();
    (plain.code, json["findings"].as_array().unwrap().clone(), plain.stdout)
}

#[track_caller]
fn assert_told(array: &str, code: &str, words: &[&str]) {
    let (exit, findings, text) = check(array, code);
    assert_eq!((exit, findings.len()), (Some(5), 1), "{code}\n{text}");
    let found = findings[0]["text"].as_str().unwrap();
    for word in words {
        assert!(found.contains(word), "{word}: {found}");
    }
}

#[track_caller]
fn assert_clean(array: &str, code: &str) {
    let (exit, _, text) = check(array, code);
    assert_eq!(exit, Some(0), "{code}\n{text}");
}

#[test]
fn an_element_of_any_size_that_is_undefined_is_told_with_its_place() {
    assert_told(
        "zeros:u8:512",
        "ld.shared.u8 %h1, [%s+8]; st.global.u8 [%o+3], %h1;",
        &[
            "uninitialised: element 3 and 31 more of argument 0, an array of u8, are undefined",
            "from 1 byte at",
        ],
    );
    assert_told(
        "zeros:f16:256",
        "ld.shared.b16 %h1, [%s+8]; st.global.b16 [%o+4], %h1;",
        &["element 2 and", "f16"],
    );
    assert_told(
        "uninit:u32:128",
        "ld.shared.u32 %r1, [%s+4]; st.global.u32 [%o], %r1;",
        &["element 0 and", "4 bytes"],
    );
    assert_told(
        "zeros:u32:128",
        "ld.shared.u32 %r1, [%s+4]; or.b32 %r1, %r1, 1; st.global.u32 [%o], %r1;",
        &["u32"],
    );
    assert_told(
        "zeros:u64:64",
        "ld.shared.u32 %r1, [%s+4]; cvt.u64.u32 %rd1, %r1; st.global.u64 [%o], %rd1;",
        &["u64"],
    );
    assert_told(
        "zeros:f32:128",
        "ld.shared.f32 %f1, [%s+4]; st.global.v2.f32 [%o], {%f1, %f1};",
        &["element 0 and 63 more"],
    );
    let one = "setp.eq.u32 %p1, %t, 9; @%p1 ld.shared.u32 %r1, [%s+4]; @%p1 st.global.u32 [%o+4], %r1;";
    assert_told(
        "zeros:u32:128",
        one,
        &["element 37 of argument 0, an array of u32, is undefined after the launch"],
    );
    let swap = "ld.shared.u32 %r1, [%s+4]; atom.global.cas.b32 %r2, [%o], 0, %r1;";
    assert_told("zeros:u32:128", swap, &["element 0 and 31 more"]);
    let flag =
        "ld.shared.u32 %r1, [%s]; setp.gt.u32 %p1, %r1, 9; selp.u32 %r2, 1, 0, %p1; st.global.u8 [%o], %r2;";
    assert_told("zeros:bool:512", flag, &["bool", "of which bytes 1 to 3 were never written"]);
    assert_told("zeros:u8:512", flag, &["u8"]);
    assert_told(
        "zeros:u32:128",
        "st.global.u32 [%o], %r7;",
        &["unassigned: element 0", "a variable that was never assigned (register %r7)"],
    );
}

#[test]
fn padding_is_silent_in_integers_and_told_in_floats() {
    let vector = "ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%s]; st.global.v4.u32 [%o], {%r1, %r2, %r3, %r4};";
    let word = "ld.shared.u64 %rd1, [%s]; st.global.u64 [%o], %rd1;";
    let byte = "ld.shared.u8 %h1, [%s+1]; st.global.u8 [%o+1], %h1;";
    let cases: [(&str, &[&str], &[&str]); 3] = [
        (
            vector,
            &["zeros:u8:512", "uninit:i16:256", "zeros:u32:128"],
            &["bool:512", "f16:256", "f32:128", "complex64:64"],
        ),
        (word, &["zeros:u8:512", "zeros:u32:128", "uninit:u64:64"], &["bool:512", "f32:128", "f64:64"]),
        (byte, &["zeros:u8:512", "uninit:i8:512"], &["bool:512"]),
    ];
    for (code, integers, others) in cases {
        integers.iter().for_each(|array| assert_clean(array, code));
        others
            .iter()
            .for_each(|array| assert_told(&format!("zeros:{array}"), code, &["undefined after the launch"]));
    }
    // Something is computed with it.
    assert_told(
        "zeros:u32:128",
        "ld.shared.u32 %r1, [%s]; add.u32 %r1, %r1, 1; st.global.u32 [%o], %r1;",
        &["u32"],
    );
}

#[test]
fn what_is_dropped_or_written_over_is_silent() {
    assert_clean(
        "zeros:f32:128",
        "ld.shared.f32 %f1, [%s+4]; fma.rn.f32 %f2, %f1, %f1, %f1; setp.lt.u32 %p1, %t, 32; selp.f32 %f3, 0f3F800000, %f2, %p1;
         st.global.f32 [%o], %f3;",
    );
    assert_clean(
        "zeros:u32:128",
        "ld.shared.u32 %r1, [%s+4]; st.global.u32 [%o], %r1; st.global.u32 [%o], %t;",
    );
    let masked = "ld.shared.u32 %r1, [%s]; and.b32 %r1, %r1, 255; st.global.u32 [%o], %r1;";
    assert_clean("zeros:u32:128", masked);
}

#[test]
fn a_finding_names_the_store_and_the_read() {
    let (_, findings, text) =
        check("zeros:u32:128", "ld.shared.u32 %r1, [%s+4];\nst.global.u32 [%o+4], %r1;");
    let [finding] = &findings[..] else { panic!("{text}") };
    assert_eq!(finding["place"]["instruction"], "st.global.u32");
    assert_eq!(finding["earlier"]["instruction"], "ld.shared.u32");
    assert!(
        finding["next_step"].as_str().is_some_and(|step| step.starts_with("write the memory that")),
        "{text}"
    );
    assert_eq!(finding["allocation"]["argument"], 0);
    assert_eq!(finding["allocation"]["offset"], 4);
    assert!(
        text.contains("\n     store  k at PTX line") && text.contains("\n     read   k at PTX line"),
        "{text}"
    );
}
