//! Programs on a device: every route, every setting, every loop, every refusal, and the mistakes that are not made.
//!
//! What a program means is what the interpreter gives. Tests that can run on a GPU do so where there is one, and are counted as skipped
//! where there is none.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise"
)]

mod asynchronous;
mod calls;
mod case;
mod collectives;
mod config;
mod doubt;
mod fields;
mod loops;
mod mistakes;
mod refusals;
mod rig;
mod routes;
mod sequences;
mod steps;
mod typed;

use std::sync::Arc;

use kiln::program::Bindings;
use kiln::telemetry::Gauge;

use rig::Rig;

#[test]
fn a_program_is_compiled_once_while_it_is_held() {
    let rig = Rig::simulated();
    let program = case::blend().program;
    let (first, second) = (rig.backend.compile(&program).unwrap(), rig.backend.compile(&program).unwrap());
    assert!(Arc::ptr_eq(&first, &second));
    let other = first.with_block([64, 1, 1]).unwrap();
    assert!(!Arc::ptr_eq(&first, &other));
    drop((first, second, other));
    rig.finish();
}

#[test]
fn cleanup_gives_back_what_is_idle_and_leaves_alone_what_is_used() {
    let rig = Rig::simulated();
    let pipeline = rig.backend.compile(&case::blend().program).unwrap();
    let kept = rig.gpu().upload(&[7_u32; 1000]).unwrap();
    let run = |rig: &Rig| {
        let (x, mut y) = (vec![1.0_f32; 1 << 20], vec![1.0_f32; 1 << 20]);
        pipeline.dispatch(Bindings::new().scalar("a", 2.0_f32).input("x", &x).in_out("y", &mut y)).unwrap();
        assert!(y.iter().all(|y| *y == 3.0));
        rig.gpu().telemetry().snapshot()
    };
    let before = run(&rig);
    let released = rig.backend.cleanup().unwrap();
    let after = rig.gpu().telemetry().snapshot();
    assert!(before.gauge(Gauge::IdlePinnedBytes) > 0);
    assert_eq!((after.gauge(Gauge::IdlePinnedBytes), after.gauge(Gauge::PendingBytes)), (0, 0));
    let given_back = |gauge| before.gauge(gauge) - after.gauge(gauge);
    assert!(given_back(Gauge::ReservedBytes) > 0, "{before:?}, then {after:?}");
    assert_eq!(released, given_back(Gauge::ReservedBytes) + given_back(Gauge::IdlePinnedBytes));
    assert_eq!(kept.download().unwrap(), [7; 1000]);
    run(&rig);
    drop((pipeline, kept));
    rig.finish();
}
