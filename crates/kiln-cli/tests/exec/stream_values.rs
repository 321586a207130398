//! Values that streams write to memory and wait for: programs in C.

use super::{finds, passes};

#[test]
fn values_in_memory_order_streams() {
    let cases = ["order", "crossed", "comparisons", "batch", "by the host", "captured"];
    passes("stream_values", &["--seeds", "4"], &cases);
}

#[test]
fn wrong_values_places_and_streams_are_refused() {
    passes("stream_values", &[], &["refuses"]);
}

#[test]
fn a_value_that_orders_nothing_is_found() {
    let cases = [
        ("too early", "nothing orders"),
        ("not waited for", "nothing orders"),
        ("never written", "never written"),
    ];
    finds("stream_values", &["--seeds", "4"], &cases);
}

#[test]
fn a_value_that_nothing_writes_is_told() {
    let cases = [
        ("endless", "launch stream_wait_value"),
        ("endless", "are at least 5; they are 0"),
        ("endless", "let what it waits for be done"),
        ("endless", " submission 1 was queued at "),
        ("each other", "does not end"),
    ];
    finds("stream_values", &[], &cases);
}
