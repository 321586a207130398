//! Ranks of a job that rebuild: in different ways, without rank 0, and with a rank that fails meanwhile. Each rank is a process with a simulated device.

#![allow(clippy::print_stdout, reason = "a rank tells the test what it saw")]

use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln::DeviceRuntime;
use kiln::group::{DeviceCommunicator, GroupError, Rendezvous, RendezvousConfig, RendezvousError};

use crate::job_rig::{
    Plan, SOON, begin, config, free_port, join, limits, said, sum, told_of, told_of_one, try_sum, unless_lost,
};

fn start(scene: &str, port: u16, rank: u32, size: u32) -> Child {
    crate::job_rig::start("job_rebuilds::rebuilding_process", scene, (port, rank, size))
}

/// Ranks that do not wait long for those that do not come.
fn impatient(mut config: RendezvousConfig) -> RendezvousConfig {
    config.timeout = Duration::from_secs(5);
    config
}

/// Not a test: what another process does.
#[test]
fn rebuilding_process() {
    let Some(plan) = Plan::of_process() else { return };
    let job = match plan.scene.starts_with("impatient") {
        true => Arc::new(Rendezvous::join(&impatient(plan.config())).unwrap()),
        false => plan.join(),
    };
    let scene = plan.scene.trim_start_matches("impatient, ");
    let Some((gpu, rank)) = unless_lost(scene, begin(&job)) else { return };
    match scene {
        "with replacements" => {
            let error = rebuilds_otherwise(&job, &rank, DeviceCommunicator::rebuild_replaced);
            println!("told: {error}");
            works_without_one(&job, &rank);
        }
        "goes on without rank 0" => goes_on_without_rank_zero(&job, &gpu, &rank),
        "has no memory" => has_no_memory(&job, &gpu, &rank),
        "survives" => {
            println!("left: {:?}", survive(&rank));
            job.barrier("end").unwrap();
        }
        scene => panic!("{scene}"),
    }
}

type Rebuild = fn(&DeviceCommunicator) -> Result<kiln::group::RebuiltCommunicator, GroupError>;

/// Is told of rank 1, and then rebuilds in a way in which no other rank does. Returns when all know what came of that.
fn rebuilds_otherwise(job: &Rendezvous, rank: &DeviceCommunicator, how: Rebuild) -> GroupError {
    told_of_one(rank);
    job.acknowledge_losses();
    job.barrier("told").unwrap();
    let told = how(rank).unwrap_err();
    job.barrier("told of each other").unwrap();
    told
}

/// All ranks that are left do the same.
fn works_without_one(job: &Rendezvous, rank: &DeviceCommunicator) {
    let rebuilt = rank.rebuild().unwrap();
    assert_eq!(rebuilt.former_ranks, [0, 2]);
    assert_eq!(sum(&rebuilt.communicator), 3);
    job.barrier("end").unwrap();
}

#[test]
fn ranks_of_a_job_that_rebuild_in_another_way_are_named_with_what_they_called() {
    let port = free_port();
    let mut lost = start("impatient, ends", port, 1, 3);
    let other = start("impatient, with replacements", port, 2, 3);
    let job = Arc::new(Rendezvous::join(&impatient(config(port, 0, 3))).unwrap());
    let (_gpu, rank) = begin(&job);
    let told = rebuilds_otherwise(&job, &rank, DeviceCommunicator::rebuild);
    let GroupError::OtherRebuild { ranks, called, .. } = &told else { panic!("{told}") };
    assert_eq!((&ranks[..], *called), (&[2][..], "rebuild_replaced"), "{told}");
    let text = told.to_string();
    assert!(text.starts_with("rank 2 called `rebuild_replaced` and this rank `rebuild`, "), "{text}");
    assert!(text.contains(" within 5.") && text.contains(" s; call the same one of the two"), "{text}");
    // They can agree, and call again.
    works_without_one(&job, &rank);
    let other = said(other);
    assert!(other.contains("told: rank 0 called `rebuild` and this rank `rebuild_replaced`, "), "{other}");
    lost.wait().unwrap();
}

fn goes_on_without_rank_zero(job: &Arc<Rendezvous>, gpu: &DeviceRuntime, rank: &DeviceCommunicator) {
    let cause = told_of(rank, (0, true));
    assert!(cause.contains("ILLEGAL_ADDRESS"), "{cause}");
    let rebuilt = rank.rebuild().unwrap();
    assert_eq!(rebuilt.former_ranks, [1, 2]);
    assert_eq!(sum(&rebuilt.communicator), 3);
    // Rank 0 makes the ids of communicators of all ranks.
    let began = Instant::now();
    let refused = DeviceCommunicator::meet(gpu, job, &limits()).unwrap_err();
    let text = refused.to_string();
    assert!(text.starts_with("rank 0 is lost: ") && text.contains("`rebuild`"), "{text}");
    assert!(!text.contains("acknowledge"), "{text}");
    assert!(began.elapsed() < SOON, "{:?}: {refused}", began.elapsed());
    job.barrier("end").unwrap();
}

#[test]
fn ranks_go_on_without_rank_zero_whose_device_is_lost_while_its_process_lives() {
    let port = free_port();
    let (zero, other) = (start("loses", port, 0, 3), start("goes on without rank 0", port, 2, 3));
    let job = join(port, 1, 3);
    let (gpu, rank) = begin(&job);
    goes_on_without_rank_zero(&job, &gpu, &rank);
    said(other);
    drop((rank, job));
    said(zero);
}

#[test]
fn ranks_are_not_told_to_go_on_without_rank_zero_whose_thread_panicked() {
    let port = free_port();
    let zero = start("panics", port, 0, 2);
    let job = join(port, 1, 2);
    let (_gpu, rank) = begin(&job);
    let cause = told_of(&rank, (0, false));
    assert_eq!(cause, "its thread panicked");
    let text = try_sum(&rank).unwrap_err().to_string();
    assert!(text.contains("`DeviceCommunicator::rebuild` works while its process lives"), "{text}");
    drop((rank, job));
    said(zero);
}

/// Fails in `rebuild`, since nothing can be allocated on its device.
fn has_no_memory(job: &Rendezvous, gpu: &DeviceRuntime, rank: &DeviceCommunicator) {
    told_of_one(rank);
    let mut filled = Vec::new();
    for bytes in (0..48).rev().map(|power| 1_usize << power) {
        while let Ok(block) = gpu.allocate::<u8>(bytes) {
            filled.push(block);
        }
    }
    let failed = rank.rebuild().unwrap_err();
    assert!(failed.is_oom(), "{failed}");
    let told = job.get("never").unwrap_err();
    assert!(matches!(&told, RendezvousError::GivenUp { rank: 2, .. }), "{told}");
    println!("told: {told}");
}

/// Goes on until no rank is lost. The ranks that are left then, by their first numbers.
fn survive(rank: &DeviceCommunicator) -> Vec<u32> {
    let mut rank = rank.clone();
    let mut left: Vec<u32> = (0..rank.size()).collect();
    loop {
        let began = Instant::now();
        match try_sum(&rank) {
            Ok(sum) => {
                assert_eq!(sum, rank.size() * (rank.size() + 1) / 2);
                return left;
            }
            Err(told) => {
                assert!(told.lost_rank().is_some_and(|lost| lost.can_rebuild), "{told}");
                assert!(began.elapsed() < SOON, "{:?}: {told}", began.elapsed());
            }
        }
        let rebuilt = rank.rebuild().unwrap();
        left = rebuilt.former_ranks.iter().map(|former| left[*former as usize]).collect();
        rank = rebuilt.communicator;
    }
}

#[test]
fn a_rank_of_a_job_that_fails_in_its_rebuild_is_lost_for_the_others_which_go_on() {
    let port = free_port();
    let mut lost = start("ends", port, 1, 4);
    let others = [start("has no memory", port, 2, 4), start("survives", port, 3, 4)];
    let job = join(port, 0, 4);
    let (_gpu, rank) = begin(&job);
    assert_eq!(survive(&rank), [0, 3]);
    job.acknowledge_losses();
    job.barrier("end").unwrap();
    let [failed, other] = others;
    let other = said(other);
    assert!(other.contains("left: [0, 3]"), "{other}");
    let failed = said(failed);
    assert!(failed.contains("told: rank 2, this one, was given up by the others: it could not "), "{failed}");
    lost.wait().unwrap();
}
