//! Many threads submit at once, on the threaded simulator, whose checks stay on.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod order {
    pub(crate) mod kernels;
}

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kiln::order::{Mutation, Recording, Tracker};
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig};
use kiln_driver::Access;
use kiln_sim::{Machine, MachineConfig};
use order::kernels::{Kernels, library};

const LEN: usize = 8;

fn add(gpu: &DeviceRuntime, kernels: &Kernels, stream: &kiln::Stream, to: &GpuRef<u32>, from: &GpuRef<u32>) {
    let mut launch = gpu.launch(&kernels.mix);
    launch.on(stream).read_write(to).read(from).value(LEN as u32).value(1_u32);
    // SAFETY: the kernel touches `LEN` elements, which both buffers have.
    unsafe { launch.submit() }.unwrap();
}

/// Additions commute, so whatever the order the threads came in, the sums are known.
#[test]
fn additions_from_many_threads_and_streams_are_all_there() {
    const THREADS: u32 = 4;
    const ROUNDS: u32 = 60;
    for recording in [Recording::Adaptive, Recording::OnDemand, Recording::AtOnce] {
        let machine = Machine::new(MachineConfig::threaded().library(library()));
        {
            let config = RuntimeConfig { recording, ..RuntimeConfig::default() };
            let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
            let kernels = Kernels::load(&gpu);
            let sums: Vec<GpuRef<u32>> = (0..3).map(|_| gpu.upload(&[0_u32; LEN]).unwrap()).collect();
            let one = gpu.upload(&[1_u32; LEN]).unwrap();
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (gpu, kernels, sums, one) = (&gpu, &kernels, &sums, &one);
                    scope.spawn(move || {
                        let stream = gpu.stream().unwrap();
                        for round in 0..ROUNDS {
                            add(gpu, kernels, &stream, &sums[((thread + round) % 3) as usize], one);
                            if round % 7 == thread {
                                let own = gpu.upload(&[round; LEN]).unwrap();
                                assert_eq!(own.download().unwrap(), [round; LEN]);
                            }
                        }
                    });
                }
            });
            let total: u32 = sums.iter().map(|sum| sum.download().unwrap()).map(|sum| sum[0]).sum();
            assert_eq!(total, THREADS * ROUNDS);
        }
        let report = machine.finish();
        assert!(report.is_clean(), "{recording:?}: {report}");
    }
}

/// Two threads use the same two blocks in opposite order; each must get both or none.
#[test]
fn blocks_named_in_opposite_order_do_not_deadlock() {
    let machine = Machine::new(MachineConfig::threaded().library(library()));
    {
        let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
        let (a, b) = (gpu.upload(&[1_u32; LEN]).unwrap(), gpu.upload(&[1_u32; LEN]).unwrap());
        let (one, two) = (gpu.stream().unwrap(), gpu.stream().unwrap());
        std::thread::scope(|scope| {
            for (stream, first, second) in [(&one, &a, &b), (&two, &b, &a)] {
                let gpu = &gpu;
                scope.spawn(move || {
                    for _ in 0..300 {
                        let uses = [first.used_as(Access::ReadWrite), second.used_as(Access::ReadWrite)];
                        gpu.prepare_block_use(stream, &uses).unwrap().finish().unwrap();
                    }
                });
            }
        });
    }
    assert!(machine.finish().is_clean());
}

/// A reader arrives while a writer has planned and not yet queued its work. It must wait for the writer; with publication taken out of
/// the step it does not, and reads too early.
#[test]
fn a_reader_between_check_and_publication_waits_for_the_writer() {
    assert_eq!(reader_went_ahead(None), Ok(false));
    let without = reader_went_ahead(Some(Mutation::PublicationInsideStep));
    assert_ne!(without, Ok(false), "publication taken out of the step was not caught");
}

/// Whether a reader that comes while a writer is between its plan and its work is queued first, or what the simulator found.
fn reader_went_ahead(mutation: Option<Mutation>) -> Result<bool, String> {
    let machine = Machine::new(MachineConfig::seeded(3).library(library()));
    let went_ahead = {
        let config = RuntimeConfig { mutation, ..RuntimeConfig::default() };
        let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
        let buffer = gpu.upload(&[1_u32; LEN]).unwrap();
        let (writer, reader) = (gpu.stream().unwrap(), gpu.stream().unwrap());
        let (planned, queued) = (Barrier::new(2), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| {
                planned.wait();
                let before = queued.load(Ordering::SeqCst);
                gpu.prepare_block_use(&reader, &[buffer.used_as(Access::Read)]).unwrap().finish().unwrap();
                !before && !queued.load(Ordering::SeqCst)
            });
            let used = gpu.prepare_block_use(&writer, &[buffer.used_as(Access::Write)]).unwrap();
            planned.wait();
            std::thread::sleep(Duration::from_millis(100));
            let command = kiln_driver::Command::Fill {
                to: buffer.place().unwrap(),
                pattern: kiln_driver::Pattern::U32(9),
                count: LEN as u64,
            };
            gpu.driver().submit(used.stream(), &command).unwrap();
            queued.store(true, Ordering::SeqCst);
            used.finish().unwrap();
            reading.join().unwrap()
        })
    };
    let report = machine.finish();
    if report.is_clean() { Ok(went_ahead) } else { Err(report.to_string()) }
}

/// Planning costs what is needed and no more: for every order of a few writes and reads on three streams, the waits queued are the fewest
/// that order everything.
#[test]
fn small_programs_get_the_fewest_waits() {
    use kiln_driver::layer::{Counting, Layered};
    for program in 0..6_u32.pow(4) {
        let steps: Vec<(usize, bool)> = (0..4)
            .map(|at| program / 6_u32.pow(at) % 6)
            .map(|code| ((code / 2) as usize, code % 2 == 0))
            .collect();
        let machine = Machine::new(MachineConfig::seeded(1).library(library()));
        let driver = std::sync::Arc::new(Layered::new(machine.device(0).unwrap(), Counting::default()));
        {
            let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
            let streams = [gpu.stream().unwrap(), gpu.stream().unwrap(), gpu.stream().unwrap()];
            let buffer = gpu.allocate_on::<u32>(&streams[0], LEN).unwrap();
            let before = driver.layer().counts();
            for (stream, writes) in &steps {
                let access = if *writes { Access::Write } else { Access::Read };
                gpu.prepare_block_use(&streams[*stream], &[buffer.used_as(access)])
                    .unwrap()
                    .finish()
                    .unwrap();
            }
            let counts = driver.layer().counts().since(&before);
            let waits = counts.submitted(kiln_driver::layer::CommandKind::Wait);
            assert_eq!(waits, fewest_waits(&steps), "{steps:?}");
        }
        let _ = machine.finish();
    }
}

/// Waits needed when each step waits for what it conflicts with and is not ordered after yet, knowing everything every stream was ordered
/// after at the moment it is waited for. Written over sets of steps, with no numbers and no clocks.
fn fewest_waits(steps: &[(usize, bool)]) -> u64 {
    let mut before: Vec<Vec<usize>> = Vec::new();
    let mut waits = 0;
    for (at, (stream, writes)) in steps.iter().enumerate() {
        let mut known: Vec<usize> = Vec::new();
        if let Some(last) = (0..at).rev().find(|step| steps[*step].0 == *stream) {
            known.push(last);
            known.extend(&before[last]);
        }
        let last_write = (0..at).rev().find(|step| steps[*step].1);
        let conflicts = |step: &usize| {
            let since = last_write.is_none_or(|write| *step >= write);
            since && (*writes || steps[*step].1)
        };
        // The latest conflict first: it may bring the earlier ones along.
        for step in (0..at).rev().filter(conflicts) {
            if known.contains(&step) {
                continue;
            }
            // Waiting for a step waits for everything its stream did until now.
            let newest = (0..at).rev().find(|other| steps[*other].0 == steps[step].0).unwrap_or(step);
            waits += 1;
            known.push(newest);
            known.extend(before[newest].clone());
            let same_stream = (0..newest).filter(|other| steps[*other].0 == steps[step].0);
            known.extend(same_stream);
        }
        before.push(known);
    }
    waits
}

/// The parts can be used from any thread.
#[test]
fn handles_can_be_sent_and_shared() {
    fn shared<T: Send + Sync>() {}
    shared::<GpuRef<f32>>();
    shared::<DeviceRuntime>();
    shared::<kiln::Stream>();
    shared::<kiln::Ticket>();
    shared::<kiln::PinnedBuffer<f32>>();
    shared::<Tracker>();
}
