//! Values of collectives between simulated devices of several processes: large ones, and ranks that do not come. Each rank is a process.

#![allow(clippy::print_stdout, reason = "a rank tells the test what it saw")]

use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln::DeviceRuntime;
use kiln::group::{DeviceCommunicator, DeviceCommunicatorConfig, Reduction, Rendezvous};

use crate::job_rig::{Plan, SOON, begin, free_port, join, said, sum, try_sum};

/// Elements of 8 bytes: with those of another rank, more than 64 MiB.
const HALF: usize = 4_500_000;
/// Alone more than 64 MiB.
const WHOLE: usize = 8_600_000;

fn start(scene: &str, port: u16, rank: u32, size: u32) -> Child {
    crate::job_rig::start("job_values::value_process", scene, (port, rank, size))
}

/// Not a test: what another process does.
#[test]
fn value_process() {
    let Some(plan) = Plan::of_process() else { return };
    let job = plan.join();
    match plan.scene.as_str() {
        "large" => large_values(&job),
        "stays away" => {
            let _rank = begin(&job);
            job.barrier("end").unwrap();
        }
        "drops" => {
            let (_gpu, rank) = begin(&job);
            drop(rank);
            job.barrier("end").unwrap();
        }
        "splits" => {
            let (_gpu, rank) = begin(&job);
            println!("told: {}", rank.split(Some(1), 0).unwrap_err());
            job.barrier("end").unwrap();
        }
        scene => panic!("{scene}"),
    }
}

fn meet(job: &Arc<Rendezvous>, seconds: u64) -> (DeviceRuntime, DeviceCommunicator) {
    let gpu = DeviceRuntime::simulated(u64::from(job.rank())).unwrap();
    let limits = DeviceCommunicatorConfig { deadline: Duration::from_secs(seconds) };
    let rank = DeviceCommunicator::meet(&gpu, job, &limits).unwrap();
    (gpu, rank)
}

/// Collectives of more than 64 MiB of all ranks together, and small ones between them.
fn large_values(job: &Arc<Rendezvous>) {
    let (gpu, rank) = meet(job, 300);
    let own = u64::from(rank.rank()) + 1;
    let half = gpu.upload(&vec![own; HALF]).unwrap();
    let summed = gpu.zeros::<u64>(HALF).unwrap();
    for _ in 0..2 {
        rank.all_reduce(&half, &summed, Reduction::Sum).submit().unwrap();
        assert!(summed.download().unwrap().iter().all(|sum| *sum == 3));
        assert_eq!(sum(&rank), 3);
    }
    drop((half, summed));
    let whole = gpu.upload(&vec![own; WHOLE]).unwrap();
    rank.broadcast(&whole, 1).submit().unwrap();
    assert!(whole.download().unwrap().iter().all(|value| *value == 2));
    match rank.rank() {
        0 => rank.recv(&whole, 1).submit().unwrap(),
        _ => rank.send(&whole, 0).submit().unwrap(),
    };
    assert_eq!(sum(&rank), 3);
    // What the ranks have read is gone with the communicator: as much again finds room.
    drop(rank);
    let (_gpu, rank) = meet(job, 300);
    assert_eq!(sum(&rank), 3);
    job.barrier("end").unwrap();
}

#[test]
fn collectives_of_more_than_the_store_takes_of_a_program_are_done() {
    let port = free_port();
    let other = start("large", port, 1, 2);
    let job = join(port, 0, 2);
    large_values(&job);
    said(other);
}

#[test]
fn all_ranks_that_do_not_come_to_a_collective_are_named_with_the_communicator() {
    let port = free_port();
    let others = [start("stays away", port, 1, 4), start("stays away", port, 3, 4)];
    let third = start("stays away", port, 2, 4);
    let job = join(port, 0, 4);
    let gpu = DeviceRuntime::simulated(0).unwrap();
    let limits = DeviceCommunicatorConfig { deadline: Duration::from_secs(4) };
    let rank = DeviceCommunicator::meet(&gpu, &job, &limits).unwrap();
    assert_eq!(sum(&rank), 10);
    job.barrier("ready").unwrap();
    let told = try_sum(&rank).unwrap_err().to_string();
    assert!(told.starts_with("ranks 1, 2 and 3 did not come to collective 1, all_reduce"), "{told}");
    assert!(told.contains(&format!("of communicator {:?}", rank.id())), "{told}");
    job.barrier("end").unwrap();
    others.into_iter().chain([third]).for_each(|other| drop(said(other)));
}

#[test]
fn a_collective_is_told_at_once_of_a_rank_that_dropped_its_communicator() {
    let port = free_port();
    let other = start("drops", port, 1, 2);
    let job = join(port, 0, 2);
    let (_gpu, rank) = begin(&job);
    let began = Instant::now();
    let told = try_sum(&rank).unwrap_err().to_string();
    assert!(told.contains("rank 1 has ended its part of communicator"), "{told}");
    assert!(began.elapsed() < SOON, "{:?}: {told}", began.elapsed());
    job.barrier("end").unwrap();
    said(other);
}

#[test]
fn a_split_is_named_as_what_the_program_calls() {
    let port = free_port();
    let other = start("splits", port, 1, 2);
    let job = join(port, 0, 2);
    let (_gpu, rank) = begin(&job);
    let told = rank.barrier().submit().unwrap_err().to_string();
    job.barrier("end").unwrap();
    let other = said(other);
    for told in [told, other] {
        assert!(told.contains("split") && told.contains("barrier"), "{told}");
        assert!(!told.contains("all_gather") && !told.contains("u8"), "{told}");
    }
}
