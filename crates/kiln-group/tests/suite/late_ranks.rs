//! A rank that ends because another one came too late: the late rank is what the others are told of. Each rank is a process with a simulated device.

#![allow(clippy::print_stdout, reason = "a rank tells the test what it saw")]

use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use kiln::DeviceRuntime;
use kiln::group::{DeviceCommunicator, Rendezvous, RendezvousError};

use crate::job_rig::{Plan, SOON, config, free_port, join, join_with, meet_within, said, told_in, try_sum};

fn start(scene: &str, place: (u16, u32, u32)) -> Child {
    crate::job_rig::start("late_ranks::waiting_process", scene, place)
}

/// Waits for a value, whichever ranks are lost meanwhile.
fn wait_for(job: &Rendezvous, key: &str) {
    while job.get(key).is_err() {
        job.acknowledge_losses();
    }
}

/// Not a test: what another process does.
#[test]
fn waiting_process() {
    let Some(plan) = Plan::of_process() else { return };
    if let Some(how) = plan.scene.strip_prefix("barrier, ") {
        let mut config = plan.config();
        config.timeout = Duration::from_secs(3);
        let job = join_with(&config);
        job.barrier("ready").unwrap();
        assert!(matches!(job.barrier("x").unwrap_err(), RendezvousError::NotThere { rank: 2, .. }));
        return end(how, job, None);
    }
    let job = plan.join();
    match plan.scene.as_str() {
        "is late" => {
            let (_gpu, rank) = meet_within(&job, 20_000);
            wait_for(&job, "told");
            println!("told: {}", try_sum(&rank).unwrap_err());
        }
        "stays away from a barrier" => {
            job.barrier("ready").unwrap();
            wait_for(&job, "told");
        }
        "waits in vain, and goes on" => {
            let (_gpu, rank) = meet_within(&job, 300);
            let told = try_sum(&rank).unwrap_err().to_string();
            assert!(told.contains(" did not come to collective 0"), "{told}");
            job.put("late", b"").unwrap();
            job.barrier("all have come").unwrap();
            std::process::abort();
        }
        "comes at last" => {
            let _rank = meet_within(&job, 20_000);
            wait_for(&job, "late");
            job.barrier("all have come").unwrap();
            wait_for(&job, "told");
        }
        how => {
            let (gpu, rank) = meet_within(&job, 300);
            let told = try_sum(&rank).unwrap_err().to_string();
            assert!(told.contains(" did not come to collective 0"), "{told}");
            end(how, job, Some((gpu, rank)));
        }
    }
}

/// Ends a rank that has waited in vain.
fn end(how: &str, job: Arc<Rendezvous>, rank: Option<(DeviceRuntime, DeviceCommunicator)>) {
    match how {
        "leaves" => drop((rank, job)),
        "exits" => std::process::exit(1),
        "panics" => std::panic::resume_unwind(Box::new("this rank ends because another one is late")),
        how => panic!("{how}"),
    }
}

/// That these ranks are told as late, and rank 1, which has waited for them, is not said to be the reason.
fn names(late: &[u32], rank: &DeviceCommunicator, scene: &str) {
    let listed = if late.len() == 1 { "rank 2" } else { "ranks 0 and 2" };
    let told = try_sum(rank).unwrap_err();
    let text = told.to_string();
    assert!(text.contains(&format!("{listed} did not come to collective 0")), "{scene}: {text}");
    assert!(!text.contains("rank 1 of communicator"), "{scene}: {text}");
    if let Some(lost) = told.lost_rank() {
        assert_eq!((lost.lost, &lost.late[..], lost.can_rebuild), (1, late, true), "{scene}: {text}");
        assert!(
            text.contains(&format!("{listed} of communicator ")) && text.contains(" late, and rank 1"),
            "{text}"
        );
    }
}

#[test]
fn a_rank_that_ends_because_another_one_was_late_is_not_the_one_that_is_told() {
    for how in ["leaves", "exits", "panics"] {
        let port = free_port();
        let (mut ended, late) = (start(how, (port, 1, 3)), start("is late", (port, 2, 3)));
        let job = join(port, 0, 3);
        let (_gpu, rank) = meet_within(&job, 20_000);
        ended.wait().unwrap();
        if how != "leaves" {
            let lost = job.wait_for_loss(SOON).unwrap().unwrap();
            let words = ", after ranks 0 and 2 did not come to collective 0, all_reduce ";
            assert!(lost.rank == 1 && lost.cause.contains(words), "{how}: {lost:?}");
        }
        names(&[0, 2], &rank, how);
        let told = job.barrier("x").unwrap_err();
        match how {
            "leaves" => {
                assert!(
                    matches!(&told, RendezvousError::RankLate { ranks, left: 1, .. } if ranks[..] == [0, 2]),
                    "{told}"
                );
            }
            _ => assert!(matches!(told, RendezvousError::RankLost { rank: 1, .. }), "{how}: {told}"),
        }
        assert!(told.to_string().contains("ranks 0 and 2 did not come to collective 0"), "{how}: {told}");
        job.put("told", b"").unwrap();
        let late = told_in(&said(late)).remove(0);
        assert!(late.contains("ranks 0 and 2 did not come to collective 0"), "{how}: {late}");
    }
}

#[test]
fn a_rank_that_waits_when_another_one_ends_because_of_a_late_one_is_told_of_the_late_one() {
    for how in ["leaves", "exits", "panics"] {
        let port = free_port();
        let (mut ended, late) = (start(how, (port, 1, 3)), start("is late", (port, 2, 3)));
        let job = join(port, 0, 3);
        let (_gpu, rank) = meet_within(&job, 20_000);
        names(&[2], &rank, how);
        ended.wait().unwrap();
        job.put("told", b"").unwrap();
        said(late);
    }
}

#[test]
fn a_rank_that_ends_because_another_one_was_late_at_a_barrier_is_not_the_one_that_is_told() {
    for how in ["leaves", "exits"] {
        let port = free_port();
        let scene = format!("barrier, {how}");
        let (mut ended, late) =
            (start(&scene, (port, 1, 3)), start("stays away from a barrier", (port, 2, 3)));
        let job = join_with(&config(port, 0, 3));
        job.barrier("ready").unwrap();
        let told = job.barrier("x").unwrap_err();
        assert!(matches!(told, RendezvousError::NotThere { rank: 2, .. }), "{how}: {told}");
        ended.wait().unwrap();
        job.put("told", b"").unwrap();
        said(late);
    }
}

#[test]
fn a_rank_that_was_late_and_has_come_is_not_the_reason_of_a_later_loss() {
    let port = free_port();
    let mut ended = start("waits in vain, and goes on", (port, 1, 3));
    let late = start("comes at last", (port, 2, 3));
    let job = join(port, 0, 3);
    let (_gpu, _rank) = meet_within(&job, 20_000);
    job.barrier("all have come").unwrap();
    let lost = job.wait_for_loss(SOON).unwrap().unwrap();
    assert!(lost.rank == 1 && !lost.cause.contains("did not come"), "{lost:?}");
    ended.wait().unwrap();
    job.put("told", b"").unwrap();
    said(late);
}
