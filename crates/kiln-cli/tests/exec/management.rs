//! NVML beside the driver API: a program in C.

use super::passes;

#[test]
fn the_management_library_tells_what_the_driver_tells() {
    passes("management", &["--devices", "2"], &["", "with driver"]);
}
