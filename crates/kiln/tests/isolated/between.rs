//! The time between the takeover and the decision: the driver has another worker, to which the events of the lost one look as if they
//! were done, and no caller may be told that they are.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use kiln::recovery::Phase;
use kiln::recovery::{Process, Replay};
use kiln::{DeviceRuntime, GpuRef, Ticket};

use crate::{replay_kernels, rig};

/// A takeover that has come as far as filling a lost block again, and stays there.
struct Between {
    /// Dropped first, since the runtime waits for who waits for it.
    go_on: Sender<()>,
    gpu: DeviceRuntime,
    /// Done before the loss.
    done: Ticket,
    /// Was running for ever when the worker was killed.
    lost: Ticket,
    victim: GpuRef<u32>,
}

impl Between {
    fn stop_at(seed: u64, replay: Replay) -> Self {
        // On a slow machine the kernel below may not have started when the worker is killed, and be done again until it is found to hang.
        let watchdog = Some(Duration::from_secs(2));
        let gpu = rig::open(seed, Process { replay, watchdog, ..rig::process() });
        let victim = gpu.upload(&[1_u32]).unwrap();
        let done = victim.fill(2).unwrap();
        gpu.synchronize().unwrap();
        let (arrived, arrival) = channel();
        let (go_on, release): (_, Receiver<()>) = channel();
        let release = std::sync::Mutex::new(release);
        victim
            .heal_by(move || {
                arrived.send(()).unwrap();
                // An error says that the test is over, which is as good.
                let _ = release.lock().unwrap().recv();
                vec![9]
            })
            .unwrap();
        let endless = gpu.kernel(replay_kernels::PTX, "endless").unwrap();
        // SAFETY: it writes one element, for ever.
        let lost = unsafe { gpu.launch(&endless).grid(1).block(1).write(&victim).submit() }.unwrap();
        // Long enough for the worker to get there; one that is not there is killed with it in its queue.
        assert!(!lost.wait_within(Duration::from_millis(300)).unwrap());
        gpu.isolated_device().unwrap().kill_worker();
        arrival.recv_timeout(Duration::from_secs(60)).unwrap();
        Self { go_on, gpu, done, lost, victim }
    }

    /// Every caller that can ask: a poll, a wait that ends, a callback, a thread that waits and a future.
    fn ask(&self) -> Vec<Option<bool>> {
        let limit = Duration::from_millis(20);
        let callback = Arc::new(std::sync::Mutex::new(None));
        let told = callback.clone();
        self.lost.on_done(move |answer| *told.lock().unwrap() = Some(answer.is_ok()));
        let executor = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let future = executor.block_on(async { tokio::time::timeout(limit, self.lost.clone()).await });
        let told = *callback.lock().unwrap();
        vec![
            settled(self.lost.is_done()),
            settled(self.lost.wait_within(limit)),
            settled(Ticket::wait_all(std::slice::from_ref(&self.lost), Some(limit))),
            future.ok().map(|answer| answer.is_ok()),
            told,
        ]
    }
}

fn settled(answer: kiln::Result<bool>) -> Option<bool> {
    match answer {
        Ok(false) => None,
        Ok(true) => Some(true),
        Err(_) => Some(false),
    }
}

#[test]
fn lost_work_is_not_reported_done_before_it_is_decided() {
    for replay in [Replay::Never, Replay::NotStarted] {
        let between = Between::stop_at(80, replay);
        assert_eq!(between.gpu.status().phase(), Phase::Rebuilding);
        let limit = Duration::from_millis(20);
        let everything = [
            settled(between.gpu.main_stream().synchronize_within(limit)),
            settled(between.gpu.synchronize_within(limit)),
        ];
        for answer in between.ask().into_iter().chain(everything) {
            assert_ne!(answer, Some(true), "{replay:?}");
            // Where work may be done again, it is too early to say that it was not.
            assert!(replay == Replay::Never || answer.is_none(), "{replay:?}");
        }
        assert!(between.done.is_done().unwrap());
        between.go_on.send(()).unwrap();
        rig::recovered(&between.gpu, 0);
        assert!(between.lost.wait().is_err(), "{replay:?}");
        assert_eq!(between.ask()[..4], [Some(false); 4], "{replay:?}");
        assert_eq!(between.victim.download().unwrap(), [9], "{replay:?}");
        let Between { gpu, done, lost, victim, .. } = between;
        let later = victim.fill(3).unwrap();
        drop((gpu, victim));
        // A runtime that is gone has waited for its work, but that of another worker was lost.
        assert!(done.wait().is_ok() && later.wait().is_ok() && lost.wait().is_err(), "{replay:?}");
    }
}

#[test]
fn a_function_that_heals_is_told_that_it_cannot_wait_for_the_device() {
    for replay in [Replay::Never, Replay::NotStarted] {
        let watchdog = Some(Duration::from_secs(2));
        let gpu = rig::open(82, Process { replay, watchdog, ..rig::process() });
        let victim = gpu.upload(&[1_u32]).unwrap();
        let asked = Arc::new(std::sync::Mutex::new(None::<Ticket>));
        let (inside, ticket) = (gpu.clone(), asked.clone());
        let (tell, told) = channel();
        victim
            .heal_by(move || {
                let lost = ticket.lock().unwrap().clone().unwrap();
                let executor = tokio::runtime::Builder::new_current_thread().build().unwrap();
                let waits = [
                    lost.wait().is_err(),
                    lost.wait_within(Duration::from_secs(60)).is_err(),
                    executor.block_on(async { lost.await.is_err() }),
                    inside.synchronize().is_err(),
                    inside.zeros::<u32>(1).is_err(),
                    inside.watch().wait_until(|status| status.state.is_ready(), None).phase()
                        == Phase::Rebuilding,
                ];
                tell.send(waits).unwrap();
                vec![9]
            })
            .unwrap();
        let endless = gpu.kernel(replay_kernels::PTX, "endless").unwrap();
        // SAFETY: it writes one element, for ever.
        let lost = unsafe { gpu.launch(&endless).grid(1).block(1).write(&victim).submit() }.unwrap();
        *asked.lock().unwrap() = Some(lost.clone());
        assert!(!lost.wait_within(Duration::from_millis(300)).unwrap());
        rig::kill(&gpu);
        assert_eq!(told.recv().unwrap(), [true; 6], "{replay:?}");
        assert_eq!(victim.download().unwrap(), [9]);
        // What heals it holds the runtime, which would never end.
        victim.heal_with(&[9]).unwrap();
    }
}

#[test]
fn a_device_that_is_shut_down_before_the_decision_says_that_lost_work_is_lost() {
    for replay in [Replay::Never, Replay::NotStarted] {
        let between = Between::stop_at(81, replay);
        let waiting = std::thread::spawn({
            let lost = between.lost.clone();
            move || lost.wait()
        });
        assert!(between.gpu.shutdown(Duration::from_secs(5)).is_err(), "{replay:?}");
        assert!(waiting.join().unwrap().is_err(), "{replay:?}");
        assert_eq!(between.ask()[..4], [Some(false); 4], "{replay:?}");
        between.go_on.send(()).unwrap();
        assert!(between.done.is_done().unwrap() && between.lost.wait().is_err(), "{replay:?}");
        assert!(between.gpu.shutdown(Duration::from_secs(5)).is_err(), "{replay:?}");
        let Between { gpu, lost, victim, .. } = between;
        drop((gpu, victim));
        assert!(lost.wait().is_err(), "{replay:?}");
    }
}
