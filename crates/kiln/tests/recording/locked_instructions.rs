//! Locks that a launch takes, recorded and not.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::process::{Command, Stdio};
use std::sync::Mutex;

use crate::Recorded;
use crate::launches_on_gpu::Scene;
use crate::locked_instruction_counter::{be_looked_at, counted, marked};
use crate::machine::Machine;
use crate::skip;

/// Set for the child: the file to record to.
const FILE: &str = "KILN_TEST_LOCKS_FILE";
/// Launches between two marks.
const LAUNCHES: u32 = 16;
/// Pairs of marks without a recording, as many with a lock beside each launch, and as many with a recording.
const ROUNDS: usize = 3;

/// What the child does.
#[test]
#[ignore = "helper process"]
fn child() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let scene = Scene::unrecorded();
    let stream = scene.gpu.main_stream().clone();
    let beside = Mutex::new(0);
    let round = |takes_lock: bool| {
        marked(|| {
            for _ in 0..LAUNCHES {
                scene.launch(&stream, 1);
                if takes_lock {
                    *beside.lock().unwrap() += 1;
                }
            }
        });
    };
    let warm = || (0..64).for_each(|_| scene.launch(&stream, 1));
    warm();
    be_looked_at();
    (0..ROUNDS).for_each(|_| round(false));
    (0..ROUNDS).for_each(|_| round(true));
    scene.gpu.trace(file).unwrap();
    warm();
    (0..ROUNDS).for_each(|_| round(false));
}

on_machine! {
    fn a_recorded_launch_takes_no_lock_that_an_unrecorded_one_does_not() on Machine::fake().quiet() => {
        let file = Recorded::new();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "locked_instructions::child", "--nocapture", "--test-threads=1"]);
        command.env(FILE, &file.0).stdin(Stdio::null()).stdout(Stdio::null());
        let Some(rounds) = counted(command.spawn().unwrap()) else {
            return skip::note("a_recorded_launch_takes_no_lock_that_an_unrecorded_one_does_not", "no ptrace");
        };
        // Another thread may have made a lock harder to take once.
        let fewest: Vec<u64> = rounds.chunks(ROUNDS).map(|rounds| *rounds.iter().min().unwrap()).collect();
        let [plain, locking, recorded] = fewest[..] else { panic!("{rounds:?}") };
        assert!(locking >= plain + u64::from(LAUNCHES), "a lock is counted: {rounds:?}");
        assert_eq!(recorded, plain, "{rounds:?}");
    }
}
