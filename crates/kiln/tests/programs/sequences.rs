//! What a sequence costs and what it reads.

use kiln::program::{Bindings, Program};
use kiln_driver::call::CallKind;
use kiln_driver::layer::{CommandKind, Counts};

use crate::rig::Rig;

const ADD: &str = "
    kernel add(in x: u32[], inout y: u32[like x], a: u32) block(32) over(x) { y[global.x] = a * x[global.x] + y[global.x]; }";

/// Calls that make something new.
const MAKING: [CallKind; 6] = [
    CallKind::Allocate,
    CallKind::AllocateHost,
    CallKind::Reserve,
    CallKind::CreatePages,
    CallKind::CreateStream,
    CallKind::CreateEvent,
];

/// Sequences after which every pool has its size.
const WARM_UP: u32 = 50;

#[test]
fn a_sequence_is_one_submission_with_one_wait_and_takes_what_it_needs_from_the_pools() {
    let rig = Rig::simulated();
    let add = rig.backend.compile(&Program::parse(ADD).unwrap()).unwrap();
    let (x, y) = (rig.gpu().zeros::<u32>(1000).unwrap(), rig.gpu().zeros::<u32>(1000).unwrap());
    let run = |turn: u32| -> Counts {
        let (mut part, mut none, mut last) = (Vec::new(), vec![1_u32], Vec::new());
        let mut fresh = vec![1_u32; 40];
        let data: Vec<u32> = (0..1000).map(|at| at + turn).collect();
        let before = rig.counts();
        let mut sequence = rig.backend.sequence();
        sequence.upload(&x, &data).unwrap().fill(&y, 5).unwrap();
        for _ in 0..2 {
            let given = Bindings::new().resident("x", &x).resident("y", &y).scalar("a", 2_u32);
            sequence.step(&add, given).unwrap();
        }
        let given = Bindings::new().input("x", &[7_u32; 40]).in_out("y", &mut fresh).scalar("a", 3_u32);
        sequence.step(&add, given).unwrap();
        sequence.read(&y.view(10..13).unwrap(), &mut part).unwrap();
        sequence.read(&y.view(4..4).unwrap(), &mut none).unwrap();
        sequence.copy(&x, &y).unwrap().read(&y.view(998..).unwrap(), &mut last).unwrap();
        assert_eq!(sequence.run().unwrap().steps, 3);
        assert_eq!(part, [10, 11, 12].map(|at| 5 + 4 * (at + turn)), "as it was before the copy");
        assert_eq!((none, last), (vec![], vec![998 + turn, 999 + turn]));
        assert_eq!(fresh, [22; 40]);
        rig.counts().since(&before)
    };
    // The pools have what they need after a few.
    for turn in 0..WARM_UP {
        run(turn);
    }
    for turn in WARM_UP..WARM_UP + 10 {
        let counts = run(turn);
        assert_eq!(MAKING.map(|call| counts.of(call)), [0; 6], "nothing is made anew");
        assert_eq!((counts.of(CallKind::Wait), counts.submitted(CommandKind::Launch)), (1, 3));
        assert_eq!(counts.submitted(CommandKind::Wait), 0, "no stream waits for another");
        assert!(counts.submitted(CommandKind::Signal) <= 1, "{counts:?}");
    }
    drop((add, x, y));
    rig.finish();
}
