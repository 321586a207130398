//! Sends, receives and groups of them between several processes that are refused: they count nothing and send nothing, so that the right calls that follow meet each other.

#![allow(clippy::print_stdout, reason = "a rank tells the test what it saw")]

use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use kiln::DeviceRuntime;
use kiln::group::{DeviceCommunicator, DeviceCommunicatorConfig, GroupError, Reduction, Rendezvous, Result};

use crate::job_rig::{Plan, free_port, join, said};

fn start(scene: &str, port: u16) -> Child {
    crate::job_rig::start("refused_transfers::refused_process", scene, (port, 1, 2))
}

fn meet(job: &Arc<Rendezvous>, deadline: Duration) -> DeviceCommunicator {
    let gpu = DeviceRuntime::simulated(u64::from(job.rank())).unwrap();
    DeviceCommunicator::meet(&gpu, job, &DeviceCommunicatorConfig { deadline }).unwrap()
}

const LONG: Duration = Duration::from_secs(20);

fn send(rank: &DeviceCommunicator, value: u32) -> Result<()> {
    let buffer = rank.runtime().upload(&[value; 8]).unwrap();
    rank.send(&buffer, 1 - rank.rank()).submit().map(drop)
}

/// What is received in so many elements.
fn receive(rank: &DeviceCommunicator, count: usize) -> Result<u32> {
    let buffer = rank.runtime().zeros::<u32>(count).unwrap();
    rank.recv(&buffer, 1 - rank.rank()).submit()?;
    Ok(buffer.download().unwrap()[0])
}

/// Sends a value and receives one as a group, in so many elements.
fn swap(rank: &DeviceCommunicator, value: u32, count: usize) -> Result<u32> {
    let (gpu, other) = (rank.runtime(), 1 - rank.rank());
    let (own, buffer) = (gpu.upload(&[value; 8]).unwrap(), gpu.zeros::<u32>(count).unwrap());
    rank.send(&own, other).and(rank.recv(&buffer, other)).submit()?;
    Ok(buffer.download().unwrap()[0])
}

fn is_other_call(error: &GroupError) -> bool {
    matches!(error, GroupError::OtherCollective { .. })
}

/// A group with a collective that differs between the ranks: its transfers may have been received before that is known.
fn mix(job: &Arc<Rendezvous>) {
    let rank = meet(job, LONG);
    let (gpu, other) = (rank.runtime(), 1 - rank.rank());
    let sum = gpu.upload(&vec![1_u32; 3 + rank.rank() as usize]).unwrap();
    let (own, buffer) = (gpu.upload(&[111_u32; 8]).unwrap(), gpu.zeros::<u32>(8).unwrap());
    let all = rank.all_reduce_in_place(&sum, Reduction::Sum);
    let told = all.and(rank.send(&own, other)).and(rank.recv(&buffer, other)).submit().unwrap_err();
    assert!(is_other_call(&told), "{told}");
    let told = receive(&rank, 8).unwrap_err().to_string();
    assert!(told.contains("takes no more calls: rank "), "{told}");
    assert!(told.contains(" gave up: a group of calls was refused when parts of it were sent: "), "{told}");
    assert_eq!(buffer.download().unwrap(), [0; 8]);
    assert_eq!(swap(&meet(job, LONG), rank.rank(), 8).unwrap(), other);
}

/// Sends before the other one has received: the rank that is told of that takes no more calls.
fn cross(job: &Arc<Rendezvous>) {
    let rank = meet(job, LONG);
    send(&rank, rank.rank()).unwrap();
    job.barrier("both have sent").unwrap();
    match receive(&rank, 8) {
        Ok(came) => assert_eq!(came, 1 - rank.rank()),
        Err(told) => {
            assert!(matches!(told, GroupError::CrossingSends { .. }), "{told}");
            let told = receive(&rank, 8).unwrap_err().to_string();
            assert!(told.contains("takes no more calls: rank "), "{told}");
            job.put("told", b"").unwrap();
        }
    }
    job.get("told").unwrap();
}

/// Not a test: what rank 1 does.
#[test]
fn refused_process() {
    let Some(plan) = Plan::of_process() else { return };
    let job = plan.join();
    match plan.scene.as_str() {
        "sends" => {
            let rank = meet(&job, LONG);
            (0..3).for_each(|value| send(&rank, value).unwrap());
            job.put("sent", b"").unwrap();
        }
        "swaps" => {
            let rank = meet(&job, LONG);
            send(&rank, 1).unwrap();
            job.put("sent", b"").unwrap();
            println!("came: {}", receive(&rank, 8).unwrap());
            println!("came: {}", swap(&rank, 2, 8).unwrap());
        }
        "swaps at once" => {
            let rank = meet(&job, Duration::from_secs(1));
            for round in 1..4 {
                match swap(&rank, 10 + round, 8) {
                    Ok(came) => println!("round {round} came: {came}"),
                    Err(why) => println!("round {round} refused: {why}"),
                }
            }
        }
        "mixes" => mix(&job),
        "crosses" => cross(&job),
        scene => panic!("{scene}"),
    }
    job.barrier("end").unwrap();
}

#[test]
fn a_receive_that_is_refused_does_not_count() {
    let port = free_port();
    let other = start("sends", port);
    let job = join(port, 0, 2);
    let rank = meet(&job, LONG);
    job.get("sent").unwrap();
    for _ in 0..2 {
        let told = receive(&rank, 9).unwrap_err();
        assert!(is_other_call(&told), "{told}");
    }
    let came: Vec<u32> = (0..3).map(|_| receive(&rank, 8).unwrap()).collect();
    assert_eq!(came, [0, 1, 2]);
    job.barrier("end").unwrap();
    said(other);
}

#[test]
fn a_group_that_is_refused_has_sent_nothing_and_counts_nothing() {
    let port = free_port();
    let other = start("swaps", port);
    let job = join(port, 0, 2);
    let rank = meet(&job, LONG);
    job.get("sent").unwrap();
    for _ in 0..2 {
        let told = swap(&rank, 111, 9).unwrap_err();
        assert!(is_other_call(&told), "{told}");
    }
    assert_eq!(swap(&rank, 11, 8).unwrap(), 1);
    assert_eq!(swap(&rank, 12, 8).unwrap(), 2);
    job.barrier("end").unwrap();
    let other = said(other);
    assert!(other.contains("came: 11\n") && other.contains("came: 12\n"), "{other}");
}

/// Either rank may come first with its group. The one that comes second is refused, and no value is that of another call.
#[test]
fn a_group_that_does_not_fit_gives_no_rank_a_value_of_another_call() {
    let port = free_port();
    let other = start("swaps at once", port);
    let job = join(port, 0, 2);
    let rank = meet(&job, Duration::from_secs(1));
    swap(&rank, 111, 9).unwrap_err();
    for round in 1..4 {
        match swap(&rank, round, 8) {
            Ok(came) => assert_eq!(came, 10 + round),
            Err(why) => println!("round {round} refused: {why}"),
        }
    }
    job.barrier("end").unwrap();
    let other = said(other);
    for line in other.lines() {
        if let Some((round, came)) = line.strip_prefix("round ").and_then(|line| line.split_once(" came: ")) {
            assert_eq!(round, came, "{other}");
        }
    }
}

#[test]
fn a_refused_group_of_which_parts_were_sent_ends_the_communicator_and_says_why() {
    let port = free_port();
    let other = start("mixes", port);
    let job = join(port, 0, 2);
    mix(&job);
    job.barrier("end").unwrap();
    said(other);
}

#[test]
fn a_rank_that_is_told_of_crossing_sends_takes_no_more_calls() {
    let port = free_port();
    let other = start("crosses", port);
    let job = join(port, 0, 2);
    cross(&job);
    job.barrier("end").unwrap();
    said(other);
}
