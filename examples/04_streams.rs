//! Several streams without a single explicit event.
//!
//! `cargo run -p kiln --example 04_streams` runs on the GPU where there is one, and on the simulated device otherwise.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;
use std::time::Duration;

use kiln::driver::layer::{CommandKind, Counting, Counts, Layered};
use kiln::{DeviceRuntime, GpuRef, Kernel, RuntimeConfig, Stream, Ticket};

const KERNELS: &str = include_str!("vectors.ptx");

const LEN: u32 = 4_096;
const BLOCK: u32 = 256;
const BRANCHES: usize = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A layer that counts driver calls, between the runtime and the device.
    let driver = Arc::new(Layered::new(DeviceRuntime::auto()?.driver().clone(), Counting::default()));
    let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default())?;
    println!("{gpu:?}");
    let axpy = gpu.kernel(KERNELS, "axpy")?;
    let counted = |what: &str, before: &Counts| print(what, &driver.layer().counts().since(before));

    let source = gpu.allocate::<f32>(LEN as usize)?;
    let branches = upload_each(&gpu, 0.0)?;
    let streams: Vec<Stream> = (0..BRANCHES).map(|_| gpu.stream()).collect::<Result<_, _>>()?;

    // Out: four streams read what the main stream writes. One event is enough, and each of them waits for it.
    source.fill(1.0)?;
    let before = driver.layer().counts();
    for (branch, stream) in branches.iter().zip(&streams) {
        add(&gpu, &axpy, stream, 1.0, &source, branch)?;
    }
    counted("four streams read one buffer:", &before);

    // Along: what stays on its stream, or is ordered already, costs nothing but the launch itself.
    let before = driver.layer().counts();
    for round in 1..4 {
        for (branch, stream) in branches.iter().zip(&streams) {
            add(&gpu, &axpy, stream, round as f32, &source, branch)?;
        }
    }
    counted("twelve more that follow on their streams:", &before);

    // In: the main stream sums the branches up and then overwrites what all of them read.
    let before = driver.layer().counts();
    let sum = gpu.zeros::<f32>(LEN as usize)?;
    for branch in &branches {
        add(&gpu, &axpy, gpu.main_stream(), 1.0, branch, &sum)?;
    }
    source.fill(-1.0)?;
    counted("the main stream sums up and overwrites:", &before);

    // 1 + 1 + 2 + 3, four times.
    assert!(sum.download()?.iter().all(|value| *value == 28.0));
    assert_eq!(sum.last_write_stream(), kiln::buffer::LastWrite::Stream(gpu.main_stream().key()));

    // Tickets of several streams, waited for together; what the host waited for needs no event any more.
    let tickets: Vec<Ticket> = branches
        .iter()
        .zip(&streams)
        .map(|(branch, stream)| add(&gpu, &axpy, stream, 1.0, &source, branch))
        .collect::<Result<_, _>>()?;
    println!("all done in time: {}", Ticket::wait_all(&tickets, Some(Duration::from_secs(60)))?);
    let before = driver.layer().counts();
    for branch in &branches {
        add(&gpu, &axpy, gpu.main_stream(), 1.0, &source, branch)?;
    }
    counted("after the host waited for everything:", &before);
    for branch in &branches {
        assert!(branch.download()?.iter().all(|value| *value == 5.0));
    }

    // A stream goes back to its pool with its work still queued, and a buffer is freed after its last use, wherever that was.
    let late = add(&gpu, &axpy, &streams[0], 1.0, &sum, &branches[0])?;
    drop((streams, branches, sum));
    late.wait()?;
    println!("{:?}", gpu.streams());
    Ok(())
}

/// What a piece of work cost.
fn print(what: &str, counts: &Counts) {
    let of = |kind| counts.submitted(kind);
    println!(
        "{what:<44} {:>2} launches, {:>2} events, {:>2} waits",
        of(CommandKind::Launch),
        of(CommandKind::Signal),
        of(CommandKind::Wait)
    );
}

fn upload_each(gpu: &DeviceRuntime, value: f32) -> kiln::Result<Vec<GpuRef<f32>>> {
    (0..BRANCHES).map(|_| gpu.upload(&vec![value; LEN as usize])).collect()
}

/// `y = a * x + y` on a stream.
fn add(
    gpu: &DeviceRuntime,
    axpy: &Kernel,
    stream: &Stream,
    a: f32,
    x: &GpuRef<f32>,
    y: &GpuRef<f32>,
) -> kiln::Result<Ticket> {
    let mut launch = gpu.launch(axpy);
    launch.on(stream).grid(LEN.div_ceil(BLOCK)).block(BLOCK);
    launch.value(a).read(x).read_write(y).value(LEN);
    // SAFETY: axpy touches the first `LEN` elements of x and y, which both have, and ends.
    unsafe { launch.submit() }
}
