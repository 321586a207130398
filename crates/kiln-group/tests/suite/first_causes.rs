//! Which rank is named when several have gone, have given up, or come late: the first cause, also to ranks that come later. Each rank is a process with a simulated device.

#![allow(clippy::print_stdout, reason = "a rank tells the test what it saw")]

use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use kiln::group::{Rendezvous, RendezvousError};

use crate::job_rig::{
    Plan, SOON, config, free_port, join, join_with, meet_within, said, stay, told_in, told_of, try_sum,
};

fn start(scene: &str, place: (u16, u32, u32)) -> Child {
    crate::job_rig::start("first_causes::causing_process", scene, place)
}

/// Says what a collective answers, and waits until all have said that.
fn tell(job: &Arc<Rendezvous>, milliseconds: u64) {
    let (_gpu, rank) = meet_within(job, milliseconds);
    println!("told: {}", try_sum(&rank).unwrap_err());
    job.put(&format!("told {}", job.rank()), b"").unwrap();
    stay();
}

/// Not a test: what another process does.
#[test]
fn causing_process() {
    let Some(plan) = Plan::of_process() else { return };
    let waits_at_a_barrier = plan.scene == "waits at a barrier";
    let mut config = plan.config();
    if waits_at_a_barrier {
        config.timeout = Duration::from_secs(4);
    }
    let job = join_with(&config);
    match plan.scene.as_str() {
        "waits 300 ms" => return tell(&job, 300),
        "waits 900 ms" => return tell(&job, 900),
        "waits 4 s" => return tell(&job, 4000),
        _ => {}
    }
    let (gpu, rank) = meet_within(&job, 20_000);
    if ["leaves", "drops", "shuts down", "aborts"].contains(&&*plan.scene) {
        job.get("all are ready").unwrap();
    }
    match plan.scene.as_str() {
        "waits at a barrier" => {
            println!("told: {}", job.barrier("never").unwrap_err());
            job.put("told 1", b"").unwrap();
            stay();
        }
        "leaves" => {}
        "drops" => {
            drop(rank);
            job.put(&format!("dropped {}", job.rank()), b"").unwrap();
            stay();
        }
        "shuts down" => {
            assert!(gpu.shutdown(Duration::from_secs(60)).unwrap());
            stay();
        }
        "aborts" => std::process::abort(),
        "panics after a collective" => {
            try_sum(&rank).unwrap_err();
            std::panic::resume_unwind(Box::new("this rank ends because another one has left"));
        }
        "exits after a collective" => {
            try_sum(&rank).unwrap_err();
            std::process::exit(1);
        }
        "exits after a barrier" => {
            job.barrier("never").unwrap_err();
            std::process::exit(1);
        }
        scene => panic!("{scene}"),
    }
}

/// The rank that is called late does not come to what the others wait in, until they were told.
fn late_rank(port: u16, size: u32, told: &[u32]) -> Arc<Rendezvous> {
    let job = join(port, 0, size);
    let (_gpu, _rank) = meet_within(&job, 20_000);
    job.put("all are ready", b"").unwrap();
    for rank in told {
        job.get(&format!("told {rank}")).unwrap();
    }
    job
}

/// What a rank was told that stays until its standard input ends.
fn told(mut rank: Child) -> String {
    drop(rank.stdin.take());
    told_in(&said(rank)).remove(0)
}

#[test]
fn a_rank_that_gave_up_its_wait_has_come_and_is_not_named_by_those_that_wait_longer() {
    let port = free_port();
    let others = [("waits 300 ms", 1), ("waits 900 ms", 2), ("waits 4 s", 3)]
        .map(|(scene, rank)| start(scene, (port, rank, 4)));
    let _job = late_rank(port, 4, &[1, 2, 3]);
    for other in others {
        let told = told(other);
        assert!(told.contains("rank 0 did not come to collective 0"), "{told}");
    }
}

#[test]
fn a_rank_that_has_gone_is_told_at_once_although_another_one_is_late() {
    for (scene, words) in [("leaves", "rank 2 has left the job"), ("drops", "rank 2 has ended its part of")] {
        let port = free_port();
        let (mut gone, waits) = (start(scene, (port, 2, 3)), start("waits 4 s", (port, 1, 3)));
        let job = late_rank(port, 3, &[1]);
        let told = told(waits);
        assert!(told.contains(words) && told.contains("does not come to collective 0"), "{told}");
        drop((gone.stdin.take(), job));
        said(gone);
    }
    let port = free_port();
    let (gone, waits) = (start("leaves", (port, 2, 3)), start("waits at a barrier", (port, 1, 3)));
    let job = late_rank(port, 3, &[1]);
    let told = told(waits);
    assert!(told.contains("rank 2 has left the job in order and does not come to `never`"), "{told}");
    drop(job);
    said(gone);
}

#[test]
fn all_ranks_that_have_dropped_their_communicator_are_named() {
    let port = free_port();
    let gone = [1, 3].map(|rank| start("drops", (port, rank, 4)));
    let waits = start("waits 4 s", (port, 2, 4));
    let job = join(port, 0, 4);
    let (_gpu, rank) = meet_within(&job, 20_000);
    job.put("all are ready", b"").unwrap();
    [1, 3].iter().for_each(|rank| drop(job.get(&format!("dropped {rank}")).unwrap()));
    let own = try_sum(&rank).unwrap_err().to_string();
    for told in [own, told(waits)] {
        assert!(told.contains("ranks 1 and 3 have ended their parts of communicator "), "{told}");
        assert!(told.contains(" and do not come to collective 0"), "{told}");
    }
    for mut rank in gone {
        drop(rank.stdin.take());
        said(rank);
    }
}

#[test]
fn a_rank_that_ends_because_another_one_has_left_is_not_the_one_that_later_ranks_are_told_of() {
    for scene in ["panics after a collective", "exits after a collective", "exits after a barrier"] {
        let port = free_port();
        let (left, mut ended) = (start("leaves", (port, 1, 3)), start(scene, (port, 2, 3)));
        let job = join(port, 0, 3);
        let (_gpu, rank) = meet_within(&job, 20_000);
        job.put("all are ready", b"").unwrap();
        let lost = job.wait_for_loss(SOON).unwrap().unwrap();
        let words = "after it was told that rank 1 had left the job";
        assert!(lost.rank == 2 && lost.cause.contains(words), "{scene}: {lost:?}");
        let cause = told_of(&rank, (1, true));
        assert!(cause.contains("has left the job in order"), "{scene}: {cause}");
        let told = job.barrier("never").unwrap_err();
        assert!(matches!(told, RendezvousError::RankLeft { rank: 1, .. }), "{scene}: {told}");
        let rebuilt = rank.rebuild().unwrap();
        assert_eq!(rebuilt.lost.iter().map(|lost| lost.rank).collect::<Vec<_>>(), [1, 2], "{scene}");
        said(left);
        ended.wait().unwrap();
    }
}

#[test]
fn a_rank_that_ends_because_another_one_dropped_its_communicator_is_not_the_one_that_is_told() {
    let port = free_port();
    let mut left = start("drops", (port, 1, 3));
    let mut ended = start("exits after a collective", (port, 2, 3));
    let job = join(port, 0, 3);
    let (_gpu, rank) = meet_within(&job, 20_000);
    job.put("all are ready", b"").unwrap();
    let lost = job.wait_for_loss(SOON).unwrap().unwrap();
    let words = "after it was told that rank 1 of the job had ended its part of communicator ";
    assert!(lost.rank == 2 && lost.cause.contains(words), "{lost:?}");
    let cause = told_of(&rank, (1, true));
    assert!(cause.contains("has ended its part of the communicator"), "{cause}");
    drop(left.stdin.take());
    said(left);
    ended.wait().unwrap();
}

#[test]
fn a_rank_zero_that_ends_because_another_one_has_gone_is_not_the_one_that_later_ranks_are_told_of() {
    for scene in ["aborts", "leaves"] {
        let port = free_port();
        let (mut gone, mut first) =
            (start(scene, (port, 2, 3)), start("exits after a barrier", (port, 0, 3)));
        let job = join(port, 1, 3);
        let (_gpu, _rank) = meet_within(&job, 20_000);
        job.put("all are ready", b"").unwrap();
        first.wait().unwrap();
        let told = job.exchange("late", b"1").unwrap_err();
        match scene {
            "aborts" => assert!(matches!(told, RendezvousError::RankLost { rank: 2, .. }), "{told}"),
            _ => assert!(matches!(told, RendezvousError::RankLeft { rank: 2, .. }), "{told}"),
        }
        gone.wait().unwrap();
    }
}

#[test]
fn a_rank_whose_device_was_shut_down_is_told_to_those_that_wait_for_it() {
    let port = free_port();
    let mut other = start("shuts down", (port, 1, 2));
    let job = join_with(&config(port, 0, 2));
    let (_gpu, rank) = meet_within(&job, 4000);
    job.put("all are ready", b"").unwrap();
    let told = try_sum(&rank).unwrap_err().to_string();
    assert!(told.contains("rank 1 has shut its device down and does not come to collective 0"), "{told}");
    drop(other.stdin.take());
    said(other);
}
