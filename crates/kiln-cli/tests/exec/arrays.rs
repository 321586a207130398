//! Arrays, textures and surfaces: programs in C.

use super::{compiled, finds, kiln, passes, text};

#[test]
fn arrays_are_copied_and_shown_by_textures_and_surfaces() {
    passes("arrays", &["--seeds", "2"], &["copies", "textures", "surfaces"]);
}

#[test]
fn wrong_arrays_and_textures_get_the_code_of_the_driver() {
    let Some(program) = compiled("arrays") else { return };
    for case in ["bad", "wild"] {
        let output = kiln(&[], &program, &[case]);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{case}");
    }
}

#[test]
fn texels_are_checked_as_other_memory_is() {
    finds("arrays", &[], &[("unwritten", "never written"), ("outside", "fill")]);
}

#[test]
fn a_texture_is_destroyed_when_the_launches_that_use_it_are_done() {
    passes("arrays", &["--seeds", "3"], &["destroyed waited"]);
    let cases = [
        ("destroyed early", "texture object"),
        ("destroyed another waited", "texture object"),
        ("destroyed before", "texture object"),
    ];
    finds("arrays", &["--seeds", "3"], &cases);
}
