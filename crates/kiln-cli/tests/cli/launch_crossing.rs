//! `kiln launch --check`: ranks that send to each other before they receive, which wait for each other on GPUs. The program of the ranks is this test itself.

#![cfg(target_os = "linux")]

use std::sync::Arc;
use std::time::Duration;

use kiln::group::{DeviceCommunicator, DeviceCommunicatorConfig, GroupError, Rendezvous};
use kiln::{DeviceRuntime, GpuRef};

use crate::checked_ranks::checked;

const TEST: &str = "launch_crossing::crossing_rank_program";
const SCENE: &str = "KILN_TEST_CROSSING";
/// A wait that ends by it fails the job, which may run for a shorter time.
const DEADLINE: Duration = Duration::from_secs(600);

/// Sends to one rank and then receives from another. What the last receive of a circle is told.
fn send_and_receive(
    rank: &DeviceCommunicator,
    buffer: &GpuRef<u32>,
    to: u32,
    from: u32,
) -> Option<GroupError> {
    let received = rank.runtime().zeros::<u32>(buffer.len()).unwrap();
    println!("line {}", line!() + 1);
    rank.send(buffer, to).submit().unwrap();
    let error = rank.recv(&received, from).submit().err();
    if error.is_none() {
        assert_eq!(received.download().unwrap(), vec![from; buffer.len()]);
    }
    error
}

/// What ranks may do: they wait for each other, and one of them has what the other waits for.
fn legal_transfers(rank: &DeviceCommunicator, buffer: &GpuRef<u32>) {
    let (me, size) = (rank.rank(), rank.size());
    let received = rank.runtime().zeros::<u32>(buffer.len()).unwrap();
    let (next, before) = ((me + 1) % size, (me + size - 1) % size);
    // A ring in one call, twice, and one in which rank 0 receives first.
    for _ in 0..2 {
        rank.send(buffer, next).and(rank.recv(&received, before)).submit().unwrap();
        assert_eq!(received.download().unwrap(), vec![before; buffer.len()]);
    }
    let send = |from: &GpuRef<u32>, to: u32| {
        rank.send(from, to).submit().unwrap();
    };
    let receive = |to: &GpuRef<u32>, from: u32| {
        rank.recv(to, from).submit().unwrap();
    };
    if me == 0 {
        receive(&received, before);
        send(buffer, next);
    } else {
        send(buffer, next);
        receive(&received, before);
    }
    // Small sends that are received later, and answers to all of them.
    let small = buffer.view(..1).unwrap();
    let answer = received.view(..1).unwrap();
    match me {
        0 => {
            (0..20).for_each(|_| send(&small, 1));
            (0..20).for_each(|_| receive(&answer, 1));
        }
        1 => {
            std::thread::sleep(Duration::from_millis(200));
            (0..20).for_each(|_| receive(&answer, 0));
            (0..20).for_each(|_| send(&small, 0));
        }
        _ => {}
    }
    // One rank exchanges in one call what the other does in two.
    match me {
        0 => {
            rank.send(&small, 1).and(rank.recv(&answer, 1)).submit().unwrap();
        }
        1 => {
            receive(&answer, 0);
            send(&small, 0);
        }
        _ => {}
    }
}

/// What every rank does.
#[test]
fn crossing_rank_program() {
    let Ok(scene) = std::env::var(SCENE) else { return };
    let job = Arc::new(Rendezvous::from_process().unwrap().unwrap());
    let gpu = DeviceRuntime::auto().unwrap();
    let rank = DeviceCommunicator::meet(gpu, &job, &DeviceCommunicatorConfig { deadline: DEADLINE }).unwrap();
    let (me, size) = (rank.rank(), rank.size());
    // Larger than what the store is given at a time.
    let buffer = gpu.upload(&vec![me; 300_000]).unwrap();
    let told = match scene.as_str() {
        "two ranks" if me == 2 => None,
        "two ranks" => send_and_receive(&rank, &buffer, 1 - me, 1 - me),
        "a ring" => send_and_receive(&rank, &buffer, (me + 1) % size, (me + size - 1) % size),
        _ => {
            legal_transfers(&rank, &buffer);
            None
        }
    };
    if let Some(error) = told {
        let GroupError::CrossingSends { sends } = &error else { panic!("{error}") };
        println!("told of {} sends", sends.len());
    }
    // Both are still there when the last receive is made.
    job.barrier("end").unwrap();
}

#[test]
fn ranks_that_send_to_each_other_before_they_receive_are_a_finding_with_ranks_bytes_and_lines() {
    for (scene, pairs) in [("two ranks", &[(0, 1), (1, 0)][..]), ("a ring", &[(0, 1), (1, 2), (2, 0)])] {
        let outcome = checked("3", TEST, (SCENE, scene));
        assert_eq!(outcome.code, Some(5), "{scene}: {}{}", outcome.stdout, outcome.stderr);
        // The command breaks long lines.
        let told = outcome.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains("kiln launch: 1 finding in 3 ranks"), "{scene}: {told}");
        let (_, found) = told.split_once(" found: ").unwrap();
        let line = outcome.stdout.lines().find_map(|line| Some(line.split_once("line ")?.1)).unwrap();
        for (from, to) in pairs {
            let send = format!(
                "send of 1200000 bytes (300000 u32) from rank {from} to rank {to}, transfer 0 between the two, at "
            );
            let (_, behind) = found.split_once(&send).unwrap_or_else(|| panic!("{send}: {found}"));
            let place = behind.split_once(' ').unwrap().0;
            assert!(place.contains(&format!("launch_crossing.rs:{line}:")), "{found}");
        }
        assert!(found.contains(" wait for each other on GPUs, since each of these ranks sends before it receives; put the send and the receive of a rank into one call"), "{found}");
        // The rank whose receive closes the circle is told, with all sends.
        let told: Vec<&str> = outcome.stdout.lines().filter(|line| line.contains("told of ")).collect();
        assert!(told.len() == 1 && told[0].contains(&format!("{} sends", pairs.len())), "{}", outcome.stdout);
    }
}

#[test]
fn transfers_that_some_order_of_the_ranks_does_are_no_findings() {
    let outcome = checked("3", TEST, (SCENE, "legal"));
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stderr.contains("no findings in 3 ranks"), "{}", outcome.stderr);
}
