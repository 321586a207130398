//! Steps of a graph, changed between replays.

use std::sync::Arc;

use kiln::program::{Bindings, DispatchConfig, Pipeline, Program, ProgramError, Step};
use kiln::{GpuRef, Graph, error::ErrorKind, graph::GraphError};

use crate::rig::{Rig, refusal};

const BLEND: &str = "
    kernel blend(in x: u32[], inout y: u32[like x], a: u32) block(32) over(y) { y[global.x] = a * x[global.x] + y[global.x]; }";

struct Recorded {
    pipeline: Arc<Pipeline>,
    x: GpuRef<u32>,
    y: GpuRef<u32>,
    step: Step,
    graph: Graph,
}

/// `y = 2 x + y`, then a fill of something else.
fn recorded(rig: &Rig, other: &GpuRef<u32>) -> Recorded {
    let pipeline = rig.backend.compile(&Program::parse(BLEND).unwrap()).unwrap();
    let (x, y) = (rig.gpu().upload(&[1_u32, 2, 3]).unwrap(), rig.gpu().upload(&[10_u32; 3]).unwrap());
    let mut sequence = rig.backend.sequence();
    let given = Bindings::new().resident("x", &x).resident("y", &y).scalar("a", 2_u32);
    let step = sequence.record(&pipeline, given, &DispatchConfig::default()).unwrap();
    sequence.fill(other, 7).unwrap();
    Recorded { graph: sequence.build().unwrap(), pipeline, x, y, step }
}

/// The law, on one device.
fn judge(rig: &Rig) {
    let other = rig.gpu().zeros::<u32>(100).unwrap();
    let Recorded { pipeline, x, y, mut step, mut graph } = recorded(rig, &other);
    graph.replay().unwrap();
    assert_eq!(y.download().unwrap(), [12, 14, 16]);

    step.update(&mut graph, Bindings::new().scalar("a", 100_u32)).unwrap();
    graph.replay().unwrap();
    assert_eq!(y.download().unwrap(), [112, 214, 316], "another scalar, the same buffers");

    let (long_x, long_y) = (
        rig.gpu().upload(&[1_u32; 5000]).unwrap(),
        rig.gpu().upload(&(0..5000).collect::<Vec<u32>>()).unwrap(),
    );
    step.update(&mut graph, Bindings::new().resident("x", &long_x).resident("y", &long_y)).unwrap();
    graph.replay().unwrap();
    assert_eq!(
        long_y.download().unwrap(),
        (100..5100).collect::<Vec<u32>>(),
        "other buffers of another size, the same scalar"
    );
    assert_eq!(y.download().unwrap(), [112, 214, 316], "what it had before is left alone");

    step.update(&mut graph, Bindings::new().resident("x", &x).resident("y", &y).scalar("a", 0_u32)).unwrap();
    graph.replay().unwrap();
    assert_eq!((y.download().unwrap(), other.download().unwrap()), (vec![112, 214, 316], vec![7; 100]));
    drop((pipeline, graph, step));
}

/// Every round adds what the neighbour had; the neighbour of a block's last thread is in another block.
const MEET: &str = "
    kernel meet(inout x: u32[], n: u32) block(32) {
        let i = global.x;
        let next = (i + 1) % len(x);
        for turn in 0..n {
            let sum = x[i] + x[next];
            barrier grid;
            x[i] = sum;
            barrier grid;
        }
    }";

/// What it means.
fn met(mut x: Vec<u32>, rounds: u32) -> Vec<u32> {
    for _ in 0..rounds {
        x = (0..x.len()).map(|at| x[at].wrapping_add(x[(at + 1) % x.len()])).collect();
    }
    x
}

/// Blocks that wait for each other still do so when their step has been changed, and begin to count anew at each replay.
fn judge_meeting(rig: &Rig) {
    let pipeline = rig.backend.compile(&Program::parse(MEET).unwrap()).unwrap();
    let start = |len: u32| (0..len).map(|at| at * at).collect::<Vec<u32>>();
    let (x, other) = (rig.gpu().upload(&start(128)).unwrap(), rig.gpu().upload(&start(97)).unwrap());
    let mut sequence = rig.backend.sequence();
    let config = DispatchConfig { grid: Some(4.into()), ..DispatchConfig::default() };
    let given = Bindings::new().resident("x", &x).scalar("n", 3_u32);
    let mut step = sequence.record(&pipeline, given, &config).unwrap();
    let mut graph = sequence.build().unwrap();
    graph.replay().unwrap();
    graph.replay().unwrap();
    assert_eq!(x.download().unwrap(), met(start(128), 6));

    step.update(&mut graph, Bindings::new().resident("x", &other).scalar("n", 5_u32)).unwrap();
    for replays in 1..4 {
        graph.replay().unwrap();
        assert_eq!(other.download().unwrap(), met(start(97), 5 * replays));
    }
    assert_eq!(x.download().unwrap(), met(start(128), 6), "what it had before is left alone");
    drop((pipeline, graph, step));
}

#[test]
fn a_step_whose_blocks_meet_changes_in_place() {
    let rig = Rig::simulated();
    judge_meeting(&rig);
    rig.finish();
    if let Some(rig) = Rig::cuda("a_step_whose_blocks_meet_changes_in_place") {
        judge_meeting(&rig);
        rig.finish();
    }
}

#[test]
fn scalars_buffers_and_sizes_of_a_step_change_in_place_on_the_simulated_device() {
    let rig = Rig::simulated();
    judge(&rig);
    rig.finish();
}

#[test]
fn scalars_buffers_and_sizes_of_a_step_change_in_place_on_a_gpu() {
    if let Some(rig) = Rig::cuda("scalars_buffers_and_sizes_of_a_step_change_in_place_on_a_gpu") {
        judge(&rig);
        rig.finish();
    }
}

#[test]
fn a_change_that_does_not_fit_is_refused_and_changes_nothing() {
    let rig = Rig::simulated();
    let other = rig.gpu().zeros::<u32>(3).unwrap();
    let Recorded { pipeline, x, y, mut step, mut graph } = recorded(&rig, &other);
    let four = rig.gpu().zeros::<u32>(4).unwrap();
    let mut refused = |bindings: Bindings<'_>| refusal(step.update(&mut graph, bindings));
    assert!(matches!(refused(Bindings::new().scalar("a", 1.0_f32)), ProgramError::Plan(_)));
    assert!(matches!(refused(Bindings::new().scalar("b", 1_u32)), ProgramError::Unknown { .. }));
    assert!(matches!(refused(Bindings::new().resident("y", &four)), ProgramError::Plan(_)));
    assert!(matches!(refused(Bindings::new().resident("y", &x)), ProgramError::Overlap { .. }));
    assert!(matches!(refused(Bindings::new().input("x", &[1_u32; 3])), ProgramError::Unsupported { .. }));
    let none = rig.gpu().zeros::<u32>(0).unwrap();
    let empty = Bindings::new().resident("x", &none).resident("y", &none);
    assert!(matches!(refused(empty), ProgramError::Unsupported { .. }));
    let floats = rig.gpu().zeros::<f32>(3).unwrap();
    assert!(matches!(refused(Bindings::new().resident("y", &floats)), ProgramError::Element { .. }));

    // The fill and the step run side by side, so the step cannot use what is filled.
    let error = step.update(&mut graph, Bindings::new().resident("y", &other)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Graph(GraphError::Unordered { .. })), "{error}");
    // Another graph has no such step.
    let mut stranger = recorded(&rig, &other);
    let error = step.update(&mut stranger.graph, Bindings::new().scalar("a", 5_u32)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Graph(GraphError::ForeignHandle { .. })), "{error}");

    graph.replay().unwrap();
    assert_eq!(y.download().unwrap(), [12, 14, 16], "the graph is as it was");
    drop((pipeline, x, y, step, graph, four, none, floats, other, stranger));
    rig.finish();
}

#[test]
fn a_step_that_runs_more_than_once_has_no_one_place_to_change() {
    let rig = Rig::simulated();
    let pipeline = rig.backend.compile(&Program::parse(BLEND).unwrap()).unwrap();
    let mut sequence = rig.backend.sequence();
    let given = || Bindings::new().input("x", &[1_u32]).input("y", &[1_u32]).scalar("a", 1_u32);
    let config = DispatchConfig { steps: 2, ..DispatchConfig::default() };
    assert!(matches!(
        refusal(sequence.record(&pipeline, given(), &config)),
        ProgramError::Unsupported { .. }
    ));
    drop((sequence, pipeline));
    rig.finish();
}
