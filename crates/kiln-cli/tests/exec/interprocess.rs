//! Memory and events that processes of a run share: programs in C.

use super::{finds, passes};

#[test]
fn memory_and_events_go_to_another_process() {
    passes("interprocess", &["--seeds", "3"], &["memory", "events", "leaves"]);
}

#[test]
fn an_event_of_a_process_that_is_gone_is_told() {
    finds("interprocess", &[], &[("killed", "record 1 of an event that processes share")]);
}
