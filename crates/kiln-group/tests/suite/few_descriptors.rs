//! Ranks of a process that may open few files: each is told which limit it is, how many it needs and what to do, and joins once it may.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "a rank tells the test what it saw")]

use std::fs::File;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use kiln::group::Rendezvous;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::job_rig::{free_port, helper, patient, said, told_in};

/// What a process does, and at which port.
const SCENE: &str = "KILN_TEST_FEW_DESCRIPTORS";

fn open_descriptors() -> u64 {
    std::fs::read_dir("/proc/self/fd").unwrap().count() as u64 - 1
}

/// Lets this process open so many more files.
fn allow(more: u64) -> Rlimit {
    let limit = getrlimit(Resource::Nofile);
    let current = Some(open_descriptors() + more);
    setrlimit(Resource::Nofile, Rlimit { current, ..limit }).unwrap();
    limit
}

/// Ranks with few descriptors, which are told, and then may open more.
#[test]
#[ignore = "helper process"]
fn limited_process() {
    let Ok(scene) = std::env::var(SCENE) else { return };
    let (scene, port) = scene.rsplit_once(' ').unwrap();
    let port: u16 = port.parse().unwrap();
    let began = Instant::now();
    match scene {
        "store" => {
            let limit = allow(20);
            let error = Rendezvous::join(&patient(port, 0, 40)).unwrap_err();
            println!("open: {}", open_descriptors());
            setrlimit(Resource::Nofile, limit).unwrap();
            println!("told: {error}");
            // It has not listened, so that the port is free.
            Rendezvous::join(&patient(port, 0, 1)).unwrap();
        }
        "rank" => {
            let limit = allow(0);
            let error = Rendezvous::join(&patient(port, 1, 2)).unwrap_err();
            setrlimit(Resource::Nofile, limit).unwrap();
            println!("told: {error}");
            Rendezvous::join(&patient(port, 1, 2)).unwrap();
        }
        "store without any later" => {
            allow(40);
            let joining = std::thread::spawn(move || Rendezvous::join(&patient(port, 0, 3)).unwrap_err());
            // It listens, and has joined itself.
            std::thread::sleep(Duration::from_millis(500));
            let taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
            println!("ready");
            let error = joining.join().unwrap();
            drop(taken);
            println!("told: {error}");
        }
        scene => panic!("{scene}"),
    }
    // It is told at once, and not when its time is over.
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
}

fn start(scene: &str, port: u16) -> Child {
    let mut child = helper("few_descriptors::limited_process");
    child.env(SCENE, format!("{scene} {port}")).stdin(Stdio::null()).stdout(Stdio::piped());
    child.spawn().unwrap()
}

#[test]
fn rank_zero_with_too_few_descriptors_for_its_ranks_is_told_the_limit_and_what_it_needs() {
    let said = said(start("store", free_port()));
    let told = told_in(&said);
    let open: u64 = said.lines().find_map(|line| line.split_once("open: ")?.1.parse().ok()).unwrap();
    let begins = format!(
        "rank 0 of 40 needs 43 more file descriptors, one for the connection of each rank, and its process has {open} of at most {} open (RLIMIT_NOFILE); ",
        open + 20
    );
    assert!(told[0].starts_with(&begins), "{told:?}");
    assert!(told[0].contains(&format!("(`ulimit -n {}`)", open + 43)), "{told:?}");
}

#[test]
fn another_rank_without_a_descriptor_is_told_so_and_does_not_blame_rank_zero() {
    let port = free_port();
    let other = start("rank", port);
    let zero = Rendezvous::join(&patient(port, 0, 2)).unwrap();
    let told = told_in(&said(other));
    assert!(
        told[0].starts_with("rank 1 of 2 needs 1 more file descriptor, and its process has "),
        "{told:?}"
    );
    drop(zero);
}

#[test]
fn rank_zero_whose_descriptors_are_used_up_later_is_told_why_a_rank_does_not_come() {
    let port = free_port();
    let zero = start("store without any later", port);
    std::thread::sleep(Duration::from_secs(1));
    // A thread that waits for a connection has a descriptor for one already.
    let others = [1, 2].map(|rank| {
        let mut config = patient(port, rank, 3);
        config.timeout = Duration::from_secs(10);
        std::thread::spawn(move || Rendezvous::join(&config).is_err())
    });
    for other in others {
        assert!(other.join().unwrap());
    }
    let told = told_in(&said(zero));
    let begins = "the connection of a rank could not be taken: Too many open files";
    assert!(told[0].starts_with(begins) && told[0].contains("ulimit"), "{told:?}");
}
