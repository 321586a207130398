//! Collectives of simulated devices in several processes are recorded as those of one process are.

use std::collections::HashMap;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use kiln::DeviceRuntime;
use kiln::group::{
    DeviceCommunicator, DeviceCommunicatorConfig, MeetingPoint, Reduction, Rendezvous, RendezvousConfig,
};
use kiln::recovery::DeviceSpec;
use kiln::trace::{
    ClockAlignment, HostWaitCause, JobExplanation, RankLog, SubmissionKind, TraceEvent, export_perfetto,
};

use crate::Recorded;
use crate::worker_times::isolated;

/// Says which rank a child is, and where the ranks meet.
const PLAN: &str = "KILN_TEST_RECORDED_RANK";

/// The job of a child.
fn joined() -> Option<Arc<Rendezvous>> {
    let plan = std::env::var(PLAN).ok()?;
    let (rank, port) = plan.split_once(' ').unwrap();
    let point = MeetingPoint { host: "127.0.0.1".into(), port: port.parse().unwrap(), is_taken: false };
    let mut config = RendezvousConfig::new(point, rank.parse().unwrap(), 2);
    config.timeout = Duration::from_secs(30);
    Some(Arc::new(Rendezvous::join(&config).unwrap()))
}

/// Runs a child as both ranks, each recorded to a file.
fn run_ranks(child: &str) -> [Recorded; 2] {
    let files = [Recorded::new(), Recorded::new()];
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let ranks = [0, 1].map(|rank: usize| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", child, "--nocapture"]);
        command.env(PLAN, format!("{rank} {port}")).env("KILN_TRACE", &files[rank].0);
        command.env("KILN_TRACE_RUN", "a run").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    for rank in ranks {
        let output = rank.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    files
}

/// A rank whose device is in a worker process, recorded by the clock of the host. Rank 1 comes late.
#[test]
#[ignore = "helper process"]
fn late_child() {
    let Some(job) = joined() else { return };
    let gpu = isolated(&DeviceSpec::simulated(u64::from(job.rank())));
    let deadline = DeviceCommunicatorConfig { deadline: Duration::from_secs(20) };
    let rank = DeviceCommunicator::meet(&gpu, &job, &deadline).unwrap();
    let mine = gpu.upload(&[1.0_f32; 100]).unwrap();
    gpu.synchronize().unwrap();
    job.barrier("ready").unwrap();
    if rank.rank() == 1 {
        // Long enough for the other to come first, however busy the machine is.
        std::thread::sleep(Duration::from_secs(2));
    }
    rank.all_reduce_in_place(&mine, Reduction::Sum).submit().unwrap().wait().unwrap();
    job.barrier("end").unwrap();
}

#[test]
fn on_the_clock_of_the_host_a_rank_comes_when_it_calls_and_its_wait_for_others_is_recorded() {
    let files = run_ranks("rank_collectives::late_child");
    let mut logs = [RankLog::default(), RankLog::default()];
    let mut waited = [0_u64; 2];
    for ((log, waited), file) in logs.iter_mut().zip(&mut waited).zip(&files) {
        file.each(|event| {
            log.add(event);
            if let TraceEvent::HostWait(wait) = event
                && wait.cause == HostWaitCause::Collective
            {
                assert_eq!(wait.line.map(|line| line.file.ends_with("rank_collectives.rs")), Some(true));
                *waited += wait.span.ns();
            }
        });
    }
    let job = JobExplanation::of(&logs.each_ref());
    assert_eq!(job.clocks, ClockAlignment::WallClock);
    let call = &job.collectives[0];
    assert_eq!((call.parts[0].rank, call.parts[1].rank), (0, 1), "{job}");
    assert!(call.late_ns() > 1_000_000_000 && waited[0] > waited[1], "{waited:?}: {job}");
}

/// What a rank does, which the test below started.
#[test]
#[ignore = "helper process"]
fn child() {
    let Some(job) = joined() else { return };
    let gpu = DeviceRuntime::simulated(u64::from(job.rank())).unwrap();
    let deadline = DeviceCommunicatorConfig { deadline: Duration::from_secs(20) };
    let rank = DeviceCommunicator::meet(&gpu, &job, &deadline).unwrap();
    let (mine, other) = (gpu.upload(&[1.0_f32; 1000]).unwrap(), gpu.zeros::<f32>(1000).unwrap());
    let all = gpu.zeros::<f32>(2000).unwrap();
    let peer = 1 - rank.rank();
    rank.all_reduce(&mine, &other, Reduction::Sum).submit().unwrap();
    work(&gpu, if rank.rank() == 0 { 20 } else { 0 });
    rank.broadcast(&other, 0).submit().unwrap();
    work(&gpu, rank.rank() * 4);
    rank.all_gather(&mine, &all).submit().unwrap();
    work(&gpu, rank.rank() * 4);
    rank.barrier().submit().unwrap();
    rank.send(&mine, peer).and(rank.recv(&other, peer)).submit().unwrap();
    rank.all_reduce_in_place(&mine, Reduction::Sum).submit().unwrap();
    assert_eq!((mine.download().unwrap()[0], other.download().unwrap()[0]), (2.0, 1.0));
    job.barrier("end").unwrap();
}

/// Work of a rank before it comes to its next collective.
fn work(gpu: &DeviceRuntime, times: u32) {
    let large = gpu.zeros::<u32>(1 << 20).unwrap();
    for value in 0..times {
        large.fill(value).unwrap();
    }
    gpu.synchronize().unwrap();
}

/// Name, rank, ranks, bytes and communicator of a call.
type Call = (String, u32, u32, u64, u64);

fn calls(file: &Recorded) -> Vec<Call> {
    let (mut calls, mut lines, mut open) = (Vec::<Call>::new(), Vec::new(), HashMap::new());
    file.each(|event| match event {
        TraceEvent::Collective(call) => {
            open.insert(call.stamp, call.bytes);
            calls.push((call.name.to_owned(), call.rank, call.ranks, call.bytes, call.communicator));
        }
        // It comes later, with its time.
        TraceEvent::Submission(work) if work.kind == SubmissionKind::Collective => {
            assert_eq!(open.remove(&work.stamp), Some(work.bytes), "one for each call");
            let line = work.line.unwrap();
            assert!(line.file == file!() && work.device.is_some_and(|ran| ran.ns() > 0), "{work:?}");
            lines.push(line.line);
        }
        _ => {}
    });
    lines.sort_unstable();
    lines.dedup();
    assert_eq!((open.len(), lines.len()), (0, calls.len()), "each has its submission and its line");
    calls
}

#[test]
fn a_collective_between_processes_has_its_kind_bytes_rank_and_communicator() {
    let files = run_ranks("rank_collectives::child");
    let communicator = calls(&files[0])[0].4;
    let mut logs = Vec::new();
    for (rank, file) in files.iter().enumerate() {
        let expected = [
            ("all_reduce", 4000),
            ("broadcast", 4000),
            ("all_gather", 8000),
            ("barrier", 0),
            ("collectives", 8000),
            ("all_reduce", 4000),
        ];
        let expected = expected.map(|(name, bytes)| (name.to_owned(), rank as u32, 2, bytes, communicator));
        assert_eq!(calls(file), expected, "one for each call, and one communicator on both ranks");
        let text = file.explained().to_string();
        let said = format!("(rank {rank} of 2, communicator ");
        assert!(text.contains("`all_reduce` 2 times, 7.8 KiB altogether") && text.contains(&said), "{text}");
        let mut trace = Vec::new();
        export_perfetto(&mut file.reader(), &mut trace).unwrap();
        assert!(trace.windows(12).any(|bytes| bytes == b"communicator"));
        let mut log = RankLog::default();
        file.each(|event| log.add(event));
        assert_eq!(log.ranks(), [rank as u32].into());
        logs.push(log);
    }
    let job = JobExplanation::of(&logs.iter().collect::<Vec<_>>());
    assert!(format!("{job:?}").contains("all_reduce"), "the ranks are brought together: {job:?}");
    // Rank 1 came last to the last two, and its clock was behind that of rank 0, which came last to the second.
    let last = |name: &str, number: u64| {
        let call = job.collectives.iter().find(|call| (&*call.name, call.number) == (name, number)).unwrap();
        (call.parts.last().unwrap().rank, call.late_ns() > 0)
    };
    assert_eq!(last("broadcast", 1), (0, true), "{job}");
    assert_eq!(last("all_gather", 1), (1, true), "{job}");
    assert_eq!(last("barrier", 1), (1, true), "{job}");
    assert_eq!(logs.iter().map(RankLog::run).collect::<Vec<_>>(), ["a run"; 2]);
}
