//! Ranks of a process that may start no more threads: each is told which thread is missing and which limit to raise, and joins once it may.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "a rank tells the test what it saw")]

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use kiln::group::{GroupError, Rendezvous, RendezvousError};
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};

use crate::job_rig::{free_port, helper, patient, said, told_in};
use crate::rig::Rig;

/// What a process does with how many threads more than it has.
const SCENE: &str = "KILN_TEST_NO_THREADS";
/// No other process runs as these users.
const UNUSED_USER: u32 = 65_100;
const NEXT: &str = "raise the limits of memory, threads and descriptors (ulimit -v, -u, -n)";

/// Runs something with a limit of so many more threads. One that is told the number of all threads of its user has no more anyway.
fn with_threads<T>(more: u64, run: impl FnOnce() -> T) -> T {
    let limit = getrlimit(Resource::Nproc);
    let threads = std::fs::read_dir("/proc/self/task").unwrap().count() as u64;
    setrlimit(Resource::Nproc, Rlimit { current: Some(threads + more), ..limit }).unwrap();
    let answer = run();
    setrlimit(Resource::Nproc, limit).unwrap();
    answer
}

/// A rank that is told, and then may start threads again.
#[test]
#[ignore = "helper process"]
fn crowded_process() {
    let Ok(scene) = std::env::var(SCENE) else { return };
    let words: Vec<&str> = scene.split(' ').collect();
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    if words[0] == "communicator" {
        let rig = Rig::new(2, 1);
        let error = with_threads(0, || rig.group.communicators(&Default::default())).unwrap_err();
        assert!(matches!(error, GroupError::NoThread { rank: 0, .. }), "{error}");
        println!("told: {error}");
        for rank in rig.group.communicators(&Default::default()).unwrap() {
            rank.barrier().submit().unwrap();
        }
        rig.group.synchronize().unwrap();
        return;
    }
    let (rank, more, port) = (number(1) as u32, number(2), number(3) as u16);
    let size = rank + 1;
    let began = Instant::now();
    let error = with_threads(more, || Rendezvous::join(&patient(port, rank, size))).unwrap_err();
    assert!(matches!(error, RendezvousError::System { .. }), "{error}");
    // It is told at once, and not when its time is over.
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
    println!("told: {error}");
    Rendezvous::join(&patient(port, rank, size)).unwrap();
}

fn start(scene: &str, user: u32) -> Child {
    let mut child = helper("no_threads::crowded_process");
    child.env(SCENE, scene).stdin(Stdio::null()).stdout(Stdio::piped());
    if geteuid().is_root() {
        // The system does not limit root.
        child.uid(UNUSED_USER + user).gid(UNUSED_USER);
    }
    child.spawn().unwrap()
}

/// Without root the limit is shared with other processes of the user, and none of them may start a thread.
fn counts() -> &'static [u64] {
    if geteuid().is_root() { &[0, 1] } else { &[0] }
}

#[test]
fn rank_zero_without_threads_for_the_store_is_told_and_joins_later() {
    for (more, what) in counts().iter().zip(["for the store of rank 0", "that serves a rank"]) {
        let told = told_in(&said(start(&format!("rank 0 {more} {}", free_port()), *more as u32)));
        let begins = format!("a thread {what} could not be started: ");
        assert!(told[0].starts_with(&begins) && told[0].ends_with(NEXT), "{more}: {told:?}");
    }
}

#[test]
fn a_rank_without_threads_for_its_connection_is_told_and_joins_later() {
    for more in counts() {
        let port = free_port();
        let other = start(&format!("rank 1 {more} {port}"), 2 + *more as u32);
        let zero = Rendezvous::join(&patient(port, 0, 2)).unwrap();
        let told = told_in(&said(other));
        let begins = "a thread for the connection to rank 0 could not be started: ";
        assert!(told[0].starts_with(begins) && told[0].ends_with(NEXT), "{more}: {told:?}");
        drop(zero);
    }
}

#[test]
fn ranks_of_a_group_without_a_thread_that_notices_losses_are_told_and_made_later() {
    let told = told_in(&said(start("communicator", 4)));
    let begins = "rank 0: the thread that notices lost ranks could not be started: ";
    assert!(told[0].starts_with(begins) && told[0].ends_with(NEXT), "{told:?}");
}
