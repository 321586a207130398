//! Nodes of graphs for events, memory and values, children and objects: programs in C.

use super::{compiled, finds, kiln, passes, text};

#[test]
fn nodes_for_events_memory_and_values_are_run_asked_and_changed() {
    let cases = ["events", "branches", "memory", "kept", "captured", "values", "asked"];
    passes("graph_parts", &["--seeds", "3"], &cases);
}

#[test]
fn children_are_graphs_and_graphs_keep_objects_and_are_drawn() {
    let Some(program) = compiled("graph_parts") else { return };
    let output = kiln(&[], &program, &["children"]);
    let (told, drawn) = (text(&output.stderr), text(&output.stdout));
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(drawn.starts_with("digraph dot {") && drawn.contains("KERNEL\nadd_one"), "{drawn}");
    assert!(drawn.contains("\"graph_1_node_0\" -> \"graph_1_node_1\""), "{drawn}");
}

#[test]
fn wrong_uses_of_memory_of_a_graph_are_found() {
    let cases =
        [("not written", "never written"), ("after the free", "free"), ("without an edge", "nothing orders")];
    finds("graph_parts", &[], &cases);
}
