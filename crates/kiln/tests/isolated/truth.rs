//! Threads that ask in every way there is whether their work is done, while worker after worker is killed under them. An answer is the truth,
//! by what then lies in memory of the host that outlives every worker, and it stays what it was.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use kiln::recovery::Status;
use kiln::recovery::{Process, Replay};
use kiln::{
    DeviceRuntime, GpuRef, Stream, Ticket,
    buffer::{PinnedBuffer, Stale},
    error::ErrorKind,
};

use crate::rig;

const THREADS: u64 = 3;
const WORDS: usize = 16;

/// A number that depends on the seed and on how often it was asked for.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// The ways to ask; the last two are asked about a whole stream and a whole device.
#[derive(Clone, Copy, Debug)]
enum Way {
    Poll,
    Wait,
    WaitWithin,
    Callback,
    Future,
    Stream,
    Device,
}

const WAYS: [Way; 7] =
    [Way::Poll, Way::Wait, Way::WaitWithin, Way::Callback, Way::Future, Way::Stream, Way::Device];

impl Way {
    /// Whether the work was done, by this way; none if that way cannot say, since the device is another one meanwhile.
    fn ask(self, gpu: &DeviceRuntime, stream: &Stream, ticket: &Ticket) -> Option<bool> {
        match self {
            Self::Poll => loop {
                match ticket.is_done() {
                    Ok(true) => return Some(true),
                    Ok(false) => std::thread::yield_now(),
                    Err(_) => return Some(false),
                }
            },
            Self::Wait => Some(ticket.wait().is_ok()),
            Self::WaitWithin => loop {
                match ticket.wait_within(Duration::from_micros(50)) {
                    Ok(true) => return Some(true),
                    Ok(false) => {}
                    Err(_) => return Some(false),
                }
            },
            Self::Callback => {
                let (tell, told) = channel();
                ticket.on_done(move |answer| tell.send(answer.is_ok()).unwrap());
                Some(told.recv().unwrap())
            }
            Self::Future => {
                let executor = tokio::runtime::Builder::new_current_thread().build().unwrap();
                Some(executor.block_on(async { ticket.clone().await.is_ok() }))
            }
            Self::Stream => Some(stream.synchronize().is_ok()),
            Self::Device => {
                let generation = gpu.generation();
                let done = gpu.synchronize().is_ok();
                (done && gpu.generation() == generation && ticket.is_done().is_ok()).then_some(true)
            }
        }
    }
}

fn settled(status: &Status) -> bool {
    status.state.is_ready() || status.phase().is_over()
}

/// One thread's own things.
struct Asker<'a> {
    gpu: &'a DeviceRuntime,
    stream: &'a Stream,
    dice: Dice,
    value: u32,
    /// What was said of work so far.
    answers: Vec<(Ticket, bool)>,
    /// Work of all threads that was done.
    done: &'a AtomicUsize,
}

impl Asker<'_> {
    fn run(&mut self, over: &AtomicBool) {
        while !over.load(Ordering::SeqCst) {
            if self.gpu.watch().wait_until(settled, None).phase().is_over() {
                return;
            }
            let made = self.gpu.allocate_on::<u32>(self.stream, WORDS);
            let made = made.and_then(|buffer| Ok((buffer, self.gpu.pinned::<u32>(WORDS)?)));
            if let Ok((buffer, mut copy)) = made {
                while self.round(&buffer, &mut copy) {}
            }
        }
    }

    /// Writes, copies to the host and asks; false if a fresh buffer is needed.
    fn round(&mut self, buffer: &GpuRef<u32>, copy: &mut PinnedBuffer<u32>) -> bool {
        self.value += 1;
        let submitted =
            buffer.upload_on(self.stream, &[self.value; WORDS]).and_then(|_| copy.copy_from(buffer));
        let ticket = match submitted {
            Ok(ticket) => ticket,
            Err(error) => {
                let expected = error.is_lost()
                    || self.gpu.status().phase().is_over()
                    || matches!(error.kind(), ErrorKind::NotReady { .. } | ErrorKind::Stale(_));
                assert!(expected, "{error}");
                return false;
            }
        };
        let way = WAYS[self.dice.roll(WAYS.len() as u64) as usize];
        if let Some(mut done) = way.ask(self.gpu, self.stream, &ticket) {
            if !done {
                // A lost device is the answer to a caller that asks before it is decided, also about what turns out to have been done.
                self.gpu.watch().wait_until(settled, None);
                done = ticket.wait().is_ok();
            }
            if done {
                self.done.fetch_add(1, Ordering::SeqCst);
                let found = copy.read().unwrap_or_else(|error| panic!("{way:?} said it is done: {error}"));
                assert_eq!(found, [self.value; WORDS], "{way:?} said it is done");
            }
            self.answers.push((ticket, done));
        }
        let kept = self.answers.len().saturating_sub(200);
        self.answers.drain(..kept);
        self.confirm();
        buffer.access() != Err(Stale::Lost)
    }

    /// Asks again about work of before: the answer is the same.
    fn confirm(&mut self) {
        let at = self.dice.roll(self.answers.len().max(1) as u64) as usize;
        if let Some((ticket, done)) = self.answers.get(at) {
            assert_eq!(ticket.wait().is_ok(), *done, "{ticket:?}");
        }
    }
}

fn every_answer_is_true(seed: u64, replay: Replay, standby: bool) {
    const KILLS: u64 = 12;
    let gpu = rig::open(seed, Process { replay, standby, ..rig::process() });
    let streams: Vec<_> = (0..THREADS).map(|_| gpu.stream().unwrap()).collect();
    let (over, failed, finished) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let answers: Vec<_> = std::thread::scope(|scope| {
        let askers: Vec<_> = streams
            .iter()
            .zip(1..)
            .map(|(stream, thread)| {
                let (gpu, over, done) = (&gpu, &over, &finished);
                let (dice, value) = (Dice(seed * 77 + thread), (thread as u32) << 24);
                let mut asker = Asker { gpu, stream, dice, value, answers: Vec::new(), done };
                scope.spawn(move || {
                    asker.run(over);
                    asker.answers
                })
            })
            .collect();
        let mut dice = Dice(seed);
        // On a busy machine a worker may be killed before anything is done.
        while finished.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        for _ in 0..KILLS {
            std::thread::sleep(Duration::from_micros(dice.roll(8_000)));
            rig::kill(&gpu);
        }
        // The last one is still being taken over when everything ends.
        gpu.isolated_device().unwrap().kill_worker();
        std::thread::sleep(Duration::from_micros(dice.roll(4_000)));
        failed.fetch_add(usize::from(gpu.shutdown(Duration::from_secs(20)).is_err()), Ordering::SeqCst);
        over.store(true, Ordering::SeqCst);
        askers.into_iter().flat_map(|asker| asker.join().unwrap()).collect()
    });
    drop((streams, gpu));
    let (done, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|(_, done)| *done);
    assert!(done.iter().all(|(ticket, _)| ticket.wait().is_ok()), "it was done and is no more");
    assert!(lost.iter().all(|(ticket, _)| ticket.wait().is_err()), "it was lost and is done");
    assert!(!done.is_empty(), "seed {seed}: nothing was ever done");
}

#[test]
fn what_is_said_of_work_is_true_and_stays_so() {
    for seed in 1..=3 {
        for replay in [Replay::Never, Replay::NotStarted] {
            every_answer_is_true(seed, replay, seed % 2 == 0);
        }
    }
}
