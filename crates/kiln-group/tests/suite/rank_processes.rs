//! Ranks in several processes, over simulated devices: refused calls, stopped processes, and second communicators.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use kiln::DeviceRuntime;
use kiln::group::{
    DeviceCommunicator, DeviceCommunicatorConfig, MeetingPoint, Reduction, Rendezvous, RendezvousConfig,
};

/// Says what a process of [`other_process`] does: a scene, a port, a rank and the number of ranks.
const PLAN: &str = "KILN_TEST_RANK_PLAN";

fn config(port: u16, rank: u32, size: u32) -> RendezvousConfig {
    let point = MeetingPoint { host: "127.0.0.1".into(), port, is_taken: false };
    let mut config = RendezvousConfig::new(point, rank, size);
    config.timeout = Duration::from_secs(30);
    config
}

/// Ranks of whose silence another one is told soon.
fn restless(port: u16, rank: u32, size: u32) -> RendezvousConfig {
    let mut config = config(port, rank, size);
    (config.heartbeat, config.silence) = (Duration::from_millis(100), Duration::from_millis(1500));
    config
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn start(scene: &str, port: u16, rank: u32, size: u32) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["rank_processes::other_process", "--exact", "--nocapture"]);
    child.env(PLAN, format!("{scene} {port} {rank} {size}")).stdout(Stdio::piped()).spawn().unwrap()
}

fn meet(job: &Arc<Rendezvous>) -> (DeviceRuntime, DeviceCommunicator) {
    let gpu = DeviceRuntime::simulated(u64::from(job.rank())).unwrap();
    let deadline = Duration::from_secs(20);
    let rank = DeviceCommunicator::meet(&gpu, job, &DeviceCommunicatorConfig { deadline }).unwrap();
    (gpu, rank)
}

/// The sum over all ranks of their numbers, counted from 1, times a factor.
fn sum(rank: &DeviceCommunicator, factor: u32) -> u32 {
    let buffer = rank.runtime().upload(&[(rank.rank() + 1) * factor; 4]).unwrap();
    rank.all_reduce_in_place(&buffer, Reduction::Sum).submit().unwrap();
    buffer.download().unwrap()[0]
}

/// Not a test: what another process does.
#[test]
fn other_process() {
    let Ok(plan) = std::env::var(PLAN) else { return };
    let words: Vec<&str> = plan.split(' ').collect();
    let numbers: Vec<u32> = words[1..].iter().map(|number| number.parse().unwrap()).collect();
    let (port, rank, size) = (numbers[0] as u16, numbers[1], numbers[2]);
    match words[0] {
        "sums" => {
            let job = Arc::new(Rendezvous::join(&config(port, rank, size)).unwrap());
            let (_gpu, rank) = meet(&job);
            assert_eq!((sum(&rank, 1), sum(&rank, 10)), (6, 60));
            job.barrier("end").unwrap();
        }
        "stops" => {
            let job = Arc::new(Rendezvous::join(&restless(port, rank, size)).unwrap());
            let (_gpu, rank) = meet(&job);
            job.put("there", b"").unwrap();
            println!("told: {}", job.get("never").unwrap_err());
            println!("then: {}", rank.barrier().submit().unwrap_err());
        }
        scene => panic!("{scene}"),
    }
}

#[test]
fn a_refused_collective_brings_nothing_to_ranks_in_other_processes() {
    let port = free_port();
    let others = [1, 2].map(|rank| start("sums", port, rank, 3));
    let job = Arc::new(Rendezvous::join(&config(port, 0, 3)).unwrap());
    let (gpu, rank) = meet(&job);
    let foreign_gpu = DeviceRuntime::simulated(99).unwrap();
    let (own, foreign) = (gpu.upload(&[5_u32; 4]).unwrap(), foreign_gpu.upload(&[7_u32; 4]).unwrap());
    let refused = rank.all_reduce_in_place(&foreign, Reduction::Sum).submit().unwrap_err().to_string();
    assert!(refused.contains("`buffer`") && refused.contains("another runtime"), "{refused}");
    let refused = rank.all_reduce(&own, &foreign, Reduction::Sum).submit().unwrap_err().to_string();
    assert!(refused.contains("`recv`") && refused.contains("another runtime"), "{refused}");
    let stream = foreign_gpu.stream().unwrap();
    let call = rank.all_reduce_in_place(&own, Reduction::Sum).on(&stream);
    let refused = call.submit().unwrap_err().to_string();
    assert!(refused.contains("another runtime"), "{refused}");
    assert_eq!((sum(&rank, 1), sum(&rank, 10)), (6, 60));
    assert_eq!(own.download().unwrap(), [5; 4]);
    job.barrier("end").unwrap();
    for other in others {
        let output = other.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn a_stopped_rank_is_told_that_it_was_given_up_itself() {
    let port = free_port();
    let other = start("stops", port, 1, 2);
    let job = Arc::new(Rendezvous::join(&restless(port, 0, 2)).unwrap());
    let (_gpu, _rank) = meet(&job);
    job.get("there").unwrap();
    let signal = |name: &str| {
        let id = other.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    };
    signal("-STOP");
    let lost = job.wait_for_loss(Duration::from_secs(30)).unwrap().unwrap();
    assert_eq!(lost.rank, 1);
    signal("-CONT");
    let told = String::from_utf8(other.wait_with_output().unwrap().stdout).unwrap();
    assert!(
        told.contains("told: rank 1, this one, was given up") && told.contains("nothing for 1.5 s"),
        "{told}"
    );
    assert!(
        told.contains("gave it up, which is this rank") && told.contains("start a replacement"),
        "{told}"
    );
    assert!(!told.contains("rank 0"), "{told}");
}
