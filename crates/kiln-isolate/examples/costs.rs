//! What isolation costs on this machine: a command, a question, a wait, a takeover.
//!
//! `cargo run --release -p kiln-isolate --example costs`, with `cuda` behind `--` for the first CUDA device.

#![allow(clippy::print_stdout, reason = "a measurement prints")]

use std::time::{Duration, Instant};

use kiln_driver::{
    Driver, DriverExt, EventRequest, PageRequest, Protection, ReserveRequest, StreamRequest, Timeout,
    WaitTarget,
};
use kiln_isolate::{DeviceSpec, IsolatedDevice, IsolationConfig};

const ROUNDS: usize = 15;
const BURST: u32 = 2_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    kiln_isolate::worker_entry();
    let cuda = std::env::args().any(|argument| argument == "cuda");
    let backend = if cuda { DeviceSpec::cuda(0) } else { DeviceSpec::simulated(1) };
    for standby in [false, true] {
        let begun = Instant::now();
        let device = IsolatedDevice::open(IsolationConfig::new(backend.clone()).standby(standby))?;
        println!("{} opened in {:?}, standby: {standby}", device.info().name, begun.elapsed());
        if !standby {
            commands(&device)?;
        }
        takeovers(&device)?;
    }
    Ok(())
}

/// The middle of several measurements, for each of so many operations.
fn report(
    what: &str,
    operations: u32,
    mut measure: impl FnMut() -> kiln_driver::Result<Duration>,
) -> kiln_driver::Result<()> {
    let mut times = (0..ROUNDS).map(|_| measure()).collect::<kiln_driver::Result<Vec<_>>>()?;
    times.sort();
    println!("  {what:<52} {:>10.0} ns", times[ROUNDS / 2].as_nanos() as f64 / f64::from(operations));
    Ok(())
}

fn commands(device: &IsolatedDevice) -> kiln_driver::Result<()> {
    let stream = device.create_stream(StreamRequest::New { priority: 0 })?;
    let event = device.create_event(EventRequest::Plain)?;
    let memory = device.allocate(kiln_driver::MemoryRequest::Direct { bytes: 4096 })?;
    report("submit a fill, in bursts", BURST, || {
        device.synchronize(stream)?;
        let begun = Instant::now();
        for _ in 0..BURST {
            device.fill(stream, memory.id.into(), 1, 64)?;
        }
        Ok(begun.elapsed())
    })?;
    report("submit a signal, in bursts", BURST, || {
        device.synchronize(stream)?;
        let begun = Instant::now();
        for _ in 0..BURST {
            device.submit(stream, &kiln_driver::Command::Signal(event))?;
        }
        Ok(begun.elapsed())
    })?;
    report("create and destroy an event", BURST, || {
        device.synchronize(stream)?;
        let begun = Instant::now();
        for _ in 0..BURST {
            let event = device.create_event(EventRequest::Plain)?;
            device.destroy(event.into())?;
        }
        Ok(begun.elapsed())
    })?;
    report("a question and its answer (memory_info)", 500, || {
        let begun = Instant::now();
        for _ in 0..500 {
            device.memory_info()?;
        }
        Ok(begun.elapsed())
    })?;
    device.synchronize(stream)?;
    report("wait for a stream that is done", 10_000, || {
        let begun = Instant::now();
        for _ in 0..10_000 {
            let _ = device.wait(WaitTarget::Stream(stream), Timeout::Never)?;
        }
        Ok(begun.elapsed())
    })?;
    report("fill and wait, there and back", 200, || {
        let begun = Instant::now();
        for _ in 0..200 {
            device.fill(stream, memory.id.into(), 1, 64)?;
            device.synchronize(stream)?;
        }
        Ok(begun.elapsed())
    })
}

fn takeovers(device: &IsolatedDevice) -> Result<(), Box<dyn std::error::Error>> {
    let granule = device.info().limits.page_granularity_bytes;
    let reservation = device.reserve(ReserveRequest { bytes: 16 * granule, at: None })?;
    for at in 0..16 {
        let pages = device.create_pages(PageRequest { bytes: granule, exportable: false })?;
        device.map(reservation.id, at * granule, &[pages], Protection::ReadWrite)?;
    }
    for _ in 0..3 {
        // Time for a standby to be ready.
        std::thread::sleep(Duration::from_millis(1500));
        device.kill_worker();
        let begun = Instant::now();
        let takeover = device.take_over()?;
        println!(
            "  taken over in {:?} (standby: {}), {:?}",
            begun.elapsed(),
            takeover.standby,
            takeover.phases
        );
    }
    Ok(())
}
