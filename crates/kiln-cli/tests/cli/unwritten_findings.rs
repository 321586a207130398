//! Findings that cannot be written to their file are told nevertheless. The program is this test itself.

#![cfg(target_os = "linux")]

use std::process::Command;

use kiln::DeviceRuntime;

use crate::checked_ranks::use_unwritten;
use crate::folder::Folder;
use crate::outcome::{Outcome, command, run};

const PROGRAM: &str = "KILN_TEST_UNWRITTEN";

/// Rank 1 uses a value that was never written.
#[test]
fn finding_program() {
    if std::env::var_os(PROGRAM).is_none() || std::env::var("KILN_RANK").is_ok_and(|rank| rank != "1") {
        return;
    }
    let gpu = DeviceRuntime::auto().unwrap();
    use_unwritten(gpu);
    gpu.synchronize().unwrap();
}

fn program() -> String {
    format!(
        "{} --exact unwritten_findings::finding_program --nocapture",
        std::env::current_exe().unwrap().display()
    )
}

/// The job, of which every rank does this first.
fn checked(first: &str) -> Outcome {
    let text = format!("{first}; exec {}", program());
    let mut launch: Command = command(&["launch", "-n", "2", "--check", "--", "sh", "-c", &text]);
    launch.env(PROGRAM, "1");
    run(launch)
}

#[test]
fn findings_of_a_rank_that_cannot_be_written_are_no_silence() {
    let outcome = checked(":");
    assert_eq!(outcome.code, Some(5), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("kiln launch: 1 finding in 2 ranks\n"), "{}", outcome.stderr);
    let full = "rm -f $KILN_FINDINGS_FILE; ln -s /dev/full $KILN_FINDINGS_FILE";
    let gone = "[ $KILN_RANK = 1 ] && rm -r $(dirname $KILN_FINDINGS_FILE)";
    for first in [full, gone] {
        let outcome = checked(first);
        let told = &outcome.stderr;
        assert_eq!(outcome.code, Some(5), "{told}");
        assert!(told.contains("kiln launch: findings of rank 1 could not be written; "), "{told}");
        assert!(told.contains("[1] kiln: a finding could not be written to "), "{told}");
        assert!(told.contains("which was never written"), "{told}");
        assert!(!told.contains("no findings"), "{told}");
    }
}

#[test]
fn a_job_whose_findings_have_no_room_is_not_started() {
    let folder = Folder::new();
    let within = |text: &str| {
        let mut shell = Command::new("unshare");
        shell.args(["-rm", "sh", "-c", text]).env("TMPDIR", folder.path(""));
        shell
    };
    let full = "mount -t tmpfs -o size=16k tmpfs $TMPDIR && ! head -c 100000 /dev/zero 2>&- > $TMPDIR/fill";
    if !within(full).status().is_ok_and(|status| status.success()) {
        println!("skipped: this user cannot mount a small file system");
        return;
    }
    let outcome =
        run(within(&format!("{full}; exec {} launch -n 2 --check -- true", env!("CARGO_BIN_EXE_kiln"))));
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("set TMPDIR to a folder with room"), "{}", outcome.stderr);
}

#[test]
fn findings_of_a_process_that_cannot_be_written_are_on_its_standard_error() {
    for file in ["/dev/full", "/nonexistent/x"] {
        let mut alone = Command::new("sh");
        alone.args(["-c", &program()]).env(PROGRAM, "1").env("KILN_POLICY", "simulate");
        alone.env("KILN_FINDINGS", "report").env("KILN_FINDINGS_FILE", file);
        let told = run(alone).stderr;
        let said = format!("kiln: a finding could not be written to {file}: ");
        assert!(told.contains(&said) && told.contains("which was never written"), "{told}");
    }
}
