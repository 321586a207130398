//! Wrong command lines, and wrong values of environment variables.

use crate::folder::Folder;
use crate::outcome::{command, run, without_driver};

#[test]
fn wrong_usage_ends_with_2_and_says_what_is_right() {
    for words in [
        &["nonsense"][..],
        &["doctor", "--policy", "maybe"],
        &["doctor", "extra"],
        &["demo", "--device", "tpu"],
        &["demo", "--seed", "-1"],
        &["demo", "--seed", "18446744073709551616"],
        &["demo", "--json=yes"],
    ] {
        let outcome = run(command(words));
        assert_eq!(outcome.code, Some(2), "{words:?}");
        assert!(outcome.stdout.is_empty() && !outcome.stderr.is_empty(), "{words:?}");
    }
    assert!(run(command(&["doctor", "--policy", "maybe"])).stderr.contains("off, auto, required, simulate"));
}

#[test]
fn no_words_at_all_show_the_help() {
    let outcome = run(command(&[]));
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("doctor") && outcome.stderr.contains("demo"));
}

#[test]
fn help_and_version_end_with_0() {
    for words in [
        &["--help"][..],
        &["--version"],
        &["doctor", "--help"],
        &["demo", "--help"],
        &["inspect", "--help"],
        &["run", "--help"],
        &["check", "--help"],
        &["cache", "--help"],
        &["replay", "--help"],
        &["bench", "--help"],
        &["launch", "--help"],
        &["scale", "--help"],
        &["cache", "prune", "--help"],
    ] {
        let outcome = run(command(words));
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{words:?}");
        assert!(outcome.stdout.contains("kiln"));
    }
    assert!(run(command(&["--help"])).stdout.contains("5 fault or finding"));
}

#[test]
fn an_environment_that_means_nothing_is_wrong_usage() {
    for words in [&["doctor"][..], &["demo"]] {
        let mut wrong = without_driver(words);
        wrong.env("KILN_POLICY", "nonsense");
        let outcome = run(wrong);
        assert_eq!(outcome.code, Some(2), "{words:?}");
        assert!(outcome.stderr.contains("KILN_POLICY") && outcome.stdout.is_empty());
    }
    let folder = Folder::new();
    let program = folder.write("zero.kir", "kernel zero(out x: u32[]) block(1) over(x) { x[global.x] = 0; }");
    let out = format!("out:u32:1:{}", folder.path("x.npy"));
    for word in ["run", "check"] {
        let mut wrong = without_driver(&[word, &program, "--arg", &out]);
        wrong.env("KILN_FINDINGS", "bogus");
        let outcome = run(wrong);
        assert_eq!(outcome.code, Some(2), "{word}: {}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.stderr.contains("KILN_FINDINGS") && outcome.stdout.is_empty(), "{}", outcome.stderr);
    }
}

#[test]
fn one_argument_and_one_byte_are_singular() {
    let folder = Folder::new();
    let program = folder.write("zero.kir", "kernel zero(out x: u32[]) block(1) over(x) { x[global.x] = 0; }");
    let none = run(without_driver(&["run", &program]));
    assert!(none.stderr.contains("takes 1 argument, and 0 were given"), "{}", none.stderr);
    let kernel = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u8 x, .param .u8 y) { ret; }";
    let kernel = folder.write("k.ptx", kernel);
    let words = ["run", &kernel, "--grid", "1", "--block", "1", "--arg", "u8:1"];
    let one = run(without_driver(&words));
    assert!(one.stderr.contains("takes 2 arguments, and 1 was given"), "{}", one.stderr);
    let wide = run(without_driver(&[&words[..], &["--arg", "u32:1"]].concat()));
    assert!(wide.stderr.contains("the parameter has 1 byte, and the value 4"), "{}", wide.stderr);
}
