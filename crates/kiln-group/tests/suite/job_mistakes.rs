//! Jobs that are set up wrongly, and ranks that fail in a call by themselves: what is told. Some ranks are processes.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "a rank tells the test what it saw")]

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use kiln::DeviceRuntime;
use kiln::group::{
    DeviceCommunicator, GroupError, MeetingPoint, RankEnvironment, Rendezvous, RendezvousConfig,
    RendezvousError,
};

use crate::job_rig::{
    Plan, SOON, begin, command, free_port, join, lose_device, said, start, told_in, told_of_one, try_sum,
};

const PROCESS: &str = "job_mistakes::mistaken_process";

/// Not a test: what another process does.
#[test]
fn mistaken_process() {
    if std::env::var_os("KILN_TEST_TOKEN_IS_READ").is_some() {
        let ranks = RankEnvironment::from_process().unwrap().unwrap();
        match RendezvousConfig::from_environment(&ranks) {
            Ok(config) => println!("token: {:?}", config.token),
            Err(error) => println!("told: {error}"),
        }
        return;
    }
    let Some(plan) = Plan::of_process() else { return };
    let job = plan.join();
    let (gpu, rank) = begin(&job);
    match plan.scene.as_str() {
        "loses its device while it waits" => {
            let waits = thread::spawn(move || try_sum(&rank).unwrap_err());
            // It waits in the call by then, or is refused at once.
            thread::sleep(Duration::from_millis(300));
            lose_device(&gpu);
            let told = waits.join().unwrap();
            assert!(matches!(told, GroupError::Rank { rank: 1, .. }) && told.is_lost(), "{told}");
            println!("told: {told}");
        }
        "has little memory" => receives_in_little_memory(&gpu, &rank),
        "calls something else" => {
            println!("line {}", line!() + 1);
            println!("told: {}", rank.barrier().submit().unwrap_err());
        }
        scene => panic!("{scene}"),
    }
}

/// Bytes of a value: large beside all else that a process needs.
const LARGE: usize = 64 << 20;

/// Sets how much more memory than now this process may have; as much as it wants without a number.
fn allow_memory(more: Option<usize>) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let size: usize = size.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10;
    let limit = more.map_or_else(|| "unlimited".into(), |more| (size + more).to_string());
    let own = std::process::id().to_string();
    let mut command = Command::new("prlimit");
    command.args(["--pid", &own, &format!("--as={limit}:")]);
    // Other threads of this process may have what is left for a moment.
    let began = Instant::now();
    let set = loop {
        match command.status() {
            Err(error) if error.kind() == ErrorKind::OutOfMemory && began.elapsed() < SOON => {
                thread::sleep(Duration::from_millis(10));
            }
            set => break set.unwrap(),
        }
    };
    assert!(set.success());
}

/// Has memory for none, for one and for some of the copies that a value has on its way, and at last for all.
fn receives_in_little_memory(gpu: &DeviceRuntime, rank: &DeviceCommunicator) {
    let buffer = gpu.zeros::<u8>(LARGE).unwrap();
    for halves in [1, 3, 5] {
        allow_memory(Some(halves * LARGE / 2));
        let received = rank.broadcast(&buffer, 0).submit().and_then(|ticket| {
            ticket.wait().map_err(|source| GroupError::Rank { rank: rank.rank(), source })
        });
        allow_memory(None);
        match received {
            Err(error) => {
                assert!(error.is_oom(), "{halves}: {error}");
                println!("told: {error}");
            }
            Ok(()) => assert!(halves > 3, "it needs the value and a copy of it"),
        }
    }
    rank.broadcast(&buffer, 0).submit().unwrap();
    assert!(buffer.download().unwrap().iter().all(|byte| *byte == 7));
}

#[test]
fn a_value_of_another_rank_that_the_process_has_no_memory_for_is_an_error() {
    let port = free_port();
    let other = start(PROCESS, "has little memory", (port, 1, 2));
    let job = join(port, 0, 2);
    let (gpu, rank) = begin(&job);
    let buffer = gpu.upload(&vec![7_u8; LARGE]).unwrap();
    for _ in 0..4 {
        rank.broadcast(&buffer, 0).submit().unwrap();
    }
    let said = said(other);
    assert!(said.contains("what other ranks bring to a collective"), "{said}");
}

#[test]
fn a_collective_that_differs_between_processes_is_found_with_its_place_in_the_program() {
    let port = free_port();
    let file = std::env::temp_dir().join(format!("kiln-differs-{}-{port}", std::process::id()));
    let mut other = command(PROCESS, "calls something else", (port, 1, 2));
    let other = other.env("KILN_FINDINGS_FILE", &file).spawn().unwrap();
    let job = join(port, 0, 2);
    let (_gpu, rank) = begin(&job);
    let told = try_sum(&rank).unwrap_err().to_string();
    assert!(told.contains("rank 0 and rank 1 differ in collective 1: all_reduce "), "{told}");
    assert!(told.contains(" and barrier"), "{told}");
    let said = said(other);
    let found = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    // Both calls with their lines; the own one is in the rig.
    for told in [&told, &told_in(&said)[0]] {
        assert!(
            told.contains(
                "rank 0 called all_reduce of u32 sum of 4 at crates/kiln-group/tests/suite/job_rig.rs:"
            ),
            "{told}"
        );
        assert!(
            told.contains("rank 1 called barrier at crates/kiln-group/tests/suite/job_mistakes.rs:"),
            "{told}"
        );
    }
    let line: u32 = said.lines().find_map(|line| line.strip_prefix("line ")?.parse().ok()).unwrap();
    let place = format!("; called at crates/kiln-group/tests/suite/job_mistakes.rs:{line}:");
    // Each rank says what it calls itself first.
    for told in [&found, &told_in(&said)[0]] {
        assert!(told.contains("rank 1 and rank 0 differ in collective 1: barrier"), "{told}");
        assert!(told.contains(" and all_reduce of u32 sum of 4"), "{told}");
    }
    assert_eq!(found.lines().count(), 1, "{found}");
    assert!(found.contains(&place), "{place} in {found}");
}

/// What a process says of its token.
fn token_read(token: &[u8]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([PROCESS, "--exact", "--nocapture"]);
    command.env("KILN_TEST_TOKEN_IS_READ", "1").env("KILN_JOB_TOKEN", OsStr::from_bytes(token));
    command.env("KILN_RANK", "0").env("KILN_WORLD_SIZE", "1").env("KILN_MEETING_POINT", "127.0.0.1:29500");
    let output = command.output().unwrap();
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_token_that_is_no_text_is_refused_and_not_taken_for_none() {
    assert!(token_read("täglich".as_bytes()).contains("token: Some(\"täglich\")"));
    assert!(token_read(b"").contains("token: None"));
    let told = token_read(b"\xff\xfe");
    assert!(told.contains("told: KILN_JOB_TOKEN is no text in UTF-8; set it to the same text"), "{told}");
}

#[test]
fn rank_zero_that_no_other_finds_is_told_that_its_host_is_another_one() {
    // An address of documentation, which no host has.
    let missing = |host: &str| {
        let point = MeetingPoint { host: host.into(), port: free_port(), is_taken: false };
        let mut config = RendezvousConfig::new(point, 0, 2);
        config.token = Some("a token".into());
        config.timeout = Duration::from_millis(200);
        Rendezvous::join(&config).unwrap_err()
    };
    let told = missing("192.0.2.1");
    assert!(matches!(told, RendezvousError::MissingRanks { .. }), "{told}");
    let text = told.to_string();
    assert!(text.contains("192.0.2.1 is no address of this host"), "{text}");
    let text = missing("127.0.0.1").to_string();
    assert!(!text.contains("address"), "{text}");
}

#[test]
fn a_rank_whose_own_device_is_lost_while_it_waits_is_told_of_its_device() {
    let port = free_port();
    let other = start(PROCESS, "loses its device while it waits", (port, 1, 2));
    let job = join(port, 0, 2);
    let (_gpu, rank) = begin(&job);
    job.wait_for_loss(Duration::from_secs(15)).unwrap().unwrap();
    // The lost rank had brought its part of this one, which this rank is not given any more.
    told_of_one(&rank);
    let said = said(other);
    assert!(said.contains("told: rank 1: "), "{said}");
}
