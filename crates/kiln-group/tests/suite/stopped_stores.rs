//! Ranks whose rank 0 is stopped, so that the store does not answer: they are told at their deadlines. Each of them is a thread, and rank 0 is a process.

use std::process::Child;
use std::thread;
use std::time::Duration;

use kiln::group::{DeviceCommunicator, GroupError, RendezvousConfig, RendezvousError};

use crate::job_rig::{Plan, config, free_port, join_with, limits, meet_within, signal, stay, try_sum};

/// Ranks that no silence ends.
fn unending(port: u16, rank: u32, timeout: Duration) -> RendezvousConfig {
    let mut config = config(port, rank, 3);
    (config.timeout, config.silence) = (timeout, Duration::from_secs(600));
    config
}

/// Not a test: what rank 0 does.
#[test]
fn stopped_process() {
    let Some(plan) = Plan::of_process() else { return };
    let job = join_with(&unending(plan.port, 0, Duration::from_secs(60)));
    if plan.scene == "meets" {
        let _rank = meet_within(&job, 60_000);
        stay();
    } else {
        job.barrier("ready").unwrap();
        stay();
    }
}

fn start(scene: &str, port: u16) -> Child {
    crate::job_rig::start("stopped_stores::stopped_process", scene, (port, 0, 3))
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_collective_ends_at_its_deadline_while_the_store_does_not_answer() {
    for is_waiting in [false, true] {
        let port = free_port();
        let zero = start("meets", port);
        let (met, meets) = std::sync::mpsc::channel();
        let (go, goes): (Vec<_>, Vec<_>) =
            [1, 2].map(|_| std::sync::mpsc::channel::<()>()).into_iter().unzip();
        let ranks: Vec<_> = [1, 2]
            .into_iter()
            .zip(goes)
            .map(|(rank, goes)| {
                let met = met.clone();
                thread::spawn(move || {
                    let job = join_with(&unending(port, rank, Duration::from_secs(600)));
                    let (_gpu, rank) = meet_within(&job, 1500);
                    met.send(()).unwrap();
                    goes.recv().unwrap();
                    let told = try_sum(&rank).unwrap_err();
                    (told, try_sum(&rank).unwrap_err().to_string())
                })
            })
            .collect();
        (0..2).for_each(|_| meets.recv().unwrap());
        if is_waiting {
            go.iter().for_each(|go| go.send(()).unwrap());
            thread::sleep(Duration::from_millis(300));
            signal("-STOP", &zero);
        } else {
            signal("-STOP", &zero);
            go.iter().for_each(|go| go.send(()).unwrap());
        }
        for rank in ranks {
            let (told, again) = rank.join().unwrap();
            assert!(matches!(&told, GroupError::Collective { .. }), "{told}");
            let text = told.to_string();
            assert!(text.contains("rank 0 of the job, which keeps its store, does not answer"), "{text}");
            assert!(text.contains("is its process stopped?") && text.contains("collective 0"), "{text}");
            assert!(!text.contains("rank 2") && !text.contains("did not come"), "{text}");
            assert!(again.contains("takes no more calls") && again.contains("does not answer"), "{again}");
        }
        end(zero);
    }
}

#[test]
fn a_value_and_a_meeting_say_that_the_store_does_not_answer() {
    let port = free_port();
    let zero = start("waits", port);
    let other = thread::spawn(move || {
        let job = join_with(&unending(port, 2, Duration::from_secs(20)));
        job.barrier("ready").unwrap();
        job
    });
    let job = join_with(&unending(port, 1, Duration::from_secs(2)));
    job.barrier("ready").unwrap();
    let _other = other.join().unwrap();
    signal("-STOP", &zero);
    let told = job.get("never").unwrap_err();
    let words = "it does not answer (is its process stopped?)";
    assert!(matches!(&told, RendezvousError::StoreLost { cause } if cause == words), "{told}");
    let gpu = kiln::DeviceRuntime::simulated(1).unwrap();
    let told = DeviceCommunicator::meet(&gpu, &job, &limits()).unwrap_err().to_string();
    assert!(told.contains(words) && told.contains("rank 0") && !told.contains("kiln/"), "{told}");
    end(zero);
}
