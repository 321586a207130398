//! What an actor system asks of a device, promise by promise.
//!
//! Such a system keeps handles in messages, restarts what fails, and must answer every request. `cargo run -p kiln --example actor_service` goes
//! through what it needs, on the GPU where there is one and on the simulated device otherwise; faults are shown on simulated devices.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use kiln::driver::call::Call;
use kiln::driver::layer::{Layer, Layered};
use kiln::driver::{Access, Code, Driver};
use kiln::recovery::{Keep, Phase};
use kiln::service::{DeviceService, RefusalReason, Request, ServiceConfig, Started};
use kiln::sim::{FaultPlan, Machine, MachineConfig, PlannedFault, PtxEngine};
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig, buffer::Stale, recovery::DeviceState};

const KERNELS: &str = include_str!("vectors.ptx");
const LEN: u32 = 1_024;

fn main() -> Result<(), Box<dyn Error>> {
    handles(DeviceRuntime::auto()?)?;
    foreign_work(DeviceRuntime::auto()?)?;
    fault()?;
    rebuild()?;
    replies()?;
    println!("every promise kept");
    Ok(())
}

fn promise(text: &str) {
    println!("  {text}");
}

/// A handle is a value that can be sent anywhere; it holds its memory and not the device.
fn handles(shared: &DeviceRuntime) -> Result<(), Box<dyn Error>> {
    println!("handles");
    fn travels<T: Clone + Send + Sync + 'static>(_: &T) {}
    // A separate runtime on the same device, so that it can end here.
    let gpu = DeviceRuntime::from_driver(shared.driver().clone(), RuntimeConfig::default())?;
    let buffer = gpu.upload(&[1.0f32; LEN as usize])?;
    travels(&buffer);
    let clone = buffer.clone();
    std::thread::spawn(move || clone.fill(2.0)).join().map_err(|_| "the thread ended badly")??;
    assert!(buffer.download()?.iter().all(|value| *value == 2.0));
    promise("every clone can write, from any thread, and the order is kept");
    let memory = buffer.access()?;
    assert!(memory.address.0 != 0 && memory.bytes == u64::from(LEN) * 4);
    assert_eq!((buffer.len(), buffer.generation().0), (LEN as usize, 0));
    assert_eq!(buffer.device_id(), Some(gpu.ordinal()));
    drop(gpu);
    assert_eq!((buffer.access(), buffer.device_id()), (Err(Stale::DeviceDropped), None));
    promise("a handle outlives its device and says so");
    Ok(())
}

/// Library code that queues work itself says what it did.
fn foreign_work(gpu: &DeviceRuntime) -> Result<(), Box<dyn Error>> {
    println!("foreign work");
    let stream = gpu.stream()?;
    let buffer = gpu.zeros::<f32>(16)?;
    {
        let pointer = gpu.raw_device_ptr(&stream, &buffer, Access::ReadWrite)?;
        assert_eq!(pointer.address(), buffer.access()?.address);
        // Here another library would be called with the address and the stream.
    }
    assert_eq!(buffer.last_write_stream(), kiln::buffer::LastWrite::Stream(stream.key()));
    buffer.record_write(gpu.main_stream())?.wait()?;
    assert_eq!(buffer.last_write_stream(), kiln::buffer::LastWrite::Stream(gpu.main_stream().key()));
    promise("a raw pointer is a guard that stamps its use; a write can be recorded after the fact");
    Ok(())
}

fn axpy(gpu: &DeviceRuntime, x: &GpuRef<f32>, y: &GpuRef<f32>) -> kiln::Result<kiln::Ticket> {
    let kernel = gpu.kernel(KERNELS, "axpy")?;
    let mut launch = gpu.launch(&kernel);
    launch.grid(LEN.div_ceil(256)).block(256).value(1.0f32).read(x).read_write(y).value(LEN);
    // SAFETY: the kernel touches the first LEN elements of both and no more.
    unsafe { launch.submit() }
}

fn faulty(launch: u64) -> kiln::Result<DeviceRuntime> {
    let plan = FaultPlan::none().on(0, PlannedFault::Sticky { launch, code: Code::ILLEGAL_ADDRESS });
    let config = MachineConfig::seeded(1).engine(Arc::new(PtxEngine::default())).faults(plan);
    DeviceRuntime::from_driver(Machine::new(config).device(0)?, RuntimeConfig::default())
}

/// A fault completes every waiter, with the code, the kernel and the line.
fn fault() -> Result<(), Box<dyn Error>> {
    println!("a fault");
    let gpu = faulty(2)?;
    let (sender, changes) = mpsc::channel();
    let subscription = gpu.on_change(move |status| drop(sender.send(status.clone())))?;
    let (x, y) = (gpu.upload(&[1.0f32; LEN as usize])?, gpu.zeros::<f32>(LEN as usize)?);
    let (_, bad) = (axpy(&gpu, &x, &y)?, axpy(&gpu, &x, &y)?);
    let (called, call) = mpsc::channel();
    bad.on_done(move |outcome| drop(called.send(outcome)));
    let blocked = bad.wait().err().ok_or("the launch cannot have ended well")?;
    let told = call.recv()?.err().ok_or("nor for the callback")?;
    assert_eq!((blocked.code(), told.code()), (Some(Code::ILLEGAL_ADDRESS), Some(Code::ILLEGAL_ADDRESS)));
    promise("every waiter is answered, blocked or by callback, with the cause");
    let phases: Vec<Phase> = changes.iter().take(3).map(|status| status.phase()).collect();
    assert_eq!(phases, [Phase::Ready, Phase::Lost, Phase::Failed]);
    let DeviceState::Failed(cause) = gpu.state() else { return Err("it failed".into()) };
    assert_eq!(cause.kernel(), Some("axpy"));
    assert!(cause.launched_at().is_some_and(|at| at.file().ends_with("actor_service.rs")));
    println!("  the cause: {cause}");
    assert!(gpu.upload(&[1u8]).is_err_and(|error| error.is_sticky()));
    promise("every later call fails at once, with the same cause");
    drop(subscription);
    Ok(())
}

/// A driver that can lose its context and build it again, as one in a worker process does.
struct Reborn(std::sync::atomic::AtomicBool);

impl Layer for Reborn {
    fn before(&self, _: &dyn Driver, _: &Call<'_>) -> kiln::driver::Result<()> {
        if self.0.load(std::sync::atomic::Ordering::Relaxed) {
            let fault = kiln::driver::Fault { code: Code::ECC_UNCORRECTABLE, detail: "as shown here".into() };
            return Err(kiln::driver::Error::lost("any", fault));
        }
        Ok(())
    }
}

/// A device that comes back keeps what unfinished work could not have touched.
fn rebuild() -> Result<(), Box<dyn Error>> {
    println!("a rebuild");
    let device = Machine::new(MachineConfig::seeded(1)).device(0)?;
    let driver = Arc::new(Layered::new(device, Reborn(false.into())));
    let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default())?;
    let supervisor = gpu.control_recovery()?;
    let (kept, caught) = (gpu.upload(&[1u32; 8])?, gpu.upload(&[2u32; 8])?);
    gpu.synchronize()?;
    let unfinished = caught.fill(3)?;
    driver.layer().0.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(gpu.memory_info().is_err());
    assert!(kept.fill(1).is_err_and(|error| error.is_retryable()));
    supervisor.rebuilding()?;
    driver.layer().0.store(false, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(supervisor.rebuilt(Keep::Untouched)?.0, 1);
    assert_eq!((kept.download()?, kept.generation().0), (vec![1; 8], 1));
    assert_eq!((caught.access(), caught.generation().0), (Err(Stale::Lost), 0));
    assert!(unfinished.wait().is_err_and(|error| error.code() == Some(Code::ECC_UNCORRECTABLE)));
    promise("the generation grows by one; what was caught in the middle is stale, everything else is there");
    Ok(())
}

/// Something an actor asks for.
struct Double(Vec<f32>);

impl Request for Double {
    type Output = Vec<f32>;

    fn start(&mut self, device: &DeviceRuntime) -> kiln::Result<Started<Vec<f32>>> {
        let (x, y) = (device.upload(&self.0)?, device.upload(&self.0)?);
        axpy(device, &x, &y)?;
        let mut back = device.pinned_uninit(self.0.len())?;
        let ticket = back.copy_from(&y)?;
        Ok(Started::then(ticket, move || Ok(back.read()?.to_vec())))
    }
}

/// A mailbox in front of the device answers every message once, and gives buffers back.
fn replies() -> Result<(), Box<dyn Error>> {
    println!("replies");
    let service = DeviceService::start(ServiceConfig::default(), || faulty(3))?;
    let messages: Vec<_> = (0..6).map(|at| service.submit(Double(vec![at as f32; LEN as usize]))).collect();
    let (mut done, mut failed) = (0, 0);
    for (at, message) in messages.into_iter().enumerate() {
        match message.wait() {
            Ok(output) => done += usize::from(output == vec![2.0 * at as f32; LEN as usize]),
            Err(refused) => {
                assert_eq!(refused.why.device().and_then(kiln::Error::code), Some(Code::ILLEGAL_ADDRESS));
                failed += usize::from(refused.request.0 == vec![at as f32; LEN as usize]);
            }
        }
    }
    assert_eq!(done + failed, 6);
    println!("  six messages to a device that faults: {done} answered, {failed} back with their buffers");
    service.shutdown(Duration::from_secs(10));
    let late = service.submit(Double(vec![0.0; 4])).wait();
    assert!(late.is_err_and(|refused| matches!(refused.why, RefusalReason::Closed)));
    promise("after the end there is an answer, too");
    Ok(())
}
