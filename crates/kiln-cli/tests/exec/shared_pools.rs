//! Memory of a pool in another process: a program in C.

use super::passes;

#[test]
fn memory_of_a_pool_goes_to_another_process() {
    passes("shared_pools", &["--seeds", "3"], &[""]);
}
