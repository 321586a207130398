//! Jobs whose ranks are processes with simulated devices: how a test starts the others, and what ranks do in most of them.

#![allow(clippy::print_stdout, reason = "a rank tells the test what it saw")]

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use kiln::DeviceRuntime;
use kiln::group::{
    DeviceCommunicator, DeviceCommunicatorConfig, GroupError, MeetingPoint, Reduction, Rendezvous,
    RendezvousConfig, RendezvousError,
};

use crate::wild_kernel::launch_wild;

/// Says what a process does that [`start`] has started.
const PLAN: &str = "KILN_TEST_JOB_PLAN";
/// A loss is told within a second; the rest is for a busy host.
pub(crate) const SOON: Duration = Duration::from_secs(6);

/// What a process does, as which rank of how many that meet at a port.
pub(crate) struct Plan {
    pub(crate) scene: String,
    pub(crate) port: u16,
    pub(crate) rank: u32,
    pub(crate) size: u32,
}

impl Plan {
    /// That of this process; none if it was not started by [`start`].
    pub(crate) fn of_process() -> Option<Self> {
        let plan = std::env::var(PLAN).ok()?;
        let words: Vec<&str> = plan.split(" | ").collect();
        let number = |at: usize| words[at].parse::<u32>().unwrap();
        Some(Self { scene: words[0].to_owned(), port: number(1) as u16, rank: number(2), size: number(3) })
    }

    pub(crate) fn config(&self) -> RendezvousConfig {
        config(self.port, self.rank, self.size)
    }

    pub(crate) fn join(&self) -> Arc<Rendezvous> {
        join(self.port, self.rank, self.size)
    }
}

/// Starts this program as a rank: a test of it that is not one, which plays a scene.
pub(crate) fn start(test: &str, scene: &str, place: (u16, u32, u32)) -> Child {
    command(test, scene, place).spawn().unwrap()
}

/// The same, before it is started.
pub(crate) fn command(test: &str, scene: &str, (port, rank, size): (u16, u32, u32)) -> Command {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([test, "--exact", "--nocapture"]);
    child.env(PLAN, format!("{scene} | {port} | {rank} | {size}"));
    child.stdin(Stdio::piped()).stdout(Stdio::piped());
    child
}

/// This program as a process that runs a test of it which is none, also for a user who cannot read the folder it lies in.
pub(crate) fn helper(test: &str) -> Command {
    let mut child = Command::new("/proc/self/exe");
    child.args([test, "--exact", "--nocapture", "--include-ignored"]);
    child
}

/// What a process said that it was told.
pub(crate) fn told_in(said: &str) -> Vec<String> {
    let told: Vec<String> =
        said.lines().filter_map(|line| Some(line.split_once("told: ")?.1.to_owned())).collect();
    assert!(!told.is_empty(), "{said}");
    told
}

/// What a process said, which must have ended well.
pub(crate) fn said(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Ranks of whose silence another one is told soon.
pub(crate) fn config(port: u16, rank: u32, size: u32) -> RendezvousConfig {
    let point = MeetingPoint { host: "127.0.0.1".into(), port, is_taken: false };
    let mut config = RendezvousConfig::new(point, rank, size);
    config.timeout = Duration::from_secs(15);
    (config.heartbeat, config.silence) = (Duration::from_millis(100), Duration::from_millis(1500));
    config
}

/// Ranks that are given time.
pub(crate) fn patient(port: u16, rank: u32, size: u32) -> RendezvousConfig {
    let mut config = RendezvousConfig::new(config(port, rank, size).meeting_point, rank, size);
    config.timeout = Duration::from_secs(60);
    config
}

/// Joins, once the one before with the same rank is known to be gone.
pub(crate) fn join(port: u16, rank: u32, size: u32) -> Arc<Rendezvous> {
    join_with(&config(port, rank, size))
}

/// The same with other times.
pub(crate) fn join_with(config: &RendezvousConfig) -> Arc<Rendezvous> {
    loop {
        match Rendezvous::join(config) {
            Err(RendezvousError::RankTaken { .. }) => thread::sleep(Duration::from_millis(20)),
            joined => return Arc::new(joined.unwrap()),
        }
    }
}

pub(crate) fn limits() -> DeviceCommunicatorConfig {
    DeviceCommunicatorConfig { deadline: Duration::from_secs(20) }
}

pub(crate) fn meet(job: &Arc<Rendezvous>) -> (DeviceRuntime, DeviceCommunicator) {
    let gpu = DeviceRuntime::simulated(u64::from(job.rank())).unwrap();
    let rank = DeviceCommunicator::meet(&gpu, job, &limits()).unwrap();
    (gpu, rank)
}

/// Meets the others, with a deadline for ranks that do not come to a collective, and returns when all are there.
pub(crate) fn meet_within(job: &Arc<Rendezvous>, milliseconds: u64) -> (DeviceRuntime, DeviceCommunicator) {
    let gpu = DeviceRuntime::simulated(u64::from(job.rank())).unwrap();
    let deadline = Duration::from_millis(milliseconds);
    let rank = DeviceCommunicator::meet(&gpu, job, &DeviceCommunicatorConfig { deadline }).unwrap();
    job.barrier("ready").unwrap();
    (gpu, rank)
}

/// Meets the others, and returns when all have done a collective.
pub(crate) fn begin(job: &Arc<Rendezvous>) -> (DeviceRuntime, DeviceCommunicator) {
    let (gpu, rank) = meet(job);
    assert_eq!(sum(&rank), job.size() * (job.size() + 1) / 2);
    job.barrier("ready").unwrap();
    (gpu, rank)
}

/// The sum over all ranks of their numbers, counted from 1.
pub(crate) fn try_sum(rank: &DeviceCommunicator) -> Result<u32, GroupError> {
    let buffer = rank.runtime().upload(&[rank.rank() + 1; 4]).unwrap();
    rank.all_reduce_in_place(&buffer, Reduction::Sum).submit()?;
    Ok(buffer.download().unwrap()[0])
}

pub(crate) fn sum(rank: &DeviceCommunicator) -> u32 {
    try_sum(rank).unwrap()
}

/// Is told that a rank is lost, soon, and whether it can go on; why it is lost.
pub(crate) fn told_of(rank: &DeviceCommunicator, expected: (u32, bool)) -> String {
    let began = Instant::now();
    let told = try_sum(rank).unwrap_err();
    assert!(began.elapsed() < SOON, "{:?}: {told}", began.elapsed());
    let lost = told.lost_rank().unwrap_or_else(|| panic!("{told}"));
    assert_eq!((lost.lost, lost.can_rebuild), expected, "{told}");
    assert_eq!(rank.lost_rank().unwrap().rank, expected.0);
    lost.cause.clone()
}

/// Is told that rank 1 is lost and that it can go on, soon.
pub(crate) fn told_of_one(rank: &DeviceCommunicator) -> String {
    told_of(rank, (1, true))
}

pub(crate) fn lose_device(gpu: &DeviceRuntime) {
    assert!(launch_wild(gpu).wait().unwrap_err().is_lost());
}

/// Plays a scene of a rank that is lost, until the parent ends this process. Any other scene is given what the rank has.
pub(crate) fn unless_lost(
    scene: &str,
    (gpu, rank): (DeviceRuntime, DeviceCommunicator),
) -> Option<(DeviceRuntime, DeviceCommunicator)> {
    match scene {
        "ends" => std::process::abort(),
        "loses" => lose_device(&gpu),
        "panics" => {
            let thread = thread::spawn(move || {
                let _rank = rank;
                std::panic::resume_unwind(Box::new("this rank is to end"));
            });
            assert!(thread.join().is_err());
            stay();
            return None;
        }
        _ => return Some((gpu, rank)),
    }
    stay();
    None
}

pub(crate) fn signal(name: &str, child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
}

/// Waits until the parent ends this process, or goes itself.
pub(crate) fn stay() {
    let _ = std::io::stdin().read(&mut [0]);
}
