//! What ranks of a job are told of a loss, and what they may do at once. Each rank is a process with a simulated device.

#![allow(clippy::print_stdout, reason = "a rank tells the test what it saw")]

use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln::DeviceRuntime;
use kiln::group::{DeviceCommunicator, GroupError, Rendezvous, RendezvousError};

use crate::job_rig::{
    Plan, SOON, begin, config, free_port, join, join_with, limits, lose_device, said, stay, sum, told_of,
    told_of_one, try_sum, unless_lost,
};

fn start(scene: &str, port: u16, rank: u32, size: u32) -> Child {
    crate::job_rig::start("told_losses::told_process", scene, (port, rank, size))
}

/// Joins with a time limit.
fn join_for(seconds: u64, port: u16, rank: u32, size: u32) -> Arc<Rendezvous> {
    let mut config = config(port, rank, size);
    config.timeout = Duration::from_secs(seconds);
    join_with(&config)
}

/// Not a test: what another process does.
#[test]
fn told_process() {
    let Some(plan) = Plan::of_process() else { return };
    let Plan { port, rank, size, .. } = plan;
    match plan.scene.as_str() {
        "replaces and loses" => {
            let job = plan.join();
            let gpu = DeviceRuntime::simulated(7).unwrap();
            let rebuilt = DeviceCommunicator::replace(&gpu, &job, &limits()).unwrap();
            assert_eq!(sum(&rebuilt.communicator), 3);
            job.barrier("replaced").unwrap();
            lose_device(&gpu);
            stay();
        }
        "replaces in vain" => {
            let job = join_for(3, port, rank, size);
            let gpu = DeviceRuntime::simulated(7).unwrap();
            println!("told: {}", DeviceCommunicator::replace(&gpu, &job, &limits()).unwrap_err());
        }
        "waits longer for a replacement" => {
            let job = join_for(7, port, rank, size);
            let (_gpu, rank) = begin(&job);
            waits_in_vain(&job, &rank);
        }
        scene => {
            let job = plan.join();
            let Some(rank) = unless_lost(scene, begin(&job)) else { return };
            with_others(scene, job, rank);
        }
    }
}

fn with_others(scene: &str, job: Arc<Rendezvous>, (gpu, rank): (DeviceRuntime, DeviceCommunicator)) {
    match scene {
        "leaves" => {
            told_of_one(&rank);
            drop((rank, gpu, job));
        }
        "loses the first rank" => loses_the_first_rank(&job, &rank),
        "rebuilds at once" => rebuilds_at_once(&job, &rank, false),
        "rebuilds at once after a barrier" => rebuilds_at_once(&job, &rank, true),
        scene => panic!("{scene}"),
    }
}

/// The job tells of the loss of rank 1, and the communicator is rebuilt right after that.
fn rebuilds_at_once(job: &Rendezvous, rank: &DeviceCommunicator, has_barrier: bool) {
    match has_barrier {
        true => assert!(matches!(job.barrier("x").unwrap_err(), RendezvousError::RankLost { rank: 1, .. })),
        false => assert_eq!(job.wait_for_loss(SOON).unwrap().unwrap().rank, 1),
    }
    let rebuilt = rank.rebuild().unwrap();
    assert_eq!(rebuilt.former_ranks, [0, 2]);
    assert_eq!(sum(&rebuilt.communicator), 3);
    job.barrier("end").unwrap();
}

#[test]
fn ranks_rebuild_as_soon_as_their_job_tells_of_a_loss() {
    for lost in ["ends", "loses"] {
        for (scene, has_barrier) in [("rebuilds at once", false), ("rebuilds at once after a barrier", true)]
        {
            let port = free_port();
            let (mut lost, other) = (start(lost, port, 1, 3), start(scene, port, 2, 3));
            let job = join(port, 0, 3);
            let (_gpu, rank) = begin(&job);
            rebuilds_at_once(&job, &rank, has_barrier);
            said(other);
            drop(lost.stdin.take());
            lost.wait().unwrap();
        }
    }
}

#[test]
fn the_loss_of_a_replacement_is_told_with_its_own_cause() {
    for first in ["panics", "ends"] {
        let port = free_port();
        let mut lost = start(first, port, 1, 2);
        let job = join(port, 0, 2);
        let (_gpu, rank) = begin(&job);
        told_of_one(&rank);
        let replacement = start("replaces and loses", port, 1, 2);
        let rebuilt = rank.rebuild_replaced().unwrap();
        assert_eq!(sum(&rebuilt.communicator), 3);
        job.barrier("replaced").unwrap();
        let cause = told_of_one(&rebuilt.communicator);
        assert!(cause.contains("ILLEGAL_ADDRESS"), "{first}: {cause}");
        let told = job.wait_for_loss(SOON).unwrap().unwrap();
        assert!(told.cause.contains("ILLEGAL_ADDRESS"), "{first}: {}", told.cause);
        said(replacement);
        drop(lost.stdin.take());
        lost.wait().unwrap();
    }
}

/// Waits for a replacement that does not come, and then goes on without.
fn waits_in_vain(job: &Rendezvous, rank: &DeviceCommunicator) {
    told_of_one(rank);
    job.acknowledge_losses();
    job.barrier("told").unwrap();
    let told = rank.rebuild_replaced().unwrap_err();
    let GroupError::ReplacementsAbsent { ranks, .. } = &told else { panic!("{told}") };
    assert_eq!(ranks, &[1], "{told}");
    let rebuilt = rank.rebuild().unwrap();
    assert_eq!(sum(&rebuilt.communicator), 3);
    job.barrier("end").unwrap();
}

#[test]
fn a_rank_that_gives_up_its_wait_for_a_replacement_is_not_blamed_by_the_others() {
    let port = free_port();
    let mut lost = start("ends", port, 1, 3);
    let other = start("waits longer for a replacement", port, 2, 3);
    // It gives up first, and rebuilds without a replacement while the other one still waits for one.
    let job = join_for(5, port, 0, 3);
    let (_gpu, rank) = begin(&job);
    waits_in_vain(&job, &rank);
    said(other);
    lost.wait().unwrap();
}

#[test]
fn a_replacement_that_no_rank_waits_for_is_told_what_the_others_are_to_call() {
    let port = free_port();
    let mut lost = start("ends", port, 1, 2);
    let job = join(port, 0, 2);
    let (_gpu, rank) = begin(&job);
    told_of_one(&rank);
    rank.rebuild().unwrap();
    let replacement = said(start("replaces in vain", port, 1, 2));
    assert!(replacement.contains("told: the ranks that are left have not given rank 1 "), "{replacement}");
    assert!(replacement.contains("call `rebuild_replaced`"), "{replacement}");
    assert!(!replacement.contains("kiln/"), "{replacement}");
    lost.wait().unwrap();
}

#[test]
fn a_rank_that_left_the_job_is_left_out_by_a_rebuild() {
    let port = free_port();
    let (mut lost, other) = (start("ends", port, 1, 3), start("leaves", port, 2, 3));
    let job = join(port, 0, 3);
    let (_gpu, rank) = begin(&job);
    told_of_one(&rank);
    let rebuilt = rank.rebuild().unwrap();
    assert_eq!(rebuilt.lost.iter().map(|lost| lost.rank).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((rebuilt.former_ranks, rebuilt.communicator.size()), (vec![0], 1));
    said(other);
    lost.wait().unwrap();
}

/// The device of rank 0 is lost while its process lives: the others cannot wait for a replacement, and go on without it.
fn loses_the_first_rank(job: &Rendezvous, rank: &DeviceCommunicator) {
    told_of(rank, (0, true));
    let told = try_sum(rank).unwrap_err();
    let lost = told.lost_rank().unwrap();
    let next = "; the others go on after `DeviceCommunicator::rebuild`; it is rank 0 of the job, which cannot be replaced";
    assert!(!lost.can_replace && lost.to_string().ends_with(next), "{lost}");
    let began = Instant::now();
    let told = rank.rebuild_replaced().unwrap_err().to_string();
    assert!(began.elapsed() < SOON, "{:?}: {told}", began.elapsed());
    assert!(told.contains("rank 0 of the job") && told.contains("cannot be replaced"), "{told}");
    assert!(told.contains("call `rebuild`"), "{told}");
    let rebuilt = rank.rebuild().unwrap();
    assert_eq!(rebuilt.former_ranks, [1, 2]);
    assert_eq!(sum(&rebuilt.communicator), 3);
    job.acknowledge_losses();
}

#[test]
fn a_replacement_of_the_first_rank_is_refused_at_once() {
    let port = free_port();
    let (mut first, other) = (start("loses", port, 0, 3), start("loses the first rank", port, 2, 3));
    let job = join(port, 1, 3);
    let (_gpu, rank) = begin(&job);
    loses_the_first_rank(&job, &rank);
    said(other);
    drop(first.stdin.take());
    first.wait().unwrap();
}
