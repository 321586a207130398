//! `kiln doctor --cluster`: each problem that keeps a rank from the others is told in one sentence that ends with what to do next, and apart from it under `--json`.

#![cfg(target_os = "linux")]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use crate::outcome::{run, without_driver};

type Variables<'v> = &'v [(&'v str, &'v str)];

/// The command by hand, with these variables and no others of a launcher.
fn by_hand(variables: Variables<'_>, seconds: &str) -> Command {
    let mut command = without_driver(&["doctor", "--cluster", "--time-limit", seconds]);
    command.envs(variables.iter().copied());
    command
}

/// Refused with this code: what is wrong, and what to do next.
fn told(variables: Variables<'_>, code: i32) -> (String, String) {
    told_within("3", variables, code)
}

/// The same for a rank that has so many seconds.
fn told_within(seconds: &str, variables: Variables<'_>, code: i32) -> (String, String) {
    let text = run(by_hand(variables, seconds));
    assert_eq!((text.code, text.stdout.as_str()), (Some(code), ""), "{}", text.stderr);
    let mut json = by_hand(variables, seconds);
    json.arg("--json");
    let json = run(json);
    assert_eq!(json.code, Some(code), "{}{}", json.stdout, json.stderr);
    let error = &json.json()["error"];
    let word = |name: &str| error[name].as_str().unwrap_or_else(|| panic!("no {name}: {error}")).to_owned();
    let (what, next) = (word("message"), word("next_step"));
    // Two runs wait for slightly different times.
    let plain = |text: &str| text.replace(|letter: char| letter.is_ascii_digit(), "");
    assert!(plain(text.stderr.trim_end()).ends_with(&plain(&format!("{what}; {next}"))), "{}", text.stderr);
    (what, next)
}

/// Rank 1 of 2 that meet at this port.
fn rank_one(point: &str) -> [(&str, &str); 3] {
    [("KILN_RANK", "1"), ("KILN_WORLD_SIZE", "2"), ("KILN_MEETING_POINT", point)]
}

fn rank_zero(point: &str) -> [(&str, &str); 3] {
    [("KILN_RANK", "0"), ("KILN_WORLD_SIZE", "2"), ("KILN_MEETING_POINT", point)]
}

const OTHER_PORT: &str = "choose another port with KILN_MEETING_POINT, for all ranks";

#[test]
fn wrong_variables_end_with_what_to_set() {
    for (variables, what, next) in [
        (
            &[("KILN_RANK", "0")][..],
            "KILN_RANK is set, as `kiln launch` does, and KILN_WORLD_SIZE is not",
            "start every rank by the launcher, or set it by hand",
        ),
        (
            &[("KILN_RANK", "2"), ("KILN_WORLD_SIZE", "2")],
            "KILN_RANK is 2 and KILN_WORLD_SIZE is 2",
            "ranks are counted from 0 and are below the number of ranks: correct one of the two",
        ),
        (
            &[("KILN_RANK", "0"), ("KILN_WORLD_SIZE", "2.0")],
            "KILN_WORLD_SIZE is `2.0`, which is no whole number from 0 to 4294967295",
            "correct it",
        ),
        (
            &[("KILN_RANK", "0"), ("KILN_WORLD_SIZE", "70000"), ("KILN_MEETING_POINT", "127.0.0.1:29500")],
            "a job of 70000 ranks, where there can be 65536",
            "correct the number of ranks that the launcher or KILN_WORLD_SIZE gives",
        ),
        (
            &[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")],
            "the launcher does not say where the ranks meet",
            "set KILN_MEETING_POINT to HOST:PORT, the host of rank 0 and a free port, for all ranks",
        ),
        (
            &rank_zero("0.0.0.0:29500"),
            "ranks meet at 0.0.0.0, which other hosts can reach, without a token",
            "set KILN_JOB_TOKEN to the same random text for all ranks of the job",
        ),
    ] {
        assert_eq!(told(variables, 2), (what.to_owned(), next.to_owned()));
    }
    let (what, next) = told(&rank_one("no-such-host.invalid:29500"), 2);
    assert!(
        what.starts_with("the host `no-such-host.invalid` where the ranks meet is not known here: "),
        "{what}"
    );
    assert_eq!(next, "give an address instead");
    let (what, next) = told(&[], 2);
    assert!(what.starts_with("no launcher has started this process"), "{what}");
    assert!(
        next.starts_with("start it on every rank, such as `kiln launch -n 4 -- kiln doctor --cluster`"),
        "{next}"
    );
}

#[test]
fn a_port_that_another_program_has_ends_with_another_port() {
    let owner = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = owner.local_addr().unwrap();
    let (point, port) = (address.to_string(), address.port());
    let (what, next) = told(&rank_zero(&point), 3);
    assert_eq!(what, format!("rank 0 cannot listen: port {port} of 127.0.0.1 is in use"));
    assert_eq!(next, format!("start one process as rank 0, or {OTHER_PORT}"));
    // Its connections are taken by the system, and it never answers.
    let (what, next) = told(&rank_one(&point), 5);
    let begins = format!("what listens at 127.0.0.1:{port} takes connections and has said nothing for ");
    assert!(what.starts_with(&begins), "{what}");
    assert!(next.starts_with("if another program has the port, choose another one"), "{next}");
    std::thread::spawn(move || {
        for stream in owner.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let (what, next) = told(&rank_one(&point), 5);
    assert_eq!(what, format!("what answers at {point} is no rendezvous of kiln"));
    assert_eq!(next, OTHER_PORT);
}

#[test]
fn ranks_that_do_not_come_end_with_what_to_look_at() {
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let (what, next) = told(&rank_zero(&free()), 5);
    assert!(what.starts_with("1 of 2 ranks did not join within ") && what.ends_with(" s: 1"), "{what}");
    assert!(next.starts_with("look at what they print: a rank is missing if it was not started,"), "{next}");
    let point = free();
    let (what, next) = told(&rank_one(&point), 5);
    assert!(what.starts_with(&format!("rank 0 does not answer at {point} within ")), "{what}");
    assert_eq!(next, "start it, and see that this host reaches 127.0.0.1");
}

#[test]
fn ranks_of_different_jobs_end_with_what_to_make_equal() {
    let point = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut zero = by_hand(&rank_zero(&point), "100");
    let zero =
        zero.env("KILN_JOB_TOKEN", "one").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let with = |rank: &'static str, size: &'static str, token: &'static str| {
        [
            ("KILN_RANK", rank),
            ("KILN_WORLD_SIZE", size),
            ("KILN_MEETING_POINT", &*point),
            ("KILN_JOB_TOKEN", token),
        ]
    };
    // Rank 0 may need a while to listen.
    let patient = |variables: Variables<'_>| {
        let outcome = run(by_hand(variables, "60"));
        (outcome.code, outcome.stderr)
    };
    let (code, stderr) = patient(&with("1", "2", "other"));
    assert_eq!(code, Some(5), "{stderr}");
    let words = format!(
        "rank 0 at {point} has another token; set KILN_JOB_TOKEN to the same text for all ranks of the job\n"
    );
    assert!(stderr.ends_with(&words), "{stderr}");
    let (what, next) = told_within("60", &with("1", "3", "one"), 5);
    assert_eq!(what, "rank 1 was started as one of 3 ranks and rank 0 as one of 2");
    assert_eq!(next, "start all ranks with the same number (KILN_WORLD_SIZE, or what their launcher sets)");
    let (code, stderr) = patient(&with("1", "2", "one"));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(zero.wait_with_output().unwrap().status.success());
}
