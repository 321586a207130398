//! A small program on one device: two streams, four launches, copies, and every caller that waits for them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use kiln::{DeviceRuntime, Result, RuntimeConfig, Ticket, completion::CompletionConfig};
use kiln_driver::Image;
use kiln_sim::{DeviceConfig, FaultPlan, Machine, MachineConfig, Mode};

use super::executor::block_on;
use crate::order::kernels::{LIBRARY, library, mixed};

pub(crate) const LEN: usize = 16;
/// Launches of [`run`].
pub(crate) const LAUNCHES: u64 = 4;
/// The line of the launches.
pub(crate) const LAUNCH_FILE: &str = "scenario.rs";

/// Two devices in one world.
pub(crate) fn machine(mode: Mode, faults: FaultPlan) -> Machine {
    let config = MachineConfig::seeded(0).mode(mode).library(library()).faults(faults);
    Machine::new(config.device(DeviceConfig::default()).device(DeviceConfig::default()))
}

/// A runtime whose futures spin for so long.
pub(crate) fn runtime(machine: &Machine, ordinal: u32, spin: Duration) -> Result<DeviceRuntime> {
    let config = RuntimeConfig { completion: CompletionConfig { spin }, ..RuntimeConfig::default() };
    DeviceRuntime::from_driver(machine.device(ordinal)?, config)
}

/// How one waiter's wait ended, and how often it was answered.
#[derive(Default)]
pub(crate) struct Heard {
    answers: AtomicUsize,
    outcome: Mutex<Option<Result<()>>>,
    answered: Condvar,
}

impl Heard {
    fn answer(&self, outcome: Result<()>) {
        self.answers.fetch_add(1, Ordering::SeqCst);
        *self.outcome.lock().unwrap() = Some(outcome);
        self.answered.notify_all();
    }

    /// Waits for the answer.
    pub(crate) fn outcome(&self) -> Result<()> {
        let mut outcome = self.outcome.lock().unwrap();
        loop {
            match &*outcome {
                Some(outcome) => return outcome.clone(),
                None => outcome = self.answered.wait(outcome).unwrap(),
            }
        }
    }

    pub(crate) fn answers(&self) -> usize {
        self.answers.load(Ordering::SeqCst)
    }
}

/// What a run showed.
pub(crate) struct Shown {
    /// The result, if every call of the program succeeded.
    pub(crate) result: Result<Vec<u32>>,
    /// Every waiter of every ticket: blocking, callback, future.
    pub(crate) heard: Vec<Arc<Heard>>,
}

/// Runs the program; for each ticket a thread, a callback and a task wait.
pub(crate) fn run(gpu: &DeviceRuntime) -> Shown {
    let mut heard = Vec::new();
    let mut threads = Vec::new();
    let mut waits = |ticket: &Ticket| {
        let mut waiter = || {
            let new = Arc::new(Heard::default());
            heard.push(new.clone());
            new
        };
        let (blocking, callback, task) = (waiter(), waiter(), waiter());
        ticket.on_done(move |outcome| callback.answer(outcome));
        let ticket = ticket.clone();
        threads.push(std::thread::spawn(move || {
            task.answer(block_on(ticket.clone().into_future()));
            blocking.answer(ticket.wait());
        }));
    };
    let result = program(gpu, &mut waits);
    for thread in threads {
        thread.join().expect("no thread panics");
    }
    Shown { result, heard }
}

fn program(gpu: &DeviceRuntime, waits: &mut impl FnMut(&Ticket)) -> Result<Vec<u32>> {
    let mix = gpu.load_kernel(&Image::HostKernels(LIBRARY), "mix", None)?;
    let (one, two) = (gpu.stream()?, gpu.stream()?);
    let (x, y) = (gpu.upload(&[3_u32; LEN])?, gpu.upload(&[5_u32; LEN])?);
    for (stream, k) in [(&one, 2), (&two, 3), (&one, 4), (&two, 5)] {
        let (to, from) = if k % 2 == 0 { (&x, &y) } else { (&y, &x) };
        let mut launch = gpu.launch(&mix);
        launch.grid(1).block(1);
        launch.on(stream).read_write(to).read(from).value(LEN as u32).value(k);
        // SAFETY: the kernel indexes both buffers below the length only.
        waits(&unsafe { launch.submit() }?);
    }
    let z = gpu.zeros::<u32>(LEN)?;
    waits(&z.copy_from_on(&two, &x)?);
    z.download()
}

/// What the program computes.
pub(crate) fn expected() -> Vec<u32> {
    let (mut x, mut y) = (3, 5);
    for k in 2..=5 {
        match k % 2 {
            0 => x = mixed(x, y, k),
            _ => y = mixed(y, x, k),
        }
    }
    vec![x; LEN]
}
