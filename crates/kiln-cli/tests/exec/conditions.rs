//! Graphs with conditional nodes: programs in C.

use super::{finds, passes};

#[test]
fn graphs_are_selected_and_repeated_by_conditions() {
    passes("conditions", &["--seeds", "3"], &["rounds", "captured"]);
}

#[test]
fn what_a_graph_of_a_condition_does_wrong_is_found() {
    finds("conditions", &[], &[("outside", "add"), ("race", "nothing orders")]);
}
