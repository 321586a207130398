//! Random graphs among other work, against two oracles and against the same work without a graph.

use crate::graph::program::{Route, replay_once, run};
use crate::order::asked_seeds::seeds;

const STEPS: usize = 30;

/// The simulator's happens-before finds nothing, the results are those of the host, and those of the same work queued piece by piece.
#[test]
fn graphs_among_other_work_do_what_the_work_does_without_them() {
    let mut replays = 0;
    for seed in seeds(1_500) {
        let replayed = run(seed, STEPS, &Route::Graph);
        let again = format!("repeat with KILN_FIRST_SEED={seed} KILN_SEEDS=1");
        let wrong = replayed.mismatch.as_deref().unwrap_or("results are right");
        assert!(replayed.is_clean(), "seed {seed}: {wrong}\n{}\n{again}", replayed.report);
        let piecewise = run(seed, STEPS, &Route::Piecewise(replayed.accepted.clone()));
        assert!(piecewise.is_clean(), "seed {seed}, without graphs: {}\n{again}", piecewise.report);
        assert_eq!(replayed.bytes, piecewise.bytes, "seed {seed}: {again}");
        replays += replayed.replays;
    }
    println!("{replays} replays");
    assert!(replays > 0);
}

/// No edge is there for nothing: with any one of them taken out, the simulator finds a race.
#[test]
fn every_edge_taken_out_is_caught() {
    let mut edges = 0;
    for seed in seeds(60) {
        let whole = replay_once(seed, None);
        assert!(whole.report.is_clean(), "seed {seed}: {}", whole.report);
        for edge in 0..whole.edges {
            let cut = replay_once(seed, Some(edge));
            assert!(!cut.report.is_clean(), "seed {seed}: edge {edge} taken out was not caught");
        }
        edges += whole.edges;
    }
    println!("{edges} edges");
    assert!(edges > 100);
}
