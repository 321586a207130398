//! Programs that are queued or recorded beside other work.

use kiln::GpuRef;
use kiln::program::{Bindings, Program, ProgramError, ProgramValue, Read, ReadWrite, Typed};

use crate::rig::{Rig, refusal};

const BLEND: &str = "
    kernel blend(in x: u32[], inout y: u32[like x], a: u32) block(32) over(y) { y[global.x] = a * x[global.x] + y[global.x]; }";
const FIRST_OF_BLOCKS: &str = "
    kernel first_of_blocks(inout x: u32[]) block(4) { if thread.x == 0 { x[block.x] = block.x + 1; } }";

type Blend = Typed<(Read<u32>, ReadWrite<u32>, ProgramValue<u32>)>;

/// Runs a law on the simulated device and, where there is one, on a GPU.
fn everywhere(test: &str, law: impl Fn(&Rig)) {
    for rig in [Some(Rig::simulated()), Rig::cuda(test)].into_iter().flatten() {
        law(&rig);
        rig.finish();
    }
}

#[test]
fn calls_are_queued_in_order_with_copies_on_any_stream() {
    everywhere("calls_are_queued_in_order_with_copies_on_any_stream", |rig| {
        let gpu = rig.gpu();
        let blend: Blend = rig.backend.compile_typed(&Program::parse(BLEND).unwrap()).unwrap();
        let streams = [gpu.stream().unwrap(), gpu.stream().unwrap()];
        let (x, y) = (gpu.upload(&[1_u32; 1000]).unwrap(), gpu.zeros::<u32>(1000).unwrap());
        let before = rig.counts();
        for turn in 0..10 {
            blend.call((&x, &y, 3)).on(&streams[turn % 2]).submit().unwrap();
            x.copy_from(&y).unwrap();
        }
        assert_eq!(rig.launches_since(&before), 10);
        // y becomes 3 x + y, and x becomes y.
        let (mut expected_x, mut expected_y) = (1_u32, 0_u32);
        for _ in 0..10 {
            expected_y = expected_x.wrapping_mul(3).wrapping_add(expected_y);
            expected_x = expected_y;
        }
        assert_eq!(y.download().unwrap(), [expected_y; 1000]);
        drop(streams);
    });
}

#[test]
fn calls_are_nodes_of_a_graph_beside_other_work_and_can_be_changed() {
    everywhere("calls_are_nodes_of_a_graph_beside_other_work_and_can_be_changed", |rig| {
        let gpu = rig.gpu();
        let blend = rig.backend.compile(&Program::parse(BLEND).unwrap()).unwrap();
        let (x, y) = (gpu.upload(&[1_u32, 2, 3]).unwrap(), gpu.allocate::<u32>(3).unwrap());
        let copy = gpu.allocate::<u32>(3).unwrap();
        let mut graph = gpu.graph();
        graph.fill(&y, 10).unwrap();
        let given = Bindings::new().resident("x", &x).resident("y", &y).scalar("a", 2_u32);
        let mut step = blend.call(given).record(&mut graph).unwrap();
        graph.copy(&y, &copy).unwrap();
        let mut graph = graph.build().unwrap();
        assert_eq!(graph.edges().collect::<Vec<_>>(), [(0, 1), (1, 2)]);
        graph.replay().unwrap();
        assert_eq!(copy.download().unwrap(), [12, 14, 16]);
        step.update(&mut graph, Bindings::new().scalar("a", 100_u32)).unwrap();
        graph.replay().unwrap();
        assert_eq!(copy.download().unwrap(), [110, 210, 310]);
        drop((graph, step));
    });
}

#[test]
fn a_call_has_the_grid_it_asks_for() {
    let rig = Rig::simulated();
    let pipeline = rig.backend.compile(&Program::parse(FIRST_OF_BLOCKS).unwrap()).unwrap();
    let x = rig.gpu().zeros::<u32>(5).unwrap();
    pipeline.call(Bindings::new().resident("x", &x)).grid(3).submit().unwrap();
    assert_eq!(x.download().unwrap(), [1, 2, 3, 0, 0]);
    drop((pipeline, x));
    rig.finish();
}

/// What is refused, both ways. Nothing is queued, and the graph stays as it was.
fn refused(rig: &Rig, text: &str, bindings: impl Fn() -> Bindings<'static>) -> ProgramError {
    let pipeline = rig.backend.compile(&Program::parse(text).unwrap()).unwrap();
    let (before, mut graph) = (rig.counts(), rig.gpu().graph());
    let submitted = refusal(pipeline.call(bindings()).submit());
    assert_eq!(refusal(pipeline.call(bindings()).record(&mut graph)), submitted);
    assert!(graph.is_empty());
    assert_eq!(rig.launches_since(&before), 0);
    submitted
}

#[test]
fn what_does_not_fit_a_call_is_refused_before_anything_is_queued() {
    let rig = Rig::simulated();
    let gpu = rig.gpu();
    let (x, none): (GpuRef<u32>, GpuRef<u32>) = (gpu.zeros(8).unwrap(), gpu.zeros(0).unwrap());
    let both = |x: &GpuRef<u32>, y: &GpuRef<u32>| {
        Bindings::new().resident("x", x).resident("y", y).scalar("a", 1_u32)
    };
    let unsupported = |error: ProgramError, wanted: &str| match error {
        ProgramError::Unsupported { what, .. } => assert!(what.contains(wanted), "{what}"),
        other => panic!("{other}"),
    };
    assert!(matches!(refused(&rig, BLEND, || both(&x, &x)), ProgramError::Overlap { .. }));
    assert!(matches!(
        refused(&rig, BLEND, || both(&x.view(..4).unwrap(), &x.view(5..).unwrap())),
        ProgramError::Plan(_)
    ));
    unsupported(refused(&rig, BLEND, || both(&none, &none)), "no elements");
    let host = || Bindings::new().input("x", &[1_u32, 2]).scalar("a", 1_u32);
    unsupported(refused(&rig, BLEND, host), "host data");
    let traps = "kernel traps(inout x: u32[]) block(32) over(x) { if x[global.x] == 7 { trap(1); } }";
    unsupported(refused(&rig, traps, || Bindings::new().resident("x", &x)), "can trap");
    let output =
        "kernel twice(in x: u32[], out y: u32[like x]) block(32) over(x) { y[global.x] = x[global.x] * 2; }";
    unsupported(refused(&rig, output, || Bindings::new().resident("x", &x)), "an output");
    drop((x, none));
    rig.finish();
}
