//! Values of collectives between simulated devices of several processes: large ones, and ranks that do not come. Each rank is a process.

#![allow(clippy::print_stdout, reason = "a rank tells the test what it saw")]

use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln::DeviceRuntime;
use kiln::group::{DeviceCommunicator, DeviceCommunicatorConfig, Reduction, Rendezvous};

use crate::job_rig::{Plan, SOON, begin, free_port, join, patient, said, sum, told_in, try_sum};

/// Elements of 8 bytes: with those of another rank, more than 64 MiB.
const HALF: usize = 4_500_000;
/// Alone more than 64 MiB.
const WHOLE: usize = 8_600_000;

/// Elements of 4 bytes: as many as the store is given at a time.
const PIECE: usize = 128 << 10;

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
        "too large" => {
            let (gpu, rank) = begin(&job);
            let large = gpu.upload(&vec![7_u32; 3 * PIECE]).unwrap();
            println!("told: {}", rank.broadcast(&large, 1).submit().unwrap_err());
            println!("told: {}", rank.send(&large, 0).submit().unwrap_err());
            job.barrier("both refused").unwrap();
            fits(&rank);
        }
        scene => panic!("{scene}"),
    }
}

/// What fits into a small store is done after something that did not.
fn fits(rank: &DeviceCommunicator) {
    let small = rank.runtime().upload(&[rank.rank(); 1000]).unwrap();
    rank.broadcast(&small, 1).submit().unwrap();
    assert_eq!(small.download().unwrap(), [1; 1000]);
    assert_eq!(sum(rank), 3);
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

#[test]
fn a_collective_beyond_the_room_of_the_store_is_refused_and_smaller_ones_are_done() {
    let port = free_port();
    let other = start("too large", port, 1, 2);
    let mut config = patient(port, 0, 2);
    assert_eq!(config.exchange_limit_bytes, 16 << 30);
    // Room for two of the three pieces of what rank 1 brings.
    config.exchange_limit_bytes = 5 * PIECE as u64 * 2;
    let job = Arc::new(Rendezvous::join(&config).unwrap());
    let (gpu, rank) = begin(&job);
    let large = gpu.zeros::<u32>(3 * PIECE).unwrap();
    let told = rank.broadcast(&large, 1).submit().unwrap_err().to_string();
    let words = "no call: the store of rank 0 has no room for what it brings";
    assert!(told.contains("rank 0 and rank 1 differ in collective 1") && told.contains(words), "{told}");
    let told = rank.recv(&large, 1).submit().unwrap_err().to_string();
    assert!(told.contains("transfer 0 from rank 1 to rank 0") && told.contains(words), "{told}");
    job.barrier("both refused").unwrap();
    fits(&rank);
    let told = told_in(&said(other));
    let calls = ["collective 1, broadcast", "transfer 0 from rank 1 to rank 0, send"];
    for (told, call) in told.iter().zip(calls) {
        let what = "of 1572864 bytes, has no room in the store of rank 0: it takes 1310720 bytes of all that ranks bring to collectives and have sent; ";
        let next =
            "receive what was sent, exchange less at a time, or raise `exchange_limit_bytes` of rank 0";
        assert_eq!(*told, format!("{call} {what}{next}"));
    }
    assert_eq!(told.len(), calls.len());
}
