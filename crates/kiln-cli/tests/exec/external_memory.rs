//! Memory of another interface: a program in C.

use super::{finds, passes};

#[test]
fn parts_of_the_memory_of_a_file_are_mapped_and_outlive_it() {
    passes("external_memory", &["--seeds", "2"], &["right"]);
}

#[test]
fn a_kernel_on_a_buffer_that_was_freed_is_found() {
    finds("external_memory", &[], &[("outside", "add_one")]);
}
