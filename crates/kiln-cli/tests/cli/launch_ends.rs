//! `kiln launch`: ranks that do not end by themselves, output that no one reads, and restarts that cannot help.

#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::folder::Folder;
use crate::outcome::{Outcome, run, without_driver};

/// Longer than the command needs on a loaded machine.
const LIMIT: Duration = Duration::from_secs(120);

fn script(flags: &[&str], script: &str) -> Command {
    without_driver(&[&["launch"], flags, &["--", "sh", "-c", script]].concat())
}

/// The exit code of a command that may not end.
fn code_in_time(mut child: Child) -> Option<i32> {
    let limit = Instant::now() + LIMIT;
    while Instant::now() < limit {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    panic!("the command does not end");
}

/// The outcome of a job with a rank that stops while the others note its loss.
fn with_a_stopped_rank(code_of_others: u8) -> Outcome {
    let text = format!(
        "[ $KILN_RANK = 1 ] && kill -STOP $$; echo lost 1 >> $KILN_RANK_ENDS_FILE; exit {code_of_others}"
    );
    let mut command = script(&["-n", "3", "--time-limit", "100"], &text);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    run(command)
}

#[test]
fn a_stopped_rank_that_the_others_gave_up_is_killed_and_named_first() {
    let (ended, failed) = std::thread::scope(|scope| {
        let jobs = [0, 4].map(|code| scope.spawn(move || with_a_stopped_rank(code)));
        let [ended, failed] = jobs.map(|job| job.join().unwrap());
        (ended, failed)
    });
    for outcome in [ended, failed] {
        assert_eq!(outcome.code, Some(137), "{}", outcome.stderr);
        let said = "kiln launch: rank 1 was lost and has not ended within 15 s; SIGKILL to rank 1\n\
                    kiln launch: rank 1 failed first with signal 9 (SIGKILL)\n";
        assert!(outcome.stderr.starts_with(said), "{}", outcome.stderr);
    }
}

/// The outcome of a job whose rank 1 is stopped, and which the others waited for in vain.
fn with_a_rank_that_was_waited_for(flags: &[&str], code_of_others: u8) -> Outcome {
    let text = format!(
        "[ $KILN_RANK = 1 ] && kill -STOP $$; echo late 1 >> $KILN_RANK_ENDS_FILE; exit {code_of_others}"
    );
    let mut command = script(&[&["-n", "3", "--time-limit", "60"], flags].concat(), &text);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    run(command)
}

#[test]
fn a_stopped_rank_that_alone_is_left_is_told_and_ended_within_a_limit() {
    let (ended, failed) = std::thread::scope(|scope| {
        let ended = scope.spawn(|| with_a_rank_that_was_waited_for(&["--stopped", "5"], 0));
        let failed = scope.spawn(|| with_a_rank_that_was_waited_for(&["--stopped", "5", "--keep-going"], 4));
        (ended.join().unwrap(), failed.join().unwrap())
    });
    for (outcome, code) in [(ended, 137), (failed, 4)] {
        assert_eq!(outcome.code, Some(code), "{}", outcome.stderr);
        let said = outcome.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        let (_, waits) = said
            .split_once("kiln launch: waits for rank 1, which has been stopped (SIGSTOP) for ")
            .unwrap_or_else(|| panic!("{said}"));
        assert!(waits.contains(" s, while all other ranks have ended; SIGKILL in "), "{said}");
        assert!(waits.contains(" s (--stopped) unless `kill -CONT "), "{said}");
        let ends = "kiln launch: rank 1 was stopped for longer than 5 s after all other ranks had ended; SIGKILL to rank 1";
        assert!(waits.contains(ends), "{said}");
        assert!(waits.contains("rank 1 failed"), "{said}");
    }
}

#[test]
fn a_stopped_rank_that_goes_on_ends_the_job_as_it_ends() {
    // Rank 0 lets it go on after it was told.
    let text = "[ $KILN_RANK = 1 ] && { echo $$ > $1; kill -STOP $$; exit 0; }; \
                while [ ! -s $1 ]; do sleep 0.1; done; \
                setsid sh -c \"sleep 6; kill -CONT $(cat $1)\" > /dev/null 2>&1 < /dev/null & \
                sleep 1; exit 0";
    let folder = Folder::new();
    let file = folder.path("process");
    let mut command = script(&["-n", "2", "--time-limit", "60"], text);
    command.arg("sh").arg(file);
    let outcome = run(command);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("waits for rank 1"), "{}", outcome.stderr);
}

#[test]
fn a_job_of_which_all_ranks_are_stopped_is_told_once_and_goes_on_when_they_do() {
    let text = "echo $$ >> $1; [ $KILN_RANK = 0 ] && setsid sh -c \"sleep 7; kill -CONT \\$(cat $1)\" > /dev/null 2>&1 < /dev/null & kill -STOP $$; exit 0";
    let folder = Folder::new();
    let file = folder.path("processes");
    let mut command = script(&["-n", "2", "--time-limit", "60"], text);
    command.arg("sh").arg(&file);
    let outcome = run(command);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let said = outcome.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = "kiln launch: all ranks have been stopped (SIGSTOP) for ";
    assert_eq!(said.matches(words).count(), 1, "{said}");
    let processes = std::fs::read_to_string(&file).unwrap();
    let told = said
        .split_once("`kill -CONT ")
        .and_then(|(_, told)| told.split_once('`'))
        .unwrap_or_else(|| panic!("{said}"))
        .0;
    assert!(told.split(' ').count() == 2 && processes.lines().all(|number| told.contains(number)), "{said}");
}

#[test]
fn one_signal_ends_ranks_that_are_stopped() {
    let mut command = script(&["-n", "2"], "echo up; kill -STOP $$; sleep 100");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.take(2).filter(|line| line.as_ref().unwrap().ends_with("up")).count(), 2);
    std::thread::sleep(Duration::from_millis(300));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(code_in_time(child), Some(143));
}

#[test]
fn ranks_whose_output_no_one_reads_are_ended() {
    let mut command = without_driver(&["launch", "-n", "2", "--", "yes"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(code_in_time(child), Some(2));
    let mut command = without_driver(&["launch", "-n", "2", "--", "yes"]);
    let full = File::create("/dev/full").unwrap();
    assert_eq!(code_in_time(command.stdout(full).stderr(Stdio::null()).spawn().unwrap()), Some(2));
    // Also those that end by themselves.
    let mut command = script(&["-n", "2"], "echo one");
    command.stdout(File::create("/dev/full").unwrap());
    let outcome = run(command);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("the output of the ranks could not be written"), "{}", outcome.stderr);
}

#[test]
fn errors_of_ranks_that_cannot_be_written_end_the_command_with_2() {
    let closed = |text: &str| {
        let kiln = without_driver(&[]);
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" 2>&-"]).arg(kiln.get_program());
        shell.args(["launch", "-n", "2", "--", "sh", "-c", text]);
        run(shell)
    };
    assert_eq!(closed("echo wrong >&2").code, Some(2));
    let outcome = closed("echo right");
    assert_eq!((outcome.code, outcome.stdout.lines().count()), (Some(0), 2));
}

#[test]
fn ranks_that_saw_rank_0_end_are_not_started_again() {
    let text = "[ $KILN_RANK = 0 ] && { sleep 1; kill -9 $$; }; echo lost 0 >> $KILN_RANK_ENDS_FILE; exit 3";
    let outcome = run(script(&["-n", "3", "--restart", "2"], text));
    assert_eq!(outcome.code, Some(137), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("rank 0 failed first with signal 9"), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("it is started again"), "{}", outcome.stderr);
    // A rank that fails after rank 0 has failed has no one to meet, either.
    let text = "[ $KILN_RANK = 0 ] && exit 6; sleep 1; exit 3";
    let outcome = run(script(&["-n", "2", "--restart", "2", "--keep-going"], text));
    assert_eq!(outcome.code, Some(6), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("it is started again"), "{}", outcome.stderr);
}

#[test]
fn a_rank_that_had_left_in_order_before_another_one_failed_is_told_with_the_failure() {
    let text = "[ $KILN_RANK = 2 ] && exit 0; sleep 1; echo left 2 >> $KILN_RANK_ENDS_FILE; exit 3";
    let outcome = run(script(&["-n", "3"], text));
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    let words =
        " failed first with exit status 3; rank 2 had left the job before and ended with exit status 0\n";
    assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
}
