//! Functions of the host in the order of streams: programs in C.

use super::{compiled, kiln, text};

#[test]
fn functions_of_the_host_keep_the_order_of_their_stream() {
    let Some(program) = compiled("host_functions") else { return };
    let cases = ["order", "waits for main", "destroyed", "captured", "no call"];
    for case in cases {
        let output = kiln(&["--seeds", "4"], &program, &[case]);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{case}");
    }
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
    let Some(program) = compiled("host_functions") else { return };
    let output = kiln(&[], &program, &["race"]);
    let told = text(&output.stderr);
    assert!(output.status.code() == Some(5) && told.contains("nothing orders"), "{told}");
}

#[test]
fn a_callback_is_told_of_a_failure_before_it() {
    let Some(program) = compiled("host_functions") else { return };
    let output = kiln(&[], &program, &["lost"]);
    let told = text(&output.stderr);
    assert!(output.status.code() == Some(5) && !told.contains("answered"), "{told}");
    assert!(told.contains("add_one"), "{told}");
}

#[test]
fn a_process_ends_while_a_function_of_the_host_waits_for_it() {
    let Some(program) = compiled("host_functions") else { return };
    let output = kiln(&[], &program, &["ends"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("the process ended while a function"), "{told}");
}
