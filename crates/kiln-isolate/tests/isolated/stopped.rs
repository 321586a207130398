//! A program that was stopped together with its worker keeps that worker; a worker that is stopped ends with its client.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::rig::{self, Scene};
use kiln_isolate::{IsolatedDevice, WorkerEvent};
use rustix::process::{Pid, Signal, kill_process};

/// Set for the client.
const CLIENT: &str = "KILN_TEST_STOPPED";
/// Its value if the client has a child that inherits all descriptors.
const HOLDS: &str = "holds";
/// How long that child lives.
const HELD: Duration = Duration::from_secs(10);
/// The limit of the watchdog.
const WATCHDOG: Duration = Duration::from_millis(1000);

/// A client that works until its input ends, and then says how many workers it had.
#[test]
#[ignore = "helper process"]
fn client() {
    if std::env::var_os(CLIENT).is_none() {
        return;
    }
    let config = rig::paced(rig::config(), 50).watchdog(WATCHDOG).observe(|news| {
        let line = match news {
            WorkerEvent::Started { process, .. } => format!("worker {process}"),
            WorkerEvent::Lost { cause } => format!("lost {cause}"),
            _ => return,
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}").unwrap();
        out.flush().unwrap();
    });
    let device = IsolatedDevice::open(config).unwrap();
    if std::env::var_os(CLIENT).is_some_and(|how| how == HOLDS) {
        std::thread::spawn(hold);
    }
    let input = std::thread::spawn(|| std::io::stdin().lines().count());
    let scene = Scene::build(&device);
    while !input.is_finished() {
        scene.play(&device, 6);
    }
    assert!(device.cause().is_none());
}

/// Starts a child that never becomes another program, so that all that is open here stays open there.
fn hold() {
    let mut child = Command::new("true");
    // SAFETY: between fork and exec it writes and sleeps, which a copy of one thread of a process may do.
    let _ = unsafe {
        child.pre_exec(|| {
            rustix::io::write(rustix::stdio::stdout(), b"held\n")?;
            std::thread::sleep(HELD);
            Ok(())
        })
    }
    .status();
}

/// Ended with the test, however that ends.
struct Client(Child);

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A client, what it says from then on, and the process of its worker.
fn start(how: &str) -> (Client, impl Iterator<Item = String>, Pid) {
    let mut client = rig::helper("stopped::client")
        .env(CLIENT, how)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map(Client)
        .unwrap();
    let mut said = BufReader::new(client.0.stdout.take().unwrap()).lines().map_while(Result::ok);
    let started = said.find_map(|line| Some(line.split_once("worker ")?.1.trim().to_owned()));
    (client, said, Pid::from_raw(started.unwrap().parse().unwrap()).unwrap())
}

/// If another process holds the client's end of the socket, the worker does not see it close, and a stopped worker sees nothing: the system kills both.
#[test]
fn a_worker_that_cannot_see_its_client_end_ends_with_it() {
    for (holds, stops) in [(true, false), (false, true), (true, true)] {
        let (mut client, mut said, worker) = start(if holds { HOLDS } else { "1" });
        assert!(!holds || said.any(|line| line.contains("held")));
        let stat = || std::fs::read_to_string(format!("/proc/{}/stat", worker.as_raw_nonzero()));
        // The state stands behind the name, which is in parentheses.
        let state = || stat().ok()?.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        let is = |wanted: fn(Option<char>) -> bool| {
            let limit = Instant::now() + HELD / 2;
            while !wanted(state()) && Instant::now() < limit {
                std::thread::sleep(Duration::from_millis(5));
            }
            wanted(state())
        };
        if stops {
            kill_process(worker, Signal::STOP).unwrap();
            assert!(is(|state| state == Some('T')), "it does not stop");
        }
        client.0.kill().unwrap();
        client.0.wait().unwrap();
        let ended = is(|state| matches!(state, None | Some('Z' | 'X')));
        let _ = kill_process(worker, Signal::KILL);
        assert!(ended, "worker {worker:?} outlived its client; held {holds}, stopped {stops}");
    }
}

#[test]
fn a_client_that_was_stopped_does_not_treat_its_worker_as_hung() {
    let (mut client, said, worker) = start("1");
    let client = &mut client.0;
    let processes = [Pid::from_raw(client.id().cast_signed()).unwrap(), worker];
    for _ in 0..2 {
        // It builds its scene, and then always has something under way.
        std::thread::sleep(WATCHDOG / 2);
        processes.iter().for_each(|process| {
            let _ = kill_process(*process, Signal::STOP);
        });
        std::thread::sleep(2 * WATCHDOG);
        processes.iter().rev().for_each(|process| {
            let _ = kill_process(*process, Signal::CONT);
        });
    }
    std::thread::sleep(WATCHDOG / 2);
    drop(client.stdin.take());
    let rest: Vec<String> = said.filter(|line| line.contains("lost ") || line.contains("panicked")).collect();
    assert!(client.wait().unwrap().success() && rest.is_empty(), "{rest:?}");
}
