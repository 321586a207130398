//! What a runtime over a worker leaves behind when it ends: nothing. Each test runs in a process for itself, since it counts
//! descriptors and threads.

use kiln::recovery::Phase;
use kiln::recovery::Process;

use crate::alone::alone;
use crate::resources::Held;
use crate::{kernels, rig};

#[test]
fn nothing_is_left_of_lost_workers_and_their_runtimes() {
    alone(concat!(module_path!(), "::nothing_is_left_of_lost_workers_and_their_runtimes"), lose_workers);
}

fn lose_workers() {
    let one_life = |standby: bool, kills: u64| {
        let gpu = rig::open(3, Process { standby, ..rig::process() });
        let kept = gpu.upload(&[1_u32, 2, 3]).unwrap();
        assert_eq!(kept.download().unwrap(), [1, 2, 3]);
        for _ in 0..kills {
            // Something to free behind unfinished work, and something to lose.
            drop(gpu.zeros::<u32>(1000).unwrap());
            let touched = gpu.zeros::<u32>(10).unwrap();
            rig::kill(&gpu);
            drop(touched);
            assert_eq!(kept.download().unwrap(), [1, 2, 3]);
        }
        let outstanding = gpu.bytes_outstanding();
        drop(kept);
        gpu.reap_pending().unwrap();
        assert!(gpu.bytes_outstanding() < outstanding && gpu.bytes_outstanding() == 0);
    };
    one_life(true, 1);
    let before = Held::settled_with(0);
    for (standby, kills) in [(false, 0), (true, 0), (false, 5), (true, 5)] {
        one_life(standby, kills);
        assert_eq!(Held::settled_with(0), before, "standby {standby}, {kills} kills");
    }
    // A runtime that ends in the middle of a takeover.
    let gpu = rig::open(3, rig::process());
    let _kept = gpu.upload(&[1_u32]).unwrap();
    gpu.isolated_device().unwrap().kill_worker();
    assert_ne!(gpu.state().phase(), Phase::Failed);
    drop(gpu);
    assert_eq!(Held::settled_with(0), before);
}

/// A fault and what comes with it, in one runtime: a kernel, blocks that are lost, blocks that are freed.
fn fault(gpu: &kiln::DeviceRuntime, generation: u64) {
    let illegal = gpu.kernel(kernels::PTX, "illegal").unwrap();
    let touched = gpu.zeros::<u32>(1).unwrap();
    // SAFETY: it is to fault.
    let ticket = unsafe { gpu.launch(&illegal).grid(1).block(1).write(&touched).submit() }.unwrap();
    assert!(ticket.wait().unwrap_err().is_lost());
    rig::recovered(gpu, generation);
}

#[test]
fn as_much_is_held_after_many_faults_as_after_the_first() {
    alone(concat!(module_path!(), "::as_much_is_held_after_many_faults_as_after_the_first"), fault_often);
}

fn fault_often() {
    for standby in [false, true] {
        let gpu = rig::open(4, Process { standby, ..rig::process() });
        let kept = gpu.upload(&[7_u32; 1000]).unwrap();
        assert_eq!(kept.download().unwrap(), [7; 1000]);
        let workers = 1 + usize::from(standby);
        // The first fault makes what is made once.
        fault(&gpu, 0);
        assert_eq!(kept.download().unwrap(), [7; 1000]);
        let before = Held::settled_with(workers);
        let mut generation = 1;
        for faults in [1, 4, 15] {
            for _ in 0..faults {
                fault(&gpu, generation);
                generation += 1;
            }
            assert_eq!(kept.download().unwrap(), [7; 1000]);
            assert!(
                Held::settles_at(before.counts()),
                "standby {standby}, {generation} faults: {before:?} and {:?}",
                Held::now()
            );
        }
    }
}
