//! `kiln launch --check`: ranks as processes over simulated devices. The program of the ranks is this test itself.

#![cfg(target_os = "linux")]

use std::process::Command;
use std::sync::Arc;

use kiln::DeviceRuntime;
use kiln::group::{DeviceCommunicator, Reduction, Rendezvous};

use crate::checked_ranks::{self, checked_under, use_unwritten};
use crate::example_program::{example_of, example_program};
use crate::outcome::{Outcome, command, run};
use crate::wild_kernel::launch_wild;

const MISTAKE: &str = "KILN_TEST_MISTAKE";

/// What a rank drops last, if it is the one that fails by itself: it needs longer to end than those that fail because of it.
struct SlowEnd;

impl Drop for SlowEnd {
    fn drop(&mut self) {
        std::thread::sleep(std::time::Duration::from_millis(1500));
    }
}

/// A rank that fails by itself after all ranks have met, and others that fail because of it, at once.
#[test]
fn failing_rank_program() {
    let Ok(mistake) = std::env::var(MISTAKE) else { return };
    let (who, how) = mistake.split_once(' ').unwrap();
    let is_first = std::env::var("KILN_RANK").is_ok_and(|rank| rank == who);
    let _slow = is_first.then_some(SlowEnd);
    let job = Arc::new(Rendezvous::from_process().unwrap().unwrap());
    let gpu = DeviceRuntime::auto().unwrap();
    let rank = DeviceCommunicator::meet(gpu, &job, &Default::default()).unwrap();
    // The first rank can be past this barrier, and lost, while another one still waits in it.
    let met = rank.barrier().submit().is_ok_and(|barrier| barrier.wait().is_ok());
    if is_first && !met {
        panic!("rank {who} is lost before it fails by itself");
    }
    if is_first && how == "leaves" {
        drop((rank, job));
        std::panic::resume_unwind(Box::new("it has left the job"));
    }
    if is_first {
        std::panic::resume_unwind(Box::new("this rank fails by itself"));
    }
    if !met || rank.barrier().submit().is_err() {
        std::process::exit(7);
    }
}

#[test]
fn the_rank_that_panicked_is_named_first_also_if_others_end_before_it() {
    let program = std::env::current_exe().unwrap();
    for (flags, mistake) in [(&["--check"][..], "1 panics"), (&["--check"], "0 panics"), (&[], "2 leaves")] {
        let words = [&["launch", "-n", "3"], flags, &["--", program.to_str().unwrap()]].concat();
        let test = ["--exact", "launch_check::failing_rank_program", "--nocapture"];
        let mut launch: Command = command(&[&words[..], &test].concat());
        launch.env(MISTAKE, mistake).env("KILN_POLICY", "simulate");
        let outcome = run(launch);
        let first = format!("kiln launch: rank {} failed first with exit status 101", &mistake[..1]);
        assert!(outcome.stderr.contains(&first), "{mistake}: {}", outcome.stderr);
    }
}

/// What every rank does, with one mistake.
#[test]
fn rank_program() {
    let Ok(mistake) = std::env::var(MISTAKE) else { return };
    let job = Arc::new(Rendezvous::from_process().unwrap().unwrap());
    let gpu = DeviceRuntime::auto().unwrap();
    let rank = DeviceCommunicator::meet(gpu, &job, &Default::default()).unwrap();
    let me = rank.rank();
    let large = vec![me + 1; 300_000];
    let (send, recv) = (gpu.upload(&large).unwrap(), gpu.zeros::<u32>(large.len()).unwrap());
    for round in 0..5 {
        rank.all_reduce(&send, &recv, Reduction::Sum).submit().unwrap();
        let sums = recv.download();
        // Rank 1 can be past the last round, and lost, while another rank is still in it.
        if mistake.starts_with("a wild store") && me != 1 && round == 4 && sums.is_err() {
            return;
        }
        assert_eq!(sums.unwrap(), vec![6; large.len()]);
    }
    if mistake == "never written" && me == 1 {
        use_unwritten(gpu);
    }
    if mistake == "never written, in a collective" {
        let (unwritten, recv) = (gpu.allocate::<u32>(8).unwrap(), gpu.zeros::<u32>(8).unwrap());
        let send = if me == 1 { &unwritten } else { &send.view(..8).unwrap() };
        rank.all_reduce(send, &recv, Reduction::Max).submit().unwrap();
    }
    if mistake.starts_with("a wild store") && me == 1 {
        let wild = launch_wild(gpu);
        if mistake == "a wild store" {
            wild.wait().unwrap_err();
        }
        return;
    }
    if mistake.starts_with("a wild store") {
        return;
    }
    if mistake == "another collective" && me == 2 {
        let error = rank.broadcast(&send, 0).submit().unwrap_err().to_string();
        assert!(error.contains("rank 2 and rank 0 differ in collective 5"), "{error}");
        return;
    }
    if mistake == "another group" {
        let (sum, copy) = (rank.all_reduce(&send, &recv, Reduction::Sum), gpu.zeros::<u32>(8).unwrap());
        let copied = rank.broadcast(&copy, 0);
        let called = match me {
            1 => sum.submit().and_then(|_| copied.submit()),
            _ => sum.and(copied).submit(),
        };
        let error = called.unwrap_err().to_string();
        assert!(error.contains("collective 1 of 2 in its group"), "{error}");
        return;
    }
    if mistake == "leaves early" && me == 2 {
        return;
    }
    let ended = rank.barrier().submit();
    if mistake == "leaves early" {
        let error = ended.unwrap_err().to_string();
        assert!(error.contains("rank 2 has left the job"), "{error}");
        return;
    }
    if mistake != "another collective" {
        ended.unwrap().wait().unwrap();
    }
    gpu.synchronize().unwrap();
}

const TEST: &str = "launch_check::rank_program";

fn checked(mistake: &str) -> Outcome {
    checked_ranks::checked("3", TEST, (MISTAKE, mistake))
}

#[test]
fn ranks_without_a_mistake_have_no_findings() {
    let outcome = checked("none");
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stderr.contains("kiln launch: no findings in 3 ranks"), "{}", outcome.stderr);
}

#[test]
fn collectives_of_ranks_that_are_processes_are_recorded_and_explained_together() {
    let folder = crate::folder::Folder::new();
    let (files, traces) = (folder.path("rank-%p.kiln"), folder.path("rank-%p.pftrace"));
    let words = ["trace", &*files, "--perfetto", &*traces, "--", env!("CARGO_BIN_EXE_kiln")];
    let outcome = checked_under(&words, "3", TEST, (MISTAKE, "none"));
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    let explained = run(command(&["explain", &files]));
    let text = &explained.stdout;
    assert_eq!(explained.code, Some(0), "{}", explained.stderr);
    assert!(text.contains("3 recordings of one job"), "{text}");
    for rank in 0..3 {
        assert!(text.contains(&format!("(rank {rank} of 3, communicator ")), "{text}");
    }
    assert!(text.contains("`all_reduce` 5 times, 5.7 MiB altogether"), "{text}");
    let traces = std::fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().path());
    let traces: Vec<_> = traces.filter(|path| path.extension().is_some_and(|end| end == "pftrace")).collect();
    assert_eq!(traces.len(), 3);
    for trace in traces {
        let trace = std::fs::read(trace).unwrap();
        let has = |word: &str| trace.windows(word.len()).any(|bytes| bytes == word.as_bytes());
        assert!(has("communicator") && has("ranks"));
    }
}

#[test]
fn what_a_rank_finds_is_printed_with_the_rank() {
    let outcome = checked("never written");
    assert_eq!(outcome.code, Some(5), "{}{}", outcome.stdout, outcome.stderr);
    let found = |rank: u32| outcome.stderr.contains(&format!("kiln launch: rank {rank} found: "));
    assert_eq!([0, 1, 2].map(found), [false, true, false], "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("copy_one") && outcome.stderr.contains("never written"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stderr.contains("1 finding in 3 ranks"), "{}", outcome.stderr);
}

#[test]
fn a_collective_that_brings_memory_which_was_never_written_is_named() {
    let outcome = checked("never written, in a collective");
    assert_eq!(outcome.code, Some(5), "{}{}", outcome.stdout, outcome.stderr);
    let found = checked_ranks::found(&outcome);
    let [found] = &found[..] else { panic!("{}", outcome.stderr) };
    let words = "launch all_reduce element=u32 reduction=max in_place=false (device 0 ";
    assert!(found.contains(words) && found.contains("which was never written"), "{found}");
    assert!(found.contains(concat!(", called at ", file!(), ":")), "{found}");
}

#[test]
fn a_store_outside_of_all_memory_is_a_finding_whether_it_is_waited_for_or_not() {
    for mistake in ["a wild store", "a wild store, not waited for"] {
        let outcome = checked(mistake);
        assert_eq!(outcome.code, Some(5), "{mistake}: {}{}", outcome.stdout, outcome.stderr);
        let words = "kiln launch: rank 1 found: ";
        assert!(outcome.stderr.contains(words) && outcome.stderr.contains("wild"), "{}", outcome.stderr);
    }
}

#[test]
fn ranks_that_call_different_collectives_are_a_finding() {
    let outcome = checked("another collective");
    assert_eq!(outcome.code, Some(5), "{}{}", outcome.stdout, outcome.stderr);
    let words = "rank 2 and rank 0 differ in collective 5: broadcast of u32 root 0 of 300000 and barrier";
    assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
}

#[test]
fn ranks_that_call_the_same_collectives_in_other_groups_are_a_finding() {
    let outcome = checked("another group");
    assert_eq!(outcome.code, Some(5), "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stderr.contains("differ in collective 5"), "{}", outcome.stderr);
}

#[test]
fn the_exit_code_of_a_rank_counts_where_nothing_was_found() {
    let outcome = run(command(&["launch", "-n", "2", "--check", "--", "sh", "-c", "exit 4"]));
    assert_eq!(outcome.code, Some(4), "{}", outcome.stderr);
    let both = run(command(&["launch", "-n", "2", "--check", "--devices", "0,1", "--", "true"]));
    assert_eq!(both.code, Some(2), "{}", both.stderr);
}

#[test]
fn every_collective_of_the_example_is_right_between_processes() {
    let program = example_program("collectives");
    let outcome = run(command(&["launch", "-n", "4", "--check", "--", program.to_str().unwrap()]));
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stderr.contains("no findings in 4 ranks"), "{}", outcome.stderr);
    let right = outcome.stdout.lines().filter(|line| line.contains(": right on rank 0 of 4")).count();
    assert!(right >= 12, "{}", outcome.stdout);
}

#[test]
fn a_rank_that_ends_in_order_is_told_to_those_that_wait_for_it() {
    let began = std::time::Instant::now();
    let outcome = checked("leaves early");
    assert_eq!(outcome.code, Some(5), "{}{}", outcome.stdout, outcome.stderr);
    for rank in [0, 1] {
        // Whichever is told first leaves because of that, and is not the rank that the other one is told of.
        let found = format!(
            "kiln launch: rank {rank} found: rank 2 has left the job and does not come to collective 5, barrier"
        );
        assert!(outcome.stderr.contains(&found), "{}", outcome.stderr);
    }
    assert!(outcome.stderr.contains("kiln launch: 2 findings in 3 ranks"), "{}", outcome.stderr);
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
}

#[test]
fn the_example_of_training_gives_its_losses_between_processes_on_simulated_devices() {
    let program = example_of("kiln-libs", "data_parallel");
    let alone = Command::new(&program).arg("1").output().unwrap();
    let losses = String::from_utf8(alone.stdout).unwrap();
    assert_eq!(losses.lines().count(), 12, "{losses}");
    for ranks in ["2", "3"] {
        let words = ["launch", "-n", ranks, "--check", "--", program.to_str().unwrap(), ranks];
        let outcome = run(command(&words));
        assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.stderr.contains(&format!("no findings in {ranks} ranks")), "{}", outcome.stderr);
        let first = outcome.stdout.lines().filter_map(|line| line.strip_prefix("[0] "));
        assert!(first.eq(losses.lines()), "{ranks} ranks: {}", outcome.stdout);
    }
}

#[test]
fn the_example_of_training_survives_a_process_that_is_killed_and_gives_the_same_losses() {
    let program = example_of("kiln-libs", "data_parallel");
    let alone = Command::new(&program).arg("1").output().unwrap();
    let losses = String::from_utf8(alone.stdout).unwrap();
    for (ranks, killed, step) in [("3", "1", "5"), ("4", "3", "0")] {
        let words =
            ["launch", "-n", ranks, "--check", "--keep-going", "--", program.to_str().unwrap(), ranks];
        let outcome = run(command(&[&words[..], &["--kill-rank", killed, "--at-step", step]].concat()));
        assert_eq!(outcome.code, Some(134), "{}{}", outcome.stdout, outcome.stderr);
        let told = format!("[0] rank {killed} is lost (");
        assert!(outcome.stdout.lines().any(|line| line.starts_with(&told)), "{}", outcome.stdout);
        let first = outcome.stdout.lines().filter_map(|line| line.strip_prefix("[0] "));
        let found = first.filter(|line| line.starts_with("step "));
        assert!(found.eq(losses.lines()), "{ranks} ranks: {}", outcome.stdout);
    }
}

#[test]
fn a_job_is_run_with_one_seed_after_the_other_until_one_fails() {
    let launch = |flags: &[&str], script: &str| {
        run(command(&[&["launch", "-n", "2", "--check"], flags, &["--", "sh", "-c", script]].concat()))
    };
    let all = launch(&["--seed", "5", "--seeds", "3"], "echo seed $KILN_SIM_SEED");
    assert_eq!(all.code, Some(0), "{}", all.stderr);
    let mut lines: Vec<&str> = all.stdout.lines().collect();
    assert_eq!(lines.len(), 6);
    for (pair, seed) in lines.chunks_mut(2).zip(5..) {
        pair.sort_unstable();
        assert_eq!(pair, [format!("[0] seed {seed}"), format!("[1] seed {seed}")]);
    }
    assert!(all.stderr.contains("no findings with seeds 5 to 7"), "{}", all.stderr);
    let stopped = launch(&["--seeds", "9"], "echo $KILN_SIM_SEED; [ $KILN_SIM_SEED != 1 ]");
    assert_eq!(stopped.code, Some(1), "{}", stopped.stderr);
    assert!(stopped.stderr.contains("that was with seed 1; `--seed 1` repeats it"), "{}", stopped.stderr);
    assert!(!stopped.stdout.contains("] 2"), "{}", stopped.stdout);
    for (flags, why) in [
        (&["launch", "-n", "2", "--seeds", "2", "--", "true"][..], "--check"),
        (&["launch", "-n", "2", "--check", "--seeds", "0", "--", "true"], "0 is not in"),
        (
            &["launch", "-n", "2", "--check", "--seeds", "2", "--seed", "18446744073709551615", "--", "true"],
            "goes beyond the last seed",
        ),
    ] {
        let refused = run(command(flags));
        assert_eq!(refused.code, Some(2), "{flags:?}");
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    }
}
