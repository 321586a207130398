//! Virtual memory management: programs in C.

use super::{compiled, kiln, text};

#[test]
fn reserved_addresses_and_physical_memory_are_mapped_shared_and_refused() {
    let Some(program) = compiled("virtual_memory") else { return };
    for case in ["grows", "asks", "shares", "right"] {
        let output = kiln(&["--seeds", "2"], &program, &[case]);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{case}");
    }
    let output = kiln(&[], &program, &["refuses"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

#[test]
fn accesses_that_a_mapping_does_not_allow_are_found() {
    let Some(program) = compiled("virtual_memory") else { return };
    let cases = [
        ("outside", "out of bounds"),
        ("no access", "add_one"),
        ("taken away", "add_one"),
        ("read only", "add_one"),
        ("in use", "unmap"),
    ];
    for (case, said) in cases {
        let output = kiln(&[], &program, &[case]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{case}: {told}");
        assert!(told.contains(said) && !told.contains("answered"), "{case}: {told}");
    }
}
