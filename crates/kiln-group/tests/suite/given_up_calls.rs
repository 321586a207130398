//! Calls of ranks in several processes that one of them has given up, since another did not come within the deadline.

#![allow(clippy::print_stdout, reason = "a rank tells the test what it saw")]

use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use kiln::DeviceRuntime;
use kiln::group::{DeviceCommunicator, DeviceCommunicatorConfig, Rendezvous};

use crate::job_rig::{Plan, free_port, join, said, sum, try_sum};

const CROSSINGS: u32 = 12;

fn start(scene: &str, port: u16, rank: u32, size: u32) -> Child {
    crate::job_rig::start("given_up_calls::late_process", scene, (port, rank, size))
}

/// Not a test: what a rank does that comes too late.
#[test]
fn late_process() {
    let Some(plan) = Plan::of_process() else { return };
    let job = plan.join();
    let rank = meet(&job, Duration::from_secs(20));
    job.get("given up").unwrap();
    match plan.scene.as_str() {
        "sums" => {
            println!("first: {}", try_sum(&rank).unwrap_err());
            println!("second: {}", try_sum(&rank).unwrap_err());
            assert_eq!(sum(&meet(&job, Duration::from_secs(20))), 3);
        }
        "splits" => println!("first: {}", rank.split(Some(0), 0).unwrap_err()),
        "sends" => {
            for value in [5_u32, 6] {
                let buffer = rank.runtime().upload(&[value; 4]).unwrap();
                rank.send(&buffer, 0).submit().unwrap();
            }
        }
        scene => panic!("{scene}"),
    }
    job.barrier("end").unwrap();
}

/// Not a test: what the other ranks do that call two communicators in another order than rank 0.
#[test]
fn crossing_process() {
    let Some(plan) = Plan::of_process() else { return };
    cross(&plan.join()).iter().for_each(|done| println!("done: {done}"));
}

/// Two communicators that rank 0 calls in another order than the others, again and again: whether each call was done. All give up at about the same time, and then come to the other one.
fn cross(job: &Arc<Rendezvous>) -> Vec<bool> {
    let mut done = Vec::new();
    for round in 0..CROSSINGS {
        let [one, two] = [(); 2].map(|()| meet(job, Duration::from_millis(300)));
        job.barrier(&format!("round {round}")).unwrap();
        let calls = if job.rank() == 0 { [&one, &two] } else { [&two, &one] };
        let mut ends = calls.map(|rank| try_sum(rank).is_ok());
        if job.rank() != 0 {
            ends.reverse();
        }
        done.extend(ends);
        job.barrier(&format!("end of round {round}")).unwrap();
    }
    done
}

fn meet(job: &Arc<Rendezvous>, deadline: Duration) -> DeviceCommunicator {
    let gpu = DeviceRuntime::simulated(u64::from(job.rank())).unwrap();
    DeviceCommunicator::meet(&gpu, job, &DeviceCommunicatorConfig { deadline }).unwrap()
}

#[test]
fn a_collective_that_a_rank_gave_up_is_done_on_no_rank_and_meets_no_later_one() {
    let port = free_port();
    let other = start("sums", port, 1, 2);
    let job = join(port, 0, 2);
    let rank = meet(&job, Duration::from_millis(300));
    let told = try_sum(&rank).unwrap_err().to_string();
    assert!(told.contains("rank 1 did not come to collective 0"), "{told}");
    let refused = try_sum(&rank).unwrap_err().to_string();
    assert!(refused.contains("takes no more calls: rank 0 gave up: rank 1 did not come to"), "{refused}");
    job.put("given up", b"").unwrap();
    assert_eq!(sum(&meet(&job, Duration::from_secs(20))), 3);
    job.barrier("end").unwrap();
    let other = said(other);
    assert!(other.contains("first: rank 0 gave up: rank 1 did not come to collective 0"), "{other}");
    assert!(other.contains("takes no more calls: rank 0 gave up: rank 1 did not come to"), "{other}");
}

#[test]
fn a_split_that_a_rank_gave_up_is_told_as_such() {
    let port = free_port();
    let other = start("splits", port, 1, 2);
    let job = join(port, 0, 2);
    let rank = meet(&job, Duration::from_millis(300));
    let told = rank.split(Some(0), 0).unwrap_err().to_string();
    assert!(told.contains("rank 1 did not come to"), "{told}");
    job.put("given up", b"").unwrap();
    let refused = rank.split(Some(0), 0).unwrap_err().to_string();
    assert!(refused.contains("takes no more calls"), "{refused}");
    job.barrier("end").unwrap();
    let other = said(other);
    assert!(other.contains("first: rank 0 gave up: rank 1 did not come to"), "{other}");
}

#[test]
fn a_receive_that_a_rank_gave_up_does_not_count() {
    let port = free_port();
    let other = start("sends", port, 1, 2);
    let job = join(port, 0, 2);
    let rank = meet(&job, Duration::from_millis(300));
    let buffer = rank.runtime().upload(&[1_u32; 4]).unwrap();
    let told = rank.recv(&buffer, 1).submit().unwrap_err().to_string();
    assert!(told.contains("was never sent: rank 1 did not within"), "{told}");
    job.put("given up", b"").unwrap();
    job.barrier("end").unwrap();
    for value in [5, 6] {
        rank.recv(&buffer, 1).submit().unwrap();
        assert_eq!(buffer.download().unwrap(), [value; 4]);
    }
    said(other);
}

#[test]
fn a_collective_that_ranks_give_up_as_others_come_is_done_on_all_or_on_none() {
    let port = free_port();
    let place = |rank| ("given_up_calls::crossing_process", "crosses", (port, rank, 4));
    let others: Vec<_> =
        (1..4).map(place).map(|(test, scene, at)| crate::job_rig::start(test, scene, at)).collect();
    let own: Vec<String> = cross(&join(port, 0, 4)).iter().map(|done| format!("done: {done}")).collect();
    assert_eq!(own.len(), 2 * CROSSINGS as usize);
    for other in others {
        let other = said(other);
        let theirs: Vec<&str> = other.lines().filter(|line| line.starts_with("done: ")).collect();
        assert_eq!(theirs, own);
    }
}
