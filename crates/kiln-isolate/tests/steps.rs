//! The worker is killed at every step of the protocol and of the takeover; what was waited for is kept, every call ends,
//! and nothing is left.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod rig;

use std::sync::{Mutex, PoisonError};

use kiln_isolate::{IsolatedDevice, RestartPolicy, StartError};
use rig::Scene;
use rig::held::Held;

/// What is held by a process is counted, so one test at a time.
static TURN: Mutex<()> = Mutex::new(());

#[test]
fn worker() {
    rig::worker();
}

fn patient() -> RestartPolicy {
    RestartPolicy { pause: std::time::Duration::ZERO, ..RestartPolicy::default() }
}

#[test]
fn a_worker_may_end_at_every_step() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let trap = rig::trap("steps");
    let (mut survived, mut refused) = (0, 0);
    for step in 1.. {
        std::fs::write(&trap, step.to_string()).unwrap();
        let before = Held::now();
        match rig::whole_life(rig::trapped(rig::config().restarts(patient()), &trap)) {
            Ok(generation) => survived += generation - 1,
            Err(StartError::Ended { status }) => {
                assert!(status.is_some());
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
        assert_eq!(Held::now(), before, "step {step}");
        if std::fs::remove_file(&trap).is_ok() {
            // Nobody fell into it: the worker does not take so many steps.
            break;
        }
    }
    assert!(refused >= 3 && survived >= 30, "{refused} refused, {survived} survived");
}

#[test]
fn a_worker_may_end_at_every_step_of_a_takeover() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let trap = rig::trap("takeover");
    let mut fell = 0;
    for step in 1.. {
        let before = Held::now();
        let config = rig::trapped(rig::config().restarts(patient()), &trap);
        let device = IsolatedDevice::open(config).unwrap();
        let scene = Scene::build(&device);
        scene.play(&device, 9);
        std::fs::write(&trap, step.to_string()).unwrap();
        device.kill_worker();
        rig::recover(&device);
        assert_eq!(scene.download(&device, 0).unwrap_or([9; 64]), [9; 64], "step {step}");
        let reached = std::fs::remove_file(&trap).is_err();
        if device.cause().is_some() {
            rig::recover(&device);
        }
        scene.play(&device, 10);
        drop((scene, device));
        assert_eq!(Held::now(), before, "step {step}");
        if !reached {
            break;
        }
        fell += 1;
    }
    assert!(fell >= 20, "{fell}");
}
