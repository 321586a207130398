//! A device that refuses a single call, whichever: what was refused has not happened, everything else has, and all of it in order.
//!
//! The same program is run once for each call that it makes, with that one refused. What its caller was told to have failed is left out of
//! the expected result; nothing else may be missing, and the device looks for races, memory that is used too late, and leaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kiln::order::Recording;
use kiln::{
    DeviceRuntime, GpuRef, Graph, RuntimeConfig, Stream, Ticket, buffer::PinnedBuffer, memory::MemoryConfig,
};
use kiln_driver::call::{Call, CallKind};
use kiln_driver::layer::{Layer, Layered};
use kiln_driver::{Access, Driver, Error};
use kiln_sim::{Machine, MachineConfig};

use crate::order::kernels::{Kernels, library, mixed};
use crate::order::library::Library;

const LEN: usize = 16;

/// Refuses one call of those that a device may refuse, counted from 1.
#[derive(Default)]
struct Refusing {
    seen: AtomicU64,
    refused: AtomicU64,
}

impl Layer for Refusing {
    fn before(&self, _: &dyn Driver, call: &Call<'_>) -> kiln_driver::Result<()> {
        let may = [CallKind::Submit, CallKind::CreateEvent, CallKind::AllocateHost, CallKind::Wait];
        if !may.contains(&call.kind()) {
            return Ok(());
        }
        let number = self.seen.fetch_add(1, Ordering::Relaxed) + 1;
        match self.refused.load(Ordering::Relaxed) {
            refused if refused == number => Err(Error::invalid("call", "refused as planned", "ask again")),
            _ => Ok(()),
        }
    }
}

struct Scene {
    gpu: DeviceRuntime,
    kernels: Kernels,
    streams: [Stream; 3],
    buffers: [GpuRef<u32>; 3],
    /// Sets the last of them to 17.
    graph: Graph,
    pinned: PinnedBuffer<u32>,
    /// What each buffer holds if everything went as its callers were told.
    expected: [u32; 3],
}

impl Scene {
    fn new(gpu: DeviceRuntime) -> Self {
        let buffers = [1, 2, 3].map(|value| gpu.upload(&[value; LEN]).unwrap());
        gpu.synchronize().unwrap();
        let streams = [(); 3].map(|()| gpu.stream().unwrap());
        let (graph, _) = gpu.record(|graph| graph.fill(&buffers[2], 17)).unwrap();
        let mut pinned = gpu.pinned(LEN).unwrap();
        pinned.write().unwrap().fill(19);
        Self { kernels: Kernels::load(&gpu), gpu, streams, buffers, graph, pinned, expected: [1, 2, 3] }
    }

    /// `to = to * k + from`
    fn mix(&mut self, stream: usize, to: usize, from: usize, k: u32) {
        let mut launch = self.gpu.launch(&self.kernels.mix);
        launch.grid(1).block(1);
        launch.on(&self.streams[stream]).read_write(&self.buffers[to]).read(&self.buffers[from]);
        launch.value(LEN as u32).value(k);
        // SAFETY: the kernel touches `LEN` elements, which both buffers have.
        let done = unsafe {
            match to {
                0 => launch.submit_timed().map(drop),
                _ => launch.submit().map(drop),
            }
        };
        if done.is_ok() {
            self.expected[to] = mixed(self.expected[to], self.expected[from], k);
        }
    }

    fn set(&mut self, to: usize, value: u32, done: kiln::Result<Ticket>) {
        if done.is_ok() {
            self.expected[to] = value;
        }
    }

    /// Every kind of work, on streams that wait for each other.
    fn run(&mut self, theirs: &Library) {
        for round in 0..3_u32 {
            let at = |offset: u32| ((round + offset) % 3) as usize;
            self.mix(at(0), at(0), at(1), 3 + round);
            self.mix(at(1), at(1), at(0), 5 + round);
            let filled = self.buffers[at(2)].fill_on(&self.streams[at(0)], 7 + round);
            self.set(at(2), 7 + round, filled);
            self.mix(at(2), at(0), at(2), 9 + round);
            let copied = self.buffers[at(1)].copy_from_on(&self.streams[at(2)], &self.buffers[at(0)]);
            self.set(at(1), self.expected[at(0)], copied);
            let uploaded = self.buffers[at(2)].upload_on(&self.streams[at(1)], &[11 + round; LEN]);
            self.set(at(2), 11 + round, uploaded);
            self.work_of_another_library(theirs, at(0), at(2));
            self.memory_that_comes_and_goes(at(1), at(2));
            let replayed = self.graph.replay_on(&self.streams[at(1)]);
            self.set(2, 17, replayed);
            self.mix(at(2), at(1), 2, 15 + round);
            let copied = self.pinned.copy_to_on(&self.streams[at(0)], &self.buffers[at(2)]);
            self.set(at(2), 19, copied);
            if let Ok(seen) = self.buffers[at(1)].download() {
                assert_eq!(seen, [self.expected[at(1)]; LEN], "a download that succeeds is right");
            }
            let _ = self.streams[at(0)].synchronize();
        }
    }

    fn work_of_another_library(&mut self, theirs: &Library, stream: usize, to: usize) {
        let uses = [self.buffers[to].used_as(Access::Write)];
        let Ok(used) = self.gpu.prepare_block_use(&self.streams[stream], &uses) else { return };
        if theirs.try_fill_on(used.stream(), &self.buffers[to], 13).is_ok() {
            self.expected[to] = 13;
        }
        used.finish().unwrap();
    }

    /// Memory that is used here and there and given back at once, so that another owner gets it.
    fn memory_that_comes_and_goes(&self, home: usize, other: usize) {
        for (home, other) in [(home, other), (other, home)] {
            let Ok(scratch) = self.gpu.allocate_on::<u32>(&self.streams[home], LEN) else { continue };
            let _ = scratch.fill_on(&self.streams[home], 1);
            let _ = scratch.copy_from_on(&self.streams[other], &self.buffers[home]);
        }
    }
}

/// Runs the program with one call refused; how many there were.
fn run(seed: u64, stack: &str, recording: Recording, refused: u64) -> u64 {
    let machine = Machine::new(MachineConfig::seeded(seed).library(library()));
    let calls = {
        let driver = Arc::new(Layered::new(machine.device(0).unwrap(), Refusing::default()));
        let memory = MemoryConfig { stack: stack.parse().unwrap(), ..MemoryConfig::default() };
        let config = RuntimeConfig { memory, recording, ..RuntimeConfig::default() };
        let gpu = DeviceRuntime::from_driver(driver.clone(), config).unwrap();
        let theirs = Library::new(gpu.driver());
        let mut scene = Scene::new(gpu);
        let layer = driver.layer();
        layer.seen.store(0, Ordering::Relaxed);
        layer.refused.store(refused, Ordering::Relaxed);
        scene.run(&theirs);
        layer.refused.store(0, Ordering::Relaxed);
        let calls = layer.seen.load(Ordering::Relaxed);
        let what = format!("{stack}, {recording:?}, seed {seed}, call {refused} of {calls}");
        for (buffer, value) in scene.buffers.iter().zip(scene.expected) {
            assert_eq!(buffer.download().unwrap(), [value; LEN], "{what}");
        }
        theirs.close();
        calls
    };
    let report = machine.finish();
    assert!(report.is_clean(), "{stack}, {recording:?}, call {refused}: {report}");
    calls
}

#[test]
fn what_is_refused_has_not_happened_and_everything_else_has() {
    for recording in [Recording::Adaptive, Recording::OnDemand, Recording::AtOnce] {
        for stack in ["heap", "pool", "direct"] {
            let calls = run(1, stack, recording, 0);
            assert!(calls > 50, "{calls}");
            for refused in 1..=calls {
                run(1 + refused % 5, stack, recording, refused);
            }
        }
    }
}
