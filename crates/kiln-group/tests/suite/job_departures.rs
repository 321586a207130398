//! Ranks of a job that had dropped their communicator, or had left the job, when another one was lost. Each rank is a process with a simulated device.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln::DeviceRuntime;
use kiln::group::{DeviceCommunicator, Rendezvous, RendezvousError};

use crate::job_rig::{
    Plan, SOON, begin, free_port, join, said, start, stay, sum, told_of, told_of_one, try_sum,
};

const PROCESS: &str = "job_departures::departing_process";

/// Not a test: what another process does.
#[test]
fn departing_process() {
    let Some(plan) = Plan::of_process() else { return };
    let job = plan.join();
    let (gpu, rank) = begin(&job);
    match plan.scene.as_str() {
        "drops" => {
            drop(rank);
            job.barrier("dropped").unwrap();
            job.wait_for_loss(SOON).unwrap().unwrap();
            stay();
        }
        "drops late" => {
            job.barrier("dropped").unwrap();
            job.wait_for_loss(SOON).unwrap().unwrap();
            // The others wait for it in `rebuild` by then, most often.
            std::thread::sleep(Duration::from_millis(500));
            drop(rank);
            stay();
        }
        "drops with unfinished work" => {
            let buffer = gpu.zeros::<u32>(1 << 16).unwrap();
            buffer.fill(7).unwrap();
            drop(rank);
            stay();
        }
        "leaves" => {
            drop(rank);
            job.barrier("dropped").unwrap();
        }
        "ends" => {
            job.barrier("dropped").unwrap();
            std::process::abort();
        }
        "survives" => rebuild_without_two(&job, &rank),
        "leaves because of another" => {
            // It is told of the other one here, and not in a collective.
            job.barrier("not for rank 2").unwrap_err();
        }
        "leaves first" => {}
        "ends first" => std::process::abort(),
        scene => panic!("{scene}"),
    }
}

/// Rank 0 of a job in which rank 2 ends in a way, and rank 1 leaves because of that.
fn with_follower(scene: &str) -> (Arc<Rendezvous>, DeviceRuntime, DeviceCommunicator) {
    let port = free_port();
    let follower = start(PROCESS, "leaves because of another", (port, 1, 3));
    let mut first = start(PROCESS, scene, (port, 2, 3));
    let job = join(port, 0, 3);
    let (gpu, rank) = begin(&job);
    first.wait().unwrap();
    said(follower);
    (job, gpu, rank)
}

#[test]
fn a_rank_that_drops_its_communicator_with_unfinished_work_is_told_at_once() {
    let port = free_port();
    let mut other = start(PROCESS, "drops with unfinished work", (port, 1, 2));
    let job = join(port, 0, 2);
    let (_gpu, rank) = begin(&job);
    let began = Instant::now();
    let told = try_sum(&rank).unwrap_err().to_string();
    assert!(began.elapsed() < SOON, "{:?}: {told}", began.elapsed());
    assert!(told.contains("rank 1 has ended its part of communicator"), "{told}");
    drop(other.stdin.take());
    said(other);
}

#[test]
fn a_rank_that_left_because_another_one_had_left_is_not_the_one_that_is_told() {
    let (_job, _gpu, rank) = with_follower("leaves first");
    let told = try_sum(&rank).unwrap_err().to_string();
    assert!(told.contains("rank 2 has left the job and does not come to collective 1"), "{told}");
    let (job, _gpu, _rank) = with_follower("leaves first");
    let told = job.barrier("end").unwrap_err();
    assert!(matches!(told, RendezvousError::RankLeft { rank: 2, .. }), "{told}");
}

#[test]
fn a_rank_that_left_because_another_one_was_lost_is_not_the_one_that_a_collective_tells() {
    // This rank may have seen the loss before the other one leaves, and then there is nothing to mistake.
    for _ in 0..6 {
        let (_job, _gpu, rank) = with_follower("ends first");
        let cause = told_of(&rank, (2, true));
        assert!(cause.starts_with("its process "), "{cause}");
        // The one that had left is left out as well.
        let lost = rank.rebuild().unwrap().lost;
        assert_eq!(lost.iter().map(|lost| lost.rank).collect::<Vec<_>>(), [1, 2], "{lost:?}");
    }
}

#[test]
fn a_rank_that_left_because_another_one_was_lost_is_not_the_one_that_a_barrier_tells() {
    let (job, _gpu, _rank) = with_follower("ends first");
    let told = job.barrier("end").unwrap_err();
    assert!(matches!(told, RendezvousError::RankLost { rank: 2, .. }), "{told}");
}

/// Goes on with the two ranks that have not dropped their communicator.
fn rebuild_without_two(job: &Arc<Rendezvous>, rank: &DeviceCommunicator) {
    job.barrier("dropped").unwrap();
    job.wait_for_loss(SOON).unwrap().unwrap();
    told_of_one(rank);
    let rebuilt = rank.rebuild().unwrap();
    assert_eq!(rebuilt.former_ranks, [0, 3]);
    let lost: Vec<u32> = rebuilt.lost.iter().map(|lost| lost.rank).collect();
    assert_eq!(lost, [1, 2]);
    let dropped = &rebuilt.lost[1].cause;
    assert!(dropped.contains("its `DeviceCommunicator` was dropped"), "{dropped}");
    assert_eq!(sum(&rebuilt.communicator), 3);
}

#[test]
fn ranks_of_a_job_rebuild_without_one_that_had_dropped_its_communicator() {
    for scene in ["drops", "drops late", "leaves"] {
        let port = free_port();
        let mut lost = start(PROCESS, "ends", (port, 1, 4));
        let mut departed = start(PROCESS, scene, (port, 2, 4));
        let other = start(PROCESS, "survives", (port, 3, 4));
        let job = join(port, 0, 4);
        let (_gpu, rank) = begin(&job);
        rebuild_without_two(&job, &rank);
        said(other);
        drop(departed.stdin.take());
        said(departed);
        lost.wait().unwrap();
    }
}
