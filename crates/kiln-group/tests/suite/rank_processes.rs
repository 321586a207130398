//! Ranks in several processes, over simulated devices: refused calls, stopped processes, and second communicators.

use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use kiln::DeviceRuntime;
use kiln::group::{DeviceCommunicator, Reduction, Rendezvous};

use crate::job_rig::{Plan, config, free_port, meet, patient, said, signal};

fn start(scene: &str, port: u16, rank: u32, size: u32) -> Child {
    crate::job_rig::start("rank_processes::other_process", scene, (port, rank, size))
}

/// The sum over all ranks of their numbers, counted from 1, times a factor.
fn sum(rank: &DeviceCommunicator, factor: u32) -> u32 {
    let buffer = rank.runtime().upload(&[(rank.rank() + 1) * factor; 4]).unwrap();
    rank.all_reduce_in_place(&buffer, Reduction::Sum).submit().unwrap();
    buffer.download().unwrap()[0]
}

/// Not a test: what another process does.
#[test]
fn other_process() {
    let Some(plan) = Plan::of_process() else { return };
    match plan.scene.as_str() {
        "sums" => {
            let job = Arc::new(Rendezvous::join(&patient(plan.port, plan.rank, plan.size)).unwrap());
            let (_gpu, rank) = meet(&job);
            assert_eq!((sum(&rank, 1), sum(&rank, 10)), (6, 60));
            job.barrier("end").unwrap();
        }
        "stops" => {
            let job = Arc::new(Rendezvous::join(&plan.config()).unwrap());
            let (_gpu, rank) = meet(&job);
            // It may be stopped before it has the answer, and is told what came of that instead.
            let _ = job.put("there", b"");
            println!("told: {}", job.get("never").unwrap_err());
            println!("then: {}", rank.barrier().submit().unwrap_err());
        }
        scene => panic!("{scene}"),
    }
}

#[test]
fn a_refused_collective_brings_nothing_to_ranks_in_other_processes() {
    let port = free_port();
    let others = [1, 2].map(|rank| start("sums", port, rank, 3));
    let job = Arc::new(Rendezvous::join(&patient(port, 0, 3)).unwrap());
    let (gpu, rank) = meet(&job);
    let foreign_gpu = DeviceRuntime::simulated(99).unwrap();
    let (own, foreign) = (gpu.upload(&[5_u32; 4]).unwrap(), foreign_gpu.upload(&[7_u32; 4]).unwrap());
    let refused = rank.all_reduce_in_place(&foreign, Reduction::Sum).submit().unwrap_err().to_string();
    assert!(refused.contains("`buffer`") && refused.contains("another runtime"), "{refused}");
    let refused = rank.all_reduce(&own, &foreign, Reduction::Sum).submit().unwrap_err().to_string();
    assert!(refused.contains("`recv`") && refused.contains("another runtime"), "{refused}");
    let stream = foreign_gpu.stream().unwrap();
    let call = rank.all_reduce_in_place(&own, Reduction::Sum).on(&stream);
    let refused = call.submit().unwrap_err().to_string();
    assert!(refused.contains("another runtime"), "{refused}");
    assert_eq!((sum(&rank, 1), sum(&rank, 10)), (6, 60));
    assert_eq!(own.download().unwrap(), [5; 4]);
    job.barrier("end").unwrap();
    for other in others {
        said(other);
    }
}

#[test]
fn a_stopped_rank_is_told_that_it_was_given_up_itself() {
    let port = free_port();
    let other = start("stops", port, 1, 2);
    let job = Arc::new(Rendezvous::join(&config(port, 0, 2)).unwrap());
    let (_gpu, _rank) = meet(&job);
    job.get("there").unwrap();
    signal("-STOP", &other);
    let lost = job.wait_for_loss(Duration::from_secs(30)).unwrap().unwrap();
    assert_eq!(lost.rank, 1);
    signal("-CONT", &other);
    let told = said(other);
    assert!(
        told.contains("told: rank 1, this one, was given up") && told.contains("nothing for 1.5 s"),
        "{told}"
    );
    assert!(
        told.contains("gave it up, which is this rank") && told.contains("start a replacement"),
        "{told}"
    );
    assert!(!told.contains("rank 0"), "{told}");
}
