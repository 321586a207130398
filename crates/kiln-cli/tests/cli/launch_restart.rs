//! `kiln launch --restart`: a rank of a training loop is killed, and the process that is started in its place goes on with the others. The program of the ranks is this
//! test itself.

#![cfg(target_os = "linux")]

use std::process::Command;
use std::sync::Arc;

use kiln::group::{DeviceCommunicator, GroupError, Reduction, Rendezvous};
use kiln::{DeviceRuntime, GpuRef};

use crate::outcome::{Outcome, command, run};

/// When rank 1 is killed in its first life: `before` its part of a step, `in` the step, or `never`.
const KILLED: &str = "KILN_TEST_KILLED";
const STEPS: u32 = 12;
const KILLED_STEP: u32 = 7;
const WEIGHTS: usize = 1000;

/// What a rank has: its place among the others, and the weights after so many steps.
struct Trained {
    rank: DeviceCommunicator,
    weights: GpuRef<f32>,
    step: u32,
}

impl Trained {
    fn new(rank: DeviceCommunicator) -> Self {
        let weights = rank.runtime().zeros(WEIGHTS).unwrap();
        Self { rank, weights, step: 0 }
    }

    /// One step: the gradients of all ranks, summed, change the weights.
    fn step(&mut self, killed: &str) -> Result<(), GroupError> {
        let (rank, gpu) = (self.rank.rank(), self.rank.runtime());
        let failed = |source| GroupError::Rank { rank, source };
        let weights = self.weights.download().map_err(failed)?;
        let target = |at: usize| ((at * 7 + rank as usize * 13) % 29) as f32 / 3.0;
        let gradients: Vec<f32> = weights.iter().zip(0..).map(|(weight, at)| weight - target(at)).collect();
        let gradients = gpu.upload(&gradients).map_err(failed)?;
        if killed == "before" && self.step == KILLED_STEP {
            kill_this();
        }
        self.rank.all_reduce_in_place(&gradients, Reduction::Sum).submit()?;
        if killed == "in" && self.step == KILLED_STEP {
            kill_this();
        }
        let gradients = gradients.download().map_err(failed)?;
        let changed: Vec<f32> =
            weights.iter().zip(gradients).map(|(weight, gradient)| weight - 0.1 * gradient).collect();
        self.weights.upload(&changed).map_err(failed)?;
        self.step += 1;
        Ok(())
    }

    /// Goes on with other ranks, of which some may have done a step more, or none at all: from the last step that one has done.
    fn agree(&mut self, rank: DeviceCommunicator) -> Result<(), GroupError> {
        let failed = |source| GroupError::Rank { rank: rank.rank(), source };
        let own = rank.runtime().upload(&[self.step]).map_err(failed)?;
        let steps = rank.runtime().zeros::<u32>(rank.size() as usize).map_err(failed)?;
        rank.all_gather(&own, &steps).submit()?;
        let steps = steps.download().map_err(failed)?;
        let (step, root) = steps.into_iter().zip(0..).max().unwrap();
        rank.broadcast(&self.weights, root).submit()?.wait().map_err(failed)?;
        (self.step, self.rank) = (step, rank);
        Ok(())
    }
}

fn kill_this() {
    Command::new("kill").args(["-KILL", &std::process::id().to_string()]).status().unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
fn training_rank_program() {
    let Ok(killed) = std::env::var(KILLED) else { return };
    let is_first_life = std::env::var("KILN_RESTARTS").unwrap() == "0";
    let job = Arc::new(Rendezvous::from_process().unwrap().unwrap());
    let killed = if is_first_life && job.rank() == 1 { &*killed } else { "never" };
    let gpu = DeviceRuntime::auto().unwrap();
    let mut trained = match job.is_replacement() {
        true => {
            let rebuilt = DeviceCommunicator::replace(gpu, &job, &Default::default()).unwrap();
            let mut trained = Trained::new(rebuilt.communicator.clone());
            trained.agree(rebuilt.communicator).unwrap();
            // The others may have been told of the loss before they were done with the step before.
            assert!(trained.step + 1 >= KILLED_STEP, "{}", trained.step);
            trained
        }
        false => Trained::new(DeviceCommunicator::meet(gpu, &job, &Default::default()).unwrap()),
    };
    while trained.step < STEPS {
        match trained.step(killed) {
            Ok(()) => {}
            // A download may fail because the work before it was ended.
            Err(_) if trained.rank.lost_rank().is_some() => {
                let rebuilt = trained.rank.rebuild_replaced().unwrap();
                assert_eq!(rebuilt.replaced, [1]);
                trained.agree(rebuilt.communicator).unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }
    let bits = trained.weights.download().unwrap().into_iter().map(f32::to_bits);
    let sum = bits.fold(0_u64, |sum, bits| sum.wrapping_mul(31).wrapping_add(u64::from(bits)));
    println!("trained: {sum:016x} after {} steps", trained.step);
    job.barrier("end").unwrap();
}

fn trained(killed: &str, flags: &[&str]) -> (Outcome, Vec<String>) {
    let program = std::env::current_exe().unwrap();
    let words =
        [&["launch", "-n", "3", "--restart", "1"], flags, &["--", program.to_str().unwrap()]].concat();
    let test = ["--exact", "launch_restart::training_rank_program", "--nocapture"];
    let mut launch: Command = command(&[&words[..], &test].concat());
    launch.env(KILLED, killed).env("KILN_POLICY", "simulate");
    let outcome = run(launch);
    assert_eq!(outcome.code, Some(0), "{killed}: {}{}", outcome.stdout, outcome.stderr);
    // The harness of the tests may have begun the line.
    let results = outcome.stdout.lines().filter_map(|line| Some(line.split_once("trained: ")?.1.to_owned()));
    let results = results.collect();
    (outcome, results)
}

#[test]
fn a_killed_rank_is_started_again_and_the_training_ends_as_if_nothing_had_happened() {
    let (outcome, undisturbed) = trained("never", &[]);
    assert!(undisturbed.len() == 3 && undisturbed[0].ends_with("after 12 steps"), "{}", outcome.stdout);
    assert!(undisturbed.iter().all(|result| *result == undisturbed[0]), "{undisturbed:?}");
    assert!(!outcome.stderr.contains("started again"), "{}", outcome.stderr);
    for (killed, flags) in [("before", &[][..]), ("in", &[]), ("before", &["--check"])] {
        let (outcome, results) = trained(killed, flags);
        assert_eq!(results, undisturbed, "{killed}: {}", outcome.stderr);
        let again = "rank 1 failed with signal 9";
        assert!(outcome.stderr.contains(again), "{killed}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("it is started again (1 of 1)"), "{killed}: {}", outcome.stderr);
        let is_checked = flags.contains(&"--check");
        assert_eq!(outcome.stderr.contains("no findings in 3 ranks"), is_checked, "{}", outcome.stderr);
    }
}
