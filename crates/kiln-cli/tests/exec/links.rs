//! Links with the device runtime, objects and archives: a program in C.

use super::{compiled, finds, kiln, passes, text};

#[test]
fn a_grid_meets_by_the_device_runtime_and_one_that_does_not_is_found() {
    passes("links", &["--seeds", "5"], &["grid"]);
    // One that was not launched as a cooperative one does not meet, either.
    finds("links", &["--seeds", "4"], &[("early", "race"), ("alone", "race")]);
}

#[test]
fn objects_give_their_ptx_and_what_a_link_misses_is_named() {
    let Some(program) = compiled("links") else { return };
    let output = kiln(&[], &program, &["missing"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("nothing defines `cudaCGGetIntrinsicHandle`"), "{told}");
    let output = kiln(&[], &program, &["object"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("an object or a library without PTX"), "{told}");
}
