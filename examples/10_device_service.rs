//! Devices behind queues: typed requests, one reply each, and an address that stays when a device does not.
//!
//! `cargo run -p kiln --example 10_device_service` runs on the GPU where there is one, and on the simulated device otherwise. The fault is shown on
//! simulated devices, where it can be ordered.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kiln::driver::Code;
use kiln::recovery::Phase;
use kiln::service::{
    DeviceFleet, DeviceService, Readback, RefusalReason, Request, Restart, ServiceConfig, Started, Upload,
};
use kiln::sim::{FaultPlan, Machine, MachineConfig, PlannedFault, PtxEngine};
use kiln::{DeviceRuntime, RuntimeConfig};

const KERNELS: &str = include_str!("vectors.ptx");
const BLOCK: u32 = 256;

/// A request: `a * x + y`. It brings its host buffers along and gets them back if it is refused.
struct Axpy {
    a: f32,
    x: Vec<f32>,
    y: Vec<f32>,
}

impl Request for Axpy {
    type Output = Vec<f32>;

    fn start(&mut self, device: &DeviceRuntime) -> kiln::Result<Started<Vec<f32>>> {
        let axpy = device.kernel(KERNELS, "axpy")?;
        let (x, y) = (device.upload(&self.x)?, device.upload(&self.y)?);
        let len = self.x.len().min(self.y.len()) as u32;
        let mut launch = device.launch(&axpy);
        launch.grid(len.div_ceil(BLOCK)).block(BLOCK).value(self.a).read(&x).read_write(&y).value(len);
        // SAFETY: the kernel touches the first `len` elements of both and no more.
        unsafe { launch.submit() }?;
        let mut back = device.pinned_uninit(self.y.len())?;
        let ticket = back.copy_from(&y)?;
        Ok(Started::then(ticket, move || back.to_vec()))
    }
}

fn request(seed: f32) -> Axpy {
    Axpy { a: 2.0, x: vec![seed; 1000], y: vec![1.0; 1000] }
}

fn is_right(seed: f32, output: &[f32]) -> bool {
    output.len() == 1000 && output.iter().all(|value| *value == 2.0 * seed + 1.0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    requests()?;
    overflow()?;
    restart()?;
    placement()
}

/// Requests overlap on the device, and each gets its own typed output.
fn requests() -> Result<(), Box<dyn std::error::Error>> {
    let service = DeviceService::over(DeviceRuntime::auto()?.clone(), ServiceConfig::default())?;
    let replies: Vec<_> = (0..50).map(|seed| service.submit(request(seed as f32))).collect();
    for (seed, reply) in replies.into_iter().enumerate() {
        assert!(is_right(seed as f32, &reply.wait()?));
    }
    let buffer = service.submit(Upload::new(vec![7u32; 16])).wait()?;
    assert_eq!(service.submit(Readback::new(buffer)).wait()?, [7; 16]);
    println!("52 requests, 52 replies; {} served", service.load().served);
    Ok(())
}

/// A queue that is full says so, and gives the buffers back.
fn overflow() -> Result<(), Box<dyn std::error::Error>> {
    let config = ServiceConfig { max_queued: 4, max_in_flight: 1, ..ServiceConfig::default() };
    let service = DeviceService::start(config, || {
        // A device that takes its time to start; requests wait for it.
        std::thread::sleep(Duration::from_millis(50));
        DeviceRuntime::simulated(1)
    })?;
    let replies: Vec<_> = (0..10).map(|seed| service.submit(request(seed as f32))).collect();
    let (mut done, mut back) = (0, 0);
    for (seed, reply) in replies.into_iter().enumerate() {
        match reply.wait() {
            Ok(output) => done += usize::from(is_right(seed as f32, &output)),
            Err(refused) => {
                assert!(matches!(refused.why, RefusalReason::Full { limit: 4 }) && refused.is_retryable());
                back += usize::from(refused.request.x == vec![seed as f32; 1000]);
            }
        }
    }
    assert_eq!(done + back, 10);
    println!("ten requests to a queue of four: {done} done, {back} came back with their buffers");
    Ok(())
}

/// A device that faults is built again. What was in flight fails with the cause; what waited is done by the next device.
fn restart() -> Result<(), Box<dyn std::error::Error>> {
    let made = Arc::<AtomicU64>::default();
    let config = ServiceConfig { restart: Restart::times(3), max_in_flight: 1, ..ServiceConfig::default() };
    let service = DeviceService::start(config, move || {
        let faults = match made.fetch_add(1, Ordering::Relaxed) {
            0 => FaultPlan::none().on(0, PlannedFault::Sticky { launch: 3, code: Code::ILLEGAL_ADDRESS }),
            _ => FaultPlan::none(),
        };
        let config = MachineConfig::seeded(1).engine(Arc::new(PtxEngine::default())).faults(faults);
        DeviceRuntime::from_driver(Machine::new(config).device(0)?, RuntimeConfig::default())
    })?;
    let replies: Vec<_> = (0..10).map(|seed| service.submit(request(seed as f32))).collect();
    for (seed, reply) in replies.into_iter().enumerate() {
        match reply.wait() {
            Ok(output) => assert!(is_right(seed as f32, &output)),
            Err(refused) => println!("request {seed} was in flight: {refused}"),
        }
    }
    let status = service.status();
    assert_eq!((status.phase(), status.generation.0), (Phase::Ready, 1));
    println!("the same address, one device later: {status}");
    Ok(())
}

/// Two devices, one of them slow: after a few requests it is known, and left alone.
fn placement() -> Result<(), Box<dyn std::error::Error>> {
    let slow = FaultPlan::none().on(0, PlannedFault::SlowCopies { factor: 100 });
    let config = MachineConfig::seeded(1).engine(Arc::new(PtxEngine::default())).faults(slow);
    let machine = Machine::new(config.device(Default::default()).device(Default::default()));
    let service = |ordinal| -> kiln::Result<DeviceService> {
        let device = DeviceRuntime::from_driver(machine.device(ordinal)?, RuntimeConfig::default())?;
        DeviceService::over(device, ServiceConfig::default())
    };
    let fleet = DeviceFleet::new(vec![service(0)?, service(1)?]);
    for seed in 0..40 {
        assert!(is_right(seed as f32, &fleet.submit(request(seed as f32)).wait()?));
    }
    for (device, load) in fleet.loads().iter().enumerate() {
        println!("device {device}: {} requests, {:?} each", load.served, load.mean_time);
    }
    assert_eq!(fleet.least_loaded(), Some(1));
    assert!(fleet.shutdown(Duration::from_secs(10)));
    println!("all devices shut down, nothing left");
    Ok(())
}
