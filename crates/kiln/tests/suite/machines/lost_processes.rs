//! Ranks whose processes stop or are killed and whose connections stay open: the system ends a process with a GPU for seconds, and closes its first connections last.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln::group::{
    CommunicatorFailed, CommunicatorRankLost, DeviceCommunicator, DeviceCommunicatorConfig, MeetingPoint,
    Rendezvous, RendezvousConfig,
};
use kiln::{DeviceRuntime, Error, GpuRef, Ticket};

use crate::machine::Machine;

/// Says which rank a process of [`other_rank`] is.
const RANK: &str = "KILN_TEST_RANK";

/// A process that gets SIGUSR1 has its connections kept open, also when it is killed.
const KEEPER: &str = r"
#include <signal.h>
#include <unistd.h>
static void keep(int signal) { if (fork() == 0) { close(0); close(1); close(2); sleep(20); _exit(0); } }
__attribute__((constructor)) static void begin(void) { signal(SIGUSR1, keep); }
";

fn machine() -> Machine {
    let nccl = include_str!("../../../../kiln-cuda/tests/on_fake/libnccl/nccl.c");
    // A broadcast runs until it is aborted.
    Machine::fake().with_library("KILN_NCCL", nccl).with("FAKE_NCCL_RUNS", "1")
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn join(port: u16, rank: u32, size: u32) -> Rendezvous {
    let point = MeetingPoint { host: "127.0.0.1".into(), port, is_taken: false };
    Rendezvous::join(&RendezvousConfig::new(point, rank, size)).unwrap()
}

/// Another rank of a job, as a process that waits until it is ended.
struct OtherRank(Child);

impl OtherRank {
    fn start(port: u16, rank: u32, size: u32) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["machines::lost_processes::other_rank", "--exact", "--nocapture"]);
        child.env(RANK, format!("{port} {rank} {size}")).stdout(Stdio::piped());
        if let Some(keeper) = std::env::var_os("KEEPER") {
            child.env("LD_PRELOAD", keeper);
        }
        Self(child.spawn().unwrap())
    }

    /// Waits until it has joined.
    fn wait(&mut self) {
        let lines = BufReader::new(self.0.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line.contains("has joined")));
    }

    fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }
}

impl Drop for OtherRank {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Not a test: what another rank does.
#[test]
fn other_rank() {
    let Ok(rank) = std::env::var(RANK) else { return };
    let numbers: Vec<u32> = rank.split(' ').map(|number| number.parse().unwrap()).collect();
    let job = join(numbers[0] as u16, numbers[1], numbers[2]);
    if numbers[1] == 0 {
        let id: Vec<u8> = (0..128).collect();
        job.put("kiln/communicator/0", &id).unwrap();
    }
    println!("rank {} has joined", job.rank());
    std::thread::sleep(Duration::from_secs(60));
}

/// A rank of this process with a collective that runs until it is aborted.
struct Waiting {
    ticket: Ticket,
    rank: DeviceCommunicator,
    job: Arc<Rendezvous>,
    _buffer: GpuRef<u32>,
}

/// Starts the ranks of a job, of which this process is one.
fn ranks(rank: u32, size: u32) -> (Waiting, Vec<OtherRank>) {
    let port = free_port();
    let start = |other| OtherRank::start(port, other, size);
    let mut others: Vec<OtherRank> = (0..size).filter(|other| *other != rank).map(start).collect();
    let job = Arc::new(join(port, rank, size));
    others.iter_mut().for_each(OtherRank::wait);
    let gpu = DeviceRuntime::cuda(0).unwrap();
    let config = DeviceCommunicatorConfig { deadline: Duration::from_secs(3600) };
    let rank = DeviceCommunicator::meet(gpu, &job, &config).unwrap();
    let buffer = gpu.upload(&[1_u32; 4]).unwrap();
    let ticket = rank.broadcast(&buffer, 0).submit().unwrap();
    (Waiting { ticket, rank, job, _buffer: buffer }, others)
}

/// NCCL says that a connection to another rank is gone.
fn fail_nccl() {
    // SAFETY: no other thread of this test writes the environment.
    unsafe { std::env::set_var("FAKE_NCCL_STATE", "6") };
}

fn lost(error: &Error) -> CommunicatorRankLost {
    error.downcast_ref::<CommunicatorRankLost>().unwrap_or_else(|| panic!("{error}")).clone()
}

/// Of a busy machine it is not asked that it be as fast as the limit for users, which is a second.
fn assert_soon(began: Instant) {
    assert!(began.elapsed() < Duration::from_millis(1800), "{:?}", began.elapsed());
}

on_machine! {
    fn a_rank_that_says_nothing_is_named_when_nccl_fails() on machine() => {
        let (waiting, others) = ranks(0, 3);
        others[1].signal("-STOP");
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(waiting.rank.lost_rank(), None, "silence alone is no loss");
        let began = Instant::now();
        fail_nccl();
        let lost = lost(&waiting.ticket.wait().unwrap_err());
        assert_soon(began);
        assert_eq!(lost.lost, 2, "{lost}");
        assert!(lost.cause.contains("did not answer within 0.5 s after rank 0 said that its communicator failed"), "{lost}");
        assert_eq!(waiting.job.lost_ranks().unwrap().len(), 1, "rank 1 answers and is there");
    }

    fn a_rank_that_says_nothing_is_named_when_nccl_refuses_a_call() on machine() => {
        let (waiting, others) = ranks(0, 2);
        others[0].signal("-STOP");
        // SAFETY: no other thread of this test writes the environment.
        unsafe { std::env::set_var("FAKE_NCCL_FAILS", "ncclAllReduce") };
        let error = waiting.rank.barrier().submit().unwrap_err();
        assert_eq!(error.lost_rank().map(|lost| lost.lost), Some(1), "{error}");
        assert_eq!(lost(&waiting.ticket.wait().unwrap_err()).lost, 1);
    }

    fn a_store_that_says_nothing_is_named_when_nccl_fails() on machine() => {
        let (waiting, others) = ranks(1, 2);
        others[0].signal("-STOP");
        let began = Instant::now();
        fail_nccl();
        let lost = lost(&waiting.ticket.wait().unwrap_err());
        assert_soon(began);
        assert!(lost.lost == 0 && !lost.can_rebuild, "{lost}");
    }

    fn a_rank_that_answers_is_not_lost_when_nccl_fails_and_is_named_as_a_suspect() on machine() => {
        let (waiting, others) = ranks(0, 2);
        fail_nccl();
        let error = waiting.ticket.wait().unwrap_err();
        let failed = error.downcast_ref::<CommunicatorFailed>().unwrap_or_else(|| panic!("{error}"));
        assert_eq!(failed.suspects, [1]);
        assert!(error.to_string().contains("rank 1 may be the cause"), "{error}");
        assert_eq!(waiting.job.lost_ranks().unwrap(), []);
        drop(others);
    }

    // NCCL says nothing, and the connection stays open.
    fn a_killed_rank_is_named_before_its_connections_are_closed() on {
        machine().with_library("KEEPER", KEEPER)
    } => {
        for (rank, size, killed) in [(0, 2, 0), (0, 3, 1), (1, 3, 1)] {
            let (waiting, mut others) = ranks(rank, size);
            others[killed].signal("-USR1");
            std::thread::sleep(Duration::from_millis(200));
            assert_eq!(waiting.rank.lost_rank(), None);
            let began = Instant::now();
            others[killed].0.kill().unwrap();
            let lost = lost(&waiting.ticket.wait().unwrap_err());
            assert_soon(began);
            assert_eq!(lost.lost, size - 1, "{lost}");
            assert!(lost.cause.contains("its process has ended or is ending"), "{lost}");
        }
    }
}
