//! Collectives as nodes of graphs.

use std::time::{Duration, Instant};

use kiln::group::{DeviceCommunicatorConfig, Reduction};

use crate::collective_mistakes::short;
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

/// On GPUs a collective is in a graph on all of its ranks or on none.
#[test]
fn a_collective_in_a_graph_on_one_rank_and_submitted_on_another_is_refused_whichever_comes_first() {
    for first in [0, 1] {
        let rig = Rig::new(2, 1);
        let ranks = rig.group.communicators(&DeviceCommunicatorConfig::default()).unwrap();
        let buffers = [0, 1].map(|rank: usize| ranks[rank].runtime().upload(&[1_u32; 4]).unwrap());
        let mut graph = ranks[0].runtime().graph();
        ranks[0].all_reduce_in_place(&buffers[0], Reduction::Sum).record(&mut graph).unwrap();
        let graph = graph.build().unwrap();
        let submit =
            |rank: usize| ranks[rank].all_reduce_in_place(&buffers[rank], Reduction::Sum).submit().map(drop);
        let replay = || graph.replay().map(drop).map_err(|error| error.to_string());
        let calls: [&dyn Fn() -> Result<(), String>; 2] =
            [&replay, &|| submit(1).map_err(|error| error.to_string())];
        calls[first]().unwrap();
        let told = calls[1 - first]().unwrap_err();
        let (one, other) = (1 - first, first);
        let words = match first {
            0 => "submitted and in a graph",
            _ => "in a graph and submitted",
        };
        let differ = format!("rank {one} and rank {other} differ in the capture of collective 0: {words}");
        assert!(told.contains(&differ), "{told}");
        let findings = rig.machine.findings();
        assert!(findings.iter().any(|found| found.to_string().contains(&differ)), "{findings:?}");
        // The call that was refused is not there, and what is called alike is done.
        let mut alike = ranks[1].runtime().graph();
        ranks[1].all_reduce_in_place(&buffers[1], Reduction::Sum).record(&mut alike).unwrap();
        match first {
            0 => drop(alike.build().unwrap().replay().unwrap()),
            _ => submit(0).unwrap(),
        }
        assert_eq!(buffers.map(|buffer| buffer.download().unwrap()), [[2; 4], [2; 4]]);
    }
}

#[test]
fn a_send_in_a_graph_and_a_receive_that_is_submitted_are_refused() {
    let rig = Rig::new(2, 1);
    let ranks = rig.group.communicators(&DeviceCommunicatorConfig::default()).unwrap();
    let buffers = [0, 1].map(|rank: usize| ranks[rank].runtime().upload(&[1_u32; 4]).unwrap());
    let mut graph = ranks[0].runtime().graph();
    ranks[0].send(&buffers[0], 1).record(&mut graph).unwrap();
    graph.build().unwrap().replay().unwrap();
    let told = ranks[1].recv(&buffers[1], 0).submit().unwrap_err().to_string();
    assert!(
        told.contains("rank 1 and rank 0 differ in the capture of transfer 0 from rank 0 to rank 1"),
        "{told}"
    );
}

#[test]
fn a_rank_that_waits_is_told_of_a_graph_that_was_refused_for_another_of_its_calls() {
    let rig = Rig::new(2, 1);
    let ranks = rig.group.communicators(&short()).unwrap();
    let replay = |rank: usize, count: usize| {
        let communicator = &ranks[rank];
        let upload = |count: usize| communicator.runtime().upload(&vec![1_u32; count]).unwrap();
        let (first, second) = (upload(4), upload(count));
        let mut graph = communicator.runtime().graph();
        communicator.all_reduce_in_place(&first, Reduction::Sum).record(&mut graph).unwrap();
        communicator.all_reduce_in_place(&second, Reduction::Sum).record(&mut graph).unwrap();
        graph.build().unwrap().replay()
    };
    let waiting = replay(0, 4).unwrap();
    assert!(replay(1, 5).is_err());
    let told = waiting.wait().unwrap_err().to_string();
    let words = "waits in collective 0, all_reduce of 4 u32, for rank 1, which called all_reduce of 4 u32 there in a graph that was refused: \
                 its all_reduce of 5 u32 in collective 1 has another count, 5 elements";
    assert!(told.contains(words), "{told}");
}
