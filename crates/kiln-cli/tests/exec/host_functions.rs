//! Functions of the host in the order of streams: programs in C.

use super::{compiled, finds, kiln, passes, text};

#[test]
fn functions_of_the_host_keep_the_order_of_their_stream() {
    let cases = ["order", "waits for main", "destroyed", "captured", "no call"];
    passes("host_functions", &["--seeds", "4"], &cases);
}

#[test]
fn calls_inside_of_a_function_of_the_host_are_refused_and_told() {
    let Some(program) = compiled("host_functions") else { return };
    let output = kiln(&[], &program, &["inside"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    for name in ["cuMemAlloc_v2", "cuStreamQuery", "cuEventRecord"] {
        assert!(told.contains(&format!("note: {name} was called by a function")), "{name}: {told}");
    }
}

#[test]
fn a_missing_order_beside_a_function_of_the_host_is_found() {
    finds("host_functions", &[], &[("race", "nothing orders")]);
}

#[test]
fn a_callback_is_told_of_a_failure_before_it() {
    finds("host_functions", &[], &[("lost", "add_one")]);
}

#[test]
fn a_process_ends_while_a_function_of_the_host_waits_for_it() {
    let Some(program) = compiled("host_functions") else { return };
    let output = kiln(&[], &program, &["ends"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("the process ended while a function"), "{told}");
}
