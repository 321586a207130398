//! A kernel, from its text to its result.
//!
//! `cargo run -p kiln --example 03_launch` runs on the GPU where there is one, and on the simulated device otherwise.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use kiln::{
    DeviceRuntime,
    launch::{In, InOut},
};

/// `axpy(a, x, y, n)`: `y = a * x + y`, as a compiler would write it. CUDA C works in the same place, where NVRTC is found.
const KERNELS: &str = include_str!("vectors.ptx");

const LEN: u32 = 10_000;
const BLOCK: u32 = 256;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = DeviceRuntime::auto()?;
    println!("{gpu:?}");

    // The text is read before it runs: what a kernel takes, and through which pointers it reads and writes.
    let axpy = gpu.kernel(KERNELS, "axpy")?;
    for parameter in axpy.signature().ok_or("the text was read")?.parameters() {
        println!(
            "  {}: {} bytes, {:?}",
            parameter.name.as_deref().unwrap_or("?"),
            parameter.bytes,
            parameter.kind
        );
    }

    let x = gpu.upload(&(0..LEN).map(|at| at as f32).collect::<Vec<_>>())?;
    let y = gpu.upload(&vec![1.0f32; LEN as usize])?;

    // SAFETY: axpy touches the first `LEN` elements of x and y, which both have, and ends.
    let ticket = unsafe {
        gpu.launch(&axpy)
            .grid(LEN.div_ceil(BLOCK))
            .block(BLOCK)
            .value(2.0f32)
            .read(&x)
            .read_write(&y)
            .value(LEN)
            .submit()?
    };

    // A ticket can be polled, waited for with or without a deadline, or ignored: a download waits for what it needs.
    println!("done within a minute: {}", ticket.wait_within(Duration::from_secs(60))?);
    assert!(y.download()?.iter().enumerate().all(|(at, value)| *value == 2.0 * at as f32 + 1.0));

    // The same with all arguments in one call.
    let mut launch = gpu.launch(&axpy);
    launch.grid(LEN.div_ceil(BLOCK)).block(BLOCK).pass((-2.0f32, In(&x), InOut(&y), LEN));
    // SAFETY: as above.
    unsafe { launch.submit()? };
    assert!(y.download()?.iter().all(|value| *value == 1.0));

    // What does not fit is refused before anything is queued, with the parameter and both sides.
    // SAFETY: none of the three is queued.
    let refused = unsafe {
        [
            gpu.launch(&axpy).grid(1).block(1).value(2.0f32).read(&x).submit(),
            gpu.launch(&axpy).grid(1).block(1).value(2.0f64).read(&x).read_write(&y).value(LEN).submit(),
            gpu.launch(&axpy).grid(1).block(1).value(2.0f32).read(&x).read(&y).value(LEN).submit(),
        ]
    };
    for error in refused {
        println!("refused: {}", error.err().ok_or("it does not fit")?);
    }
    assert!(y.download()?.iter().all(|value| *value == 1.0));
    println!("{LEN} elements are right");
    Ok(())
}
