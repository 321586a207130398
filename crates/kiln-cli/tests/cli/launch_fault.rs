//! `kiln launch --fault`: what goes wrong on the simulated devices of ranks is planned. The program of the ranks is this test itself.

#![cfg(target_os = "linux")]

use std::sync::Arc;

use kiln::DeviceRuntime;
use kiln::group::{CommunicatorRankLost, DeviceCommunicator, GroupError, Reduction, Rendezvous};

use crate::outcome::{Outcome, command, run};

/// Says that this process is a rank.
const RANK: &str = "KILN_TEST_PLANNED_RANK";
/// More than any plan here needs.
const ROUNDS: u32 = 400;
/// Adds one to a number.
const ADD_ONE: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry add_one(.param .u64 to) {
    .reg .u64 %rd1;
    .reg .u32 %r1;
    ld.param.u64 %rd1, [to];
    ld.global.u32 %r1, [%rd1];
    add.u32 %r1, %r1, 1;
    st.global.u32 [%rd1], %r1;
    ret;
}";

/// Rounds of a kernel and a sum of all ranks, until something goes wrong.
fn rounds(rank: &DeviceCommunicator) -> Result<(), GroupError> {
    let (me, gpu) = (rank.rank(), rank.runtime());
    let own = |source| GroupError::Rank { rank: me, source };
    for round in 0..ROUNDS {
        let number = gpu.upload(&[round]).map_err(own)?;
        let kernel = gpu.kernel(ADD_ONE, "add_one").map_err(own)?;
        // SAFETY: it reads and writes the one element of the buffer, and ends.
        unsafe { gpu.launch(&kernel).grid(1).block(1).read_write(&number).submit() }.map_err(own)?;
        rank.all_reduce_in_place(&number, Reduction::Sum).submit()?;
        assert_eq!(number.download().map_err(own)?, [(round + 1) * rank.size()]);
    }
    Ok(())
}

/// What a rank does: it says which rank it was told of, or what its own device answered.
#[test]
fn rank_program() {
    if std::env::var_os(RANK).is_none() {
        return;
    }
    let job = Arc::new(Rendezvous::from_process().unwrap().unwrap());
    let gpu = DeviceRuntime::auto().unwrap();
    let rank = match DeviceCommunicator::meet(gpu, &job, &Default::default()) {
        Ok(rank) => rank,
        Err(error) => {
            println!("own device: {error}");
            std::process::exit(7);
        }
    };
    let begun = rank.barrier().submit().map(drop);
    let Err(error) = begun.and_then(|()| rounds(&rank)) else {
        println!("nothing went wrong");
        return;
    };
    let of_ticket = error.device_error().and_then(|error| error.downcast_ref::<CommunicatorRankLost>());
    let lost = error.lost_rank().or(of_ticket);
    if let Some(CommunicatorRankLost { lost, cause, .. }) = lost.filter(|lost| lost.lost != rank.rank()) {
        println!("rank {lost} is lost: {cause}");
        return;
    }
    println!("own device: {error}");
    // Rank 0 keeps what the others are told by.
    std::thread::sleep(std::time::Duration::from_secs(1));
    std::process::exit(7);
}

fn planned(plan: &str) -> Outcome {
    let program = std::env::current_exe().unwrap();
    let words = ["launch", "-n", "3", "--check", "--time-limit", "300", "--fault", plan, "--"];
    let test = [program.to_str().unwrap(), "--exact", "launch_fault::rank_program", "--nocapture"];
    let mut launch = command(&[&words[..], &test].concat());
    launch.env(RANK, "1");
    run(launch)
}

fn has_line(outcome: &Outcome, rank: u32, begin: &str) -> bool {
    let begin = format!("[{rank}] {begin}");
    // The name of the test may stand in the same line.
    outcome
        .stdout
        .lines()
        .any(|line| line.replace("test launch_fault::rank_program ... ", "").starts_with(&begin))
}

#[test]
fn the_device_of_the_rank_that_a_plan_names_is_lost_and_the_others_are_told() {
    for (plan, rank, told) in [
        ("1:lost@150", 1, "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("2:fault@9=CUDA_ERROR_LAUNCH_FAILED", 2, "CUDA_ERROR_LAUNCH_FAILED"),
        ("fault@5", 0, "as planned for launch 5"),
    ] {
        let outcome = planned(plan);
        let all = format!("{plan}: {}{}", outcome.stdout, outcome.stderr);
        assert_eq!(outcome.code, Some(7), "{all}");
        let own = format!("[{rank}] own device: ");
        let own = outcome.stdout.lines().find(|line| line.contains(&own[4..])).unwrap_or_default();
        assert!(own.starts_with(&format!("[{rank}] ")) && own.contains(told), "{all}");
        for other in (0..3).filter(|other| *other != rank) {
            assert!(has_line(&outcome, other, &format!("rank {rank} is lost: ")), "{all}");
        }
        // The fifth launch is one of those that a collective between processes is made of.
        let line = concat!(", launched at ", file!(), ":");
        assert!(plan != "fault@5" || all.matches(line).count() == 2, "{all}");
        assert!(!all.contains("kiln-group/src"), "a line of kiln is told: {all}");
        assert!(outcome.stderr.contains(&format!("rank {rank} failed first with exit status 7")), "{all}");
        assert!(!outcome.stderr.contains(" found: "), "what was planned is no finding: {all}");
        assert!(!outcome.stderr.contains("did not come"), "it came: {all}");
    }
}

#[test]
fn a_fault_that_loses_no_device_is_told_by_the_rank_that_has_it() {
    // The first images are those that a communicator is made of.
    for plan in ["2:load@1", "2:load@2"] {
        let outcome = planned(plan);
        let all = format!("{plan}: {}{}", outcome.stdout, outcome.stderr);
        assert_eq!(outcome.code, Some(7), "{all}");
        let own = "own device: rank 2: ";
        assert!(has_line(&outcome, 2, own) && all.contains("the fault plan lets this image fail"), "{all}");
    }
    let slow = planned("0:oom@100000,1:slow-copies@8,0:oom@100001,0:slow-copies@2,1:lost@9s=719");
    assert_eq!(slow.code, Some(0), "{}{}", slow.stdout, slow.stderr);
    let left = "kiln launch: planned, and did not come: 0:oom@100000,0:oom@100001,1:lost@9s=719\n";
    assert!(slow.stderr.contains(left), "{}", slow.stderr);
    assert!((0..3).all(|rank| has_line(&slow, rank, "nothing went wrong")), "{}", slow.stdout);
}

#[test]
fn each_rank_has_its_own_faults_and_one_that_is_started_again_has_none() {
    let text =
        "echo \"faults:$KILN_SIM_FAULTS\"; [ $KILN_RANK = 1 ] && [ $KILN_RESTARTS = 0 ] && exit 3; exit 0";
    let words = ["launch", "-n", "3", "--check", "--restart", "1", "--fault", "1:oom@3 2:hang@4,1:lost@5ms"];
    let mut launch = command(&[&words[..], &["--", "sh", "-c", text]].concat());
    // A plan of the user's shell is not that of every rank.
    launch.env("KILN_SIM_FAULTS", "oom@1");
    let outcome = run(launch);
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    let of = |rank: u32| {
        let begin = format!("[{rank}] faults:");
        let lines = outcome.stdout.lines().filter_map(|line| line.strip_prefix(&begin));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        (of(0), of(1), of(2)),
        (vec!["".into()], vec!["oom@3,lost@5ms".into(), "".into()], vec!["hang@4".into()])
    );
}

#[test]
fn a_plan_that_is_wrong_ends_with_2_before_any_rank_starts() {
    for (flags, told, next) in [
        (&["--check", "--fault", "1:flood@1"][..], "there is no `flood`", "write faults as oom@N"),
        (&["--check", "--fault", "1:oom"], "it says not when, with an @", "that ordinal is the rank"),
        (&["--check", "--fault", "oom@1,,1:hang@1"], "`` is no fault", "with commas or blanks between them"),
        (
            &["--check", "--fault", "2:oom@1"],
            "`2:oom@1` is about rank 2, and the job has 2 ranks",
            "name a rank from 0 to 1",
        ),
        (
            &["--check", "--fault", "1:cut-0@3"],
            "link between two devices of one machine",
            "MachineConfig::faults",
        ),
        (&["--fault", "1:oom@1"], "--check", "--check"),
    ] {
        let words = [&["launch", "-n", "2"], flags, &["--", "echo", "started"]].concat();
        let outcome = run(command(&words));
        assert_eq!(outcome.code, Some(2), "{flags:?}: {}", outcome.stderr);
        // Help breaks lines.
        let said = outcome.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(told) && said.contains(next), "{flags:?}: {said}");
        assert_eq!(outcome.stdout, "", "{flags:?}");
    }
}
