//! Virtual memory management: programs in C.

use super::{finds, passes};

#[test]
fn reserved_addresses_and_physical_memory_are_mapped_shared_and_refused() {
    passes("virtual_memory", &["--seeds", "2"], &["grows", "asks", "shares", "right"]);
    passes("virtual_memory", &[], &["refuses"]);
}

#[test]
fn accesses_that_a_mapping_does_not_allow_are_found() {
    let cases = [
        ("outside", "out of bounds"),
        ("no access", "add_one"),
        ("taken away", "add_one"),
        ("read only", "add_one"),
        ("in use", "unmap"),
    ];
    finds("virtual_memory", &[], &cases);
}
