//! `kiln doctor --cluster`: ranks on simulated devices, and those that do not come.

#![cfg(target_os = "linux")]

use std::process::Command;

use serde_json::Value;

use crate::machine::Machine;
use crate::outcome::{Outcome, command, run, without_driver};

const KILN: &str = env!("CARGO_BIN_EXE_kiln");

/// So many ranks under `kiln launch`, each started by this script around the command.
fn ranks(count: &str, script: &str) -> Outcome {
    let script = format!("{script} exec {KILN} doctor --cluster --time-limit 20 $0");
    run(without_driver(&["launch", "-n", count, "--grace", "20", "--", "sh", "-c", &script, "--json"]))
}

fn json(outcome: &Outcome) -> Value {
    let lines: Vec<&str> = outcome.stdout.lines().filter_map(|line| line.strip_prefix("[0] ")).collect();
    serde_json::from_str(&lines.join("\n"))
        .unwrap_or_else(|error| panic!("{error}: {}{}", outcome.stdout, outcome.stderr))
}

/// One rank by hand, with these variables.
fn by_hand(variables: &[(&str, &str)]) -> Command {
    let mut command = without_driver(&["doctor", "--cluster", "--time-limit", "1"]);
    command.envs(variables.iter().copied());
    command
}

#[test]
fn ranks_that_agree_are_one_table() {
    let launch = ["launch", "-n", "4", "--", KILN, "doctor", "--cluster"];
    let outcome = run(without_driver(&launch));
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert!(lines.iter().all(|line| line.starts_with("[0] ")), "{}", outcome.stdout);
    assert!(lines[0].starts_with("[0] 4 ranks on 1 host, all there after"), "{}", lines[0]);
    assert!(lines[0].ends_with("Yes: they fit together."), "{}", lines[0]);
    assert!(lines[1].contains("rank") && lines[1].contains("NCCL") && lines[1].contains("clock"));
    for rank in 0..4 {
        let row: Vec<&str> = lines[2 + rank].split_whitespace().collect();
        assert_eq!((row[1], row[3]), (rank.to_string().as_str(), rank.to_string().as_str()), "{row:?}");
        assert!(lines[2 + rank].contains("kiln simulated device"), "{}", lines[2 + rank]);
    }
    assert!(lines[6].contains("The sum over all ranks is right"), "{}", lines[6]);
    assert!(lines[7].contains("KILN_JOB_TOKEN, KILN_LIBCUDA"), "{}", lines[7]);
}

#[test]
fn json_has_every_rank_and_no_secret() {
    let outcome = ranks("3", "echo $KILN_JOB_TOKEN >&2;");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let report = json(&outcome);
    for rank in 0..3 {
        let told = &report["ranks"][rank];
        assert_eq!((&told["rank"], &told["local_rank"]), (&rank.into(), &rank.into()));
        assert_eq!((&told["device_kind"], &told["launcher"]), (&"simulated".into(), &"KILN_RANK".into()));
        let apart = told["clock_ahead_us"].as_i64().unwrap().abs();
        let error = told["clock_error_us"].as_i64().unwrap();
        assert!(apart <= error + 1, "one host has one clock: {told}");
    }
    assert_eq!((&report["sum"]["by"], &report["sum"]["problem"]), (&"rendezvous".into(), &Value::Null));
    assert_eq!((&report["disagreements"], &report["exit"]), (&Value::Array(Vec::new()), &0.into()));
    let token = outcome.stderr.lines().next().unwrap().split_once(' ').unwrap().1;
    assert!(token.len() == 64 && !outcome.stdout.contains(token));
}

#[test]
fn ranks_that_disagree_are_named() {
    let outcome = ranks("3", "[ $KILN_RANK = 2 ] && export KILN_LOCAL_RANK=0;");
    assert_eq!(outcome.code, Some(5), "{}", outcome.stderr);
    let what = json(&outcome)["disagreements"][0]["what"].as_str().unwrap().to_owned();
    assert!(what.starts_with("ranks 0, 2 are both local rank 0 of "), "{what}");
    let outcome = ranks("2", "[ $KILN_RANK = 1 ] && export KILN_POLICY=required;");
    assert_eq!(outcome.code, Some(5), "{}", outcome.stderr);
    let report = json(&outcome);
    let what = report["disagreements"][0]["what"].as_str().unwrap();
    assert!(what.starts_with("rank 1 has no device: "), "{what}");
    assert!(report["sum"]["problem"].as_str().unwrap().contains("not every rank has a device"));
}

#[test]
fn without_a_launcher_it_says_how_to_start_it() {
    let outcome = run(by_hand(&[]));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""));
    assert!(outcome.stderr.contains("kiln launch -n 4 -- kiln doctor --cluster"), "{}", outcome.stderr);
}

#[test]
fn half_of_the_variables_name_the_missing_one() {
    let outcome = run(by_hand(&[("RANK", "0")]));
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("WORLD_SIZE"), "{}", outcome.stderr);
    let outcome = run(by_hand(&[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")]));
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("KILN_MEETING_POINT"), "{}", outcome.stderr);
}

#[test]
fn more_ranks_than_there_can_be_are_a_wrong_value() {
    let point = ("KILN_MEETING_POINT", "127.0.0.1:29500");
    for (rank, size, why) in [
        ("0", "5000000", "a job of 5000000 ranks, where there can be "),
        ("4999999", "5000000", "a job of 5000000 ranks, where there can be "),
        ("7", "3", "7"),
        ("0", "many", "many"),
    ] {
        let outcome = run(by_hand(&[("KILN_RANK", rank), ("KILN_WORLD_SIZE", size), point]));
        assert_eq!(outcome.code, Some(2), "{rank} of {size}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(why), "{rank} of {size}: {}", outcome.stderr);
    }
}

#[test]
fn missing_ranks_are_named_within_the_time_limit() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let point = free.to_string();
    let outcome =
        run(by_hand(&[("KILN_RANK", "0"), ("KILN_WORLD_SIZE", "3"), ("KILN_MEETING_POINT", &point)]));
    assert_eq!(outcome.code, Some(5));
    assert!(outcome.stderr.contains("2 of 3 ranks did not join within 1.0 s: 1 and 2"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("was not started"), "{}", outcome.stderr);
}

/// The things that do not fit, as ranks with GPUs tell them, each started by this script.
fn on_gpus(script: &str) -> (Option<i32>, Vec<String>, Value) {
    let script = format!("{script} exec {KILN} doctor --cluster --time-limit 20 --json");
    let outcome = run(command(&["launch", "-n", "2", "--grace", "20", "--", "sh", "-c", &script]));
    let report = json(&outcome);
    let things = report["disagreements"].as_array().unwrap().iter();
    (outcome.code, things.map(|it| it["what"].as_str().unwrap().to_owned()).collect(), report)
}

on_machine! {
    fn ranks_with_gpus_are_compared() on Machine::fake().devices(2).with("KILN_NCCL", "/nonexistent/libnccl.so.2") => {
        let start = std::time::Instant::now();
        let (code, things, report) = on_gpus("");
        assert_eq!(code, Some(5));
        assert_eq!((&report["ranks"][1]["device_kind"], &report["ranks"][1]["driver"]), (&"cuda".into(), &"13.0".into()));
        assert_eq!(things[0], "different devices: Fake 0 (rank 0), Fake 1 (rank 1)");
        assert!(things[1].starts_with("the sum over all ranks: ") && things[1].contains("NCCL"), "{things:?}");
        assert!(start.elapsed().as_secs() < 15, "no rank waits for a communicator that there is not");

        let (_, things, _) = on_gpus("export KILN_LOCAL_RANK=0;");
        assert!(things.iter().any(|it| it.starts_with("ranks 0, 1 use one GPU, GPU-")), "{things:?}");
        let (_, things, _) = on_gpus("[ $KILN_RANK = 1 ] && export FAKE_CUDA_VERSION=12080;");
        assert!(things.contains(&"different drivers: 12.8 (rank 1), 13.0 (rank 0)".to_owned()), "{things:?}");
        let (_, things, _) = on_gpus("[ $KILN_RANK = 1 ] && export KILN_LOCAL_RANK=7 KILN_LOCAL_SIZE=8;");
        assert!(things.iter().any(|it| it.starts_with("rank 1 has no device: ") && it.contains('7')), "{things:?}");
    }

    fn ranks_that_share_a_gpu_have_a_sum_if_nccl_takes_them_for_two_hosts() on {
        Machine::fake().with_library("KILN_NCCL", include_str!("../../../kiln-cuda/tests/on_fake/libnccl/nccl.c"))
    } => {
        let shared = |things: &[String]| things.iter().any(|it| it.starts_with("ranks 0, 1 use one GPU, GPU-"));
        let (code, things, report) = on_gpus("export KILN_LOCAL_RANK=0;");
        assert!(code == Some(5) && shared(&things), "{things:?}");
        let problem = report["sum"]["problem"].as_str().unwrap();
        assert!(problem.contains("NCCL refuses ranks of one host that share a GPU (NCCL_HOSTID"), "{problem}");

        // It is tried; the stand-in for NCCL adds nothing.
        let (code, things, report) = on_gpus("export KILN_LOCAL_RANK=0 NCCL_HOSTID=h$KILN_RANK;");
        assert!(code == Some(5) && shared(&things), "{things:?}");
        let sum = &report["sum"];
        assert_eq!((&sum["by"], &sum["problem"]), (&"nccl".into(), &"element 0 is 0 and should be 3".into()));
    }
}
