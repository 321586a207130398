//! Ranks of a job that had dropped their communicator, or had left the job, when another one was lost. Each rank is a process with a simulated device.

use std::sync::Arc;
use std::time::Duration;

use kiln::group::{DeviceCommunicator, Rendezvous};

use crate::job_rig::{Plan, SOON, begin, free_port, join, said, start, stay, sum, told_of_one};

const PROCESS: &str = "job_departures::departing_process";

/// Not a test: what another process does.
#[test]
fn departing_process() {
    let Some(plan) = Plan::of_process() else { return };
    let job = plan.join();
    let (_gpu, rank) = begin(&job);
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
        "leaves" => {
            drop(rank);
            job.barrier("dropped").unwrap();
        }
        "ends" => {
            job.barrier("dropped").unwrap();
            std::process::abort();
        }
        "survives" => rebuild_without_two(&job, &rank),
        scene => panic!("{scene}"),
    }
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
