//! The worker is killed at every step of the protocol and of a takeover: completed work is kept, every call returns, and no resource is left.

use crate::rig::held::Held;
use crate::rig::{self, Scene};
use kiln_isolate::{IsolatedDevice, RestartPolicy, WorkerStartError};

fn patient() -> RestartPolicy {
    RestartPolicy { pause: std::time::Duration::ZERO, ..RestartPolicy::default() }
}

#[test]
fn a_worker_may_end_at_every_step() {
    let _turn = rig::turn();
    let kill_step = rig::path("steps");
    let (mut survived, mut refused) = (0, 0);
    let before = Held::settled();
    for step in 1.. {
        std::fs::write(&kill_step, step.to_string()).unwrap();
        match rig::whole_life(rig::killed_at_step(rig::config().restarts(patient()), &kill_step)) {
            Ok(generation) => survived += generation - 1,
            Err(WorkerStartError::Ended { status }) => {
                assert!(status.is_some());
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
        before.assert_restored(format_args!("step {step}"));
        if std::fs::remove_file(&kill_step).is_ok() {
            // The worker did not reach that step.
            break;
        }
    }
    assert!(refused >= 3 && survived >= 30, "{refused} refused, {survived} survived");
}

#[test]
fn a_worker_may_end_at_every_step_of_a_takeover() {
    let _turn = rig::turn();
    let kill_step = rig::path("takeover");
    let mut fell = 0;
    let before = Held::settled();
    for step in 1.. {
        let config = rig::killed_at_step(rig::config().restarts(patient()), &kill_step);
        let device = IsolatedDevice::open(config).unwrap();
        let scene = Scene::build(&device);
        scene.play(&device, 9);
        std::fs::write(&kill_step, step.to_string()).unwrap();
        device.kill_worker();
        rig::recover(&device);
        assert_eq!(scene.download(&device, 0).unwrap_or([9; 64]), [9; 64], "step {step}");
        let reached = std::fs::remove_file(&kill_step).is_err();
        if device.cause().is_some() {
            rig::recover(&device);
        }
        scene.play(&device, 10);
        drop((scene, device));
        before.assert_restored(format_args!("step {step}"));
        if !reached {
            break;
        }
        fell += 1;
    }
    assert!(fell >= 20, "{fell}");
}
