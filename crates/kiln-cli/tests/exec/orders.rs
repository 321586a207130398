//! Orders that the API promises: programs in C.

use super::{finds, passes};

#[test]
fn launches_of_one_executable_graph_come_one_after_the_other() {
    passes("orders", &["--seeds", "3"], &["launches of one executable"]);
    let found =
        [("launches of two executables", "nothing orders"), ("launches and what follows", "nothing orders")];
    finds("orders", &[], &found);
}

#[test]
fn copies_between_devices_are_in_order_with_the_work_of_both() {
    passes("orders", &["--devices", "2", "--seeds", "3"], &["peer", "device", "any"]);
}

#[test]
fn the_legacy_stream_cannot_be_used_while_a_blocking_stream_captures() {
    passes("legacy_capture", &[], &["all"]);
}
