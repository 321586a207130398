//! A program that was stopped for a while, with its worker, goes on with the same one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod rig;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kiln_isolate::{IsolatedDevice, News};
use rig::Scene;
use rustix::process::{Pid, Signal, kill_process};

/// Set for the client.
const CLIENT: &str = "KILN_TEST_STOPPED";
/// How long work may take to get on.
const WATCHDOG: Duration = Duration::from_millis(1000);

#[test]
fn worker() {
    rig::worker();
}

/// A client that works until its input ends, and then says how many workers it had.
#[test]
fn client() {
    if std::env::var_os(CLIENT).is_none() {
        return;
    }
    let config = rig::paced(rig::config(), 50).watchdog(WATCHDOG).observe(|news| {
        let line = match news {
            News::Started { process, .. } => format!("worker {process}"),
            News::Lost { cause } => format!("lost {cause}"),
            _ => return,
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}").unwrap();
        out.flush().unwrap();
    });
    let device = IsolatedDevice::open(config).unwrap();
    let input = std::thread::spawn(|| std::io::stdin().lines().count());
    let scene = Scene::build(&device);
    while !input.is_finished() {
        scene.play(&device, 6);
    }
    assert!(device.cause().is_none());
}

/// Ended with the test, however that ends.
struct Client(Child);

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn who_was_stopped_does_not_take_the_worker_for_one_that_hangs() {
    let mut client = Command::new(std::env::current_exe().unwrap())
        .args(["client", "--exact", "--nocapture"])
        .env(CLIENT, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map(Client)
        .unwrap();
    let client = &mut client.0;
    let mut said = BufReader::new(client.stdout.take().unwrap()).lines().map_while(Result::ok);
    let started = said.find_map(|line| Some(line.split_once("worker ")?.1.trim().to_owned()));
    let pid = |number: &str| Pid::from_raw(number.parse().unwrap()).unwrap();
    let processes = [pid(&client.id().to_string()), pid(&started.unwrap())];
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
