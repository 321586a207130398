//! Many threads submit at once, on the threaded simulator, whose checks stay on.

use kiln::order::{DependencyTracker, Mutation, Recording};
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig};
use kiln_driver::Access;
use kiln_sim::{Machine, MachineConfig};

use crate::order::between::reader_went_ahead;
use crate::order::kernels::{Kernels, library};

const LEN: usize = 8;

fn add(gpu: &DeviceRuntime, kernels: &Kernels, stream: &kiln::Stream, to: &GpuRef<u32>, from: &GpuRef<u32>) {
    let mut launch = gpu.launch(&kernels.mix);
    launch.grid(1).block(1);
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

/// The parts can be used from any thread.
#[test]
fn handles_can_be_sent_and_shared() {
    fn shared<T: Send + Sync>() {}
    shared::<GpuRef<f32>>();
    shared::<DeviceRuntime>();
    shared::<kiln::Stream>();
    shared::<kiln::Ticket>();
    shared::<kiln::buffer::PinnedBuffer<f32>>();
    shared::<DependencyTracker>();
}
