//! What a runtime over a worker leaves behind when it ends: nothing. Alone in its process, since it counts descriptors and threads.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[path = "isolated/rig.rs"]
mod rig;

use std::path::PathBuf;

use kiln::state::Phase;
use kiln::survival::Process;

#[test]
fn worker() {
    kiln::worker_entry();
}

/// Descriptors, children and threads of ours that are there now.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Held {
    descriptors: usize,
    children: Vec<String>,
    threads: usize,
}

impl Held {
    pub(crate) fn now() -> Self {
        let tasks = || std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        let children = tasks().flat_map(|task| {
            let text = read(task.path().join("children"));
            text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        });
        Self {
            descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(),
            children: children.collect(),
            threads: tasks().filter(|task| read(task.path().join("comm")).starts_with("kiln ")).count(),
        }
    }
}

#[test]
fn nothing_is_left_of_lost_workers_and_their_runtimes() {
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
    let before = Held::now();
    for (standby, kills) in [(false, 0), (true, 0), (false, 5), (true, 5)] {
        one_life(standby, kills);
        assert_eq!(Held::now(), before, "standby {standby}, {kills} kills");
    }
    // A runtime that ends in the middle of a takeover.
    let gpu = rig::open(3, rig::process());
    let _kept = gpu.upload(&[1_u32]).unwrap();
    gpu.isolated_device().unwrap().kill_worker();
    assert_ne!(gpu.state().phase(), Phase::Failed);
    drop(gpu);
    assert_eq!(Held::now(), before);
}
