//! Waiting for a device in an async program: on any executor, with no thread for each wait.
//!
//! `cargo run -p kiln --example 09_await` runs on the GPU where there is one, and on the simulated device otherwise. The executor is a dozen lines
//! in `block_on.rs` beside this file; any other does as well.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

mod block_on;

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::Poll;

use block_on::block_on;
use kiln::recovery::Phase;
use kiln::{DeviceRuntime, GpuRef, Kernel, Ticket};

const KERNELS: &str = include_str!("vectors.ptx");

const LEN: u32 = 4_096;
const BLOCK: u32 = 256;
const TASKS: usize = 100;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = DeviceRuntime::auto()?;
    println!("{gpu:?}");
    let axpy = gpu.kernel(KERNELS, "axpy")?;
    let threads_before = threads();

    // One launch: a ticket is a future.
    let x = gpu.upload(&vec![1.0f32; LEN as usize])?;
    let y = gpu.zeros::<f32>(LEN as usize)?;
    block_on(add(gpu, &axpy, 2.0, &x, &y)?.into_future())?;

    // A readback is one too. The copy is queued here and not when it is awaited.
    let readback = y.download_async()?;
    let back = block_on(readback)?;
    assert!(back.iter().all(|value| *value == 2.0));
    println!("one launch and one readback awaited: {} elements, all {}", back.len(), back[0]);

    // Many at once, each with its buffer and its answer.
    let tasks: Vec<_> = (0..TASKS).map(|task| multiple(gpu, &axpy, &x, task as f32)).collect();
    let sums = block_on(all(tasks));
    for (task, sum) in sums.into_iter().enumerate() {
        assert_eq!(sum?, task as f32 * LEN as f32);
    }
    println!(
        "{TASKS} tasks awaited together, with {} more threads",
        threads().saturating_sub(threads_before)
    );

    // A future can be dropped. The work goes on, and what it uses stays until it is done.
    for _ in 0..10 {
        drop(add(gpu, &axpy, 1.0, &x, &y)?.into_future());
        drop(y.download_async()?);
    }
    assert!(block_on(y.download_async()?)?.iter().all(|value| *value == 12.0));
    println!("ten launches whose futures were dropped were done");

    // The state of the device can be awaited, too.
    let mut watch = gpu.watch();
    let status = block_on(watch.changed()).ok_or("a device that is used has a state")?;
    assert_eq!(status.phase(), Phase::Ready);
    println!("the device: {status}");
    Ok(())
}

/// Computes a multiple of `x` and sums it up on the host.
async fn multiple(gpu: &DeviceRuntime, axpy: &Kernel, x: &GpuRef<f32>, a: f32) -> kiln::Result<f32> {
    let y = gpu.zeros::<f32>(LEN as usize)?;
    add(gpu, axpy, a, x, &y)?.await?;
    Ok(y.download_async()?.await?.iter().sum())
}

fn add(gpu: &DeviceRuntime, axpy: &Kernel, a: f32, x: &GpuRef<f32>, y: &GpuRef<f32>) -> kiln::Result<Ticket> {
    let mut launch = gpu.launch(axpy);
    launch.grid(LEN.div_ceil(BLOCK)).block(BLOCK).value(a).read(x).read_write(y).value(LEN);
    // SAFETY: the kernel touches the first LEN elements of both and no more.
    unsafe { launch.submit() }
}

/// Threads of this process, where the system can tell.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

/// All futures side by side, and their outputs in order.
async fn all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none()
                && let Poll::Ready(ready) = future.as_mut().poll(context)
            {
                *output = Some(ready);
            }
        }
        if outputs.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().flatten().collect()
}
