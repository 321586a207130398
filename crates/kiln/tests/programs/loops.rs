//! Sequences with repetitions and with loops until a flag of the device.

use kiln::program::{Bindings, Converge, DispatchConfig, Pipeline, Program, ProgramError};
use kiln::{GpuRef, Result};
use kiln_driver::call::CallKind;

use crate::config::COUNTDOWN;
use crate::rig::{Rig, refusal};

/// Every cell takes the largest of its neighbours; says whether one did.
const SPREAD: &str = "
    kernel spread(in from: u32[], out to: u32[like from], inout changed: u32[1]) block(32) over(from) {
        let i = global.x;
        let best = max(from[i], max(from[i - 1], from[i + 1]));
        to[i] = best;
        if (i < len(from)) & (best != from[i]) { atomic_max(changed[0], 1); }
    }";

const DOUBLE: &str = "kernel double(inout x: u32[]) block(32) over(x) { x[global.x] = x[global.x] * 2; }";

struct Cells {
    spread: std::sync::Arc<Pipeline>,
    a: GpuRef<u32>,
    b: GpuRef<u32>,
    changed: GpuRef<u32>,
}

impl Cells {
    fn new(rig: &Rig, len: usize) -> Self {
        let spread = rig.backend.compile(&Program::parse(SPREAD).unwrap()).unwrap();
        let gpu = rig.gpu();
        Self {
            spread,
            a: gpu.zeros(len).unwrap(),
            b: gpu.zeros(len).unwrap(),
            changed: gpu.zeros(1).unwrap(),
        }
    }

    fn given<'a>(&self) -> Bindings<'a> {
        Bindings::new().resident("from", &self.a).resident("to", &self.b).resident("changed", &self.changed)
    }

    fn turn(&self, turn: &mut kiln::program::Turn<'_, '_>) -> Result<()> {
        turn.step(&self.spread, self.given())?.copy(&self.b, &self.a)?;
        Ok(())
    }
}

fn one_spot(len: usize) -> Vec<u32> {
    (0..len).map(|at| if at == 0 { 9 } else { 0 }).collect()
}

#[test]
fn several_steps_run_until_a_flag_of_the_device_stays_zero() {
    let rig = Rig::simulated();
    let cells = Cells::new(&rig, 50);
    let double = rig.backend.compile(&Program::parse(DOUBLE).unwrap()).unwrap();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mut sequence = rig.backend.sequence();
    sequence.upload(&cells.a, &one_spot(50)).unwrap().read(&cells.a, &mut before).unwrap();
    sequence.until(&cells.changed, 1000, |turn| cells.turn(turn)).unwrap();
    sequence.step(&double, Bindings::new().resident("x", &cells.a)).unwrap();
    sequence.read(&cells.a, &mut after).unwrap();
    let counts = rig.counts();
    let done = sequence.run().unwrap();
    assert_eq!((before, after), (one_spot(50), vec![18; 50]));
    // 50 turns are needed. The host looks after 1, 3, 7, 15, 31 and 63, and once at the end; it does not look after each.
    assert_eq!(done.steps, 63 + 1);
    assert_eq!(rig.launches_since(&counts), 64);
    let waits = rig.counts().since(&counts).of(CallKind::Wait);
    assert!(waits <= 20, "{waits} waits");
    drop((cells, double));
    rig.finish();
}

#[test]
fn a_step_with_a_separate_flag_is_a_loop_among_other_steps() {
    let rig = Rig::simulated();
    let countdown = rig.backend.compile(&Program::parse(COUNTDOWN).unwrap()).unwrap();
    let double = rig.backend.compile(&Program::parse(DOUBLE).unwrap()).unwrap();
    let (x, mut y, mut seen) = (rig.gpu().upload(&[5_u32, 9, 2]).unwrap(), vec![4_u32, 1], Vec::new());
    let converge = Some(Converge { flag: "changed".into(), limit: 100 });
    let config = DispatchConfig { converge, ..DispatchConfig::default() };
    let mut sequence = rig.backend.sequence();
    sequence.step(&double, Bindings::new().resident("x", &x)).unwrap();
    sequence.read(&x, &mut seen).unwrap();
    sequence
        .step_with(&countdown, Bindings::new().resident("x", &x).input("changed", &[0_u32]), &config)
        .unwrap();
    sequence
        .step_with(&countdown, Bindings::new().in_out("x", &mut y).input("changed", &[0_u32]), &config)
        .unwrap();
    let mut done = sequence.run().unwrap();
    assert_eq!(seen, [10, 18, 4], "what was read before the loop");
    assert_eq!((x.download().unwrap(), y), (vec![0; 3], vec![0; 2]));
    assert_eq!(done.outputs.take::<u32>("changed").unwrap(), [0]);
    drop((countdown, double, x));
    rig.finish();
}

#[test]
fn a_repetition_does_several_things_so_many_times() {
    let rig = Rig::simulated();
    let cells = Cells::new(&rig, 40);
    let mut counts = vec![0_u32; 3];
    let double = rig.backend.compile(&Program::parse(DOUBLE).unwrap()).unwrap();
    for turns in [0_u64, 1, 5, 3000] {
        let mut after = Vec::new();
        counts = vec![1, 2, 0];
        let mut sequence = rig.backend.sequence();
        sequence.upload(&cells.a, &one_spot(40)).unwrap();
        sequence
            .repeat(turns, |turn| {
                turn.step(&double, Bindings::new().in_out("x", &mut counts))?;
                cells.turn(turn)
            })
            .unwrap();
        sequence.read(&cells.a, &mut after).unwrap();
        assert_eq!(sequence.run().unwrap().steps, 2 * turns);
        let reached: Vec<u32> = (0..40).map(|at| if at <= turns { 9 } else { 0 }).collect();
        assert_eq!(after, reached, "{turns} turns");
        let doubled = |value: u32| value.checked_shl(turns as u32).unwrap_or(0);
        assert_eq!(
            counts,
            [doubled(1), doubled(2), 0],
            "up before the first of {turns} turns, back after the last"
        );
    }
    drop((cells, double, counts));
    rig.finish();
}

#[test]
fn a_loop_fills_with_values_no_device_can_fill_with() {
    let rig = Rig::simulated();
    let gpu = rig.gpu();
    let (to, sum) = (gpu.zeros::<f64>(6).unwrap(), gpu.zeros::<f64>(6).unwrap());
    let text = "kernel add(in x: f64[], inout sum: f64[like x]) block(32) over(x) { sum[global.x] = sum[global.x] + x[global.x]; }";
    let add = rig.backend.compile(&Program::parse(text).unwrap()).unwrap();
    for turns in [3, 5000] {
        sum.fill(0.0).unwrap();
        let mut sequence = rig.backend.sequence();
        sequence
            .repeat(turns, |turn| {
                turn.fill(&to, 0.1)?.step(&add, Bindings::new().resident("x", &to).resident("sum", &sum))?;
                turn.fill(&to, 0.0)?;
                Ok(())
            })
            .unwrap();
        sequence.run().unwrap();
        let expected = (0..turns).fold(0.0, |sum, _| sum + 0.1);
        assert_eq!(sum.download().unwrap(), [expected; 6]);
    }
    drop((to, sum, add));
    rig.finish();
}

#[test]
fn a_repetition_becomes_part_of_a_graph_and_a_loop_until_a_flag_does_not() {
    let rig = Rig::simulated();
    let cells = Cells::new(&rig, 10);
    cells.a.upload(&one_spot(10)).unwrap();
    let mut sequence = rig.backend.sequence();
    sequence.repeat(3, |turn| cells.turn(turn)).unwrap();
    let graph = sequence.build().unwrap();
    graph.replay().unwrap();
    assert_eq!(cells.a.download().unwrap(), [9, 9, 9, 9, 0, 0, 0, 0, 0, 0]);
    graph.replay().unwrap();
    assert_eq!(cells.a.download().unwrap(), [9, 9, 9, 9, 9, 9, 9, 0, 0, 0]);
    let mut sequence = rig.backend.sequence();
    sequence.until(&cells.changed, 3, |turn| cells.turn(turn)).unwrap();
    assert!(matches!(refusal(sequence.build()), ProgramError::Unsupported { .. }));
    drop((graph, cells));
    rig.finish();
}

#[test]
fn a_loop_that_goes_wrong_says_so_and_hands_nothing_out() {
    let rig = Rig::simulated();
    let cells = Cells::new(&rig, 30);
    let gpu = rig.gpu();

    // It never ends.
    let mut after = vec![1_u32];
    let mut sequence = rig.backend.sequence();
    sequence.upload(&cells.a, &one_spot(30)).unwrap();
    sequence.until(&cells.changed, 12, |turn| cells.turn(turn)).unwrap();
    sequence.read(&cells.a, &mut after).unwrap();
    let refused = refusal(sequence.run());
    assert_eq!(refused, ProgramError::NotConverged { program: "spread".into(), steps: 12 });
    assert_eq!(after, [1]);
    assert!(cells.a.is_trusted(), "it holds what twelve turns made");
    assert_eq!(cells.a.download().unwrap()[12..14], [9, 0]);

    // It traps in a later turn.
    let text = "
        kernel guard(inout x: u32[1], inout changed: u32[1]) block(1) {
            if x[0] == 20 { trap(6); }
            x[0] = x[0] + 1;
            changed[0] = 1;
        }";
    let guard = rig.backend.compile(&Program::parse(text).unwrap()).unwrap();
    let x = gpu.zeros::<u32>(1).unwrap();
    let config = DispatchConfig { grid: Some(1.into()), ..DispatchConfig::default() };
    let mut sequence = rig.backend.sequence();
    sequence
        .until(&cells.changed, 10_000, |turn| {
            let given = Bindings::new().resident("x", &x).resident("changed", &cells.changed);
            turn.step_with(&guard, given, &config).map(drop)
        })
        .unwrap();
    let before = rig.counts();
    let trap = ProgramError::Trap { program: "guard".into(), code: 6, thread: 0, block: 0 };
    assert_eq!(refusal(sequence.run()), trap);
    assert!(rig.launches_since(&before) < 64, "it stopped at the next look");
    assert!(!x.is_trusted() && !cells.changed.is_trusted() && cells.a.is_trusted());
    drop((cells, guard, x));
    rig.finish();
}

#[test]
fn a_loop_that_cannot_be_recorded_is_refused_and_not_run_in_part() {
    let rig = Rig::simulated();
    let cells = Cells::new(&rig, 8);
    let mut sequence = rig.backend.sequence();
    let missing = sequence.repeat(2, |turn| {
        cells.turn(turn)?;
        turn.step(&cells.spread, Bindings::new()).map(drop)
    });
    assert!(matches!(refusal(missing), ProgramError::Plan(_)));
    assert!(matches!(refusal(sequence.run()), ProgramError::Unsupported { .. }));

    let mut sequence = rig.backend.sequence();
    let two = rig.gpu().zeros::<u32>(2).unwrap();
    assert!(matches!(refusal(sequence.until(&two, 5, |_| Ok(()))), ProgramError::Unsupported { .. }));
    let converge = Some(Converge { flag: "changed".into(), limit: 3 });
    let inner = DispatchConfig { converge, ..DispatchConfig::default() };
    let nested = sequence.repeat(2, |turn| turn.step_with(&cells.spread, cells.given(), &inner).map(drop));
    assert!(matches!(refusal(nested), ProgramError::Unsupported { .. }));
    drop((sequence, two, cells));
    rig.finish();
}
