//! `kiln check`: elements of outputs that no thread writes, and arrays of which that is not expected.

use serde_json::{Value, json};

use crate::folder::Folder;
use crate::outcome::{Outcome, run, without_driver};

/// Each of the first `n` threads writes its element of `o`, and one of `s` that it does not read.
const FILL: &str = "
    .version 8.0
    .target sm_80
    .address_size 64
    .visible .entry fill(.param .u64 o, .param .u64 s, .param .u32 n) {
        .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<6>;
        ld.param.u64 %rd0, [o]; ld.param.u64 %rd1, [s]; ld.param.u32 %r1, [n];
        mov.u32 %r0, %tid.x;
        setp.ge.u32 %p0, %r0, %r1;
        @%p0 ret;
        mul.wide.u32 %rd2, %r0, 4;
        add.s64 %rd3, %rd0, %rd2; add.s64 %rd4, %rd1, %rd2;
        st.global.u32 [%rd3], %r0;
        st.global.u32 [%rd4], %r0;
        ret;
    }";

fn fill(o: &str, s: &str, n: u32, more: &[&str]) -> Outcome {
    let folder = Folder::new();
    let (file, n) = (folder.write("fill.ptx", FILL), format!("u32:{n}"));
    let words = ["check", &file, "--grid", "1", "--block", "64", "--arg", o, "--arg", s, "--arg", &n];
    run(without_driver(&[&words[..], more].concat()))
}

fn findings(outcome: &Outcome) -> Vec<Value> {
    outcome.json()["findings"].as_array().unwrap().clone()
}

#[test]
fn an_output_that_is_not_written_whole_is_told_with_its_first_element() {
    let outcome = fill("out:u32:64", "scratch:u32:64", 61, &["--json"]);
    assert_eq!(outcome.code, Some(5), "{}{}", outcome.stdout, outcome.stderr);
    let [finding] = &findings(&outcome)[..] else { panic!("{}", outcome.stdout) };
    assert_eq!((&finding["kind"], &finding["times"]), (&json!("unwritten"), &json!(4)));
    assert_eq!(finding["seeds"], json!([0, 1, 2, 3]));
    assert_eq!(finding["allocation"], json!({"argument": 0, "bytes": 256, "offset": 244}));
    let text = finding["text"].as_str().unwrap();
    assert!(text.starts_with("unwritten: no thread wrote element 61 and 2 more of argument 0"), "{text}");
    let step = finding["next_step"].as_str().unwrap();
    assert!(step.contains("uninit:") && step.contains("scratch:"), "{step}");

    let one = fill("out:u32:64", "scratch:u32:64", 63, &[]);
    assert_eq!(one.code, Some(5), "{}", one.stdout);
    assert!(
        one.stdout.contains("no thread wrote element 63 of argument 0, an array of u32"),
        "{}",
        one.stdout
    );

    let whole = fill("out:u32:64", "scratch:u32:64", 64, &["--strict"]);
    assert_eq!(whole.code, Some(0), "{}{}", whole.stdout, whole.stderr);
}

#[test]
fn arrays_that_may_be_written_in_part_are_clean() {
    let folder = Folder::new();
    let kept = format!("uninit:u32:64:{}", folder.path("o.npy"));
    let changed = format!("inout:{}:{}", folder.integers("x.npy", &[0; 64]), folder.path("z.npy"));
    for part in ["uninit:u32:64", "zeros:u32:64", "scratch:u32:64", &kept, &changed] {
        let outcome = fill(part, "scratch:u32:64", 10, &["--strict"]);
        assert_eq!(outcome.code, Some(0), "{part}: {}{}", outcome.stdout, outcome.stderr);
    }
    assert_eq!(folder.names(), ["x.npy"], "a check writes no files");
}

#[test]
fn a_launch_that_ended_early_is_told_without_what_it_did_not_write() {
    let outcome = fill("out:u32:32", "scratch:u32:64", 33, &["--json"]);
    assert_eq!(outcome.code, Some(5), "{}", outcome.stdout);
    let kinds: Vec<Value> = findings(&outcome).iter().map(|finding| finding["kind"].clone()).collect();
    assert_eq!(kinds, ["out-of-bounds"]);
}

#[test]
fn elements_of_any_size_are_counted_and_padding_of_bytes_is_not() {
    // Four of eight bytes are written in each place, as of a struct whose last word is padding.
    const PTX: &str = "
        .version 8.0
        .target sm_80
        .address_size 64
        .visible .entry half(.param .u64 o) {
            .reg .b32 %r<2>; .reg .b64 %rd<4>;
            ld.param.u64 %rd0, [o];
            mov.u32 %r0, %tid.x;
            mul.wide.u32 %rd1, %r0, 8;
            add.s64 %rd2, %rd0, %rd1;
            st.global.u32 [%rd2], %r0;
            ret;
        }";
    let folder = Folder::new();
    let file = folder.write("half.ptx", PTX);
    let half = |array: &str| {
        run(without_driver(&["check", &file, "--grid", "1", "--block", "32", "--arg", array, "--json"]))
    };
    for (array, elements) in [("out:u32:64", 32), ("out:u16:128", 64)] {
        let outcome = half(array);
        assert_eq!(outcome.code, Some(5), "{array}: {}{}", outcome.stdout, outcome.stderr);
        let text = findings(&outcome)[0]["text"].as_str().unwrap().to_owned();
        assert!(text.contains(&format!(" and {} more of argument 0", elements - 1)), "{array}: {text}");
    }
    assert_eq!(half("out:u8:256").code, Some(0), "bytes may be structs with padding");
    let tail = half("out:u8:300");
    assert_eq!(tail.code, Some(5), "{}", tail.stdout);
    // The gaps do not repeat to the end, so none of them is padding.
    assert!(tail.stdout.contains("no thread wrote element 4 and 171 more"), "{}", tail.stdout);
}

#[test]
fn bytes_that_are_not_written_are_told_where_they_cannot_be_padding() {
    // Threads below `n` write a byte each.
    const BYTES: &str = "
        .version 8.0
        .target sm_80
        .address_size 64
        .visible .entry bytes(.param .u64 o, .param .u32 n) {
            .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<4>;
            ld.param.u64 %rd0, [o]; ld.param.u32 %r1, [n];
            mov.u32 %r0, %tid.x;
            setp.ge.u32 %p0, %r0, %r1;
            @%p0 ret;
            cvt.u64.u32 %rd1, %r0;
            add.s64 %rd2, %rd0, %rd1;
            st.global.u8 [%rd2], %r0;
            ret;
        }";
    // Each thread has a block of 36 bytes: 32 single ones behind a word, which the first `n` threads write.
    const BLOCKS: &str = "
        .version 8.0
        .target sm_80
        .address_size 64
        .visible .entry blocks(.param .u64 o, .param .u32 n) {
            .reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %rd<5>;
            ld.param.u64 %rd0, [o]; ld.param.u32 %r1, [n];
            mov.u32 %r0, %tid.x;
            mul.wide.u32 %rd1, %r0, 36;
            add.s64 %rd2, %rd0, %rd1;
            setp.lt.u32 %p0, %r0, %r1;
            @%p0 st.global.u32 [%rd2], %r0;
            mov.u32 %r2, 0;
            AGAIN: add.s64 %rd2, %rd2, 1;
            st.global.u8 [%rd2+3], %r0;
            add.u32 %r2, %r2, 1;
            setp.lt.u32 %p1, %r2, 32;
            @%p1 bra AGAIN;
            ret;
        }";
    let folder = Folder::new();
    let check = |name: &str, text: &str, block: &str, array: &str, n: &str| {
        let file = folder.write(name, text);
        let words = ["check", &file, "--grid", "1", "--block", block, "--arg", array, "--arg", n];
        run(without_driver(&words))
    };
    for (name, text, block, array, n, told) in [
        ("b.ptx", BYTES, "64", "out:u8:64", "u32:61", Some("element 61 and 2 more of argument 0")),
        ("b.ptx", BYTES, "64", "out:i8:64", "u32:63", Some("element 63 of argument 0")),
        ("b.ptx", BYTES, "64", "out:u8:64", "u32:64", None),
        ("k.ptx", BLOCKS, "4", "out:u8:144", "u32:3", Some("element 108 and 3 more of argument 0")),
        ("k.ptx", BLOCKS, "4", "out:u8:144", "u32:4", None),
    ] {
        let outcome = check(name, text, block, array, n);
        let code = if told.is_some() { 5 } else { 0 };
        assert_eq!(outcome.code, Some(code), "{array} {n}: {}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.stdout.contains(told.unwrap_or("no findings")), "{array} {n}: {}", outcome.stdout);
    }
}

#[test]
fn an_output_without_a_file_is_judged_as_one_with_a_file() {
    // The value comes from shared memory that was never written.
    const PTX: &str = "
        .version 8.0
        .target sm_80
        .address_size 64
        .visible .entry keep(.param .u64 o) {
            .shared .align 4 .b8 tile[128];
            .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .f32 %f<2>;
            ld.param.u64 %rd0, [o];
            mov.u32 %r0, %tid.x;
            mul.wide.u32 %rd1, %r0, 4;
            add.s64 %rd2, %rd0, %rd1;
            mov.u32 %r1, tile;
            mad.lo.u32 %r1, %r0, 4, %r1;
            ld.shared.f32 %f0, [%r1];
            add.f32 %f1, %f0, %f0;
            st.global.f32 [%rd2], %f1;
            ret;
        }";
    let folder = Folder::new();
    let file = folder.write("keep.ptx", PTX);
    let input = folder.floats("x.npy", &[0.0; 32]);
    let kept = folder.path("o.npy");
    let keep = |array: &str| {
        run(without_driver(&["check", &file, "--grid", "1", "--block", "32", "--arg", array, "--json"]))
    };
    for start in ["out", "zeros", "uninit"] {
        for array in [format!("{start}:f32:32"), format!("{start}:f32:32:{kept}")] {
            let outcome = keep(&array);
            assert_eq!(outcome.code, Some(5), "{array}: {}{}", outcome.stdout, outcome.stderr);
            let [finding] = &findings(&outcome)[..] else { panic!("{array}: {}", outcome.stdout) };
            assert_eq!(
                (&finding["kind"], &finding["times"]),
                (&json!("uninitialised"), &json!(128)),
                "{array}"
            );
        }
    }
    assert_eq!(keep(&format!("inout:{input}:{kept}")).code, Some(5));
    assert_eq!(keep("scratch:f32:32").code, Some(0), "what is left in scratch memory is not read");
}

#[test]
fn scratch_memory_is_not_kept_and_holds_nothing_at_first() {
    let named = fill("out:u32:64", "scratch:u32:64:s.npy", 64, &[]);
    assert_eq!(named.code, Some(2), "{}", named.stdout);
    assert!(named.stderr.contains("scratch memory is not kept"), "{}", named.stderr);

    // The kernel reads what it did not write.
    const PTX: &str = "
        .version 8.0
        .target sm_80
        .address_size 64
        .visible .entry read(.param .u64 s) {
            .reg .b32 %r<2>; .reg .b64 %rd<2>; .reg .pred %p<2>;
            ld.param.u64 %rd0, [s];
            ld.global.u32 %r0, [%rd0];
            setp.eq.u32 %p0, %r0, 1;
            @%p0 st.global.u32 [%rd0+4], %r0;
            ret;
        }";
    let folder = Folder::new();
    let file = folder.write("read.ptx", PTX);
    for verb in ["check", "run"] {
        let words = [verb, &file, "--grid", "1", "--block", "1", "--arg", "scratch:u32:2"];
        let outcome = run(without_driver(&words));
        assert_eq!(outcome.code, Some(5), "{verb}: {}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.stdout.contains("never written"), "{verb}: {}", outcome.stdout);
    }
}

#[test]
fn an_output_of_a_program_is_written_whole_too() {
    let folder = Folder::new();
    let file = folder.write(
        "part.kir",
        "kernel part(out y: u32[], n: u32) block(32) over(y) {\n    if global.x < u64(n) {\n        y[global.x] = 1u32;\n    }\n}\n",
    );
    let part = |y: &str| run(without_driver(&["check", &file, "--arg", y, "--arg", "u32:20"]));
    let outcome = part("out:u32:32");
    assert_eq!(outcome.code, Some(5), "{}{}", outcome.stdout, outcome.stderr);
    assert!(
        outcome.stdout.contains("no thread wrote element 20 and 11 more of argument 0"),
        "{}",
        outcome.stdout
    );
    assert_eq!(part("uninit:u32:32").code, Some(0));
}
