//! Graphs whose nodes are added by hand: programs in C.

use super::{finds, passes};

#[test]
fn graphs_by_hand_are_run_asked_and_changed() {
    passes("graph_nodes", &["--seeds", "3"], &["whole", "edges", "any kind", "refuses"]);
}

#[test]
fn nodes_without_an_edge_between_them_are_found() {
    finds("graph_nodes", &[], &[("unordered", "nothing orders")]);
}
