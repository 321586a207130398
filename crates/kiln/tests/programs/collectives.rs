//! Collectives of one rank: what they leave, what they cost, where they can be recorded, and what is refused.

use kiln::GpuRef;
use kiln::buffer::Element;
use kiln::error::{ErrorKind, Misuse};
use kiln::program::{
    Bindings, CollectiveError, Collectives, Communicator, CommunicatorConfig, Program, ProgramError, ReduceOp,
};
use kiln_driver::layer::CommandKind;
use kiln_ir::Type;

use crate::rig::{Rig, refusal};

const OPERATIONS: [ReduceOp; 5] =
    [ReduceOp::Sum, ReduceOp::Product, ReduceOp::Min, ReduceOp::Max, ReduceOp::Average];

const ADD_ONE: &str = "kernel add_one(inout x: u32[]) block(32) over(x) { x[global.x] = x[global.x] + 1; }";

fn world(rig: &Rig) -> Communicator {
    Communicator::open(rig.gpu(), CommunicatorConfig::single()).unwrap()
}

/// Why a collective was refused.
fn collective_refusal<T: std::fmt::Debug>(result: Result<T, kiln::Error>) -> CollectiveError {
    match refusal(result) {
        ProgramError::Collective(error) => error,
        other => panic!("expected a refusal of a collective, got {other}"),
    }
}

/// Runs every collective on a buffer of `data`; each must leave the same elements in its destination.
fn every_collective_copies<T: Element + PartialEq + std::fmt::Debug>(rig: &Rig, data: &[T], element: Type) {
    let world = world(rig);
    let from = rig.gpu().upload(data).unwrap();
    let to: Vec<GpuRef<T>> = (0..12).map(|_| rig.gpu().zeros(data.len()).unwrap()).collect();
    let mut sequence = rig.backend.sequence();
    for (op, to) in OPERATIONS.into_iter().zip(&to) {
        sequence.all_reduce(&world, &from, to, op.of(element)).unwrap();
    }
    for (op, to) in OPERATIONS.into_iter().zip(&to[5..]) {
        sequence.reduce_scatter(&world, &from, to, op.of(element)).unwrap();
    }
    sequence.all_gather(&world, &from, &to[10]).unwrap();
    sequence.broadcast(&world, &from, &to[11], 0).unwrap();
    sequence.run().unwrap();
    for to in to {
        assert_eq!(to.download().unwrap(), data);
    }
}

fn on_every_element(rig: Rig) {
    every_collective_copies(&rig, &[1u8, 2, 255], Type::U8);
    every_collective_copies(&rig, &[1u16, 2, 65535], Type::U16);
    every_collective_copies(&rig, &[1u32, 2, u32::MAX], Type::U32);
    every_collective_copies(&rig, &[1u64, 2, u64::MAX], Type::U64);
    every_collective_copies(&rig, &[-1i8, 2], Type::I8);
    every_collective_copies(&rig, &[-1i16, 2], Type::I16);
    every_collective_copies(&rig, &[-1i32, i32::MIN], Type::I32);
    every_collective_copies(&rig, &[-1i64, i64::MIN], Type::I64);
    every_collective_copies(&rig, &[0.5f32, -0.0], Type::F32);
    every_collective_copies(&rig, &[0.5f64, f64::MAX], Type::F64);
    every_collective_copies(&rig, &[half::f16::from_f32(0.5); 7], Type::F16);
    every_collective_copies(&rig, &[half::bf16::from_f32(0.5); 7], Type::Bf16);
    every_collective_copies::<f32>(&rig, &[], Type::F32);
    rig.finish();
}

#[test]
fn every_collective_of_one_rank_leaves_the_elements_of_its_source() {
    on_every_element(Rig::simulated());
}

#[test]
fn every_collective_of_one_rank_leaves_the_elements_of_its_source_on_a_gpu() {
    let test = "every_collective_of_one_rank_leaves_the_elements_of_its_source_on_a_gpu";
    Rig::cuda(test).into_iter().for_each(on_every_element);
}

#[test]
fn a_collective_of_one_rank_is_one_copy_and_none_in_place() {
    let rig = Rig::simulated();
    let world = world(&rig);
    let (a, b) = (rig.gpu().upload(&[1u32; 100]).unwrap(), rig.gpu().zeros::<u32>(100).unwrap());
    let copies = |record: &dyn Fn(&mut kiln::program::Sequence<'_>)| {
        let before = rig.counts();
        let mut sequence = rig.backend.sequence();
        record(&mut sequence);
        sequence.run().unwrap();
        rig.counts().since(&before).submitted(CommandKind::Copy)
    };
    assert_eq!(
        copies(&|s| {
            s.all_reduce(&world, &a, &b, ReduceOp::Sum).unwrap();
        }),
        1
    );
    assert_eq!(
        copies(&|s| {
            s.all_gather(&world, &a, &b).unwrap();
        }),
        1
    );
    assert_eq!(
        copies(&|s| {
            s.all_reduce(&world, &a, &a, ReduceOp::Sum).unwrap();
        }),
        0
    );
    assert_eq!(
        copies(&|s| {
            s.all_gather(&world, &a, &a).unwrap();
        }),
        0
    );
    assert_eq!(
        copies(&|s| {
            s.reduce_scatter(&world, &a, &a, ReduceOp::Max).unwrap();
        }),
        0
    );
    assert_eq!(
        copies(&|s| {
            s.broadcast(&world, &a, &a, 0).unwrap();
        }),
        0
    );
    assert_eq!((a.download().unwrap(), b.download().unwrap()), (vec![1; 100], vec![1; 100]));
    drop((a, b, world));
    rig.finish();
}

#[test]
fn collectives_are_ordered_with_the_work_around_them() {
    let rig = Rig::simulated();
    let world = world(&rig);
    let add = rig.backend.compile(&Program::parse(ADD_ONE).unwrap()).unwrap();
    let [a, b, c] = [(); 3].map(|()| rig.gpu().zeros::<u32>(64).unwrap());
    let mut read = Vec::new();
    let mut sequence = rig.backend.sequence();
    sequence.fill(&a, 5).unwrap();
    sequence.all_reduce(&world, &a, &b, ReduceOp::Sum).unwrap();
    sequence.step(&add, Bindings::new().resident("x", &b)).unwrap();
    sequence.broadcast(&world, &b, &c, 0).unwrap();
    sequence.fill(&b, 0).unwrap();
    let repeated = sequence.repeat(3, |turn| {
        turn.all_gather(&world, &c, &a)?;
        turn.step(&add, Bindings::new().resident("x", &a))?;
        turn.reduce_scatter(&world, &a, &c, ReduceOp::Min)?;
        turn.all_reduce(&world, &c, &c, ReduceOp::Max)?.broadcast(&world, &c, &b, 0)?;
        Ok(())
    });
    repeated.unwrap();
    sequence.read(&c, &mut read).unwrap();
    sequence.run().unwrap();
    assert_eq!((read, b.download().unwrap()), (vec![9; 64], vec![9; 64]));
    drop((add, a, b, c, world));
    rig.finish();
}

#[test]
fn collectives_run_again_with_every_replay_of_a_graph() {
    let rig = Rig::simulated();
    let world = world(&rig);
    let add = rig.backend.compile(&Program::parse(ADD_ONE).unwrap()).unwrap();
    let [a, b, c] = [(); 3].map(|()| rig.gpu().zeros::<u32>(64).unwrap());
    let mut sequence = rig.backend.sequence();
    sequence.step(&add, Bindings::new().resident("x", &a)).unwrap();
    sequence.all_reduce(&world, &a, &b, ReduceOp::Sum).unwrap();
    let built = sequence.build().unwrap();
    let (recorded, nodes) = rig
        .gpu()
        .record(|builder| {
            let first = builder.all_gather(&world, &b, &c)?;
            let second = builder.reduce_scatter(&world, &c, &c, ReduceOp::Product)?;
            let third = builder.broadcast(&world, &c, &a, 0)?;
            Ok([first, second, third].map(|node| node.index()))
        })
        .unwrap();
    assert_eq!(nodes, [0, 1, 2]);
    assert_eq!(recorded.edges().collect::<Vec<_>>(), [(0, 2)]);
    for turn in 1..=3 {
        built.replay().unwrap();
        recorded.replay().unwrap();
        assert_eq!([&a, &b, &c].map(|x| x.download().unwrap()), [(); 3].map(|()| vec![turn; 64]));
    }
    drop((add, built, recorded, a, b, c, world));
    rig.finish();
}

#[test]
fn a_communicator_has_one_rank() {
    let rig = Rig::simulated();
    let open = |rank, size| Communicator::open(rig.gpu(), CommunicatorConfig::new(rank, size));
    assert_eq!(collective_refusal(open(0, 0)), CollectiveError::NoRanks);
    assert_eq!(collective_refusal(open(1, 1)), CollectiveError::Rank { rank: 1, size: 1 });
    assert_eq!(collective_refusal(open(8, 8)), CollectiveError::Rank { rank: 8, size: 8 });
    let error = collective_refusal(open(0, 2));
    assert_eq!(error, CollectiveError::NotConnected { size: 2 });
    assert!(error.to_string().contains("NCCL") && error.to_string().contains("one rank"), "{error}");
    assert_eq!(CommunicatorConfig::default(), CommunicatorConfig::single());
    let world = open(0, 1).unwrap();
    assert_eq!((world.rank(), world.size(), format!("{world:?}")), (0, 1, "rank 0 of 1".to_owned()));
    drop(world);
    rig.finish();
}

#[test]
fn what_does_not_fit_is_refused_and_the_sequence_goes_on() {
    let rig = Rig::simulated();
    let world = world(&rig);
    let (a, b, short) = (
        rig.gpu().upload(&[7u32; 10]).unwrap(),
        rig.gpu().zeros::<u32>(10).unwrap(),
        rig.gpu().zeros::<u32>(9).unwrap(),
    );
    let mut sequence = rig.backend.sequence();
    let length = |operation| CollectiveError::Length {
        operation,
        source_len: 10,
        destination_len: 9,
        wanted: 10,
        size: 1,
    };
    let sum = ReduceOp::Sum;
    assert_eq!(collective_refusal(sequence.all_reduce(&world, &a, &short, sum)), length("all-reduce"));
    assert_eq!(collective_refusal(sequence.all_gather(&world, &a, &short)), length("all-gather"));
    assert_eq!(
        collective_refusal(sequence.reduce_scatter(&world, &a, &short, sum)),
        length("reduce-scatter")
    );
    assert_eq!(collective_refusal(sequence.broadcast(&world, &a, &short, 0)), length("broadcast"));
    let root = CollectiveError::Root { root: 1, size: 1 };
    assert_eq!(collective_refusal(sequence.broadcast(&world, &a, &b, 1)), root);
    let overlapping = (a.view(0..6).unwrap(), a.view(4..10).unwrap());
    let error = sequence.all_reduce(&world, &overlapping.0, &overlapping.1, sum).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Misuse(Misuse::CopyOverlap)), "{error}");
    assert_eq!(format!("{sequence:?}"), "sequence of 0 commands");
    sequence.all_reduce(&world, &a, &b, sum).unwrap();
    sequence.run().unwrap();
    assert_eq!((b.download().unwrap(), short.download().unwrap()), (vec![7; 10], vec![0; 9]));
    drop((a, b, short, overlapping, world));
    rig.finish();
}

#[test]
fn only_numbers_are_reduced() {
    let rig = Rig::simulated();
    let world = world(&rig);
    let halves = rig.gpu().zeros::<half::f16>(4).unwrap();
    let pairs = rig.gpu().zeros::<[u32; 2]>(4).unwrap();
    let bytes = rig.gpu().zeros::<u8>(4).unwrap();
    let mut sequence = rig.backend.sequence();
    let unnamed = collective_refusal(sequence.all_reduce(&world, &halves, &halves, ReduceOp::Sum));
    assert!(matches!(unnamed, CollectiveError::UnknownElement { .. }), "{unnamed}");
    assert!(unnamed.to_string().contains("ReduceOp::Sum.of(Type::F16)"), "{unnamed}");
    let of = |ty| ReduceOp::Sum.of(ty);
    let wide = collective_refusal(sequence.all_reduce(&world, &pairs, &pairs, of(Type::U32)));
    assert!(matches!(wide, CollectiveError::Element { named: Type::U32, .. }), "{wide}");
    let other = collective_refusal(sequence.reduce_scatter(&world, &bytes, &bytes, of(Type::I8)));
    assert!(matches!(other, CollectiveError::Element { named: Type::I8, .. }), "{other}");
    let truth = collective_refusal(sequence.all_reduce(&world, &bytes, &bytes, of(Type::Bool)));
    assert_eq!(truth, CollectiveError::NoNumber { element: Type::Bool });
    // What is only moved may be anything.
    sequence.all_gather(&world, &pairs, &pairs).unwrap().broadcast(&world, &halves, &halves, 0).unwrap();
    drop((sequence, halves, pairs, bytes, world));
    rig.finish();
}

#[test]
fn a_communicator_and_its_buffers_are_of_one_device() {
    let (rig, other) = (Rig::simulated(), Rig::simulated());
    let (here, there) = (world(&rig), world(&other));
    let a = rig.gpu().zeros::<u32>(4).unwrap();
    let foreign = other.gpu().zeros::<u32>(4).unwrap();
    let mut sequence = rig.backend.sequence();
    let error = collective_refusal(sequence.all_reduce(&there, &a, &a, ReduceOp::Sum));
    assert_eq!(error, CollectiveError::ForeignCommunicator);
    for error in [
        sequence.all_gather(&here, &a, &foreign).unwrap_err(),
        sequence.broadcast(&here, &foreign, &foreign, 0).unwrap_err(),
    ] {
        assert!(matches!(error.kind(), ErrorKind::Misuse(Misuse::ForeignBlock { .. })), "{error}");
    }
    assert_eq!(format!("{sequence:?}"), "sequence of 0 commands");
    drop((sequence, a, foreign, here, there));
    rig.finish();
    other.finish();
}
