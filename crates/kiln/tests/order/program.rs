//! Random programs, run on the device and in submission order on the host at once.
//!
//! The host side is the oracle: plain vectors, changed one submission after the other. The simulator is the other oracle: its own
//! happens-before knows nothing of stamps and clocks.

use std::fmt;

use kiln::order::{Mutation, Recording};
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig, Stream, Ticket, memory::MemoryConfig};
use kiln_driver::{Access, Command, Pattern};
use kiln_sim::{Machine, MachineConfig, SimReport};

use super::kernels::{Kernels, joined, library, mixed};
use super::library::Library;

const BUFFER_LEN: usize = 12;
const MAX_BUFFERS: usize = 6;
const STREAMS: usize = 4;

/// A small generator; the programs must not depend on a library.
pub(crate) struct Choices(u64);

impl Choices {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

struct Pair {
    device: GpuRef<u32>,
    host: Vec<u32>,
}

/// What a run showed.
pub(crate) struct Outcome {
    pub(crate) report: SimReport,
    pub(crate) mismatch: Option<String>,
}

impl Outcome {
    pub(crate) fn is_clean(&self) -> bool {
        self.mismatch.is_none() && self.report.is_clean()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.mismatch.as_deref().unwrap_or("results are right"))?;
        write!(f, "{}", self.report)
    }
}

/// Where memory comes from, program by program.
const STACKS: [&str; 6] = ["heap", "pool", "heap", "direct", "pages", "guard(chunks)"];

/// Runs the program of a seed.
pub(crate) fn run(seed: u64, steps: usize, recording: Recording, mutation: Option<Mutation>) -> Outcome {
    let config = RuntimeConfig { recording, mutation, max_streams: STREAMS, ..RuntimeConfig::default() };
    on_machine(seed, config, |runtime| {
        World::new(runtime, Choices::new(seed ^ 0x5eed)).run(steps).map(|_| ())
    })
}

/// Runs the programs of a seed, one a thread, on one device. Each thread checks its buffers; all of them add to a shared one, and
/// additions come to the same sum in whatever order they are submitted.
pub(crate) fn run_threads(seed: u64, threads: usize, steps: usize) -> Outcome {
    let config = RuntimeConfig { max_streams: STREAMS * threads, ..RuntimeConfig::default() };
    on_machine(seed, config, |runtime| {
        let sum = runtime.upload(&[0_u32; BUFFER_LEN]).unwrap();
        let one = runtime.upload(&[1_u32; BUFFER_LEN]).unwrap();
        let added: Result<Vec<u32>, String> = std::thread::scope(|scope| {
            let start = |thread: usize| {
                let (sum, one) = (sum.clone(), one.clone());
                scope.spawn(move || {
                    let mut world = World::new(runtime, Choices::new(seed ^ (thread as u64) << 40));
                    world.shared = Some(Shared { sum, one, added: 0 });
                    world.run(steps)
                })
            };
            let running: Vec<_> = (0..threads).map(start).collect();
            running.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (expected, seen) = (vec![added?.into_iter().sum::<u32>(); BUFFER_LEN], sum.download().unwrap());
        if seen == expected { Ok(()) } else { Err(format!("the sum is {seen:?} and should be {expected:?}")) }
    })
}

fn on_machine(
    seed: u64,
    config: RuntimeConfig,
    program: impl FnOnce(&DeviceRuntime) -> Result<(), String>,
) -> Outcome {
    let machine = Machine::new(MachineConfig::seeded(seed).library(library()));
    // A rule that is taken out may take memory away that is in use, and the programs do not live through that where it is gone at once.
    let stack =
        if config.mutation.is_some() { STACKS[0] } else { STACKS[(seed % STACKS.len() as u64) as usize] };
    let stack = stack.parse().unwrap();
    let config = RuntimeConfig { memory: MemoryConfig { stack, ..config.memory }, ..config };
    let mismatch = {
        let runtime = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
        program(&runtime).err()
    };
    Outcome { report: machine.finish(), mismatch }
}

/// What the threads of a program have in common.
struct Shared {
    sum: GpuRef<u32>,
    one: GpuRef<u32>,
    added: u32,
}

struct World<'a> {
    runtime: &'a DeviceRuntime,
    kernels: Kernels,
    choices: Choices,
    streams: Vec<Stream>,
    pairs: Vec<Pair>,
    tickets: Vec<Ticket>,
    library: Library,
    shared: Option<Shared>,
}

impl<'a> World<'a> {
    fn new(runtime: &'a DeviceRuntime, choices: Choices) -> Self {
        let streams = (0..STREAMS).map(|_| runtime.stream().unwrap()).collect();
        Self {
            runtime,
            kernels: Kernels::load(runtime),
            choices,
            streams,
            pairs: Vec::new(),
            tickets: Vec::new(),
            library: Library::new(runtime.driver()),
            shared: None,
        }
    }

    fn run(mut self, steps: usize) -> Result<u32, String> {
        let done = (0..steps).try_for_each(|_| self.step());
        let right = done.and_then(|()| (0..self.pairs.len()).try_for_each(|at| self.compare(at)));
        self.streams.clear();
        // The other library may take its event back only when no stream waits for it any more.
        let quiet = self.runtime.synchronize().map_err(|error| error.to_string());
        self.library.close();
        quiet?;
        right.map(|()| self.shared.map_or(0, |shared| shared.added))
    }

    fn step(&mut self) -> Result<(), String> {
        if self.pairs.len() < 2 {
            self.allocate();
            return Ok(());
        }
        if self.shared.is_some() && self.choices.below(3) == 0 {
            self.add_to_sum();
            return Ok(());
        }
        match self.choices.below(22) {
            0 | 1 if self.pairs.len() < MAX_BUFFERS => self.allocate(),
            0..=6 => self.mix(),
            7..=9 => self.join(),
            10 | 11 => self.copy(),
            12 => self.fill(),
            13 => self.upload(),
            14 | 15 => self.free(),
            16 => self.wait(),
            17 => self.change_stream(),
            18 => self.foreign_fill(),
            19 => self.library_fill(),
            20 => self.library_stream(),
            _ => return self.compare_one(),
        }
        Ok(())
    }

    fn stream(&mut self) -> Stream {
        let at = self.choices.below(self.streams.len());
        self.streams[at].clone()
    }

    fn some(&mut self) -> usize {
        self.choices.below(self.pairs.len())
    }

    /// Two different buffers.
    fn two(&mut self) -> (usize, usize) {
        let first = self.some();
        let second = (first + 1 + self.choices.below(self.pairs.len() - 1)) % self.pairs.len();
        (first, second)
    }

    /// A range of elements, mostly all of them.
    fn range(&mut self) -> std::ops::Range<usize> {
        match self.choices.below(3) {
            0 => {
                let start = self.choices.below(BUFFER_LEN);
                start..start + 1 + self.choices.below(BUFFER_LEN - start)
            }
            _ => 0..BUFFER_LEN,
        }
    }

    fn values(&mut self) -> Vec<u32> {
        (0..BUFFER_LEN).map(|_| self.choices.next() as u32).collect()
    }

    fn allocate(&mut self) {
        let stream = self.stream();
        let host = self.values();
        let device = self.runtime.allocate_on::<u32>(&stream, BUFFER_LEN).unwrap();
        let writer = self.stream();
        self.tickets.push(device.upload_on(&writer, &host).unwrap());
        self.pairs.push(Pair { device, host });
    }

    fn mix(&mut self) {
        let (to, from) = self.two();
        let (range, stream, k) = (self.range(), self.stream(), self.choices.next() as u32 | 1);
        let (into, with) = (
            self.pairs[to].device.view(range.clone()).unwrap(),
            self.pairs[from].device.view(range.clone()).unwrap(),
        );
        let mut launch = self.runtime.launch(&self.kernels.mix);
        launch.grid(1).block(1);
        launch.on(&stream).read_write(&into).read(&with).value(range.len() as u32).value(k);
        // SAFETY: `mix` touches the elements it is told of, which lie inside both views.
        self.tickets.push(unsafe { launch.submit() }.unwrap());
        for at in range {
            self.pairs[to].host[at] = mixed(self.pairs[to].host[at], self.pairs[from].host[at], k);
        }
    }

    fn join(&mut self) {
        let (to, a) = self.two();
        let b = self.some();
        let (range, stream) = (self.range(), self.stream());
        if b == to {
            return;
        }
        let view = |at: usize| self.pairs[at].device.view(range.clone()).unwrap();
        let (into, left, right) = (view(to), view(a), view(b));
        let mut launch = self.runtime.launch(&self.kernels.join);
        launch.grid(1).block(1);
        launch.on(&stream).write(&into).read(&left).read(&right).value(range.len() as u32);
        // SAFETY: `join` touches the elements it is told of, which lie inside all three views.
        self.tickets.push(unsafe { launch.submit() }.unwrap());
        for at in range {
            self.pairs[to].host[at] = joined(self.pairs[a].host[at], self.pairs[b].host[at]);
        }
    }

    fn copy(&mut self) {
        let (to, from) = self.two();
        let (range, stream) = (self.range(), self.stream());
        let view = |at: usize| self.pairs[at].device.view(range.clone()).unwrap();
        self.tickets.push(view(to).copy_from_on(&stream, &view(from)).unwrap());
        let copied = self.pairs[from].host[range.clone()].to_vec();
        self.pairs[to].host[range].copy_from_slice(&copied);
    }

    fn fill(&mut self) {
        let (at, range, value) = (self.some(), self.range(), self.choices.next() as u32);
        self.tickets.push(self.pairs[at].device.view(range.clone()).unwrap().fill(value).unwrap());
        self.pairs[at].host[range].fill(value);
    }

    fn upload(&mut self) {
        let (at, stream, values) = (self.some(), self.stream(), self.values());
        self.tickets.push(self.pairs[at].device.upload_on(&stream, &values).unwrap());
        self.pairs[at].host = values;
    }

    fn free(&mut self) {
        let at = self.some();
        self.pairs.swap_remove(at);
    }

    fn wait(&mut self) {
        if self.tickets.is_empty() {
            return;
        }
        let at = self.choices.below(self.tickets.len());
        let ticket = self.tickets.swap_remove(at);
        if self.choices.below(2) == 0 {
            ticket.wait().unwrap();
        } else {
            ticket.is_done().unwrap();
        }
    }

    /// Gives a stream back with its work still queued, and leases one again.
    fn change_stream(&mut self) {
        let at = self.choices.below(self.streams.len());
        self.streams.swap_remove(at);
        self.streams.push(self.runtime.stream().unwrap());
    }

    /// Work queued past the runtime, with a guard around it.
    fn foreign_fill(&mut self) {
        let (at, stream, value) = (self.some(), self.stream(), self.choices.next() as u32);
        let buffer = &self.pairs[at].device;
        let prepared = self.runtime.prepare_block_use(&stream, &[buffer.used_as(Access::Write)]).unwrap();
        let command = Command::Fill {
            to: buffer.place().unwrap(),
            pattern: Pattern::U32(value),
            count: BUFFER_LEN as u64,
        };
        self.runtime.driver().submit(prepared.stream(), &command).unwrap();
        self.tickets.push(prepared.finish().unwrap());
        self.pairs[at].host.fill(value);
    }

    /// Work of another library on its own stream, ordered by events that go both ways.
    fn library_fill(&mut self) {
        let (at, before, after) = (self.some(), self.stream(), self.stream());
        let value = self.choices.next() as u32;
        let buffer = &self.pairs[at].device;
        let uses = [buffer.used_as(Access::Write)];
        let ready = self.runtime.prepare_block_use(&before, &uses).unwrap().finish().unwrap();
        self.library.wait_for(&ready.handed_event().unwrap());
        self.library.fill(buffer, value);
        self.library.signal();
        let done = self.library.lend_event(self.runtime);
        self.tickets.push(self.runtime.record_foreign_use(&after, &uses, &done).unwrap());
        self.pairs[at].host.fill(value);
    }

    /// Gives a stream back with its work still queued, and takes the other library's in.
    fn library_stream(&mut self) {
        let at = self.choices.below(self.streams.len());
        self.streams[at] = self.library.lend_stream(self.runtime);
    }

    /// One of many additions, from this thread.
    fn add_to_sum(&mut self) {
        let stream = self.stream();
        let Some(shared) = &mut self.shared else { return };
        let mut launch = self.runtime.launch(&self.kernels.mix);
        launch.grid(1).block(1);
        launch.on(&stream).read_write(&shared.sum).read(&shared.one).value(BUFFER_LEN as u32).value(1_u32);
        // SAFETY: `mix` touches the elements it is told of, which both buffers have.
        self.tickets.push(unsafe { launch.submit() }.unwrap());
        shared.added += 1;
    }

    fn compare_one(&mut self) -> Result<(), String> {
        let at = self.some();
        self.compare(at)
    }

    fn compare(&mut self, at: usize) -> Result<(), String> {
        let stream = self.stream();
        let mut seen = vec![0; BUFFER_LEN];
        self.pairs[at].device.download_into_on(&stream, &mut seen).map_err(|error| error.to_string())?;
        if seen == self.pairs[at].host {
            Ok(())
        } else {
            Err(format!("buffer {at} holds {seen:?} and should hold {:?}", self.pairs[at].host))
        }
    }
}
