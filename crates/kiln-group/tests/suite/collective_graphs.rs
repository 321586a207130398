//! Collectives as nodes of graphs.

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
