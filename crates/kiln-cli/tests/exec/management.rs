//! NVML beside the driver API: a program in C.

use super::{compiled, kiln, text};

#[test]
fn the_management_library_tells_what_the_driver_tells() {
    let Some(program) = compiled("management") else { return };
    for words in [&[][..], &["with driver"]] {
        let output = kiln(&["--devices", "2"], &program, words);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{words:?}");
    }
}
