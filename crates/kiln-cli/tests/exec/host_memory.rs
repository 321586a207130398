//! What a program sees of the host's memory, and what it asks about code: a program in C.

use super::{compiled, kiln, passes, text};

#[test]
fn a_fill_of_host_memory_is_done_when_the_call_returns() {
    passes("host_memory", &["--seeds", "5"], &["fills"]);
}

#[test]
fn functions_are_found_by_the_versions_of_the_header_and_constant_memory_is_counted() {
    passes("host_memory", &[], &["versions", "constants"]);
}

#[test]
fn a_wait_of_one_thread_leaves_the_copies_that_others_queue_meanwhile() {
    passes("host_memory", &["--seeds", "5"], &["staged"]);
}

#[test]
fn what_kernels_print_comes_once_and_before_what_the_program_prints_after_a_wait() {
    let Some(program) = compiled("host_memory") else { return };
    let output = kiln(&[], &program, &["printed"]);
    let rounds = |round| format!("n {round}\nn {round}\nround {round}\n");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    assert_eq!(text(&output.stdout), [0, 1, 2].map(rounds).concat());
}

#[test]
fn registered_memory_that_the_program_unmapped_is_a_finding_and_no_crash() {
    let Some(program) = compiled("host_memory") else { return };
    for case in ["unmapped launch", "unmapped copy", "unmapped fill", "unmapped part"] {
        let output = kiln(&["--seeds", "2"], &program, &[case]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{case}: {told}");
        assert!(told.contains("by the program, which has not unregistered it"), "{case}: {told}");
    }
}
