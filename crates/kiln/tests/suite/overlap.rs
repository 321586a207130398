//! Work that has nothing to do with each other runs at the same time, and nothing else does: read off the simulated device's clock.

use std::time::Duration;

use kiln::{DeviceRuntime, GpuRef, Kernel, RuntimeConfig, Stream};
use kiln_driver::{Access, Driver, Image};
use kiln_sim::{HostKernel, KernelLibrary, Machine, MachineConfig};

const LIBRARY: &str = "overlap";
const SPIN: Duration = Duration::from_millis(1);
const KERNELS: u32 = 4;

/// `spin(buffer)`: one write, and a millisecond.
fn library() -> KernelLibrary {
    let spin = HostKernel::new("spin").pointer(Access::Write).body(|launch| {
        let address = launch.address(0)?;
        launch.port().store(address, 1_u32)?;
        launch.spend(SPIN);
        Ok(())
    });
    KernelLibrary::new(LIBRARY).kernel(spin)
}

/// Device time of a program that queues kernels on streams; `buffers` gives each launch the buffer it writes.
fn device_time(streams: usize, buffers: impl Fn(&DeviceRuntime, &Stream) -> GpuRef<u32>) -> Duration {
    let machine = Machine::new(MachineConfig::seeded(1).library(library()));
    let passed = {
        let driver = machine.device(0).unwrap();
        let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
        let spin: Kernel = gpu.load_kernel(&Image::HostKernels(LIBRARY), "spin", None).unwrap();
        let leases: Vec<Stream> = (0..streams).map(|_| gpu.stream().unwrap()).collect();
        let start = driver.clock().now();
        for _ in 0..KERNELS {
            for stream in &leases {
                let buffer = buffers(&gpu, stream);
                let mut launch = gpu.launch(&spin);
                launch.grid(1).block(1);
                launch.on(stream).write(&buffer);
                // SAFETY: the kernel writes the first element of the buffer.
                unsafe { launch.submit() }.unwrap();
            }
        }
        gpu.synchronize().unwrap();
        driver.clock().now() - start
    };
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
    passed
}

/// Each kernel allocates, writes and frees on its own stream.
fn separate_buffer(gpu: &DeviceRuntime, stream: &Stream) -> GpuRef<u32> {
    gpu.allocate_on(stream, 2).unwrap()
}

#[test]
fn independent_work_on_four_streams_takes_the_time_of_one() {
    let one = device_time(1, separate_buffer);
    assert!(one >= SPIN * KERNELS, "{one:?}");
    for streams in [2, 4] {
        let time = device_time(streams, separate_buffer);
        assert!(time * 10 <= one * 11, "{streams} streams took {time:?}, and one {one:?}");
    }
}

#[test]
fn work_on_the_same_bytes_takes_turns() {
    let shared = std::sync::OnceLock::<GpuRef<u32>>::new();
    let four = device_time(4, |gpu, _| shared.get_or_init(|| gpu.allocate(2).unwrap()).clone());
    assert!(four >= SPIN * KERNELS * 4, "{four:?}");
}
