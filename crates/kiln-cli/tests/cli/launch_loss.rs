//! `kiln launch --check`: how soon the other ranks are told of a process that is killed. The program of the ranks is this test itself.

#![cfg(target_os = "linux")]

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kiln::DeviceRuntime;
use kiln::group::{DeviceCommunicator, GroupError, Reduction, Rendezvous};

use crate::outcome::{command, run};

/// Says that this process is a rank.
const RANK: &str = "KILN_TEST_KILLED_RANK";
/// The others are told within a second. What a machine takes that runs other tests as well comes on top of that.
const LIMIT_MS: u128 = 3_000;

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}

/// Four ranks: two wait in a collective and one for a loss, and rank 1 is killed.
#[test]
fn rank_program() {
    if std::env::var_os(RANK).is_none() {
        return;
    }
    let job = Arc::new(Rendezvous::from_process().unwrap().unwrap());
    let gpu = DeviceRuntime::auto().unwrap();
    let rank = DeviceCommunicator::meet(gpu, &job, &Default::default()).unwrap();
    rank.barrier().submit().unwrap().wait().unwrap();
    let told = match rank.rank() {
        1 => {
            // The others wait by then.
            std::thread::sleep(Duration::from_millis(300));
            println!("\nkilled at {}", now_ms());
            Command::new("kill").args(["-KILL", &std::process::id().to_string()]).status().unwrap();
            std::thread::sleep(Duration::from_secs(60));
            return;
        }
        2 => job.wait_for_loss(Duration::from_secs(60)).unwrap().unwrap().rank,
        _ => {
            let number = gpu.upload(&[1_u32]).unwrap();
            let ended = rank.all_reduce_in_place(&number, Reduction::Sum).submit();
            let source = |source| GroupError::Rank { rank: rank.rank(), source };
            let error = ended.and_then(|ticket| ticket.wait().map_err(source)).unwrap_err();
            error.lost_rank().unwrap_or_else(|| panic!("{error}")).lost
        }
    };
    println!("\nof rank {told} told at {}", now_ms());
}

#[test]
fn a_process_that_is_killed_is_told_to_all_ranks_within_a_second() {
    let program = std::env::current_exe().unwrap();
    let words = ["launch", "-n", "4", "--check", "--keep-going", "--time-limit", "300", "--"];
    let test = [program.to_str().unwrap(), "--exact", "launch_loss::rank_program", "--nocapture"];
    let mut launch = command(&[&words[..], &test].concat());
    launch.env(RANK, "1");
    let outcome = run(launch);
    let all = format!("{}{}", outcome.stdout, outcome.stderr);
    let time = |begin: String| {
        let line = outcome.stdout.lines().find_map(|line| line.strip_prefix(&begin));
        line.unwrap_or_else(|| panic!("no `{begin}`: {all}")).parse::<u128>().unwrap()
    };
    let killed = time("[1] killed at ".into());
    for rank in [0, 2, 3] {
        let took = time(format!("[{rank}] of rank 1 told at ")).saturating_sub(killed);
        assert!(took < LIMIT_MS, "rank {rank} was told after {took} ms: {all}");
    }
    assert_eq!(outcome.code, Some(137), "{all}");
    assert!(outcome.stderr.contains("rank 1 failed first with signal 9"), "{all}");
}
