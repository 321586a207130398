//! `kiln launch`: a rank that fails because another one came too late. The program of the ranks is this test itself.

#![cfg(target_os = "linux")]

use std::sync::Arc;
use std::time::Duration;

use kiln::DeviceRuntime;
use kiln::group::{DeviceCommunicator, DeviceCommunicatorConfig, Rendezvous};

use crate::outcome::{command, run, without_driver};

const HOW: &str = "KILN_TEST_LATE_RANK";

/// Rank 2 does not come to a barrier. Rank 1 gives up and ends in a way, and rank 0 comes after that.
#[test]
fn late_rank_program() {
    let Ok(how) = std::env::var(HOW) else { return };
    let job = Arc::new(Rendezvous::from_process().unwrap().unwrap());
    let gpu = DeviceRuntime::auto().unwrap();
    let seconds = if job.rank() == 1 { 1 } else { 60 };
    let config = DeviceCommunicatorConfig { deadline: Duration::from_secs(seconds) };
    let rank = DeviceCommunicator::meet(gpu, &job, &config).unwrap();
    job.barrier("ready").unwrap();
    if job.rank() == 2 {
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let told = rank.barrier().submit().unwrap_err();
    println!("told: {told}");
    if job.rank() == 0 {
        std::process::exit(7);
    }
    match how.as_str() {
        "exits" => std::process::exit(3),
        _ => std::panic::resume_unwind(Box::new("this rank ends because another one is late")),
    }
}

#[test]
fn the_late_rank_is_named_and_not_only_the_one_that_waited() {
    let program = std::env::current_exe().unwrap();
    for (how, code) in [("exits", 3), ("panics", 101)] {
        let words = ["launch", "-n", "3", "--time-limit", "50", "--", program.to_str().unwrap()];
        let test = ["--exact", "launch_late::late_rank_program", "--nocapture"];
        let mut launch = command(&[&words[..], &test].concat());
        launch.env(HOW, how).env("KILN_POLICY", "simulate");
        let outcome = run(launch);
        let first = "kiln launch: rank 2 was late: rank ";
        let line = outcome.stderr.lines().find(|line| line.starts_with(first));
        let line = line.unwrap_or_else(|| panic!("{how}: {}", outcome.stderr));
        assert!(line.ends_with(", because it waited for rank 2 in vain"), "{how}: {line}");
        assert!([Some(code), Some(7)].contains(&outcome.code), "{how}: {:?}", outcome.code);
        for rank in [0, 1] {
            let told = format!("[{rank}] told: ");
            let told = outcome.stdout.lines().find_map(|line| line.split_once(&told)).map(|(_, told)| told);
            let told = told.unwrap_or_else(|| panic!("{how}: {}", outcome.stdout));
            assert!(told.contains("rank 2 did not come to collective 0"), "{how}: rank {rank}: {told}");
        }
    }
}

#[test]
fn a_rank_that_was_late_and_has_come_or_gone_is_not_named_as_late() {
    let line = |notes: &str| {
        let text =
            format!("[ $KILN_RANK = 1 ] || exec sleep 60; printf '{notes}' >> $KILN_RANK_ENDS_FILE; exit 3");
        let outcome = run(without_driver(&["launch", "-n", "3", "--", "sh", "-c", &text]));
        assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
        outcome.stderr.lines().next().unwrap().to_owned()
    };
    let late = "kiln launch: rank 2 was late: rank 1 failed first with exit status 3, because it waited for rank 2 in vain";
    assert_eq!(line("late 2\\n"), late);
    assert_eq!(line("late 2\\ncame 2\\n"), "kiln launch: rank 1 failed first with exit status 3");
}
