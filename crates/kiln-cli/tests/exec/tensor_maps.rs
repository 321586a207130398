//! Tensor maps and tensor copies (TMA): a program in C.

use super::{compiled, kiln, text};

#[test]
fn a_kernel_loads_and_stores_tiles_by_tensor_maps() {
    let Some(program) = compiled("tensor_maps") else { return };
    let output = kiln(&["--seeds", "3"], &program, &["tile"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

#[test]
fn tensor_maps_that_the_driver_refuses_are_refused_and_explained() {
    let Some(program) = compiled("tensor_maps") else { return };
    let output = kiln(&[], &program, &["refused"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("globalStrides[0] of the tensor map is 100"), "{told}");
    assert!(told.contains("globalAddress"), "{told}");
}

#[test]
fn a_tile_of_memory_that_was_freed_is_found() {
    let Some(program) = compiled("tensor_maps") else { return };
    let output = kiln(&[], &program, &["freed"]);
    let told = text(&output.stderr);
    assert!(output.status.code() == Some(5) && told.contains("tile"), "{told}");
}
