//! Outputs that cannot be written: closed pipes and full disks.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;

use crate::outcome::{run, without_driver};

const KERNELS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../kiln-kernels/kernels/elementwise.ptx");
const OUTPUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../kiln-kernels/kernels/output.ptx");

const WORDS: [&[&str]; 9] = [
    &["doctor"],
    &["doctor", "--json"],
    &["demo", "--device", "sim"],
    &["demo", "--device", "sim", "--json"],
    &["inspect", KERNELS],
    &["inspect", KERNELS, "--json"],
    &["run", OUTPUT, "--kernel", "print_some", "--grid", "1", "--block", "8", "--arg", "i32:8"],
    &["check", OUTPUT, "--kernel", "print_some", "--grid", "1", "--block", "8", "--arg", "i32:8", "--json"],
    &["cache", "list", "--at", "/nonexistent/cache"],
];

#[test]
fn a_reader_that_leaves_is_no_panic_and_no_fault() {
    for words in WORDS {
        let mut child = without_driver(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The reading end is gone before the command writes, or while it does.
        drop(child.stdout.take());
        let mut complaint = String::new();
        child.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
        assert_eq!((child.wait().unwrap().code(), complaint.as_str()), (Some(0), ""), "{words:?}");
    }
}

#[test]
fn output_that_cannot_be_written_ends_with_2() {
    for words in WORDS {
        let mut full = without_driver(words);
        full.stdout(Stdio::from(File::create("/dev/full").unwrap()));
        let outcome = run(full);
        assert_eq!(outcome.code, Some(2), "{words:?}");
        assert!(outcome.stderr.contains("could not be written"), "{}", outcome.stderr);
    }
}

#[test]
fn colours_are_for_terminals() {
    for words in WORDS {
        assert!(!run(without_driver(words)).stdout.contains('\x1b'), "{words:?}");
    }
}
