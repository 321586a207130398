//! What a program of many backends asks before it uses a GPU: is there one, whose is it, and what if not.
//!
//! `cargo run -p kiln --example backend_probe` goes through it on the GPU where there is one, and on the simulated device otherwise.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use kiln::driver::{DeviceKind, Driver};
use kiln::libraries::{self, Library};
use kiln::probe::{
    CudaAbsence, CudaPlatform, Listing, PartOutcome, Platform, Prober, ProberConfig, SimulatorPlatform,
    gather,
};
use kiln::sim::{DeviceConfig, Machine, MachineConfig};
use kiln::{
    Policy,
    backend::{BackendContext, CachedBackend},
    probe::{Absence, Availability},
};

const KERNELS: &str = include_str!("vectors.ptx");
const LEN: u32 = 1_000;

/// Every module of the program has a cell like this one.
static SOLVER: CachedBackend<BackendContext> = CachedBackend::new();

fn main() -> Result<(), Box<dyn Error>> {
    // Absence is a value and not an error. Asked under an explicit policy, the question settles nothing for others.
    match kiln::probe::prober().availability_under(Policy::Auto)? {
        Availability::Available(devices) => {
            for device in devices.working() {
                println!(
                    "device {}: {}, {} MiB",
                    device.ordinal,
                    device.name,
                    device.total_memory_bytes >> 20
                );
            }
        }
        Availability::Absent(absence) => {
            println!("no GPU ({}): {absence}", absence.name());
            // A program that may run without one says so once, before first use, and all other code just asks.
            kiln::probe::set_policy(Policy::Simulate)?;
        }
    }
    // From here on one answer for the whole process, kept.
    assert!(kiln::probe::availability()?.is_available());
    policies()?;
    labels()?;
    solver()?;
    partition()?;
    for library in [Library::Nvrtc, Library::Cublas] {
        match libraries::find(library) {
            Ok(found) => println!("library: {found}"),
            Err(missing) => {
                println!("library: {}", missing.to_string().split(" (").next().unwrap_or_default())
            }
        }
    }
    println!("the probe keeps its promises");
    Ok(())
}

/// A policy is a value of each request, and one of the process that cannot change once it is used.
fn policies() -> Result<(), Box<dyn Error>> {
    assert!(kiln::probe::resolve(Policy::Off)?.is_none(), "off touches nothing");
    assert!(kiln::probe::resolve(Policy::Simulate)?.is_some());
    let settled = kiln::probe::set_policy(kiln::probe::policy()?)?;
    let other = if settled == Policy::Off { Policy::Auto } else { Policy::Off };
    let conflict = kiln::probe::set_policy(other).err().ok_or("a second setting is not ignored")?;
    println!("policy {settled}; and then: {conflict}");
    Ok(())
}

/// A machine without a driver, to show what backends say there.
struct Nowhere;

impl Platform for Nowhere {
    fn kind(&self) -> DeviceKind {
        CudaPlatform.kind()
    }

    fn list(&self) -> kiln::probe::Result<Listing> {
        Ok(Listing::Absent(Absence::from(CudaAbsence::NoDevice)))
    }

    fn open(&self, _: u32) -> kiln::probe::Result<std::sync::Arc<dyn Driver>> {
        Err(Absence::from(CudaAbsence::NoDevice).into())
    }
}

/// A prober over two simulated devices, and over a CUDA that is not there.
fn prober() -> Prober {
    let machine = Machine::new(
        MachineConfig::seeded(1)
            .device(DeviceConfig::with_memory(3 << 30))
            .device(DeviceConfig::with_memory(1 << 30)),
    );
    Prober::new(ProberConfig {
        cuda: Box::new(Nowhere),
        simulator: Box::new(SimulatorPlatform::new(machine)),
        policy_override: None,
    })
}

/// Every error says who asked, keeps what lies below, and can be asked what it is.
fn labels() -> Result<(), Box<dyn Error>> {
    let error = prober().probe_backend("solver").err().ok_or("there is nothing to probe")?;
    assert_eq!(error.to_string(), "solver backend: no CUDA runtime available");
    assert!(error.is_absence() && !error.is_sticky() && !error.is_oom());
    println!("{error:#}");
    Ok(())
}

/// The first caller builds the backend; all callers share it, and modules and buffers are used again.
fn solver() -> Result<(), Box<dyn Error>> {
    let built = || SOLVER.get_or_probe("solver", |parts| Ok(BackendContext::from_parts(parts)));
    let solver = built()?;
    assert!(std::ptr::eq(solver, built()?));
    let gpu = solver.runtime();
    let axpy = gpu.kernel(KERNELS, "axpy")?;
    for _ in 0..3 {
        let (x, y) = (solver.buffer::<f32>(LEN as usize)?, solver.buffer::<f32>(LEN as usize)?);
        x.fill(1.0)?;
        y.fill(2.0)?;
        let mut launch = gpu.launch(&axpy);
        launch.grid(LEN.div_ceil(256)).block(256).value(3.0f32).read(&x).read_write(&y).value(LEN);
        // SAFETY: the kernel touches the first LEN elements of both and no more.
        unsafe { launch.submit() }?;
        assert!(y.view(..LEN as usize)?.download()?.iter().all(|value| *value == 5.0));
    }
    println!("solver on {gpu:?}: three solutions with {:?}", solver.arena().usage());
    Ok(())
}

/// Work is split over all devices by weight, each index once, and a device may decline its part.
fn partition() -> Result<(), Box<dyn Error>> {
    let prober = prober();
    prober.set_policy(Policy::Simulate)?;
    let shares = prober.balanced_partition(1_000)?;
    assert_eq!(shares.iter().map(|share| share.range.end - share.range.start).sum::<u64>(), 1_000);
    let parts = prober.scatter(1_000, |gpu, range| {
        let ones = vec![1u32; (range.end - range.start) as usize];
        match gpu.upload(&ones).and_then(|buffer| buffer.download()) {
            Ok(back) => PartOutcome::Done(back.iter().map(|one| u64::from(*one)).sum::<u64>()),
            Err(error) => PartOutcome::Failed(error),
        }
    });
    let sums = parts.done().map(gather).and_then(PartOutcome::done).ok_or("both devices did their part")?;
    assert_eq!(sums.iter().sum::<u64>(), 1_000);
    let budget = prober.memory_budget_for(0)?;
    println!("1000 over {} devices: {sums:?}; the first has {budget:?}", shares.len());
    assert!(prober.memory_budget_for(9).is_err(), "a device that is not there has no budget");
    Ok(())
}
