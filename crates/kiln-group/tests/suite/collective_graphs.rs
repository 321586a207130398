//! Collectives as nodes of graphs.

use std::time::{Duration, Instant};

use kiln::group::{DeviceCommunicatorConfig, Reduction};

use crate::rig::Rig;

#[test]
fn a_graph_with_collectives_is_replayed_on_every_rank() {
    for seed in 0..20 {
        let rig = Rig::new(3, seed);
        let ranks = rig.group.communicators(&DeviceCommunicatorConfig::default()).unwrap();
        let buffers: Vec<_> =
            ranks.iter().map(|rank| rank.runtime().upload(&[rank.rank() + 1; 6]).unwrap()).collect();
        let copies: Vec<_> = ranks.iter().map(|rank| rank.runtime().zeros::<u32>(6).unwrap()).collect();
        let graphs: Vec<_> = ranks
            .iter()
            .zip(buffers.iter().zip(&copies))
            .map(|(rank, (buffer, copy))| {
                let mut graph = rank.runtime().graph();
                rank.all_reduce(buffer, copy, Reduction::Sum).record(&mut graph).unwrap();
                rank.all_reduce_in_place(buffer, Reduction::Max).record(&mut graph).unwrap();
                rank.barrier().record(&mut graph).unwrap();
                graph.build().unwrap()
            })
            .collect();
        for _ in 0..3 {
            for graph in graphs.iter().rev() {
                graph.replay().unwrap();
            }
        }
        for (buffer, copy) in buffers.iter().zip(&copies) {
            assert_eq!(buffer.download().unwrap(), [3; 6], "seed {seed}");
            assert_eq!(copy.download().unwrap(), [9; 6], "seed {seed}");
        }
        drop((graphs, buffers, copies, ranks));
        rig.finish();
    }
}

#[test]
fn graphs_that_differ_between_ranks_are_refused_at_replay() {
    let rig = Rig::new(2, 1);
    let ranks = rig.group.communicators(&DeviceCommunicatorConfig::default()).unwrap();
    let buffers: Vec<_> = ranks.iter().map(|rank| rank.runtime().upload(&[1_i64; 4]).unwrap()).collect();
    let graph = |rank: usize, reductions: [Reduction; 2]| {
        let mut graph = ranks[rank].runtime().graph();
        for reduction in reductions {
            ranks[rank].all_reduce_in_place(&buffers[rank], reduction).record(&mut graph).unwrap();
        }
        graph.build().unwrap()
    };
    let first = graph(0, [Reduction::Sum, Reduction::Min]);
    first.replay().unwrap();
    let error = graph(1, [Reduction::Sum, Reduction::Max]).replay().unwrap_err().to_string();
    assert!(error.contains("the reduction of collective 1: max and min"), "{error}");
    // Nothing of the refused replay counts.
    graph(1, [Reduction::Sum, Reduction::Min]).replay().unwrap();
    assert_eq!(buffers[0].download().unwrap(), [2; 4]);
}

#[test]
fn a_graph_of_a_communicator_that_was_ended_is_refused_and_differs_from_no_other_call() {
    let rig = Rig::new(3, 1);
    let mut ranks = rig.group.communicators(&DeviceCommunicatorConfig::default()).unwrap();
    let buffer = ranks[0].runtime().upload(&[1_u32; 6]).unwrap();
    let mut graph = ranks[0].runtime().graph();
    ranks[0].all_reduce_in_place(&buffer, Reduction::Sum).record(&mut graph).unwrap();
    let graph = graph.build().unwrap();
    let lost = ranks.remove(2);
    let thread = std::thread::spawn(move || {
        let _rank = lost;
        std::panic::resume_unwind(Box::new("this rank is to end"));
    });
    assert!(thread.join().is_err());
    let began = Instant::now();
    let refused = loop {
        match graph.replay() {
            Err(error) => break error.to_string(),
            // The loss is not told yet.
            Ok(_) => std::thread::sleep(Duration::from_millis(1)),
        }
        assert!(began.elapsed() < Duration::from_secs(30), "no replay was refused");
    };
    assert!(refused.contains("rank 0 of communicator") && refused.contains("was aborted"), "{refused}");
    let findings = rig.machine.findings();
    assert!(findings.is_empty(), "{findings:?}");
}
