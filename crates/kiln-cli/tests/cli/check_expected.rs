//! `kiln check --expect`: results that are compared with arrays of the caller, and how far floats may be off.

use serde_json::{Value, json};

use crate::folder::Folder;
use crate::outcome::{Outcome, run, without_driver};

const SAXPY: &str = "kernel saxpy(in x: f32[], inout y: f32[like x], a: f32) block(32) over(y) {
    y[global.x] = a * x[global.x] + y[global.x];
}";

/// Checks `saxpy` of 0, 1, 2, … and ones with a factor of 2.
fn saxpy(folder: &Folder, more: &[&str]) -> Outcome {
    let file = folder.write("saxpy.kir", SAXPY);
    let x = format!("in:{}", folder.floats("x.npy", &(0..100).map(|at| at as f32).collect::<Vec<_>>()));
    let y = format!("inout:{}", folder.floats("y.npy", &[1.0; 100]));
    let words = ["check", &file, "--arg", &x, "--arg", &y, "--arg", "f32:2", "--json"];
    run(without_driver(&[&words[..], more].concat()))
}

/// What `saxpy` gives, worked out by hand.
fn right() -> Vec<f32> {
    (0..100).map(|at| (2 * at + 1) as f32).collect()
}

fn expect(folder: &Folder, name: &str, values: &[f32]) -> String {
    format!("1={}", folder.floats(name, values))
}

#[test]
fn a_result_that_is_as_expected_is_no_finding() {
    let folder = Folder::new();
    let outcome = saxpy(&folder, &["--expect", &expect(&folder, "right.npy", &right())]);
    assert_eq!((outcome.code, &outcome.json()["findings"]), (Some(0), &json!([])), "{}", outcome.stderr);
}

#[test]
fn the_first_element_that_is_not_as_expected_is_told_with_the_number_of_the_others() {
    let folder = Folder::new();
    let mut values = right();
    (values[17], values[40], values[41]) = (-3.5, 0.0, f32::NAN);
    let wrong = expect(&folder, "wrong.npy", &values);
    let outcome = saxpy(&folder, &["--expect", &wrong]);
    assert_eq!(outcome.code, Some(5), "{}", outcome.stdout);
    let report = outcome.json();
    let [finding] = &report["findings"].as_array().unwrap()[..] else { panic!("{report:#}") };
    let file = &wrong[2..];
    let text = format!(
        "unexpected: element 17 of argument 1 is 35, and {file} has -3.5, and 2 more of 100 elements"
    );
    assert_eq!((&finding["kind"], &finding["text"]), (&json!("unexpected"), &json!(text)));
    assert_eq!(finding["allocation"]["offset"], json!(17 * 4), "{report:#}");
    assert_eq!(finding["seeds"], json!([0, 1, 2, 3]), "told once for all orders");
    assert!(finding["next_step"].as_str().unwrap().contains("--tolerance"), "{report:#}");
}

#[test]
fn floats_may_be_off_by_the_tolerance() {
    let folder = Folder::new();
    // One place of the first element, which is 1, and 0.5 of the last, which is 199.
    let mut values = right();
    (values[0], values[99]) = (1.0 + f32::EPSILON, 199.5);
    let near = expect(&folder, "near.npy", &values);
    let findings = |more: &[&str]| {
        let report = saxpy(&folder, &[&["--expect", &near], more].concat()).json();
        let texts = report["findings"].as_array().unwrap().iter();
        texts.map(|finding| finding["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join("; ")
    };
    let equal = findings(&[]);
    assert!(equal.contains("element 0 of argument 1 is 1,") && equal.contains("1 more of 100"), "{equal}");
    // The rounding to f32 is half a place: one place is more.
    assert!(findings(&["--tolerance", "0"]).contains("element 0"));
    let last = findings(&["--tolerance", "1e-6"]);
    assert!(last.contains("element 99 of argument 1 is 199") && !last.contains("more of"), "{last}");
    for enough in ["0.003", "0,0.6", "1e-3,0.4"] {
        assert_eq!(findings(&["--tolerance", enough]), "", "{enough}");
    }
    for short in ["0.002", "1e-6,0.4"] {
        assert!(findings(&["--tolerance", short]).contains("element 99"), "{short}");
    }
}

#[test]
fn integers_have_no_tolerance_and_equal_numbers_have_no_bits() {
    let folder = Folder::new();
    let program = "kernel both(out n: i32[32], out x: f32[32]) block(32) {
        n[thread.x] = 7;
        x[thread.x] = -0.0f32;
    }";
    let file = folder.write("both.kir", program);
    let check = |n: &str, x: &str| {
        let words = ["check", &file, "--grid", "1", "--arg", "out:i32:32", "--arg", "out:f32:32"];
        let more = ["--expect", n, "--expect", x, "--tolerance", "0.5,100", "--json"];
        run(without_driver(&[&words[..], &more].concat()))
    };
    let x = format!("1={}", folder.floats("x.npy", &[0.0; 32]));
    let right = check(&format!("0={}", folder.integers("seven.npy", &[7; 32])), &x);
    assert_eq!(right.code, Some(0), "{}{}", right.stdout, right.stderr);
    let wrong = check(&format!("0={}", folder.integers("eight.npy", &[8; 32])), &x);
    let report = wrong.json();
    assert_eq!((wrong.code, report["findings"].as_array().map(Vec::len)), (Some(5), Some(1)), "{report:#}");
    assert_eq!(report["findings"][0]["next_step"], Value::Null, "{report:#}");
}

#[test]
fn no_tolerance_reaches_an_infinity() {
    let folder = Folder::new();
    // The results are 1, 3, 5, … and an infinity where `x` has one.
    let file = folder.write("saxpy.kir", SAXPY);
    let mut values: Vec<f32> = (0..100).map(|at| at as f32).collect();
    values[3] = f32::INFINITY;
    let x = format!("in:{}", folder.floats("x.npy", &values));
    let y = format!("inout:{}", folder.floats("y.npy", &[1.0; 100]));
    let check = |at: usize, expected: f32| {
        let mut wanted = right();
        (wanted[3], wanted[at]) = (f32::INFINITY, expected);
        let expected = expect(&folder, "expected.npy", &wanted);
        let words = ["check", &file, "--arg", &x, "--arg", &y, "--arg", "f32:2", "--json"];
        let more = ["--expect", &expected, "--tolerance", "0.5,1e30"];
        run(without_driver(&[&words[..], &more].concat()))
    };
    assert_eq!(check(3, f32::INFINITY).code, Some(0));
    for (at, expected) in [(3, f32::NEG_INFINITY), (3, 7.0), (3, f32::NAN), (5, f32::INFINITY), (5, f32::NAN)]
    {
        let outcome = check(at, expected);
        assert_eq!(outcome.code, Some(5), "element {at}, {expected}: {}", outcome.stdout);
        let finding = &outcome.json()["findings"][0];
        assert!(
            finding["text"].as_str().unwrap().contains(&format!("element {at} of argument 1")),
            "{finding:#}"
        );
        // Another tolerance changes nothing of that.
        assert_eq!(finding["next_step"], Value::Null, "{finding:#}");
    }
}

#[test]
fn a_tolerance_that_is_too_small_is_not_advised_again() {
    let folder = Folder::new();
    let wrong = expect(&folder, "wrong.npy", &[1.5; 100]);
    let next_step = |more: &[&str]| {
        let report = saxpy(&folder, &[&["--expect", &wrong], more].concat()).json();
        report["findings"][0]["next_step"].as_str().unwrap().to_owned()
    };
    assert!(next_step(&[]).ends_with("--tolerance 1e-5"), "{}", next_step(&[]));
    let larger = next_step(&["--tolerance", "1e-4"]);
    assert!(larger.contains("a larger --tolerance") && !larger.contains("1e-5"), "{larger}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let folder = Folder::new();
    let path = |name: &str, values: &[f32]| folder.floats(name, values);
    let (right, short) = (path("right.npy", &right()), path("short.npy", &[1.0; 3]));
    let doubles: Vec<u8> = self::right().iter().flat_map(|value| f64::from(*value).to_le_bytes()).collect();
    let wide = folder.array("wide.npy", "<f8", 100, &doubles);
    for (expected, said) in [
        (vec![format!("7={right}")], "there are 3 arguments"),
        (vec![format!("0={right}")], "not one array that the kernel writes"),
        (vec![format!("2={right}")], "not one array that the kernel writes"),
        (vec![format!("1={short}")], "it has 3 elements, and the argument has 100"),
        (vec![format!("1={}", folder.path("missing.npy"))], "missing.npy"),
        (vec![format!("1={wide}")], "it has f64 elements, and the argument has f32"),
        (vec![format!("1={right}"), format!("1={right}")], "two files are expected"),
        (vec![right.clone()], "write N=FILE.npy"),
        (vec!["1=".to_owned()], "write N=FILE.npy"),
    ] {
        let flags: Vec<&str> = expected.iter().flat_map(|word| ["--expect", word]).collect();
        let outcome = saxpy(&folder, &flags);
        let told = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.code == Some(2) && told.contains(said), "{expected:?}: {:?} {told}", outcome.code);
    }
    let file = folder.write(
        "end.ptx",
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry end(.param .u64 to) { ret; }\n",
    );
    let words =
        ["check", &file, "--arg", "zeros:f32:1", "--expect", &format!("1={right}"), "--device", "sim"];
    let outcome = run(without_driver(&words));
    assert!(outcome.stderr.contains("there is 1 argument"), "{}", outcome.stderr);
    for tolerance in ["x", "-1", "1,2,3", "nan"] {
        assert_eq!(saxpy(&folder, &["--tolerance", tolerance]).code, Some(2), "{tolerance}");
    }
    let cast = saxpy(&folder, &["--expect", &format!("1={wide}"), "--cast"]);
    assert_eq!(cast.code, Some(0), "{}{}", cast.stdout, cast.stderr);
}

/// Each thread adds a number to one sum, in any order.
const ATOMIC_SUM: &str = "
    .version 8.0
    .target sm_80
    .address_size 64
    .visible .entry sum(.param .u64 out, .param .u64 x) {
        .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .f32 %f<2>;
        ld.param.u64 %d0, [out]; ld.param.u64 %d1, [x];
        mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;
        mad.lo.u32 %r3, %r1, %r2, %r0;
        mul.wide.u32 %d2, %r3, 4; add.s64 %d2, %d1, %d2;
        ld.global.f32 %f0, [%d2];
        atom.global.add.f32 %f1, [%d0], %f0;
        ret;
    }";

#[test]
fn orders_may_differ_by_the_tolerance() {
    let folder = Folder::new();
    let file = folder.write("sum.ptx", ATOMIC_SUM);
    let terms: Vec<f32> = (0..256).map(|at| 1.0 / (at as f32 + 3.0)).collect();
    let x = format!("in:{}", folder.floats("x.npy", &terms));
    let words = ["check", &file, "--grid", "8", "--block", "32", "--arg", "zeros:f32:1", "--arg", &x];
    let sum = |more: &[&str]| run(without_driver(&[&words[..], &["--strict", "--json"], more].concat()));
    let kinds = |outcome: &Outcome| -> Vec<Value> {
        outcome.json()["findings"].as_array().unwrap().iter().map(|finding| finding["kind"].clone()).collect()
    };
    let exact = sum(&[]);
    assert_eq!((exact.code, kinds(&exact)), (Some(5), vec![json!("order")]), "{}", exact.stdout);
    let near = sum(&["--tolerance", "1e-5"]);
    assert_eq!((near.code, kinds(&near)), (Some(0), Vec::new()), "{}", near.stdout);
    // Every order that ran is compared with what is expected.
    let total: f64 = terms.iter().map(|term| f64::from(*term)).sum();
    let expected = format!("0={}", folder.floats("sum.npy", &[total as f32]));
    assert_eq!(sum(&["--tolerance", "1e-5", "--expect", &expected]).code, Some(0));
    let wrong = format!("0={}", folder.floats("wrong.npy", &[total as f32 + 1.0]));
    let wrong = sum(&["--tolerance", "1e-5", "--expect", &wrong]);
    assert_eq!((wrong.code, kinds(&wrong)), (Some(5), vec![json!("unexpected")]), "{}", wrong.stdout);
}

#[test]
fn a_file_of_another_shape_is_no_expected_result() {
    let folder = Folder::new();
    let file = folder.write("saxpy.kir", SAXPY);
    let ones = [1.0_f32; 6];
    let x = format!("in:{}", folder.floats("x.npy", &[0.0; 6]));
    let y = format!("inout:{}", folder.floats_2d("y.npy", &ones, [2, 3]));
    let expected = |name: &str, path: String| {
        let words =
            ["check", &file, "--arg", &x, "--arg", &y, "--arg", "f32:2", "--expect", &format!("1={path}")];
        let outcome = run(without_driver(&words));
        (outcome.code, format!("{name}: {}{}", outcome.stdout, outcome.stderr))
    };
    let (code, told) = expected("transposed", folder.floats_2d("t.npy", &ones, [3, 2]));
    assert!(
        code == Some(2) && told.contains("its shape is [3, 2], and that of the argument [2, 3]"),
        "{told}"
    );
    for (name, path) in
        [("same", folder.floats_2d("s.npy", &ones, [2, 3])), ("flat", folder.floats("f.npy", &ones))]
    {
        let (code, told) = expected(name, path);
        assert_eq!(code, Some(0), "{told}");
    }
}
