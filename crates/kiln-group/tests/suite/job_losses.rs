//! Ranks of a job that are lost while their processes live, are replaced, or were given up; each rank is a process with a simulated device.

#![allow(clippy::print_stdout, reason = "a rank tells the test what it saw")]

use std::process::Child;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kiln::DeviceRuntime;
use kiln::group::{DeviceCommunicator, GroupError, Rendezvous, RendezvousError};

use crate::job_rig::{
    Plan, SOON, begin, config, free_port, join, limits, lose_device, meet, said, signal, stay, sum,
    told_of_one, try_sum, unless_lost,
};

fn start(scene: &str, port: u16, rank: u32, size: u32) -> Child {
    crate::job_rig::start("job_losses::job_process", scene, (port, rank, size))
}

/// Not a test: what another process does.
#[test]
fn job_process() {
    let Some(plan) = Plan::of_process() else { return };
    let job = plan.join();
    if plan.scene == "quits" {
        std::process::abort();
    }
    if plan.scene == "replaces" {
        return replaces(&job);
    }
    if plan.scene == "comes" {
        job.put("here", b"").unwrap();
    }
    let Some(rank) = unless_lost(&plan.scene, begin(&job)) else { return };
    scene(&plan.scene, job, rank, plan.port);
}

fn scene(name: &str, job: Arc<Rendezvous>, (gpu, rank): (DeviceRuntime, DeviceCommunicator), port: u16) {
    match name {
        "comes" => {}
        "drops" => {
            lose_device(&gpu);
            drop((rank, gpu));
            stay();
        }
        "rebuilds" => {
            println!("cause: {}", told_of_one(&rank));
            let rebuilt = rank.rebuild().unwrap();
            assert_eq!(rebuilt.former_ranks, [0, 2]);
            assert_eq!(sum(&rebuilt.communicator), 3);
            job.barrier("end").unwrap();
        }
        "rejoins" => {
            let (of_job, size) = (job.rank(), job.size());
            drop((rank, gpu, job));
            println!("replacement: {}", rejoined(port, of_job, size));
        }
        "meets with a lost rank" | "meets with a lost rank that it knows" => {
            job.wait_for_loss(SOON).unwrap().unwrap();
            if name.ends_with("knows") {
                job.acknowledge_losses();
            }
            meets_with_a_lost_rank(&job);
            stay();
        }
        "is stopped" => is_stopped(&job, &rank),
        "is stopped after a loss" => {
            told_of_one(&rank);
            job.acknowledge_losses();
            is_stopped(&job, &rank);
        }
        "rebuilds and ends" => {
            told_of_one(&rank);
            thread::spawn(move || rank.rebuild().map(drop));
            thread::sleep(Duration::from_millis(1500));
            std::process::abort();
        }
        "rebuilds early" => {
            told_of_one(&rank);
            let rebuilt = rank.rebuild().unwrap();
            assert_eq!(rebuilt.former_ranks, [0, 3]);
            assert_eq!(sum(&rebuilt.communicator), 3);
            job.barrier("end").unwrap();
        }
        "calls another" => {
            println!("told: {}", try_sum(&rank).unwrap_err());
            job.barrier("end").unwrap();
        }
        scene => panic!("{scene}"),
    }
}

/// Says what it is told when it goes on.
fn is_stopped(job: &Rendezvous, rank: &DeviceCommunicator) {
    // It may be stopped before it has the answer, and is told what came of that instead.
    let _ = job.put("there", b"");
    println!("told: {}", job.get("never").unwrap_err());
    println!("then: {}", rank.barrier().submit().unwrap_err());
}

/// Joins a job again that this process has left as planned, and says what came of it.
fn rejoined(port: u16, rank: u32, size: u32) -> String {
    let gpu = DeviceRuntime::simulated(9).unwrap();
    let job = join(port, rank, size);
    let refused = DeviceCommunicator::meet(&gpu, &job, &limits()).unwrap_err();
    format!("{} {refused}", job.is_replacement())
}

/// A program that knows nothing of replacements and calls `meet` first; then it does what it is told.
fn replaces(job: &Arc<Rendezvous>) {
    assert!(job.is_replacement());
    let gpu = DeviceRuntime::simulated(7).unwrap();
    for _ in 0..2 {
        let refused = DeviceCommunicator::meet(&gpu, job, &limits()).unwrap_err();
        assert!(matches!(refused, GroupError::PlaceNotTaken { rank: 1 }), "{refused}");
        let text = refused.to_string();
        assert!(text.contains("DeviceCommunicator::replace") && text.contains("rebuild_replaced"), "{text}");
    }
    let rebuilt = DeviceCommunicator::replace(&gpu, job, &limits()).unwrap();
    assert_eq!(sum(&rebuilt.communicator), 3);
    let next = DeviceCommunicator::meet(&gpu, job, &limits()).unwrap();
    assert_eq!(sum(&next), 3);
    job.barrier("end").unwrap();
}

fn meets_with_a_lost_rank(job: &Arc<Rendezvous>) {
    let (_gpu, rank) = meet(job);
    assert_eq!(rank.lost_rank().map(|lost| lost.rank), Some(1));
    told_of_one(&rank);
}

#[test]
fn a_rank_that_is_lost_while_its_process_lives_is_told_to_its_job_at_once() {
    for (scene, cause) in
        [("loses", "ILLEGAL_ADDRESS"), ("drops", "ILLEGAL_ADDRESS"), ("panics", "its thread panicked")]
    {
        let port = free_port();
        let (lost, other) = (start(scene, port, 1, 3), start("rebuilds", port, 2, 3));
        let job = join(port, 0, 3);
        let (_gpu, rank) = begin(&job);
        let told = told_of_one(&rank);
        assert!(told.contains(cause), "{scene}: {told}");
        let rebuilt = rank.rebuild().unwrap();
        assert_eq!(sum(&rebuilt.communicator), 3);
        job.barrier("end").unwrap();
        let other = said(other);
        assert!(other.contains(cause), "{scene}: {other}");
        said(lost);
    }
}

#[test]
fn a_replacement_that_has_not_taken_its_place_is_refused_a_meeting() {
    let port = free_port();
    let mut lost = start("ends", port, 1, 2);
    let job = join(port, 0, 2);
    let (gpu, rank) = begin(&job);
    told_of_one(&rank);
    lost.wait().unwrap();
    let replacement = start("replaces", port, 1, 2);
    let rebuilt = rank.rebuild_replaced().unwrap();
    assert_eq!(sum(&rebuilt.communicator), 3);
    let next = DeviceCommunicator::meet(&gpu, &job, &limits()).unwrap();
    assert_eq!(sum(&next), 3);
    job.barrier("end").unwrap();
    said(replacement);
}

#[test]
fn a_rank_that_left_as_planned_and_joins_again_is_refused_the_old_communicator() {
    let port = free_port();
    let other = start("rejoins", port, 1, 2);
    let job = join(port, 0, 2);
    let (_gpu, _rank) = begin(&job);
    let other = said(other);
    assert!(other.contains("replacement: true rank 1 "), "{other}");
    assert!(other.contains("DeviceCommunicator::replace"), "{other}");
}

#[test]
fn a_replacement_in_a_job_without_communicators_meets_the_others() {
    let port = free_port();
    let mut lost = start("quits", port, 1, 2);
    let job = join(port, 0, 2);
    job.wait_for_loss(SOON).unwrap().unwrap();
    job.acknowledge_losses();
    lost.wait().unwrap();
    let other = start("comes", port, 1, 2);
    job.get("here").unwrap();
    let (_gpu, _rank) = begin(&job);
    said(other);
}

#[test]
fn a_communicator_made_with_a_lost_rank_refuses_collectives_at_once_on_every_rank() {
    for is_known in [true, false] {
        let port = free_port();
        let scene = match is_known {
            true => "meets with a lost rank that it knows",
            false => "meets with a lost rank",
        };
        let others = [start("ends", port, 1, 3), start(scene, port, 2, 3)];
        let job = join(port, 0, 3);
        let (_gpu, _rank) = begin(&job);
        job.wait_for_loss(SOON).unwrap().unwrap();
        if is_known {
            job.acknowledge_losses();
        }
        meets_with_a_lost_rank(&job);
        let [mut lost, other] = others;
        said(other);
        lost.wait().unwrap();
    }
}

#[test]
fn a_stopped_rank_that_keeps_the_store_is_told_that_it_was_given_up() {
    let port = free_port();
    let zero = start("is stopped", port, 0, 2);
    let job = join(port, 1, 2);
    let (_gpu, _rank) = begin(&job);
    job.get("there").unwrap();
    signal("-STOP", &zero);
    let told = job.get("never").unwrap_err();
    assert!(matches!(told, RendezvousError::StoreLost { .. }), "{told}");
    thread::sleep(Duration::from_millis(500));
    signal("-CONT", &zero);
    let zero = said(zero);
    assert!(
        zero.contains("told: rank 0, this one, was given up") && zero.contains("nothing for 1.5 s"),
        "{zero}"
    );
    assert!(zero.contains("then: ") && zero.contains("gave it up, which is this rank"), "{zero}");
    assert!(!zero.contains("rank 1"), "{zero}");
    // Rank 0 cannot be replaced.
    assert!(zero.contains("start the job again") && !zero.contains("replacement"), "{zero}");
}

#[test]
fn a_rank_that_was_given_up_says_so_also_after_another_loss() {
    let port = free_port();
    let mut lost = start("ends", port, 1, 3);
    let other = start("is stopped after a loss", port, 2, 3);
    let job = join(port, 0, 3);
    let (_gpu, rank) = begin(&job);
    told_of_one(&rank);
    lost.wait().unwrap();
    job.acknowledge_losses();
    job.get("there").unwrap();
    signal("-STOP", &other);
    assert_eq!(job.wait_for_loss(SOON).unwrap().unwrap().rank, 2);
    signal("-CONT", &other);
    let other = said(other);
    assert!(other.contains("told: rank 2, this one, was given up"), "{other}");
    assert!(other.contains("then: rank 2: rank 2 of communicator"), "{other}");
    assert!(other.contains("gave it up, which is this rank") && !other.contains("meet at"), "{other}");
}

#[test]
fn a_second_loss_during_a_rebuild_blames_no_rank_that_is_there() {
    let port = free_port();
    let others = [
        start("ends", port, 1, 4),
        start("rebuilds and ends", port, 2, 4),
        start("rebuilds early", port, 3, 4),
    ];
    let job = join(port, 0, 4);
    let (_gpu, rank) = begin(&job);
    told_of_one(&rank);
    job.acknowledge_losses();
    // The other one has begun without rank 1 alone.
    assert_eq!(job.wait_for_loss(SOON).unwrap().unwrap().rank, 2);
    thread::sleep(Duration::from_millis(200));
    let rebuilt = rank.rebuild().unwrap();
    assert_eq!(rebuilt.former_ranks, [0, 3]);
    assert_eq!(sum(&rebuilt.communicator), 3);
    job.barrier("end").unwrap();
    let [mut lost, mut second, other] = others;
    said(other);
    drop((lost.wait(), second.wait()));
}

#[test]
fn a_disagreement_names_the_communicator_by_its_id() {
    let port = free_port();
    let other = start("calls another", port, 1, 2);
    let job = join(port, 0, 2);
    let (_gpu, rank) = begin(&job);
    let told = rank.barrier().submit().unwrap_err().to_string();
    job.barrier("end").unwrap();
    let id = format!("communicator {:?}", rank.id());
    assert!(told.contains(&id), "{id}: {told}");
    let other = said(other);
    assert!(other.contains(&id), "{id}: {other}");
}

#[test]
fn rank_zero_joins_again_at_the_same_port_at_once() {
    let port = free_port();
    for _ in 0..50 {
        drop(Rendezvous::join(&config(port, 0, 1)).unwrap());
    }
}
