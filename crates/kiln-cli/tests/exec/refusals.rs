//! Arguments that are refused with the codes of the documentation: a program in C.

use super::{compiled, kiln, passes, text};

#[test]
fn arguments_that_the_documentation_refuses_get_its_codes() {
    passes("refusals", &[], &["all"]);
}

#[test]
fn addresses_that_were_refused_are_told_with_their_block() {
    let Some(program) = compiled("bad_addresses") else { return };
    let cases = [
        ("past the end", "a copy", "4 bytes from byte 1022 of memory:"),
        ("fill", "a fill", "1025 bytes from byte 0 of memory:"),
        ("after the free", "a copy", "with 1024 bytes, was there and has been freed"),
        ("twice", "a free", "with 1024 bytes, was there and has been freed"),
        ("inside", "a free", "is byte 16 of memory:"),
        ("overlap", "a copy", "overlap"),
        ("wild", "a copy", "no memory of a device is at 0x1234"),
    ];
    for (case, what, why) in cases {
        let output = kiln(&[], &program, &[case]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{case}: {told}");
        assert_eq!(told.lines().count(), 1, "{case}: {told}");
        let begins = format!("kiln exec: note: {what} was refused with CUDA_ERROR_INVALID_VALUE: ");
        assert!(told.starts_with(&begins) && told.contains(why), "{case}: {told}");
    }
}
