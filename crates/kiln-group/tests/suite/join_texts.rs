//! What a process is told that cannot join its job, word for word: other numbers of ranks, half of the variables, and a port that another program has.

#![allow(clippy::print_stdout, reason = "a rank tells the test what it saw")]

use std::net::TcpListener;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use kiln::group::{Rendezvous, RendezvousError};

use crate::job_rig::{free_port, helper, patient, said, told_in};

const POINT: &str = "KILN_MEETING_POINT";

/// Joins as its variables say.
#[test]
#[ignore = "helper process"]
fn joining_process() {
    match Rendezvous::from_process() {
        Ok(Some(job)) => println!("told: rank {} of {} has joined", job.rank(), job.size()),
        Ok(None) => println!("told: no launcher"),
        Err(error) => println!("told: {error}"),
    }
}

/// What a process is told that joins with these variables alone.
fn told(variables: &[(&str, &str)]) -> String {
    let mut child = helper("join_texts::joining_process");
    child.env_clear().envs(variables.iter().copied());
    let said = said(child.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap());
    told_in(&said)[0].clone()
}

#[test]
fn another_number_of_ranks_in_the_variables_is_told_with_both_numbers() {
    let port = free_port();
    let zero = thread::spawn(move || Rendezvous::join(&patient(port, 0, 2)).unwrap());
    let point = format!("127.0.0.1:{port}");
    let as_one_of = |size| told(&[("KILN_RANK", "1"), ("KILN_WORLD_SIZE", size), (POINT, &point)]);
    assert_eq!(
        as_one_of("3"),
        "rank 1 was started as one of 3 ranks and rank 0 as one of 2; start all ranks with the same number (KILN_WORLD_SIZE, or what their launcher sets)"
    );
    assert_eq!(as_one_of("2"), "rank 1 of 2 has joined");
    zero.join().unwrap();
}

#[test]
fn variables_of_a_launcher_that_are_wrong_or_half_set_are_told_with_what_to_do() {
    let with = |size: &str| told(&[("KILN_RANK", "2"), ("KILN_WORLD_SIZE", size)]);
    assert_eq!(
        with("two"),
        "KILN_WORLD_SIZE is `two`, which is no whole number from 0 to 4294967295; correct it"
    );
    for size in ["0", "2"] {
        assert_eq!(
            with(size),
            format!(
                "KILN_RANK is 2 and KILN_WORLD_SIZE is {size}; ranks are counted from 0 and are below the number of ranks: correct one of the two"
            )
        );
    }
    assert_eq!(
        with("5000000"),
        "the launcher does not say where the ranks meet; set KILN_MEETING_POINT to HOST:PORT, the host of rank 0 and a free port, for all ranks"
    );
    let many = [("KILN_RANK", "2"), ("KILN_WORLD_SIZE", "5000000"), (POINT, "127.0.0.1:29500")];
    assert_eq!(
        told(&many),
        "a job of 5000000 ranks, where there can be 65536; correct the number of ranks that the launcher or KILN_WORLD_SIZE gives"
    );
    for (set, missing, by) in [
        (("KILN_WORLD_SIZE", "2"), "KILN_RANK", "as `kiln launch` does"),
        (("KILN_RANK", "0"), "KILN_WORLD_SIZE", "as `kiln launch` does"),
        (("RANK", "0"), "WORLD_SIZE", "as by torchrun"),
        (("PMI_SIZE", "2"), "PMI_RANK", "as by MPICH"),
    ] {
        assert_eq!(
            told(&[set]),
            format!(
                "{} is set, {by}, and {missing} is not; start every rank by the launcher, or set it by hand",
                set.0
            )
        );
    }
    let half = [("KILN_RANK", "0"), ("KILN_WORLD_SIZE", "2"), ("MASTER_ADDR", "node0")];
    assert_eq!(told(&half), "MASTER_ADDR is set and MASTER_PORT is not; set both or neither");
    assert_eq!(told(&[]), "no launcher");
}

#[test]
fn a_port_in_use_is_told_with_another_way() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = Rendezvous::join(&patient(port, 0, 2)).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "rank 0 cannot listen: port {port} of 127.0.0.1 is in use; start one process as rank 0, or choose another port with KILN_MEETING_POINT, for all ranks"
        )
    );
}

#[test]
fn an_owner_of_the_port_that_accepts_and_never_answers_is_not_taken_for_an_absent_rank() {
    let owner = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = owner.local_addr().unwrap().port();
    thread::spawn(move || {
        // It keeps what it accepts.
        let _held: Vec<_> = owner.incoming().collect();
    });
    let mut config = patient(port, 1, 2);
    config.timeout = Duration::from_secs(3);
    let error = Rendezvous::join(&config).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, RendezvousError::Silent { port: told, .. } if told == port), "{text}");
    let what = format!("what listens at 127.0.0.1:{port} takes connections and has said nothing for ");
    let next = " s; if another program has the port, choose another one with KILN_MEETING_POINT, for all ranks; if it is rank 0, see whether its process is stopped";
    assert!(text.starts_with(&what) && text.ends_with(next), "{text}");
}
