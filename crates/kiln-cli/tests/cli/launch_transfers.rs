//! `kiln launch --check`: sends that no rank receives, and receives that no rank sends to. The program of the ranks is this test itself.

#![cfg(target_os = "linux")]

use std::sync::Arc;
use std::time::Duration;

use kiln::group::{DeviceCommunicator, DeviceCommunicatorConfig, GroupError, Rendezvous};
use kiln::{DeviceRuntime, GpuRef};

use crate::checked_ranks::{self, found};
use crate::outcome::Outcome;

const SCENE: &str = "KILN_TEST_TRANSFERS";
/// A wait that ends by it fails the job, which may run for a shorter time.
const DEADLINE: Duration = Duration::from_secs(600);

/// Sends what no rank receives, and where that is.
fn send_unreceived(rank: &DeviceCommunicator, buffer: &GpuRef<u32>) -> u32 {
    rank.send(buffer, 1).submit().unwrap();
    line!() - 1
}

/// Receives what no rank sends.
fn receive_unsent(rank: &DeviceCommunicator, buffer: &GpuRef<u32>) -> u32 {
    let error = rank.recv(buffer, 2).submit().unwrap_err();
    let line = line!() - 1;
    assert!(matches!(error, GroupError::Collective { .. }), "{error}");
    assert!(error.to_string().contains("; let each send have a receive"), "{error}");
    line
}

/// What every rank does: rank 2 sends to rank 1.
#[test]
fn transferring_rank_program() {
    let Ok(scene) = std::env::var(SCENE) else { return };
    let job = Arc::new(Rendezvous::from_process().unwrap().unwrap());
    let gpu = DeviceRuntime::auto().unwrap();
    let config = DeviceCommunicatorConfig { deadline: DEADLINE };
    let rank = DeviceCommunicator::meet(gpu, &job, &config).unwrap();
    // Larger than what the store is given at a time.
    let large = gpu.upload(&vec![rank.rank(); 300_000]).unwrap();
    let small = large.view(..4).unwrap();
    let send = || {
        rank.send(&small, 1).submit().unwrap();
    };
    let receive = || {
        rank.recv(&small, 2).submit().unwrap();
    };
    match (scene.as_str(), rank.rank()) {
        ("late", 2) => (0..3).for_each(|_| send()),
        ("late", 1) => {
            // Rank 2 may have left by now.
            std::thread::sleep(Duration::from_millis(500));
            (0..3).for_each(|_| receive());
            assert_eq!(small.download().unwrap(), [2; 4]);
        }
        ("unreceived", 2) => {
            send();
            println!("unmatched: line {}", send_unreceived(&rank, &large));
        }
        ("unreceived", 1) => receive(),
        ("unsent" | "unsent, and the sender stays", 2) => send(),
        ("unsent" | "unsent, and the sender stays", 1) => {
            receive();
            println!("unmatched: line {}", receive_unsent(&rank, &small));
        }
        ("lost", 2) => {
            send();
            std::process::exit(9);
        }
        _ => {}
    }
    drop(rank);
    if scene == "unsent, and the sender stays" {
        job.barrier("end").unwrap();
    }
}

fn checked(scene: &str) -> Outcome {
    checked_ranks::checked("3", "launch_transfers::transferring_rank_program", (SCENE, scene))
}

/// Where the call is that a finding is about, as the rank says.
fn place(outcome: &Outcome) -> String {
    let line = outcome.stdout.lines().find_map(|line| Some(line.split_once("unmatched: line ")?.1));
    format!("launch_transfers.rs:{}:", line.unwrap_or_else(|| panic!("{}", outcome.stdout)))
}

#[test]
fn sends_that_are_received_late_are_no_findings() {
    let outcome = checked("late");
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stderr.contains("no findings in 3 ranks"), "{}", outcome.stderr);
}

#[test]
fn a_send_that_is_never_received_is_a_finding_with_both_ranks_bytes_and_place() {
    let outcome = checked("unreceived");
    assert_eq!(outcome.code, Some(5), "{}{}", outcome.stdout, outcome.stderr);
    let found = found(&outcome);
    let words = "send of 1200000 bytes (300000 u32) from rank 2 to rank 1, transfer 1 between the two, at ";
    assert!(found.len() == 1 && found[0].starts_with(words), "{}", outcome.stderr);
    assert!(found[0].contains(&place(&outcome)), "{}", found[0]);
    assert!(found[0].contains(" was never received: rank 1 has ended; let each send have a receive"));
}

#[test]
fn a_receive_without_a_send_is_a_finding_with_both_ranks_bytes_and_place() {
    for (scene, why) in [
        ("unsent", "rank 2 has "),
        ("unsent, and the sender stays", "rank 2 has ended its part of the communicator"),
    ] {
        let outcome = checked(scene);
        assert_eq!(outcome.code, Some(5), "{scene}: {}{}", outcome.stdout, outcome.stderr);
        let found = found(&outcome);
        let words = "recv of 16 bytes (4 u32) from rank 2 to rank 1, transfer 1 between the two, at ";
        assert!(found.len() == 1 && found[0].starts_with(words), "{scene}: {}", outcome.stderr);
        assert!(found[0].contains(&place(&outcome)), "{}", found[0]);
        assert!(found[0].contains(&format!(" was never sent: {why}")), "{scene}: {}", found[0]);
    }
}

#[test]
fn what_a_lost_rank_sent_is_no_finding() {
    let outcome = checked("lost");
    assert_eq!(outcome.code, Some(9), "{}{}", outcome.stdout, outcome.stderr);
    assert!(!outcome.stderr.contains("found: "), "{}", outcome.stderr);
}
