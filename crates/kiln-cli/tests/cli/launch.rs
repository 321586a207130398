//! `kiln launch`: ranks of small programs on this host, what they print, and how they end.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::example_program::example_program;
use crate::folder::Folder;
use crate::machine::Machine;
use crate::outcome::{Outcome, command, run, without_driver};

/// The command with these flags, whose ranks run a script.
fn script(flags: &[&str], script: &str) -> Command {
    without_driver(&[&["launch"], flags, &["--", "sh", "-c", script]].concat())
}

fn launched(flags: &[&str], text: &str) -> Outcome {
    run(script(flags, text))
}

/// The lines of one rank, without their prefix.
fn lines_of(outcome: &Outcome, rank: u32) -> Vec<&str> {
    let prefix = format!("[{rank}] ");
    outcome.stdout.lines().filter_map(|line| line.strip_prefix(&prefix)).collect()
}

/// Whether a process runs; one that has ended and was not waited for does not.
fn runs(process: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

fn ends_soon(process: &str) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    while runs(process) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    !runs(process)
}

/// A job that runs, and the lines that it printed until each rank has printed one.
fn started(mut command: Command, ranks: usize) -> (Child, BufReader<impl Read>, Vec<String>) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let line = |_| {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    let lines = (0..ranks).map(line).collect();
    (child, output, lines)
}

fn send(signal: &str, process: u32) {
    assert!(Command::new("kill").args([signal, &process.to_string()]).status().unwrap().success());
}

/// How a job that was started ends.
fn finished(mut child: Child, mut output: BufReader<impl Read>) -> Outcome {
    let (mut stdout, mut stderr) = (String::new(), String::new());
    output.read_to_string(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    Outcome { code: child.wait().unwrap().code(), stdout, stderr }
}

#[test]
fn every_rank_gets_its_number_and_the_token_of_the_job() {
    let text = "echo $KILN_RANK/$KILN_WORLD_SIZE $KILN_LOCAL_RANK/$KILN_LOCAL_SIZE $KILN_RESTARTS; \
                echo $KILN_MEETING_POINT; echo $KILN_JOB_TOKEN";
    let (one, other) = (launched(&["-n", "3"], text), launched(&["-n", "1"], text));
    assert_eq!((one.code, one.stderr.as_str()), (Some(0), ""));
    let first = lines_of(&one, 0);
    for rank in 0..3 {
        let lines = lines_of(&one, rank);
        assert_eq!(lines[0], format!("{rank}/3 {rank}/3 0"));
        assert!(lines[1].starts_with("127.0.0.1:"), "{}", lines[1]);
        assert_eq!(lines[1..], first[1..]);
    }
    let token = first[2];
    assert_eq!(token.len(), 64);
    assert_ne!(token, lines_of(&other, 0)[2], "every job has another token");
}

#[test]
fn the_token_is_in_no_command_line() {
    let text =
        "echo $KILN_JOB_TOKEN; tr '\\0' ' ' < /proc/$PPID/cmdline; echo; tr '\\0' ' ' < /proc/$$/cmdline";
    let outcome = launched(&["-n", "1"], text);
    let lines = lines_of(&outcome, 0);
    assert!(lines[1].contains("launch") && lines[2].contains("sh -c"), "{lines:?}");
    assert!(!lines[1].contains(lines[0]) && !lines[2].contains(lines[0]), "{lines:?}");
}

#[test]
fn lines_are_whole_and_in_order_for_each_rank() {
    let outcome =
        launched(&["-n", "4"], "for i in $(seq 500); do echo line $i of $KILN_RANK; done; printf end");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(outcome.stdout.lines().count(), 4 * 501);
    for rank in 0..4 {
        let mut expected: Vec<String> = (1..=500).map(|i| format!("line {i} of {rank}")).collect();
        expected.push("end".into());
        assert_eq!(lines_of(&outcome, rank), expected);
    }
}

#[test]
fn bytes_come_through_and_the_standard_error_stays_apart() {
    let output = script(&["-n", "1"], "printf 'a\\377\\0b\\n'; printf 'oops\\ntail' >&2").output().unwrap();
    assert_eq!(output.stdout, b"[0] a\xff\0b\n");
    assert_eq!(output.stderr, b"[0] oops\n[0] tail\n");
}

#[test]
fn a_reader_that_leaves_ends_the_ranks_which_may_say_what_they_have() {
    let folder = Folder::new();
    let done = folder.path("done");
    let text = format!("trap 'echo yes > {done}; exit 0' TERM; i=0; while :; do i=$((i+1)); echo $i; done");
    let (child, output, lines) = started(script(&["-n", "1", "--grace", "100"], &text), 1);
    assert_eq!(lines, ["[0] 1"]);
    drop(output);
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.starts_with("kiln launch: SIGTERM to rank 0\n"), "{told}");
    assert!(told.contains("the output of the ranks could not be written"), "{told}");
    assert_eq!(std::fs::read_to_string(done).unwrap(), "yes\n");
}

#[test]
fn the_rank_that_fails_first_is_named_and_the_others_are_ended() {
    let text = "[ $KILN_RANK = 1 ] && exit 3; exec sleep 60";
    let outcome = launched(&["-n", "3", "--grace", "0.1"], text);
    assert_eq!(outcome.code, Some(3));
    assert!(outcome.stderr.contains("rank 1 failed first with exit status 3\n"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("SIGTERM to ranks 0 and 2\n"), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("SIGKILL"), "{}", outcome.stderr);
}

#[test]
fn a_rank_that_a_signal_ended_gives_128_and_its_number() {
    let outcome = launched(&["-n", "2", "--grace", "0.1"], "[ $KILN_RANK = 0 ] && kill -9 $$; exec sleep 60");
    assert_eq!(outcome.code, Some(137));
    assert!(outcome.stderr.contains("rank 0 failed first with signal 9 (SIGKILL)"), "{}", outcome.stderr);
}

#[test]
fn a_rank_that_ignores_sigterm_is_killed_with_what_it_started() {
    let text = "trap '' TERM; [ $KILN_RANK = 1 ] && { sleep 0.3; exit 9; }; sleep 77 & echo $!; wait; wait; sleep 77";
    let outcome = launched(&["-n", "2", "--grace", "0.1"], text);
    assert_eq!(outcome.code, Some(9));
    assert!(outcome.stderr.contains("SIGKILL to rank 0\n"), "{}", outcome.stderr);
    assert!(ends_soon(lines_of(&outcome, 0)[0]));
}

#[test]
fn others_have_time_to_say_that_a_rank_is_lost() {
    let text = "[ $KILN_RANK = 1 ] && exit 4; sleep 0.3; echo survivor; exit 5";
    let outcome = launched(&["-n", "2", "--grace", "20"], text);
    assert_eq!((outcome.code, lines_of(&outcome, 0)), (Some(4), vec!["survivor"]));
    assert!(!outcome.stderr.contains("SIGTERM"), "{}", outcome.stderr);
}

#[test]
fn survivors_live_on_if_asked_and_the_job_has_failed() {
    let text = "[ $KILN_RANK = 1 ] && exit 3; sleep 0.3; echo done; [ $KILN_RANK = 2 ] && exit 8; exit 0";
    let outcome = launched(&["-n", "3", "--keep-going", "--grace", "0.1"], text);
    assert_eq!(outcome.code, Some(3));
    assert_eq!((lines_of(&outcome, 0), lines_of(&outcome, 2)), (vec!["done"], vec!["done"]));
    assert!(outcome.stderr.contains("rank 2 failed with exit status 8"), "{}", outcome.stderr);
}

#[test]
fn a_failed_rank_is_started_again_so_many_times() {
    let text =
        "[ $KILN_RANK = 1 ] && [ $KILN_RESTARTS -lt 2 ] && exit 7; echo $KILN_RANK after $KILN_RESTARTS";
    let outcome = launched(&["-n", "2", "--restart", "2"], text);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(lines_of(&outcome, 1), ["1 after 2"]);
    assert!(outcome.stderr.contains("rank 1 failed with exit status 7; it is started again (2 of 2)"));
    let outcome = launched(&["-n", "2", "--restart", "1", "--grace", "0.1"], text);
    assert_eq!(outcome.code, Some(7));
    assert!(outcome.stderr.contains("rank 1 failed first with exit status 7"), "{}", outcome.stderr);
    let outcome =
        launched(&["-n", "2", "--restart", "1", "--grace", "0.1"], "[ $KILN_RANK = 1 ] || exit 6; sleep 60");
    assert_eq!(outcome.code, Some(6));
    assert!(outcome.stderr.contains("rank 0 is not started again"), "{}", outcome.stderr);
}

#[test]
fn signals_reach_all_ranks() {
    let text =
        "trap 'echo told; exit 0' TERM; trap 'echo usr' USR1; echo ready; while :; do sleep 0.05; done";
    let (child, output, _) = started(script(&["-n", "3"], text), 3);
    send("-USR1", child.id());
    std::thread::sleep(Duration::from_millis(300));
    send("-TERM", child.id());
    let outcome = finished(child, output);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    for rank in 0..3 {
        assert_eq!(lines_of(&outcome, rank), ["usr", "told"]);
    }
    // Tests that run in the background may have been started with this signal ignored.
    let text = "echo ready; exec env --default-signal=INT sleep 60";
    let (child, output, _) = started(script(&["-n", "2"], text), 2);
    send("-INT", child.id());
    assert_eq!(finished(child, output).code, Some(130));
}

#[test]
fn the_second_signal_kills() {
    let text = "trap '' INT TERM; echo ready; while :; do sleep 0.05; done";
    let (child, output, _) = started(script(&["-n", "2"], text), 2);
    send("-INT", child.id());
    std::thread::sleep(Duration::from_millis(200));
    assert!(runs(&child.id().to_string()), "the ranks decide when they end");
    send("-TERM", child.id());
    let start = Instant::now();
    assert_eq!(finished(child, output).code, Some(137));
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn no_rank_outlives_the_command() {
    let (mut child, _output, lines) = started(script(&["-n", "3"], "echo $$; exec sleep 60"), 3);
    let ranks: Vec<&str> = lines.iter().map(|line| line.split_once(' ').unwrap().1).collect();
    assert!(ranks.iter().all(|rank| runs(rank)));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(ranks.iter().all(|rank| ends_soon(rank)));
}

#[test]
fn a_job_that_takes_too_long_is_ended() {
    let text = "[ $KILN_RANK = 1 ] && exit 0; exec sleep 60";
    let outcome = launched(&["-n", "3", "--time-limit", "0.5", "--grace", "0.5"], text);
    assert_eq!(outcome.code, Some(5));
    assert!(outcome.stderr.contains("ranks 0 and 2 still ran after 0.5 s"), "{}", outcome.stderr);
}

#[test]
fn wrong_words_are_refused_before_a_rank_is_started() {
    let folder = Folder::new();
    let plain = folder.write("plain", "echo no\n");
    for (words, code, what) in [
        (&["-n", "0", "--", "true"][..], 2, "1..=256"),
        (&["-n", "257", "--", "true"], 2, "1..=256"),
        (&["-n", "-1", "--", "true"], 2, "1..=256"),
        (&["--", "true"], 2, "-n"),
        (&["-n", "2"], 2, "PROGRAM"),
        (&["-n", "2", "true"], 2, "unexpected"),
        (&["-n", "2", "--", "/nonexistent/program"], 2, "there is no such program"),
        (&["-n", "2", "--", &plain], 2, "it cannot be executed"),
        (&["-n", "2", "--", "/"], 2, "it is a folder"),
        (&["-n", "1", "--port", "0", "--", "true"], 2, "--port"),
        (&["-n", "1", "--time-limit", "-3", "--", "true"], 2, "--time-limit"),
        (&["-n", "1", "--devices", "x", "--", "true"], 2, "no device and no range"),
        (&["-n", "1", "--devices", "0,1", "--", "true"], 2, "2 devices for 1 rank"),
        (&["-n", "2", "--devices", "0,0", "--", "true"], 2, "given twice"),
        (&["-n", "2", "--check", "--devices", "0,1", "--", "true"], 2, "--devices"),
        (&["-n", "1", "--devices", "0", "--", "true"], 3, "no usable CUDA driver"),
    ] {
        let outcome = run(without_driver(&[&["launch"], words].concat()));
        assert_eq!(outcome.code, Some(code), "{words:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(what) && outcome.stdout.is_empty(), "{words:?}: {}", outcome.stderr);
    }
}

#[test]
fn a_port_in_use_is_refused_and_a_free_one_is_used() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let outcome = launched(&["-n", "1", "--port", &port], "echo no");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""));
    assert!(outcome.stderr.contains(&format!("port {port} is in use")), "{}", outcome.stderr);
    drop(taken);
    let outcome = launched(&["-n", "1", "--port", &port], "echo $KILN_MEETING_POINT");
    assert_eq!(lines_of(&outcome, 0), [format!("127.0.0.1:{port}")]);
}

#[test]
fn a_policy_without_gpus_refuses_a_list_of_them() {
    let mut launch = script(&["-n", "1", "--devices", "0"], "true");
    launch.env("KILN_POLICY", "simulate");
    let outcome = run(launch);
    assert_eq!(outcome.code, Some(3));
    assert!(outcome.stderr.contains("policy `simulate`"), "{}", outcome.stderr);
}

#[test]
fn ranks_meet_under_the_command() {
    let program = example_program("ranks");
    let outcome = run(without_driver(&["launch", "-n", "3", "--", program.to_str().unwrap()]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    for rank in 0..3 {
        assert_eq!(lines_of(&outcome, rank)[1], format!("rank {rank}: the sum of all parts is 600"));
    }
}

#[test]
fn a_replacement_meets_the_others() {
    let program = example_program("ranks");
    let text = format!(
        "[ $KILN_RANK = 1 ] && [ $KILN_RESTARTS = 0 ] && kill -9 $$; exec {}",
        program.to_str().unwrap()
    );
    let outcome = launched(&["-n", "3", "--restart", "1"], &text);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(lines_of(&outcome, 1)[1], "rank 1: the sum of all parts is 600");
}

#[test]
fn survivors_of_a_killed_rank_go_on_under_the_command() {
    let program = example_program("ranks");
    let text = format!("echo pid $$; exec {} --until-loss", program.to_str().unwrap());
    let (child, mut output, _) = started(script(&["-n", "3", "--keep-going"], &text), 0);
    let (mut lines, mut victim) = (String::new(), None);
    while lines.matches("the sum of all parts is 600").count() < 3 {
        let mut line = String::new();
        assert!(output.read_line(&mut line).unwrap() > 0, "{lines}");
        victim = victim.or_else(|| line.strip_prefix("[2] pid ")?.trim().parse::<u32>().ok());
        lines.push_str(&line);
    }
    send("-KILL", victim.unwrap());
    let outcome = finished(child, output);
    assert_eq!(outcome.code, Some(137));
    assert!(outcome.stderr.contains("rank 2 failed first with signal 9 (SIGKILL)"), "{}", outcome.stderr);
    for survivor in 0..2 {
        assert_eq!(lines_of(&outcome, survivor).last().unwrap(), &format!("rank {survivor}: 2 ranks go on"));
    }
}

on_machine! {
    fn ranks_get_the_devices_that_are_there() on Machine::fake().devices(2) => {
        let show = ["--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES of $KILN_LOCAL_RANK"];
        let outcome = run(command(&[&["launch", "-n", "2", "--devices", "1,0"], &show[..]].concat()));
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
        assert_eq!((lines_of(&outcome, 0), lines_of(&outcome, 1)), (vec!["1,0 of 0"], vec!["1,0 of 1"]));
        let outcome = run(command(&[&["launch", "-n", "2", "--devices", "1-2"], &show[..]].concat()));
        assert_eq!(outcome.code, Some(3));
        assert!(outcome.stderr.contains("ordinal 2"), "{}", outcome.stderr);
    }
}

const SLOW_END: &str = "KILN_TEST_SLOW_END";

/// Rank 1 begins to end, takes its time, and is ended by a signal; rank 0 fails because of that, and is quicker.
#[test]
fn slow_end_program() {
    if std::env::var_os(SLOW_END).is_none() {
        return;
    }
    if std::env::var("KILN_RANK").unwrap() == "0" {
        std::thread::sleep(Duration::from_millis(150));
        std::process::exit(1);
    }
    extern "C" fn end_thread(_: libc::c_int) {
        // SAFETY: it ends the thread that it runs on, and nothing else.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
    let handler = end_thread as extern "C" fn(libc::c_int);
    let process = std::process::id();
    // SAFETY: the handler makes one system call. The first thread of the process only waits for this one.
    unsafe {
        libc::signal(libc::SIGUSR1, handler as libc::sighandler_t);
        libc::syscall(libc::SYS_tgkill, process, process, libc::SIGUSR1);
    }
    std::thread::sleep(Duration::from_millis(400));
    std::process::abort();
}

#[test]
fn a_rank_that_ends_slowly_has_failed_before_those_that_it_takes_along() {
    let program = std::env::current_exe().unwrap();
    let test = ["--exact", "launch::slow_end_program", "--nocapture"];
    for flags in [&["--keep-going"][..], &["--grace", "5"]] {
        let words = [&["launch", "-n", "2"], flags, &["--", program.to_str().unwrap()], &test].concat();
        let mut launch = without_driver(&words);
        launch.env(SLOW_END, "1");
        let outcome = run(launch);
        let first = "rank 1 failed first with signal 6 (SIGABRT)";
        assert!(outcome.code == Some(134) && outcome.stderr.contains(first), "{}", outcome.stderr);
    }
}
