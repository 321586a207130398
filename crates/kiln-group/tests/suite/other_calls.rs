//! Ranks that call an exchange where others call a barrier, or one of another name: both are told of both calls, with their lines.

#![allow(clippy::print_stdout, reason = "a rank tells the test what it saw")]

use std::panic::Location;
use std::process::Child;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use kiln::DeviceRuntime;
use kiln::group::{DeviceCommunicator, Rendezvous, RendezvousError};

use crate::job_rig::{Plan, config, free_port, join, limits, said, told_in};

fn start(scene: &str, place: (u16, u32, u32)) -> Child {
    crate::job_rig::start("other_calls::other_process", scene, place)
}

/// One of the two calls, as a word says, and what it answers.
#[track_caller]
fn call(job: &Rendezvous, kind: &str, name: &str) -> Result<(), RendezvousError> {
    match kind {
        "exchange" => job.exchange(name, b"x").map(drop),
        _ => job.barrier(name),
    }
}

/// That an error names two ranks with their calls and lines of this file.
fn names(told: &str, calls: [(u32, &str, u32); 2]) {
    let [one, other] = calls.map(|(rank, call, line)| {
        let called = format!("{call} at {}:{line}:", Location::caller().file());
        (format!("rank {rank} called {called}"), format!("rank {rank} {called}"))
    });
    let is_told = |first: &(String, String), second: &(String, String)| {
        told.split_once(&first.0).is_some_and(|(_, behind)| behind.contains(&second.1))
    };
    assert!(is_told(&one, &other) || is_told(&other, &one), "{told}");
}

/// Not a test: what another process does.
#[test]
fn other_process() {
    let Some(plan) = Plan::of_process() else { return };
    let job = plan.join();
    println!("told: {}", call(&job, &plan.scene, "a").unwrap_err());
    println!("line {}", line!() - 1);
    if plan.rank != 0 {
        job.barrier("end").unwrap();
    }
}

#[test]
fn an_exchange_and_a_barrier_of_one_name_do_not_meet_between_threads() {
    for kinds in [["exchange", "barrier"], ["barrier", "exchange"]] {
        let port = free_port();
        let began = Instant::now();
        let ranks = [0, 1].map(|rank| {
            thread::spawn(move || {
                let job = join(port, rank, 2);
                let line = line!() + 1;
                let told = call(&job, kinds[rank as usize], "a").unwrap_err();
                let own = rank;
                assert!(
                    matches!(&told, RendezvousError::OtherCall { rank, waited: None, .. } if *rank == own),
                    "{told}"
                );
                let told = told.to_string();
                // The job goes on.
                let values = job.exchange("next", &[rank as u8]).unwrap();
                (told, line, values)
            })
        });
        let ranks = ranks.map(|rank| rank.join().unwrap());
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        for (told, line, values) in &ranks {
            let calls = [0, 1].map(|rank| (rank, format!("{} `a`", kinds[rank as usize])));
            names(told, [0, 1].map(|rank: usize| (calls[rank].0, &*calls[rank].1, *line)));
            assert_eq!(values[..], [Some(vec![0]), Some(vec![1])]);
        }
    }
}

#[test]
fn an_exchange_and_a_barrier_of_one_name_do_not_meet_between_processes() {
    for (own, kinds) in
        [(0, ["exchange", "barrier"]), (1, ["exchange", "barrier"]), (1, ["barrier", "exchange"])]
    {
        let port = free_port();
        let began = Instant::now();
        let other = start(kinds[1 - own as usize], (port, 1 - own, 2));
        let job = join(port, own, 2);
        let line = line!() + 1;
        let told = call(&job, kinds[own as usize], "a").unwrap_err().to_string();
        if own == 0 {
            job.barrier("end").unwrap();
        }
        let said = said(other);
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        let other_line =
            said.lines().find_map(|line| line.split_once("line ")?.1.parse::<u32>().ok()).unwrap();
        let lines = if own == 0 { [line, other_line] } else { [other_line, line] };
        for told in [told, told_in(&said).remove(0)] {
            let calls = kinds.map(|kind| format!("{kind} `a`"));
            names(&told, [0, 1].map(|rank: usize| (rank as u32, &*calls[rank], lines[rank])));
        }
    }
}

#[test]
fn a_rank_that_comes_when_the_store_has_gone_because_of_such_calls_is_told_of_them() {
    let port = free_port();
    let start = |rank: u32, kind: &'static str| {
        thread::spawn(move || {
            let job = join(port, rank, 3);
            job.barrier("ready").unwrap();
            let line = line!() + 1;
            let told = call(&job, kind, "a").unwrap_err().to_string();
            (told, line)
        })
    };
    let others = [start(0, "exchange"), start(1, "barrier")];
    let job = join(port, 2, 3);
    job.barrier("ready").unwrap();
    let [(_, line), (_, other_line)] = others.map(|other| other.join().unwrap());
    let told = job.exchange("a", b"2").unwrap_err().to_string();
    names(&told, [(0, "exchange `a`", line), (1, "barrier `a`", other_line)]);
}

#[test]
fn ranks_that_wait_for_each_other_in_calls_of_two_names_are_told_of_both() {
    let port = free_port();
    let start = |rank: u32, kind: &'static str, name: &'static str| {
        thread::spawn(move || {
            let mut config = config(port, rank, 2);
            config.timeout = Duration::from_millis(1200);
            let job = Arc::new(Rendezvous::join(&config).unwrap());
            let line = line!() + 1;
            let told = call(&job, kind, name).unwrap_err().to_string();
            // The other one is still there to say where it waits.
            thread::sleep(Duration::from_millis(800));
            (told, line)
        })
    };
    let ranks = [start(0, "exchange", "alpha"), start(1, "barrier", "beta")];
    for (told, line) in ranks.map(|rank| rank.join().unwrap()) {
        names(&told, [(0, "exchange `alpha`", line), (1, "barrier `beta`", line)]);
        assert!(told.contains("within 1.2 s"), "{told}");
    }
}

#[test]
fn a_rank_that_meets_and_one_that_waits_in_a_barrier_are_told_of_each_other() {
    let port = free_port();
    let mut config_of = [0, 1].map(|rank| config(port, rank, 2));
    config_of.iter_mut().for_each(|config| config.timeout = Duration::from_millis(1500));
    let [zero, one] = config_of;
    let one = thread::spawn(move || {
        let job = Arc::new(Rendezvous::join(&one).unwrap());
        let gpu = DeviceRuntime::simulated(1).unwrap();
        let line = line!() + 1;
        let told = DeviceCommunicator::meet(&gpu, &job, &limits()).unwrap_err().to_string();
        thread::sleep(Duration::from_millis(800));
        (told, line)
    });
    let job = Rendezvous::join(&zero).unwrap();
    let line = line!() + 1;
    let told = job.barrier("end").unwrap_err().to_string();
    thread::sleep(Duration::from_millis(800));
    let (other_told, other_line) = one.join().unwrap();
    for told in [told, other_told] {
        names(&told, [(0, "barrier `end`", line), (1, "`DeviceCommunicator::meet` number 0", other_line)]);
    }
}

#[test]
fn what_a_program_puts_is_no_part_of_an_exchange() {
    let port = free_port();
    let ranks = [0, 1].map(|rank| {
        thread::spawn(move || {
            let job = join(port, rank, 2);
            job.put("a/0", b"of the program").unwrap();
            job.put("a/1", b"of the program").unwrap();
            job.barrier("put").unwrap();
            if rank == 1 {
                thread::sleep(Duration::from_millis(200));
            }
            let values = job.exchange("a", &[rank as u8]).unwrap();
            assert_eq!(values, [Some(vec![0]), Some(vec![1])]);
            assert_eq!(job.get("a/0").unwrap(), b"of the program");
            job.barrier("end").unwrap();
        })
    });
    ranks.into_iter().for_each(|rank| rank.join().unwrap());
}
