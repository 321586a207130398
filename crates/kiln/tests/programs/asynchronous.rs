//! Dispatches that do not block: queued when they are made, awaited on any executor, and the same as those that do.

use std::future::Future;
use std::time::Duration;

use kiln::GpuRef;
use kiln::program::{Bindings, DispatchConfig, PendingDispatch, Program, ProgramError, Read, Typed, Write};
use kiln_driver::Code;
use kiln_driver::layer::CommandKind;
use kiln_sim::{FaultPlan, MachineConfig, PlannedFault};

use crate::rig::{Rig, refusal};

const DOUBLE: &str = "
    kernel double(in x: u32[], out y: u32[like x]) block(32) over(x) { y[global.x] = x[global.x] * 2; }";

/// Traps where it meets a seven.
const GUARD: &str = "
    kernel guard(in x: u32[], inout y: u32[like x]) block(32) over(x) {
        let i = global.x;
        y[i] = y[i] + x[i];
        if x[i] == 7 { trap(3); }
    }";

/// Counts down to zero; `changed` says whether something was left to count.
const COUNT_DOWN: &str = "
    kernel count_down(inout x: u32[], inout changed: u32[1]) block(32) over(x) {
        let i = global.x;
        if x[i] > 0 { x[i] = x[i] - 1; atomic_max(changed[0], 1); }
    }";

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn parse(text: &str) -> Program {
    Program::parse(text).unwrap()
}

fn may_move_between_threads(_: &(impl Send + ?Sized)) {}

#[test]
fn work_is_queued_when_a_dispatch_is_made_and_results_come_when_it_is_awaited() {
    for seed in 0..8 {
        let rig = Rig::of(MachineConfig::seeded(seed));
        let double = rig.backend.compile(&parse(DOUBLE)).unwrap();
        let before = rig.counts();
        let mut results: [Vec<u32>; 2] = [Vec::new(), Vec::new()];
        let [first, second] = &mut results;
        let one =
            double.dispatch_async(Bindings::new().input("x", &[1_u32, 2, 3]).output("y", first)).unwrap();
        let two =
            double.dispatch_async(Bindings::new().input("x", &[10_u32; 70]).output("y", second)).unwrap();
        let three = double.dispatch_async(Bindings::new().input("x", &[4_u32])).unwrap();
        may_move_between_threads(&one);
        let since = rig.counts().since(&before);
        assert_eq!(
            (since.submitted(CommandKind::Launch), since.of(kiln_driver::call::CallKind::Wait)),
            (3, 0)
        );
        // In another order than they were queued in.
        let mut done = block_on(three).unwrap();
        assert_eq!((done.steps, done.outputs.take::<u32>("y").unwrap()), (1, vec![8]));
        assert_eq!(block_on(two).unwrap().steps, 1);
        let ticket = one.ticket().clone();
        block_on(one).unwrap();
        assert!(ticket.is_done().unwrap());
        assert_eq!(results, [vec![2, 4, 6], vec![20; 70]]);
        drop((double, ticket));
        rig.finish();
    }
}

#[test]
fn many_are_awaited_together() {
    let rig = Rig::of(MachineConfig::seeded(3));
    let double: Typed<(Read<u32>, Write<u32>)> = rig.backend.compile_typed(&parse(DOUBLE)).unwrap();
    let inputs: Vec<Vec<u32>> = (0..40).map(|at| vec![at; at as usize + 1]).collect();
    let mut outputs = vec![Vec::new(); inputs.len()];
    let pending: Vec<PendingDispatch<'_>> =
        inputs.iter().zip(&mut outputs).map(|(x, y)| double.dispatch_async((x, y)).unwrap()).collect();
    block_on(async {
        for dispatch in pending {
            dispatch.await.unwrap();
        }
    });
    for (at, output) in outputs.iter().enumerate() {
        assert_eq!(*output, vec![2 * at as u32; at + 1]);
    }
    drop(double);
    rig.finish();
}

#[test]
fn a_loop_until_a_flag_is_driven_by_polls() {
    let rig = Rig::of(MachineConfig::seeded(4));
    let pipeline = rig.backend.compile(&parse(COUNT_DOWN)).unwrap();
    let (x, changed) = (rig.gpu().upload(&[3_u32, 150, 0]).unwrap(), rig.gpu().allocate::<u32>(1).unwrap());
    let run = |limit| {
        let mut left = Vec::new();
        let mut sequence = rig.backend.sequence();
        let step = || Bindings::new().resident("x", &x).resident("changed", &changed);
        sequence.until(&changed, limit, |turn| turn.step(&pipeline, step()).map(drop)).unwrap();
        sequence.read(&x, &mut left).unwrap();
        let done = block_on(sequence.run_async().unwrap());
        done.map(|done| (done.steps, left))
    };
    let error = refusal(run(20));
    assert!(matches!(error, ProgramError::NotConverged { steps: 20, .. }), "{error}");
    let (steps, left) = run(500).unwrap();
    assert!(steps > 130 && left == [0; 3], "{steps} steps left {left:?}");
    assert!(x.is_trusted());
    drop((pipeline, x, changed));
    rig.finish();
}

#[test]
fn a_trap_is_what_the_future_answers_and_vectors_stay_as_they_were() {
    let rig = Rig::of(MachineConfig::seeded(5));
    let guard = rig.backend.compile(&parse(GUARD)).unwrap();
    let mut y = vec![5_u32; 3];
    let config = DispatchConfig { label: Some("checked".into()), ..DispatchConfig::default() };
    let bindings = Bindings::new().input("x", &[1_u32, 7, 1]).in_out("y", &mut y);
    let error = block_on(guard.dispatch_async_with(bindings, &config).unwrap()).unwrap_err();
    assert_eq!(error.label(), Some("checked"));
    assert!(matches!(error.downcast_ref(), Some(ProgramError::Trap { code: 3, .. })), "{error}");
    assert_eq!(y, [5; 3]);
    let resident = rig.gpu().upload(&[5_u32; 2]).unwrap();
    let bindings = Bindings::new().input("x", &[7_u32; 2]).resident("y", &resident);
    block_on(guard.dispatch_async(bindings).unwrap()).unwrap_err();
    assert!(!resident.is_trusted());
    drop((guard, resident));
    rig.finish();
}

#[test]
fn a_dispatch_that_is_dropped_still_runs_and_is_not_trusted_if_it_could_have_trapped() {
    let rig = Rig::of(MachineConfig::seeded(6));
    let (double, guard) =
        (rig.backend.compile(&parse(DOUBLE)).unwrap(), rig.backend.compile(&parse(GUARD)).unwrap());
    let upload = |value: u32| -> GpuRef<u32> { rig.gpu().upload(&[value; 4]).unwrap() };
    let (sure, unsure, ended) = (upload(0), upload(5), upload(5));
    let mut untouched = vec![1_u32];
    drop(double.dispatch_async(Bindings::new().input("x", &[21_u32; 4]).resident("y", &sure)).unwrap());
    drop(double.dispatch_async(Bindings::new().input("x", &[1_u32; 9]).output("y", &mut untouched)).unwrap());
    let adds = |to| Bindings::new().input("x", &[1_u32; 4]).resident("y", to);
    drop(guard.dispatch_async(adds(&unsure)).unwrap());
    block_on(guard.dispatch_async(adds(&ended)).unwrap()).unwrap();
    assert_eq!([&sure, &unsure, &ended].map(GpuRef::is_trusted), [true, false, true]);
    assert_eq!((sure.download().unwrap(), unsure.download().unwrap()), (vec![42; 4], vec![6; 4]));
    assert_eq!(untouched, [1]);
    drop((double, guard, sure, unsure, ended));
    rig.finish();
}

#[test]
fn times_are_taken_and_time_outs_are_left_to_the_executor() {
    let rig = Rig::of(MachineConfig::seeded(7));
    let double = rig.backend.compile(&parse(DOUBLE)).unwrap();
    let given = || Bindings::new().input("x", &[1_u32, 2]);
    let config = DispatchConfig { profile: true, steps: 3, ..DispatchConfig::default() };
    let done = block_on(double.dispatch_async_with(given(), &config).unwrap()).unwrap();
    assert!(done.timing.is_some_and(|timing| timing.device > Duration::ZERO));
    let before = rig.counts();
    let config = DispatchConfig { timeout: Some(Duration::from_secs(1)), ..DispatchConfig::default() };
    let error = refusal(double.dispatch_async_with(given(), &config));
    assert!(matches!(error, ProgramError::Unsupported { .. }) && error.to_string().contains("executor"));
    assert_eq!(rig.launches_since(&before), 0);
    drop(double);
    rig.finish();
}

#[test]
fn what_does_not_fit_is_refused_before_there_is_a_future() {
    let rig = Rig::of(MachineConfig::seeded(8));
    let double = rig.backend.compile(&parse(DOUBLE)).unwrap();
    let before = rig.counts();
    refusal(double.dispatch_async(Bindings::new().input("wrong", &[1_u32])));
    refusal(double.dispatch_async(Bindings::new().input("x", &[1.0_f64])));
    assert_eq!(rig.launches_since(&before), 0);
    drop(double);
    rig.finish();
}

#[test]
fn a_lost_device_is_what_the_future_answers() {
    let faults = FaultPlan::none().on(0, PlannedFault::Sticky { launch: 2, code: Code::ILLEGAL_ADDRESS });
    let rig = Rig::of(MachineConfig::seeded(9).faults(faults));
    let double = rig.backend.compile(&parse(DOUBLE)).unwrap();
    let mut results = [vec![9_u32], vec![9_u32]];
    let [first, second] = &mut results;
    let one = double.dispatch_async(Bindings::new().input("x", &[1_u32]).output("y", first)).unwrap();
    let two = double.dispatch_async(Bindings::new().input("x", &[2_u32]).output("y", second)).unwrap();
    let answers =
        [block_on(two), block_on(one)].map(|answer| answer.map(drop).map_err(|error| error.is_sticky()));
    assert_eq!(answers[0], Err(true));
    assert_eq!(results[1], [9], "as it was");
}
