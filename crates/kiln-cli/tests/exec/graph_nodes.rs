//! Graphs whose nodes are added by hand: programs in C.

use super::{compiled, kiln, text};

#[test]
fn graphs_by_hand_are_run_asked_and_changed() {
    let Some(program) = compiled("graph_nodes") else { return };
    for case in ["whole", "edges", "any kind", "refuses"] {
        let output = kiln(&["--seeds", "3"], &program, &[case]);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{case}");
    }
}

#[test]
fn nodes_without_an_edge_between_them_are_found() {
    let Some(program) = compiled("graph_nodes") else { return };
    let output = kiln(&[], &program, &["unordered"]);
    let told = text(&output.stderr);
    assert!(output.status.code() == Some(5) && told.contains("nothing orders"), "{told}");
}
